/**
 * Programs and libraries of Linux as files, with nothing in them but what their loader is asked for.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

export interface ElfFile {
  readonly interpreter?: string
  readonly needed?: readonly string[]
  readonly runpath?: string
  readonly rpath?: string
  /** Default 62, x86-64. */
  readonly machine?: number
}

const headerSize = 64
const entrySize = 56
/** Where the file's bytes are in memory, so that addresses and offsets differ. */
const base = 0x400000

export function elf({ interpreter, needed = [], runpath, rpath, machine = 62 }: ElfFile): Buffer {
  const strings = table()
  const entries = needed.map((name): [number, number] => [1, strings.add(name)])
  if (rpath !== undefined) entries.push([15, strings.add(rpath)])
  if (runpath !== undefined) entries.push([29, strings.add(runpath)])
  const path = Buffer.from(interpreter === undefined ? '' : `${interpreter}\0`)
  const segments = interpreter === undefined ? 2 : 3
  const stringsAt = headerSize + segments * entrySize
  const dynamicAt = stringsAt + strings.bytes().length
  entries.push([5, base + stringsAt], [10, strings.bytes().length], [0, 0])
  const dynamic = Buffer.concat(entries.map(([tag, value]) => numbers(tag, value)))
  const pathAt = dynamicAt + dynamic.length
  const header = Buffer.alloc(headerSize)
  header.write('\x7fELF\x02\x01\x01', 'latin1')
  header.writeUInt16LE(3, 16)
  header.writeUInt16LE(machine, 18)
  header.writeBigUInt64LE(BigInt(headerSize), 32)
  header.writeUInt16LE(entrySize, 54)
  header.writeUInt16LE(segments, 56)
  return Buffer.concat([
    header,
    segment(1, 0, pathAt + path.length),
    segment(2, dynamicAt, dynamic.length),
    ...(interpreter === undefined ? [] : [segment(3, pathAt, path.length)]),
    strings.bytes(),
    dynamic,
    path,
  ])
}

export function writeElf(path: string, file: ElfFile): string {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, elf(file), { mode: 0o755 })
  return path
}

function segment(type: number, offset: number, size: number): Buffer {
  const entry = Buffer.alloc(entrySize)
  entry.writeUInt32LE(type)
  for (const [at, value] of [
    [8, offset],
    [16, base + offset],
    [32, size],
  ] as const)
    entry.writeBigUInt64LE(BigInt(value), at)
  return entry
}

function numbers(...values: number[]): Buffer {
  const bytes = Buffer.alloc(8 * values.length)
  values.forEach((value, i) => {
    bytes.writeBigUInt64LE(BigInt(value), 8 * i)
  })
  return bytes
}

function table() {
  let text = '\0'
  return {
    add(word: string): number {
      const at = Buffer.byteLength(text)
      text += `${word}\0`
      return at
    },
    bytes: () => Buffer.from(text),
  }
}
