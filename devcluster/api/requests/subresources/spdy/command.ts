/**
 * exec and attach over SPDY, as `v4.channel.k8s.io` has it: a stream each for what the caller wants, and one for how it ended.
 */
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Begun, endOf, resize } from '../command.ts'
import { accept, type Connection } from './connection.ts'

export function commandOverSpdy(transport: Duplex, { session, wants }: Begun): Connection {
  const { stdin, stdout, stderr, tty } = wants
  const streams = new Map<string, Duplex>()
  const isNeeded: Readonly<Record<string, boolean>> = { error: true, stdin, stdout, stderr, resize: tty }
  const needed = Object.keys(isNeeded).filter(type => isNeeded[type])
  let hasBegun = false
  const connection = accept(transport, (stream, headers) => {
    const type = headers.get('streamtype') ?? ''
    if (!isNeeded[type] || streams.has(type)) return void stream.destroy()
    streams.set(type, stream)
    if (hasBegun || !needed.every(one => streams.has(one))) return
    hasBegun = true
    void speak()
  })
  void connection.over.then(() => session.kill())

  async function speak(): Promise<void> {
    const input = streams.get('stdin')
    if (input && session.stdin) pipeline(input, session.stdin).catch(() => {})
    else input?.resume()
    sizes(streams.get('resize'))
    const copied = (['stdout', 'stderr'] as const).map(async type => {
      const [from, to] = [session[type], streams.get(type)]
      // It is read for its end, which is that of the caller's side.
      to?.resume()
      if (from && to) await pipeline(from, to, { end: true })
      else if (from) from.resume()
    })
    const code = await session.exit.catch((error: unknown) => error as Error)
    await Promise.allSettled(copied)
    for (const type of ['stdout', 'stderr']) streams.get(type)?.end()
    streams
      .get('error')
      ?.resume()
      .end(JSON.stringify(endOf(code)), () => connection.finish())
  }

  /** One JSON object a line. */
  function sizes(stream: Duplex | undefined): void {
    let rest = ''
    stream?.on('data', (bytes: Buffer) => {
      const lines = (rest + bytes.toString()).split('\n')
      rest = (lines.pop() ?? '').slice(0, 1024)
      for (const line of lines) resize(session, line)
    })
  }
  return connection
}
