/**
 * Addresses for pods. On Linux each has its own, of 127.A.B.1 to 127.A.B.250, which a machine has without any setting up; elsewhere all are
 * 127.0.0.1, and each port that a pod declares is mapped to a free one.
 *
 * Guarantee: no two networks on a machine have the same A.B: one holds a socket on 127.A.B.254 while it lives, which the kernel gives to one alone.
 */
import { createServer, type Server } from 'node:net'
import type { Addresses } from './rewrite.ts'

export type Addressing = 'addresses' | 'ports'

export interface Network {
  readonly addressing: Addressing
  /** For a node, or a pod on the node's network. */
  host(): string
  attach(ports: readonly number[]): Promise<Addresses>
  detach(addresses: Addresses): void
  close(): Promise<void>
}

const claimPort = 17_444

export async function openNetwork(addressing?: Addressing): Promise<Network> {
  if ((addressing ?? (process.platform === 'linux' ? 'addresses' : 'ports')) === 'ports') return mapped()
  const { prefix, claim } = await claimPrefix()
  // Least recently used first.
  const free = Array.from({ length: 250 }, (_, index) => `${prefix}.${index + 1}`)
  const take = () => {
    const address = free.shift()
    if (address === undefined) throw new Error('every address for pods is in use')
    return address
  }
  return {
    addressing: 'addresses',
    host: take,
    attach: async ports => ({ ip: take(), ports: new Map(ports.map(port => [port, port])) }),
    detach({ ip }) {
      if (ip.startsWith(`${prefix}.`) && !free.includes(ip)) free.push(ip)
    },
    close: () => closed(claim),
  }
}

function mapped(): Network {
  const used = new Set<number>()
  const ip = '127.0.0.1'
  async function free(): Promise<number> {
    for (;;) {
      const server = await listening(0, ip)
      if (!server) throw new Error('there is no free port')
      const { port } = server.address() as { port: number }
      await closed(server)
      if (used.has(port)) continue
      used.add(port)
      return port
    }
  }
  return {
    addressing: 'ports',
    host: () => ip,
    async attach(ports) {
      const all = new Map<number, number>()
      for (const port of ports) all.set(port, await free())
      return { ip, ports: all }
    },
    detach({ ports }) {
      for (const port of ports.values()) used.delete(port)
    },
    close: async () => {},
  }
}

async function claimPrefix(): Promise<{ prefix: string; claim: Server }> {
  for (let attempt = 0; attempt < 100; attempt++) {
    // Away from 127.0.0 and 127.0.1, which machines use for themselves.
    const byte = (least: number) => least + Math.floor(Math.random() * (255 - least))
    const prefix = `127.${byte(1)}.${byte(0)}`
    const claim = await listening(claimPort, `${prefix}.254`)
    if (claim) return { prefix, claim }
  }
  throw new Error('there are no free loopback addresses')
}

function listening(port: number, host: string): Promise<Server | undefined> {
  return new Promise(resolve => {
    const server = createServer(socket => socket.destroy())
    server.once('error', () => resolve(undefined))
    server.listen(port, host, () => resolve(server.unref()))
  })
}

const closed = (server: Server) => new Promise<void>(resolve => server.close(() => resolve()))
