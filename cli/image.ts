/**
 * The program in the controller's image, one CommonJS file: the command line with what runs in a cluster, and nothing else.
 */
import { type Listed, runProgram } from './program.ts'

/** Set by the build. */
declare const SHIPMATE_VERSION: string

const commands: Readonly<Record<string, Listed>> = {
  controller: {
    summary: 'look after apps on the cluster, until it is stopped',
    load: () => import('./commands/controller.ts'),
  },
}

/** What Node runs when this file is its program. */
export function main(): void {
  runProgram({ commands, version: () => SHIPMATE_VERSION }, process.argv.slice(2)).then(code => {
    process.exitCode = code
  })
}
