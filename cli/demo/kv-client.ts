/**
 * A kv from a client's side: what is written to it is remembered here, so that what comes back can be compared.
 */
import { createHash, randomBytes } from 'node:crypto'
import { Agent, request } from 'node:http'
import { createInterface } from 'node:readline'

export interface KvClient {
  /** The status code. */
  put(key: string, value: Buffer): Promise<number>
  /** Every key with a hash of its value. */
  dump(): Promise<Map<string, string>>
  /** Its configuration. */
  config(): Promise<{ readonly maxValueBytes: number }>
  close(): void
}

export const hashOf = (value: Buffer) => createHash('sha256').update(value).digest('hex')

/** @param address `host:port` */
export function connectKv(address: string): KvClient {
  const agent = new Agent({ keepAlive: true, maxSockets: 16 })
  const [host, port] = address.split(':')
  const ask = (method: string, path: string, body?: Buffer) =>
    new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
      const sent = request({ host, port, method, path, agent, timeout: 10_000 }, resolve)
      sent.on('error', reject).on('timeout', () => sent.destroy(new Error(`${address} does not answer`)))
      sent.end(body)
    })
  return {
    async put(key, value) {
      const answer = await ask('PUT', `/keys/${encodeURIComponent(key)}`, value)
      answer.resume()
      return answer.statusCode ?? 0
    },
    async dump() {
      const all = new Map<string, string>()
      for await (const line of createInterface({ input: await ask('GET', '/keys') })) {
        const { key, value } = JSON.parse(line) as { key: string; value: string }
        all.set(key, hashOf(Buffer.from(value, 'base64')))
      }
      return all
    },
    async config() {
      let text = ''
      for await (const piece of await ask('GET', '/stats')) text += piece
      return JSON.parse(text).config
    },
    close: () => agent.destroy(),
  }
}

export interface Written {
  /** Key and hash of its value. */
  readonly values: ReadonlyMap<string, string>
  readonly bytes: number
}

/** Writes so many keys of random values, of 1 to 8 KiB. Throws where one is not taken. */
export async function fill(kv: KvClient, count: number): Promise<Written> {
  const values = new Map<string, string>()
  let bytes = 0
  const left = Array.from({ length: count }, (_, index) => `order/${String(index).padStart(5, '0')}`)
  const writer = async () => {
    for (let key = left.pop(); key !== undefined; key = left.pop()) {
      const value = randomBytes(1024 + Math.floor(7168 * Math.random()))
      const status = await kv.put(key, value)
      if (status !== 204) throw new Error(`PUT of ${key}: ${status}`)
      values.set(key, hashOf(value))
      bytes += value.length
    }
  }
  await Promise.all(Array.from({ length: 16 }, writer))
  return { values, bytes }
}

export interface Differences {
  readonly same: number
  readonly missing: readonly string[]
  readonly other: readonly string[]
  /** Keys that nobody wrote. */
  readonly unknown: readonly string[]
}

/** @param meanwhile written while the copy was made: each may be in it or not */
export function compare(
  expected: ReadonlyMap<string, string>,
  found: ReadonlyMap<string, string>,
  meanwhile: ReadonlyMap<string, string>,
): Differences {
  const keys = [...expected.keys()]
  const isWrong = ([key, hash]: [string, string]) => !expected.has(key) && meanwhile.get(key) !== hash
  return {
    same: keys.filter(key => found.get(key) === expected.get(key)).length,
    missing: keys.filter(key => !found.has(key)),
    other: keys.filter(key => found.has(key) && found.get(key) !== expected.get(key)),
    unknown: [...found].filter(isWrong).map(([key]) => key),
  }
}
