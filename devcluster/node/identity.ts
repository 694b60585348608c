/**
 * Which process a process id means: ids are used again, a process's start is not.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** When a process started, in words that only compare; undefined if there is none. Of one that has ended but is not yet waited for, too. */
export function startOf(pid: number): string | undefined {
  if (process.platform === 'linux') {
    const fields = statOf(pid)
    return fields && `${bootId()} ${fields[19]}`
  }
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || undefined
  } catch {
    return undefined
  }
}

export function isAlive(pid: number, start: string): boolean {
  return startOf(pid) === start && statOf(pid)?.[0] !== 'Z'
}

/** The processes whose environment has this variable. Only Linux tells. */
export function processesWith(variable: string): number[] {
  if (process.platform !== 'linux') return []
  const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  const wanted = `\0${variable}\0`
  return pids.map(Number).filter(pid => pid !== process.pid && `\0${read(`/proc/${pid}/environ`)}`.includes(wanted))
}

/** A signal to a process, or to a group (a negative id). One that has ended is no matter. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended.
  }
}

let boot: string | undefined
function bootId(): string {
  boot ??= read('/proc/sys/kernel/random/boot_id').trim()
  return boot
}

/** The fields after the name, which may have spaces. */
function statOf(pid: number): string[] | undefined {
  const text = read(`/proc/${pid}/stat`)
  return text === '' ? undefined : text.slice(text.lastIndexOf(')') + 2).split(' ')
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
