/**
 * portforward over SPDY (`portforward.k8s.io`): two streams with one `requestID` for each connection, its data and what went wrong.
 */
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Ports } from '../ports.ts'
import { accept, type Connection } from './connection.ts'

export function forwardOverSpdy(transport: Duplex, { connect, problem }: Ports): Connection {
  const halves = new Map<string, Map<string, Duplex>>()
  return accept(transport, (stream, headers) => {
    const id = headers.get('requestid') ?? ''
    const type = headers.get('streamtype') ?? ''
    const pair = halves.get(id) ?? new Map<string, Duplex>()
    halves.set(id, pair)
    pair.set(type, stream)
    stream.once('close', () => halves.delete(id))
    const [data, error] = [pair.get('data'), pair.get('error')]
    if (data && error) void join(Number(headers.get('port')), data, error.resume())
  })

  async function join(port: number, data: Duplex, error: Duplex): Promise<void> {
    let socket: Duplex
    try {
      socket = await connect(port)
    } catch (refused) {
      error.end((refused as Error).message)
      data.resume().end()
      return
    }
    const copied = await Promise.allSettled([pipeline(data, socket), pipeline(socket, data)])
    const failed = copied.find(one => one.status === 'rejected')
    error.end(failed && !data.destroyed ? problem(port, failed.reason) : undefined)
  }
}
