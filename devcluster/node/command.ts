/**
 * Runs a program in a container beside what runs there: for probes and hooks, which want its end and what it said.
 */
import type { Ran } from './ask.ts'
import type { Container } from './container.ts'
import { signal as send } from './identity.ts'
import type { Keeper } from './keeper.ts'

const longest = 10 * 1024

/** Where there is no such program, its code is 127. When the signal comes, it is killed. */
export function runIn(
  container: Container,
  keeper: Keeper,
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Ran> {
  if (signal.aborted) return Promise.resolve({ code: undefined, output: '' })
  const [file = '', ...args] = container.enter(command)
  const child = keeper.spawn(file, args, {
    cwd: '/',
    env: { ...env, ...keeper.mark, SHIPMATE_CONTAINER: container.id },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (bytes: Buffer) => {
      if (output.length < longest) output += bytes
    })
  return new Promise(resolve => {
    const abort = () => {
      if (child.pid !== undefined) send(-child.pid, 'SIGKILL')
    }
    const end = (code: number | undefined) => {
      signal.removeEventListener('abort', abort)
      resolve({ code, output: output.slice(0, longest) })
    }
    signal.addEventListener('abort', abort, { once: true })
    child.once('error', error => {
      output += error.message
      end(127)
    })
    child.once('exit', code => (signal.aborted ? end(undefined) : setImmediate(() => end(code ?? 137))))
  })
}
