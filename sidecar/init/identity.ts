/**
 * Who a process is, for ever: the kernel's boot id, the pid namespace, the pid and the time of its start. What a claim says of its wrapper.
 *
 * Guarantee: a process that cannot be told from another is not alive. Where there is no /proc, none is.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'

export interface Identity {
  /** /proc/sys/kernel/random/boot_id; empty where there is no /proc. */
  readonly boot: string
  /** The inode of /proc/self/ns/pid; 0 where there is no /proc. */
  readonly pidns: number
  readonly pid: number
  /** Field 22 of /proc/PID/stat; 0 where there is no /proc. */
  readonly start: number
}

export function ownIdentity(): Identity {
  return { boot: bootId(), pidns: pidNamespace(), pid: process.pid, start: startOf(process.pid) }
}

export function isAlive({ boot, pidns, pid, start }: Identity): boolean {
  if (boot === '' || pidns === 0 || start === 0 || boot !== bootId() || pidns !== pidNamespace()) return false
  const found = statOf(String(pid))
  return found?.start === start && !found.isDead
}

/** The time of a process's start; 0 if there is no such process, or no /proc. */
export function startOf(pid: number): number {
  return statOf(String(pid))?.start ?? 0
}

/**
 * Kills what is left of the process group that a command led, the command included. `command` must be of this boot and pid namespace. Answers
 * how many processes there were. If the number is another process's by now, the group is gone, and nobody is touched.
 */
export function killGroup(command: { readonly pid: number; readonly start: number }): number {
  if (command.pid <= 1 || command.start === 0) return 0
  const leader = statOf(String(command.pid))
  if (leader && leader.start !== command.start) return 0
  const members = processes().filter(pid => {
    const found = statOf(pid)
    return found?.group === command.pid && found.start >= command.start && !found.isDead
  })
  if (members.length === 0) return 0
  try {
    process.kill(-command.pid, 'SIGKILL')
  } catch {
    return 0
  }
  return members.length
}

function bootId(): string {
  return read('/proc/sys/kernel/random/boot_id').trim()
}

function pidNamespace(): number {
  try {
    return statSync('/proc/self/ns/pid').ino
  } catch {
    return 0
  }
}

function processes(): string[] {
  try {
    return readdirSync('/proc').filter(name => /^\d+$/.test(name))
  } catch {
    return []
  }
}

interface Stat {
  readonly isDead: boolean
  readonly group: number
  readonly start: number
}

function statOf(pid: string): Stat | undefined {
  const text = read(`/proc/${pid}/stat`)
  // The name, in parentheses, may hold anything; the fields are counted from behind it, the third being the first.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  if (text === '' || fields.length < 20) return undefined
  return { isDead: /^[ZXx]/.test(fields[0] ?? ''), group: Number(fields[2]), start: Number(fields[19]) }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
