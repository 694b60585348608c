/**
 * Where generated manifests go: to stdout, or into files of a folder; or they are compared with what stands there.
 */
import { type Command, Option } from 'commander'
import { Failure, Misuse } from './ending.ts'
import { compare, type Files, tell, writeGenerated } from './files.ts'

export interface GeneratedOptions {
  readonly output?: string | undefined
  readonly check?: boolean | undefined
}

export function withOutputOptions(command: Command): Command {
  return command
    .option('-o, --output <DIR>', 'write files into this folder (default: print them)')
    .addOption(new Option('--check', 'fail if the files in the folder are not as they would be written'))
}

/** @param anew the command that would write them */
export function emit(files: Files, { output, check }: GeneratedOptions, anew: string): void {
  if (output === undefined) {
    if (check) throw new Misuse('--check compares with files: say where they are, by --output')
    process.stdout.write(Object.values(files).join('---\n'))
  } else if (check) {
    const stale = compare(output, files).filter(({ is }) => is !== 'unchanged')
    const said = stale.map(({ file, is }) => `${file} ${is === 'created' ? 'is missing' : 'is stale'}`)
    if (said.length > 0) throw new Failure(`${said.join(', ')}: run ${anew}`)
  } else tell(writeGenerated(output, files))
}
