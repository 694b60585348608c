/**
 * What examples/memcached-lifecycle needs of memcached: its port, and the commands that are answered with OK. All pods of a rig share the machine's loopback, and so
 * this one server.
 */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'

export interface MemcachedDaemon {
  /** Each line that was said to it, in order. */
  readonly said: readonly string[]
  stop(): Promise<void>
}

export const memcachedPort = 11_211

export async function startMemcached(): Promise<MemcachedDaemon> {
  const said: string[] = []
  const clients = new Set<Socket>()
  const server = createServer(client => {
    clients.add(client)
    client.on('close', () => clients.delete(client))
    client.on('error', () => client.destroy())
    createInterface({ input: client }).on('line', line => {
      said.push(line)
      client.write(/^(flush_all|cache_memlimit \d+)$/.test(line) ? 'OK\r\n' : 'ERROR\r\n')
    })
  })
  server.listen(memcachedPort, '127.0.0.1')
  await once(server, 'listening')
  return {
    said,
    async stop() {
      const closed = once(server, 'close')
      server.close()
      for (const client of clients) client.destroy()
      await closed
    },
  }
}
