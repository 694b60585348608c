/**
 * A person beside a container that runs already: what it writes from now on, and its input where it has one.
 *
 * Guarantee: nobody who looks on can slow it down or fill the memory; one who takes its output too slowly is sent away.
 */
import { PassThrough, Writable } from 'node:stream'
import type { ExecSession } from '../api/types.ts'
import type { Container } from './container.ts'

/** What may wait for one who looks on, in bytes. */
const patience = 4 << 20

/** @param isOnce its input ends with the first who had it */
export function attachTo(container: Container, wantsInput: boolean, isOnce: boolean): ExecSession {
  const output = { stdout: new PassThrough(), stderr: new PassThrough() }
  const { stdin } = container
  let leave = (_why?: Error) => {}
  const exit = new Promise<number>((resolve, reject) => {
    const ignore = container.listen((name, bytes) => {
      const stream = output[name]
      stream.write(bytes)
      if (stream.writableLength + stream.readableLength > patience) leave(new Error('the output is not read'))
    })
    leave = why => {
      ignore()
      for (const stream of Object.values(output)) stream.end()
      if (wantsInput && isOnce) stdin?.end()
      if (why) reject(why)
      else resolve(0)
    }
  })
  exit.catch(() => {})
  // What it wrote last is handed on before it counts as ended.
  void container.ended.then(() => leave())
  return {
    stdin: wantsInput && stdin ? inputOf(stdin, isOnce) : undefined,
    ...output,
    resize: () => {},
    exit,
    kill: () => leave(),
  }
}

/** Its end is that of the container's input only where the container is to have no more than one. */
function inputOf(stdin: Writable, isOnce: boolean): Writable {
  return new Writable({
    write: (bytes, _encoding, done) => void (stdin.writable ? stdin.write(bytes, () => done()) : done()),
    final(done) {
      if (isOnce) stdin.end()
      done()
    },
  })
}
