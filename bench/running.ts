// A program that runs in a trial: how much it has asked and worked so far, when it is quiet, and its end.

import { once } from 'node:events'
import { openSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApiServer } from '../test/fixtures/apiserver.ts'
import type { AuditEntry } from '../test/fixtures/audit.ts'
import type { Keeper } from '../test/fixtures/keeper.ts'
import type { Command } from './build.ts'
import { cpuSeconds, peakMegabytes } from './process.ts'

export interface ProgramOptions {
  name: string
  command: Command
  namespace: string
  /** Where its output goes. */
  logFile: string
  concurrency: number
  /** As whom it speaks to the server. */
  user: string
  kubeconfig: string
}

export interface QuietOptions {
  /** How long it has to be, ms. */
  time: number
  /** CPU seconds that its own timers may take meanwhile. */
  slack: number
  /** How long to wait for it, ms. */
  limit: number
  /** What else has to hold. */
  holds?: (entries: AuditEntry[]) => boolean
}

export interface Running {
  /** CPU seconds so far. */
  cpu(): number
  /** The most resident memory so far, MB. */
  peak(): number
  /** Rejects when the program ends by itself. */
  ended: Promise<never>
  /** Waits until it has neither asked nor worked for a while; rejects when it ends by itself. */
  quiet(options: QuietOptions): Promise<void>
  /** SIGTERM, and SIGKILL to what is still there after 30 s. */
  stop(): Promise<void>
}

export function start(
  server: ApiServer,
  keeper: Keeper,
  options: ProgramOptions,
  env: Record<string, string> = {},
): Running {
  const { name, command, user } = options
  const [file, ...args] = command.line
  const log = openSync(options.logFile, 'a')
  const child = keeper.spawn(file, args, {
    stdio: ['ignore', log, log],
    env: {
      ...process.env,
      ...command.env,
      ...env,
      KUBECONFIG: options.kubeconfig,
      BENCH_NAMESPACE: options.namespace,
      BENCH_CONCURRENCY: String(options.concurrency),
    },
  })
  const pid = child.pid ?? 0
  let isStopping = false
  const exit = once(child, 'exit').catch((error: Error) => [error.message, null])
  const ended = exit.then(([code, signal]) => {
    if (isStopping) return new Promise<never>(() => {})
    throw new Error(`${name} ended by itself (${signal ?? code}); see ${options.logFile}`)
  })
  ended.catch(() => {})
  return {
    cpu: () => cpuSeconds(pid),
    peak: () => peakMegabytes(pid),
    ended,
    async quiet({ time, slack, limit, holds = () => true }) {
      const deadline = Date.now() + limit
      let seen = { requests: -1, cpu: -1, at: 0 }
      for (;;) {
        const entries = await server.requests({ user })
        const cpu = cpuSeconds(pid)
        const isQuiet = entries.length === seen.requests && cpu - seen.cpu <= slack
        if (!isQuiet) seen = { requests: entries.length, cpu, at: Date.now() }
        else if (Date.now() - seen.at >= time && holds(entries)) return
        if (Date.now() > deadline) throw new Error(`${name} is not quiet after ${limit / 1000} s`)
        await Promise.race([sleep(100), ended])
      }
    },
    async stop() {
      isStopping = true
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), 30_000)
      await exit
      clearTimeout(timer)
    },
  }
}
