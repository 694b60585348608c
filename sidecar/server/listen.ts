/**
 * HTTP servers with limits on everything a stranger can use up: connections, headers, time.
 */
import { createServer, type Server, type ServerOptions } from 'node:http'
import type { AddressInfo, ListenOptions, Socket } from 'node:net'
import type { Logger } from '../../shared/log.ts'
import type { Address } from './address.ts'

/** For `createServer`, of http and https alike. Times in milliseconds. */
export const limits = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 5_000,
  // The lenient parser lets through what a proxy may read otherwise.
  insecureHTTPParser: false,
} satisfies ServerOptions

/** The connections of each server: Node knows neither those in a handshake nor those that have become something else. */
const connected = new WeakMap<Server, Set<Socket>>()

/** @param connections how many there may be at once; the next is closed when it comes */
export function bound(server: Server, connections: number): Server {
  const sockets = new Set<Socket>()
  connected.set(server, sockets)
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.maxConnections = connections
  server.maxHeadersCount = 100
  return server
}

/** For the small servers: the public one and the socket. */
export const createSmallServer = (connections: number) =>
  bound(createServer({ ...limits, keepAliveTimeout: 5_000 }), connections)

export async function listen(server: Server, where: ListenOptions, log: Logger): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(where, () => {
      server.off('error', reject)
      resolve()
    })
  })
  // A connection that cannot be accepted (no more file descriptors) is the caller's loss, not ours.
  server.on('error', error => log.warn({ err: error }, 'a connection was not accepted'))
}

/** Where `listen` goes for an address. */
export const placeOf = ({ host, port }: Address): ListenOptions => (host === '' ? { port } : { host, port })

export function addressOf(server: Server): Address {
  const { address, port } = server.address() as AddressInfo
  return { host: address, port }
}

/** Stops listening and resolves when the last connection has closed. Idle ones are closed now. */
export function stopListening(server: Server): Promise<void> {
  return new Promise(resolve => {
    server.close(() => resolve())
    server.closeIdleConnections()
  })
}

export function closeAtOnce(server: Server): Promise<void> {
  const closed = stopListening(server)
  for (const socket of connected.get(server) ?? []) socket.destroy()
  return closed
}
