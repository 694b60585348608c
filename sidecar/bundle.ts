/**
 * The program in the sidecar's image, one CommonJS file: `sidecar …`, `install-agent DIR`, and `init exec …`, which does what shipmate-init does
 * where there is none. `shipmate` loads this same file for these words.
 *
 * Guarantee: of the three only the one that is asked for is evaluated. An agent that has drained, or was replaced, ends the process itself.
 */
import { systemClock } from '../shared/clock.ts'
import { messageOf } from '../shared/errors.ts'
import { keepSmall } from './memory.ts'

const commands: Record<string, (argv: string[]) => Promise<number>> = {
  async sidecar(argv) {
    const { sidecar } = await import('./main.ts')
    const stop = keepSmall({ clock: systemClock })
    try {
      return await sidecar(argv)
    } finally {
      stop()
    }
  },
  async 'install-agent'(argv) {
    const { installCommand } = await import('./install/command.ts')
    return await installCommand(argv, __filename)
  },
  async init(argv) {
    const { execRun } = await import('./init/twin.ts')
    return await execRun(argv[0] === 'exec' ? argv.slice(1) : argv)
  },
}

/** Answers the exit code. Everything that a command throws is a defect of it. */
export async function run(argv: readonly string[]): Promise<number> {
  const [word = '', ...rest] = argv
  const command = Object.hasOwn(commands, word) ? commands[word] : undefined
  if (!command) {
    process.stderr.write(`agent: unknown command "${word}"; there are ${Object.keys(commands).join(', ')}\n`)
    return 2
  }
  try {
    return await command(rest)
  } catch (error) {
    process.stderr.write(`shipmate ${word}: ${error instanceof Error ? error.stack : messageOf(error)}\n`)
    return 1
  }
}

/** What Node runs when this file is its program. */
export function main(): void {
  run(process.argv.slice(2)).then(code => {
    process.exitCode = code
  })
}
