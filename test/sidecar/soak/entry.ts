/**
 * The agent as a process of its own: lower bounds by SHIPMATE_TEST_BOUNDS, a umask by SHIPMATE_TEST_UMASK, and its memory for whoever started it and asks.
 */
import { sidecar } from '../../../sidecar/main.ts'

const { SHIPMATE_TEST_BOUNDS: bounds, SHIPMATE_TEST_UMASK: umask } = process.env
if (umask !== undefined) process.umask(Number.parseInt(umask, 8))
process.on('message', () => {
  globalThis.gc?.()
  process.send?.(process.memoryUsage.rss())
})
process.channel?.unref()
process.exitCode = await sidecar(process.argv.slice(2), bounds === undefined ? {} : { bounds: JSON.parse(bounds) })
