/**
 * CEL with the functions that a server has. The library is loaded when the first rule is read: a cluster without rules starts without it.
 */
import { createRequire } from 'node:module'
import type { Environment } from '@marcbachmann/cel-js'
import { registerFormats } from './formats.ts'
import { registerLists } from './lists.ts'
import { registerNet } from './net.ts'
import { registerQuantity } from './quantity.ts'
import { registerSemver } from './semver.ts'
import { registerStrings } from './strings.ts'
import { registerTimes } from './times.ts'

const require = createRequire(import.meta.url)

export type Cel = typeof import('@marcbachmann/cel-js')
export const cel = (): Cel => require('@marcbachmann/cel-js')

/** What a function throws that cannot answer: the message is the server's. */
export class Failure extends Error {}

export const options = { enableOptionalTypes: true } as const

let base: Environment | undefined

/** An environment of its own, for types and variables to be added. */
export function newEnvironment(): Environment {
  if (!base) {
    const { Environment, Optional } = cel()
    base = new Environment(options)
    const optional = (value: unknown) => (value === undefined ? Optional.none() : Optional.of(value))
    for (const register of [
      registerLists,
      registerStrings,
      registerTimes,
      registerNet,
      registerQuantity,
      registerSemver,
    ]) {
      register(base)
    }
    registerFormats(base, optional)
  }
  return base.clone(options)
}
