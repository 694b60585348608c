/**
 * Processes by name, by way of /proc: those of this container, and of the whole pod where they share a process namespace.
 *
 * Guarantee: a process that is found is named by pid and start time, and only that one is signalled, not another that has got its pid since.
 */
import { readdirSync, readFileSync } from 'node:fs'

export interface FoundProcess {
  readonly pid: number
  /** Field 22 of /proc/PID/stat: clock ticks since the kernel's boot. */
  readonly start: number
}

/** PF_KTHREAD in the flags of /proc/PID/stat. */
const kernelThread = 0x0020_0000

/**
 * Processes of that name, oldest first: the name of the program, or the last part of the first argument. Not ourselves, no kernel threads, and none
 * that has ended and is not yet reaped. Throws where there is no /proc.
 */
export function findProcesses(name: string): FoundProcess[] {
  const found: FoundProcess[] = []
  for (const pid of pids()) {
    if (pid === process.pid || !isCalled(pid, name)) continue
    const stat = readStat(pid)
    if (stat?.runs) found.push({ pid, start: stat.start })
  }
  return found.sort((one, other) => one.start - other.start || one.pid - other.pid)
}

/** `gone` if it has ended, even if another has its pid now. Throws EPERM where it may not be signalled. */
export function signalProcess({ pid, start }: FoundProcess, signal: NodeJS.Signals): 'sent' | 'gone' {
  const stat = readStat(pid)
  if (!stat?.runs || stat.start !== start) return 'gone'
  try {
    process.kill(pid, signal)
    return 'sent'
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return 'gone'
    throw error
  }
}

function pids(): number[] {
  let names: string[]
  try {
    names = readdirSync('/proc')
  } catch (error) {
    throw new Error('processes cannot be found by name here: there is no /proc', { cause: error })
  }
  const found = names.filter(name => /^[1-9]\d*$/.test(name)).map(Number)
  if (found.length === 0) throw new Error('processes cannot be found by name here: /proc names none')
  return found.sort((one, other) => one - other)
}

function isCalled(pid: number, name: string): boolean {
  const comm = read(`/proc/${pid}/comm`)
  if (comm === undefined) return false
  if (comm === `${name}\n`) return true
  const first = read(`/proc/${pid}/cmdline`)?.split('\0', 1)[0] ?? ''
  return first.slice(first.lastIndexOf('/') + 1) === name
}

function readStat(pid: number): { start: number; runs: boolean } | undefined {
  const text = read(`/proc/${pid}/stat`)
  if (text === undefined) return undefined
  // The program's name may hold anything, so fields are counted from its end: the third is the first here.
  const fields = text.slice(text.lastIndexOf(') ') + 2).split(' ')
  const [state = ''] = fields
  const isKernels = (Number(fields[6]) & kernelThread) !== 0
  return { start: Number(fields[19]), runs: !isKernels && !'ZXx'.includes(state) }
}

/** Undefined for a process that has ended meanwhile, or that we may not look at. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
