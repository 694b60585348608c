/**
 * How a benchmark is called: its options are read, help is printed, what is missing is told. Exit code 2 when it was called the wrong way.
 */
import { loadavg } from 'node:os'

export interface Called<Options> {
  /** Undefined where help was asked for; throws where the call is wrong. */
  readonly readOptions: (args: string[]) => Options | undefined
  readonly help: string
  /** What it cannot do without, if that is not there. */
  readonly missing?: string | undefined
  /** Answers the exit code. `load`: how busy the machine was before. */
  readonly bench: (options: Options, load: number) => Promise<number>
}

export async function main<Options>({ readOptions, help, missing, bench }: Called<Options>): Promise<void> {
  process.exitCode = await called()

  async function called(): Promise<number> {
    let options: Options | undefined
    try {
      options = readOptions(process.argv.slice(2))
    } catch (error) {
      console.error(`${(error as Error).message}\n\n${help}`)
      return 2
    }
    if (options === undefined) {
      console.log(help)
      return 0
    }
    if (missing !== undefined) {
      console.error(missing)
      return 1
    }
    const [load = 0] = loadavg()
    if (load > 0.5) console.log(`This machine is busy (load ${load.toFixed(1)}): times will be rough.`)
    return bench(options, load)
  }
}
