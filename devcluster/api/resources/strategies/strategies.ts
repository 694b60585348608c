/**
 * What is particular to a built-in kind, by group and plural. A kind that is not here has defaults and checks of its schema alone.
 */
import type { Strategy } from '../../types.ts'
import { apps } from './apps.ts'
import { batch } from './batch.ts'
import { core } from './core.ts'
import { others } from './others.ts'

export const strategies: Readonly<Record<string, Strategy>> = { ...core, ...apps, ...batch, ...others }
