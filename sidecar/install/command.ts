/**
 * `shipmate install-agent DIR`: answers 0 and prints how the agent is started from there; 1 with one sentence why not; 2 when it was called the wrong way.
 */
import { messageOf } from '../../shared/errors.ts'
import { install } from './install.ts'

const usage = `Usage: shipmate install-agent DIR

Copies the agent into DIR, with all it needs to start in any Linux container: Node and its libraries, the agent, shipmate-init.
It prints, and writes into DIR/command.json, the command and the environment to start it with; the sidecar's own options follow.

Example, in an init container of the sidecar's image, with a volume at /shipmate:
  shipmate install-agent /shipmate
`

/** @param argv what follows `install-agent`; @param bundle the file that this program is in; answers the exit code */
export async function installCommand(argv: readonly string[], bundle: string): Promise<number> {
  if (argv.includes('--help') || argv.includes('-h')) {
    process.stdout.write(usage)
    return 0
  }
  const [folder, ...more] = argv
  const option = argv.find(word => word.startsWith('-'))
  if (folder === undefined || more.length > 0 || option !== undefined) {
    const wrong = option ? `unknown option "${option}"` : folder ? `one folder, not ${argv.length}` : 'DIR is missing'
    process.stderr.write(`shipmate install-agent: ${wrong}: see shipmate install-agent --help.\n`)
    return 2
  }
  try {
    const launch = install({ folder, bundle, program: process.execPath })
    process.stdout.write(`${JSON.stringify(launch)}\n`)
    return 0
  } catch (error) {
    process.stderr.write(`shipmate install-agent: ${messageOf(error)}\n`)
    return 1
  }
}
