/**
 * What a program or library of Linux asks of its loader, read from the file itself: `ldd` runs what it looks at, and is not everywhere.
 *
 * Guarantee: never reads more than it needs, and answers undefined for whatever is not an ELF file of 64 bits, little endian.
 */
import { closeSync, openSync, readSync } from 'node:fs'

export interface Elf {
  /** What processor it is for, as a number of the ELF standard: 62 is x86-64, 183 is AArch64. */
  readonly machine: number
  /** The loader it is started by; none: it is a library, or statically linked. */
  readonly interpreter: string | undefined
  /** Names of libraries, as `libc.so.6`. */
  readonly needed: readonly string[]
  /** Where these are looked for first, `$ORIGIN` being the file's own folder. */
  readonly folders: readonly string[]
}

const segment = { load: 1, dynamic: 2, interpreter: 3 }
const tag = { end: 0, needed: 1, strings: 5, stringsSize: 10, rpath: 15, runpath: 29 }
/** More than any real file has: of headers, of entries, of bytes of a table. */
const most = { headers: 256, bytes: 16 * 1024 * 1024 }

interface Segment {
  readonly type: number
  readonly offset: number
  readonly address: number
  readonly size: number
}

export function readElf(path: string): Elf | undefined {
  const file = openSync(path, 'r')
  try {
    return parse((offset, size) => {
      const bytes = Buffer.alloc(Math.min(size, most.bytes))
      return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, offset))
    })
  } catch (error) {
    // A file that ends before its own tables do.
    if (error instanceof RangeError) return undefined
    throw error
  } finally {
    closeSync(file)
  }
}

function parse(read: (offset: number, size: number) => Buffer): Elf | undefined {
  const header = read(0, 64)
  const isElf = header.length === 64 && header.readUInt32BE(0) === 0x7f454c46
  if (!isElf || header[4] !== 2 || header[5] !== 1) return undefined
  const segments = readSegments(header, read)
  const interpreter = segments.find(({ type }) => type === segment.interpreter)
  const dynamic = segments.find(({ type }) => type === segment.dynamic)
  return {
    machine: header.readUInt16LE(18),
    interpreter: interpreter && text(read(interpreter.offset, interpreter.size), 0),
    ...(dynamic ? readDynamic(dynamic, segments, read) : { needed: [], folders: [] }),
  }
}

function readSegments(header: Buffer, read: (offset: number, size: number) => Buffer): Segment[] {
  const at = Number(header.readBigUInt64LE(32))
  const size = header.readUInt16LE(54)
  const count = Math.min(header.readUInt16LE(56), most.headers)
  const table = read(at, size * count)
  return Array.from({ length: count }, (_, i) => {
    const entry = table.subarray(i * size, (i + 1) * size)
    return {
      type: entry.readUInt32LE(0),
      offset: Number(entry.readBigUInt64LE(8)),
      address: Number(entry.readBigUInt64LE(16)),
      size: Number(entry.readBigUInt64LE(32)),
    }
  })
}

function readDynamic(dynamic: Segment, segments: Segment[], read: (offset: number, size: number) => Buffer) {
  const table = read(dynamic.offset, dynamic.size)
  const entries: [number, number][] = []
  for (let at = 0; at + 16 <= table.length; at += 16) {
    const kind = Number(table.readBigInt64LE(at))
    if (kind === tag.end) break
    entries.push([kind, Number(table.readBigUInt64LE(at + 8))])
  }
  const values = (wanted: number) => entries.flatMap(([kind, value]) => (kind === wanted ? value : []))
  const address = values(tag.strings)[0] ?? 0
  const home = segments.find(
    one => one.type === segment.load && address >= one.address && address < one.address + one.size,
  )
  const strings = home ? read(address - home.address + home.offset, values(tag.stringsSize)[0] ?? 0) : Buffer.alloc(0)
  const folders = [...values(tag.rpath), ...values(tag.runpath)].flatMap(value => text(strings, value).split(':'))
  return { needed: values(tag.needed).map(value => text(strings, value)), folders: folders.filter(Boolean) }
}

/** Up to the zero that ends it. */
function text(bytes: Buffer, from: number): string {
  const end = bytes.indexOf(0, from)
  return bytes.toString('utf8', from, end < 0 ? bytes.length : end)
}
