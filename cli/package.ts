/**
 * This package itself: where it is, and what its manifest says. The same from the sources and from dist.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'

const file = createRequire(import.meta.url).resolve('shipmate/package.json')

export const packageFolder = dirname(file)

interface Manifest {
  readonly version: string
  readonly engines: { readonly node: string }
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

export function manifest(): Manifest {
  return JSON.parse(readFileSync(file, 'utf8'))
}
