/** The C program as it is shipped and under the sanitizers, and how to start one that is not `exec`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { onTestFinished } from 'vitest'
import { hasCompiler, init, sanitized } from './wrappers.ts'

export const programs = [
  { name: 'shipmate-init', file: init },
  { name: 'shipmate-init with sanitizers', file: sanitized },
].map(({ name, file }) => ({
  name: hasCompiler ? name : `${name} (skipped: there is no Linux or no C compiler)`,
  file,
  isThere: hasCompiler,
}))

export interface Program {
  readonly process: ChildProcess
  readonly pid: number
  readonly ended: Promise<{ code: number | null; signal: string | null }>
  /** What it has said so far: the `msg` of each of its lines. */
  said(): string[]
}

export function launch(file: string, args: string[], env: Record<string, string> = {}): Program {
  const child = spawn(file, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin', ...env },
  })
  let stderr = ''
  child.stderr?.on('data', data => {
    stderr += data
  })
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal }))
  })
  onTestFinished(async () => {
    const isOver = new Promise(resolve => child.once('exit', resolve))
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await isOver
  })
  return {
    process: child,
    pid: child.pid ?? 0,
    ended,
    said: () =>
      stderr
        .split('\n')
        .slice(0, -1)
        .map(line => JSON.parse(line).msg),
  }
}
