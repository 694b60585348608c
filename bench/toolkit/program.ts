// A program that runs in a trial: how much it has asked, worked and reconciled so far, and when it is quiet.

import { once } from 'node:events'
import { openSync } from 'node:fs'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApiServer } from '../../test/fixtures/apiserver.ts'
import type { Keeper } from '../../test/fixtures/keeper.ts'
import { cpuSeconds, peakMegabytes } from '../process.ts'
import type { Command } from './programs.ts'

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

export interface Running {
  /** CPU seconds so far. */
  cpu(): number
  /** The most resident memory so far, MB. */
  peak(): number
  /** Reconciliations so far, by its own metrics; 0 while it does not answer. */
  reconciled(): Promise<number>
  /** Waits until it has done so many reconciliations and then neither asked nor worked for a second. */
  settled(reconciliations: number): Promise<void>
  /** SIGTERM, and SIGKILL to what is still there after 30 s. */
  stop(): Promise<void>
}

export async function start(server: ApiServer, keeper: Keeper, options: ProgramOptions): Promise<Running> {
  const { name, command, user } = options
  const port = await freePort()
  const [file, ...args] = command.line
  const log = openSync(options.logFile, 'a')
  const child = keeper.spawn(file, args, {
    stdio: ['ignore', log, log],
    env: {
      ...process.env,
      ...command.env,
      KUBECONFIG: options.kubeconfig,
      BENCH_NAMESPACE: options.namespace,
      BENCH_CONCURRENCY: String(options.concurrency),
      BENCH_PORT: String(port),
    },
  })
  const pid = child.pid ?? 0
  let end: string | undefined
  const exit = once(child, 'exit').then(
    ([code, signal]) => {
      end = `${signal ?? code}`
    },
    (error: Error) => {
      end = error.message
    },
  )

  async function reconciled(): Promise<number> {
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => undefined)
    const text = (await answer?.text()) ?? ''
    const counts = [...text.matchAll(/^controller_runtime_reconcile_total\{.*\} (\S+)$/gm)]
    return counts.reduce((sum, [, count]) => sum + Number(count), 0)
  }

  /** Nothing asked of the server, and no work worth mentioning: an idle process' own timers may take a tick or two. */
  async function quiet(deadline: number): Promise<void> {
    let seen = { requests: -1, cpu: -1, at: 0 }
    for (;;) {
      if (end !== undefined) throw new Error(`${name} ended by itself (${end}); see ${options.logFile}`)
      const requests = (await server.requests({ user })).length
      const cpu = cpuSeconds(pid)
      if (requests !== seen.requests || cpu - seen.cpu > 0.03) seen = { requests, cpu, at: Date.now() }
      else if (Date.now() - seen.at >= 1_000) return
      if (Date.now() > deadline) throw new Error(`${name} is not quiet after minutes`)
      await sleep(100)
    }
  }

  return {
    cpu: () => cpuSeconds(pid),
    peak: () => peakMegabytes(pid),
    reconciled,
    async settled(reconciliations) {
      const deadline = Date.now() + 300_000
      do await quiet(deadline)
      while ((await reconciled()) < reconciliations)
    },
    async stop() {
      if (end !== undefined) return
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), 30_000)
      await exit
      clearTimeout(timer)
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}
