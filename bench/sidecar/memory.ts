// What a process holds in memory and of what kind it is, as Linux counts it, in MB (10^6 bytes).

import { readFileSync } from 'node:fs'
import { basename } from 'node:path'

export interface Memory {
  /** Resident: all of the below. */
  rss: number
  /** The same, but a page that several processes hold counts for each of them by its share. */
  pss: number
  /** Pages of Node's binary as they are on disk: one copy for all pods of a node that use the same image layer. */
  binary: number
  /** The same of libraries and other files. */
  libraries: number
  /** Pages of files that the process has changed, as relocated pointers: its own. */
  changed: number
  /** The C library's heap, as far as it is one piece. */
  malloc: number
  /** All other memory of its own: V8's heap and its code, large pieces of the C library's, stacks. */
  anonymous: number
}

/** @param pid of a process that Node's binary, at this path, runs in */
export function memoryOf(pid: number, node: string): Memory {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const memory: Memory = {
    rss: field(rollup, 'Rss'),
    pss: field(rollup, 'Pss'),
    binary: 0,
    libraries: 0,
    changed: 0,
    malloc: 0,
    anonymous: 0,
  }
  // A mapping is a line with its addresses, then its fields.
  for (const mapping of readFileSync(`/proc/${pid}/smaps`, 'utf8').split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)) {
    const path = /^\S+ \S+ \S+ \S+ \d+ +(\S.*)$/m.exec(mapping)?.[1] ?? ''
    const [resident, own] = [field(mapping, 'Rss'), field(mapping, 'Anonymous')]
    if (path === '[heap]') memory.malloc += resident
    else if (path.startsWith('/')) {
      memory.changed += own
      memory[basename(path) === basename(node) ? 'binary' : 'libraries'] += resident - own
    } else memory.anonymous += resident
  }
  return memory
}

const field = (text: string, name: string) =>
  (Number(new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(text)?.[1] ?? Number.NaN) * 1024) / 1e6
