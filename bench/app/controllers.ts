// `shipmate controller` as users run it: the built package, one process, with a lease, in the environment of controller/app/launch.ts;
// and what it takes.

import { once } from 'node:events'
import { openSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { nodeEnvironment } from '../../controller/app/launch.ts'
import type { ApiServer } from '../../test/fixtures/apiserver.ts'
import type { AuditEntry } from '../../test/fixtures/audit.ts'
import { freePort } from '../../test/fixtures/free-port.ts'
import type { Keeper } from '../../test/fixtures/keeper.ts'
import { cpuSeconds, peakMegabytes } from '../process.ts'
import { logFile } from '../turns.ts'
import { ownNamespace } from './objects.ts'

export interface Controller {
  readonly name: string
  readonly pid: number
  cpu(): number
  /** Resident memory, MB: now, and the most so far. */
  rss(): number
  peak(): number
  /** What it has asked of the server since then, ms since 1970. */
  requests(since: number): Promise<AuditEntry[]>
  /** Rejects when it ends by itself. */
  ended: Promise<never>
  /** Waits until it has asked for nothing but its lease and watches for so long, ms. */
  quiet(time: number, limit: number): Promise<void>
  /** SIGKILL, answers when it is gone. */
  kill(): Promise<void>
  stop(): Promise<void>
}

export interface ControllerOptions {
  readonly server: ApiServer
  readonly keeper: Keeper
  readonly name: string
  /** Default: this package's. */
  readonly program?: string | undefined
  /** A folder for CPU profiles. */
  readonly profile?: string | undefined
}

const own = fileURLToPath(new URL('../../bin/shipmate.cjs', import.meta.url))
/** An idle controller's own timers may take so much CPU meanwhile, of each second. */
const slack = 0.2

export async function startController({
  server,
  keeper,
  name,
  program = own,
  profile,
}: ControllerOptions): Promise<Controller> {
  const kubeconfig = await server.kubeconfigFor({ name, group: 'system:masters' })
  const port = await freePort()
  const file = logFile(`app-${name}`)
  const log = openSync(file, 'a')
  const flags = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]
  const args = ['controller', '--kubeconfig', kubeconfig, '-n', ownNamespace, '--port', String(port)]
  // Whoever calls the bench may set them otherwise, to compare.
  const env = { ...nodeEnvironment, ...process.env }
  const child = keeper.spawn(process.execPath, [...flags, program, ...args], { stdio: ['ignore', log, log], env })
  const pid = child.pid ?? 0
  let isStopping = false
  const exit = once(child, 'exit')
  const ended = exit.then(([code, signal]) => {
    if (isStopping) return new Promise<never>(() => {})
    throw new Error(`${name} ended by itself (${signal ?? code}); see ${file}`)
  })
  ended.catch(() => {})
  const requests = (since: number) => server.requests({ user: name, since })
  const answers = async () => (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.ok ?? false
  for (const deadline = Date.now() + 120_000; !(await answers()); await Promise.race([sleep(100), ended]))
    if (Date.now() > deadline) throw new Error(`${name} is not ready after two minutes; see ${file}`)

  return {
    name,
    pid,
    cpu: () => cpuSeconds(pid),
    rss: () => residentMegabytes(pid),
    peak: () => peakMegabytes(pid),
    requests,
    ended,
    async quiet(time, limit) {
      const deadline = Date.now() + limit
      const step = 500
      let at = Date.now()
      let seen = { count: -1, cpu: 0 }
      for (;;) {
        const entries = await server.requests({ user: name })
        const count = entries.filter(({ resource, verb }) => resource !== 'leases' && verb !== 'watch').length
        const cpu = cpuSeconds(pid)
        const isBusy = count !== seen.count || cpu - seen.cpu > (slack * step) / 1000
        seen = { count, cpu }
        if (isBusy) at = Date.now()
        else if (Date.now() - at >= time) return
        if (Date.now() > deadline) throw new Error(`${name} is not quiet after ${limit / 1000} s; see ${file}`)
        await Promise.race([sleep(step), ended])
      }
    },
    async kill() {
      isStopping = true
      child.kill('SIGKILL')
      await exit
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

function residentMegabytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return (Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024) / 1e6
}
