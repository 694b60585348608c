/**
 * Starts processes that cannot outlive this one.
 *
 * Guarantees: a shell waits on a pipe that this process holds open; when the pipe closes, for whatever reason (SIGKILL included), it kills
 * what was started. If that shell is killed too, who next uses the folder kills it (`sweep`): by id and start, so never another process.
 */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { isAlive, processesWith, signal, startOf } from './identity.ts'

export interface Keeper {
  /** What marks its processes: a variable in their environment. */
  readonly mark: Readonly<Record<string, string>>
  /** Starts a program in a session of its own. */
  spawn(command: string, args: readonly string[], options?: SpawnOptions): ChildProcess
  /** Keeps a process that one of these has started. */
  adopt(pid: number): void
  forget(pid: number): void
  /** Kills everything that was started, and resolves when it is gone. */
  stop(): Promise<void>
}

const script = `
pids=
while read -r sign pid; do
  case $sign in
    +) pids="$pids $pid" ;;
    -) kept=; for p in $pids; do [ "$p" = "$pid" ] || kept="$kept $p"; done; pids=$kept ;;
    x) exit 0 ;;
  esac
done
for p in $pids; do kill -KILL -"$p" 2>/dev/null; kill -KILL "$p" 2>/dev/null; done
if [ -d /proc/self ]; then
  for e in $(grep -lzxF "$1=$2" /proc/[0-9]*/environ 2>/dev/null); do
    p=\${e#/proc/}; kill -KILL "\${p%/environ}" 2>/dev/null
  done
fi
[ -z "$3" ] || rm -rf "$2" 2>/dev/null || { sleep 1; rm -rf "$2"; }
`

const variable = 'SHIPMATE_NODE'
const ledgerOf = (folder: string) => join(folder, 'processes')

/** Ends what an earlier keeper of this folder has left. Throws where that keeper still lives. */
export async function sweep(folder: string): Promise<void> {
  const owner = join(folder, 'owner')
  const [pid, start] = entry(owner)
  if (pid !== process.pid && start !== '' && isAlive(pid, start))
    throw new Error(`${folder} is in use by process ${pid}`)
  const left: [number, string][] = []
  for (const name of listed(ledgerOf(folder))) left.push(entry(join(ledgerOf(folder), name)))
  for (const found of processesWith(`${variable}=${folder}`)) left.push([found, startOf(found) ?? ''])
  const living = () => left.filter(([one, began]) => began !== '' && isAlive(one, began))
  for (let wait = 1; living().length > 0; wait = Math.min(wait * 2, 100)) {
    for (const [one] of living()) {
      signal(-one, 'SIGKILL')
      signal(one, 'SIGKILL')
    }
    await pause(wait)
  }
  rmSync(ledgerOf(folder), { recursive: true, force: true })
  rmSync(owner, { force: true })
}

/** @param isTemporary the folder goes with this process */
export function createKeeper(folder: string, isTemporary: boolean): Keeper {
  mkdirSync(ledgerOf(folder), { recursive: true })
  writeFileSync(join(folder, 'owner'), `${process.pid} ${startOf(process.pid)}`)
  const shell = spawn('/bin/sh', ['-c', script, 'keeper', variable, folder, isTemporary ? 'yes' : ''], {
    detached: true,
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const pipe = shell.stdin as Socket
  // The pipe breaks only if the shell was killed; the ledger is left.
  pipe.on('error', () => {})
  shell.on('error', () => {})
  pipe.unref()
  shell.unref()
  const kept = new Map<number, string>()

  const adopt = (pid: number) => {
    const start = startOf(pid)
    if (start === undefined) return
    kept.set(pid, start)
    pipe.write(`+ ${pid}\n`)
    writeFileSync(join(ledgerOf(folder), String(pid)), `${pid} ${start}`)
  }
  const forget = (pid: number) => {
    if (!kept.delete(pid)) return
    pipe.write(`- ${pid}\n`)
    rmSync(join(ledgerOf(folder), String(pid)), { force: true })
  }
  return {
    mark: { [variable]: folder },
    spawn(command, args, options = {}) {
      const child = spawn(command, args, { ...options, detached: true })
      child.unref()
      const { pid } = child
      if (pid === undefined) return child
      adopt(pid)
      child.once('exit', () => {
        // What it left in its group ends with it.
        signal(-pid, 'SIGKILL')
        forget(pid)
      })
      return child
    },
    adopt,
    forget,
    async stop() {
      const living = () => [...kept].filter(([pid, start]) => isAlive(pid, start))
      for (let wait = 1; living().length > 0; wait = Math.min(wait * 2, 50)) {
        for (const [pid] of living()) {
          signal(-pid, 'SIGKILL')
          signal(pid, 'SIGKILL')
        }
        await pause(wait)
      }
      for (const pid of processesWith(`${variable}=${folder}`)) signal(pid, 'SIGKILL')
      rmSync(ledgerOf(folder), { recursive: true, force: true })
      rmSync(join(folder, 'owner'), { force: true })
      pipe.end('x\n')
    },
  }
}

function entry(path: string): [pid: number, start: string] {
  try {
    const text = readFileSync(path, 'utf8')
    const space = text.indexOf(' ')
    return [Number(text.slice(0, space)), text.slice(space + 1)]
  } catch {
    return [0, '']
  }
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
