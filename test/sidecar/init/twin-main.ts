/** The twin as a program of its own. */
import { execRun } from '../../../sidecar/init/twin.ts'

process.exitCode = await execRun(process.argv.slice(2))
