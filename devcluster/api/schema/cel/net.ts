/** Addresses, networks and URLs. */
import { BlockList, isIP } from 'node:net'
import type { Environment } from '@marcbachmann/cel-js'
import { Failure } from './library.ts'

class Ip {
  readonly text: string
  readonly family: 4 | 6
  constructor(text: string) {
    const family = isIP(text)
    if (family === 0 || text.includes('%') || /^::ffff:\d+\./i.test(text)) {
      throw new Failure(
        `IP Address "${text}" parse error during conversion from string: ParseAddr("${text}"): unable to parse IP`,
      )
    }
    this.family = family as 4 | 6
    this.text = family === 6 ? new URL(`http://[${text}]`).hostname.slice(1, -1) : text
  }
  toString() {
    return this.text
  }
}

class Cidr {
  readonly address: Ip
  readonly bits: number
  constructor(text: string) {
    const [address = '', bits = '', ...more] = text.split('/')
    const wrong = new Failure(`network address parse error during conversion from string: netip.ParsePrefix("${text}")`)
    if (more.length > 0 || !/^\d{1,3}$/.test(bits) || isIP(address) === 0) throw wrong
    this.address = new Ip(address)
    this.bits = Number(bits)
    if (this.bits > width(this.address)) throw wrong
  }
  contains(other: Ip, bits = width(other)): boolean {
    return (
      other.family === this.address.family &&
      bits >= this.bits &&
      masked(other, this.bits) === masked(this.address, this.bits)
    )
  }
  toString() {
    return `${this.address}/${this.bits}`
  }
}

const width = ({ family }: Ip) => (family === 4 ? 32 : 128)

function bitsOf({ text, family }: Ip): bigint {
  if (family === 4) return text.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n)
  const [head = '', tail] = text.split('::')
  const groups = (part: string | undefined) => (part ? part.split(':') : [])
  const [first, last] = [groups(head), groups(tail)]
  const all =
    tail === undefined ? first : [...first, ...Array<string>(8 - first.length - last.length).fill('0'), ...last]
  return all.reduce((sum, group) => sum * 65536n + BigInt(`0x${group}`), 0n)
}

const masked = (ip: Ip, bits: number): bigint => bitsOf(ip) >> BigInt(width(ip) - bits)

function network({ address, bits }: Cidr): string {
  const shift = BigInt(width(address) - bits)
  const value = (bitsOf(address) >> shift) << shift
  const parts = address.family === 4 ? 4 : 8
  const size = address.family === 4 ? 8n : 16n
  const list = Array.from(
    { length: parts },
    (_, index) => (value >> (BigInt(parts - 1 - index) * size)) & ((1n << size) - 1n),
  )
  const text = list.map(part => part.toString(parts === 4 ? 10 : 16)).join(parts === 4 ? '.' : ':')
  return `${new Ip(text)}/${bits}`
}

function block(...ranges: [string, number, 'ipv4' | 'ipv6'][]): (ip: Ip) => boolean {
  const list = new BlockList()
  for (const range of ranges) list.addSubnet(...range)
  return ip => list.check(ip.text, ip.family === 4 ? 'ipv4' : 'ipv6')
}
const isLoopback = block(['127.0.0.0', 8, 'ipv4'], ['::1', 128, 'ipv6'])
const isLinkLocalMulticast = block(['224.0.0.0', 24, 'ipv4'], ['ff02::', 16, 'ipv6'])
const isLinkLocalUnicast = block(['169.254.0.0', 16, 'ipv4'], ['fe80::', 10, 'ipv6'])
const isMulticast = block(['224.0.0.0', 4, 'ipv4'], ['ff00::', 8, 'ipv6'])
const isUnspecified = (ip: Ip) => ip.text === '0.0.0.0' || ip.text === '::'
const isGlobalUnicast = (ip: Ip) =>
  ip.text !== '255.255.255.255' && ![isUnspecified, isLoopback, isMulticast, isLinkLocalUnicast].some(test => test(ip))

class Url {
  readonly scheme: string
  readonly host: string
  readonly path: string
  readonly query: Map<string, string[]>
  constructor(text: string) {
    const wrong = new Failure(`URL parse error during conversion from string: parse "${text}": invalid URI for request`)
    const match = /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?/i.exec(text)
    if (!match || text === '' || (!match[1] && !text.startsWith('/')) || /[\s<>"]/.test(match[2] ?? '')) throw wrong
    this.scheme = (match[1] ?? '').toLowerCase()
    this.host = (match[2] ?? '').replace(/^.*@/, '')
    this.path = encodeURI(safeDecode(match[3] ?? ''))
    this.query = new Map()
    for (const [key, value] of new URLSearchParams(match[4] ?? ''))
      this.query.set(key, [...(this.query.get(key) ?? []), value])
  }
}

function safeDecode(path: string): string {
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

const works = (make: () => unknown): boolean => {
  try {
    make()
    return true
  } catch {
    return false
  }
}

export function registerNet(environment: Environment): void {
  const sync = { async: false }
  const add = (signature: string, handler: (...args: never[]) => unknown) =>
    environment.registerFunction(signature, handler, sync)
  environment.registerType('net.IP', Ip).registerType('net.CIDR', Cidr).registerType('kubernetes.URL', Url)
  environment.registerOperator('net.IP == net.IP', (a: Ip, b: Ip) => a.text === b.text)
  environment.registerOperator('net.CIDR == net.CIDR', (a: Cidr, b: Cidr) => String(a) === String(b))
  add('ip(string): net.IP', (text: string) => new Ip(text))
  add('isIP(string): bool', (text: string) => works(() => new Ip(text)))
  add('string(net.IP): string', String)
  add('net.IP.family(): int', (ip: Ip) => BigInt(ip.family))
  const tests = { isUnspecified, isLoopback, isLinkLocalMulticast, isLinkLocalUnicast, isGlobalUnicast }
  for (const [name, test] of Object.entries(tests)) add(`net.IP.${name}(): bool`, (ip: Ip) => test(ip))
  add('cidr(string): net.CIDR', (text: string) => new Cidr(text))
  add('isCIDR(string): bool', (text: string) => works(() => new Cidr(text)))
  add('string(net.CIDR): string', String)
  add('net.CIDR.containsIP(net.IP): bool', (cidr: Cidr, ip: Ip) => cidr.contains(ip))
  add('net.CIDR.containsIP(string): bool', (cidr: Cidr, ip: string) => cidr.contains(new Ip(ip)))
  add('net.CIDR.containsCIDR(net.CIDR): bool', (cidr: Cidr, other: Cidr) => cidr.contains(other.address, other.bits))
  add('net.CIDR.containsCIDR(string): bool', (cidr: Cidr, text: string) => {
    const other = new Cidr(text)
    return cidr.contains(other.address, other.bits)
  })
  add('net.CIDR.ip(): net.IP', (cidr: Cidr) => cidr.address)
  add('net.CIDR.masked(): net.CIDR', (cidr: Cidr) => new Cidr(network(cidr)))
  add('net.CIDR.prefixLength(): int', (cidr: Cidr) => BigInt(cidr.bits))
  add('url(string): kubernetes.URL', (text: string) => new Url(text))
  add('isURL(string): bool', (text: string) => works(() => new Url(text)))
  add('kubernetes.URL.getScheme(): string', (url: Url) => url.scheme)
  add('kubernetes.URL.getHost(): string', (url: Url) => url.host)
  add('kubernetes.URL.getHostname(): string', (url: Url) => url.host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1'))
  add('kubernetes.URL.getPort(): string', (url: Url) => /:(\d*)$/.exec(url.host)?.[1] ?? '')
  add('kubernetes.URL.getEscapedPath(): string', (url: Url) => url.path)
  add('kubernetes.URL.getQuery(): map<string, list<string>>', (url: Url) => url.query)
}
