// What a process used so far, as Linux counts it: CPU time with its children's, and the most memory it ever held.

import { readFileSync } from 'node:fs'

/** The clock of /proc, ticks per second: 100 on every Linux that runs here. */
const ticksPerSecond = 100

/** User and system seconds of the process and of its children, living or not. */
export function cpuSeconds(pid: number): number {
  // The name, in parentheses, may hold anything; the fields are counted from behind it.
  const fields = read(pid, 'stat').split(') ').pop()?.split(' ').map(Number) ?? []
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + field, 0)
  return ticks / ticksPerSecond + childrenOf(pid).reduce((sum, child) => sum + cpuSeconds(child), 0)
}

/** The high-water mark of resident memory in MB (10^6 bytes), of the process and of its living children. */
export function peakMegabytes(pid: number): number {
  const kib = Number(/^VmHWM:\s+(\d+) kB$/m.exec(read(pid, 'status'))?.[1] ?? 0)
  return (kib * 1024) / 1e6 + childrenOf(pid).reduce((sum, child) => sum + peakMegabytes(child), 0)
}

export function childrenOf(pid: number): number[] {
  return read(pid, `task/${pid}/children`).split(' ').filter(Boolean).map(Number)
}

/** Empty when the process is gone. */
function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}
