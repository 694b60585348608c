// One program's trial on N Stacks in a namespace of its own: the first deployment, reconciliations with nothing to do,
// changes of one child each, a restart. Every program goes through the same steps.

import { setTimeout as sleep } from 'node:timers/promises'
import type { ApiServer } from '../../test/fixtures/apiserver.ts'
import type { Keeper } from '../../test/fixtures/keeper.ts'
import type { Api } from '../api.ts'
import { countRequests } from '../requests.ts'
import type { ProgramOptions } from '../running.ts'
import { type Reconciling, startReconciling } from './program.ts'
import { changeStacks, createStacks, deleteAll, touchStacks, whatIsWrong } from './stacks.ts'

export interface TrialOptions extends Omit<ProgramOptions, 'user' | 'kubeconfig'> {
  n: number
  touches: number
  changes: number
}

/** What a step took, all of it, until the program was quiet again. */
export interface Cost {
  /** Requests but watches and leases. */
  requests: number
  writes: number
  /** Of the writes, those answered 409: a stale version, or an object that was there already. */
  conflicts: number
  reconciliations: number
  /** CPU seconds. */
  cpu: number
}

export interface Figures {
  /** From the start of the process; of the requests, those for single objects in the namespace. */
  deployment: Cost
  /** Each Stack was touched so many times, with nothing to do. */
  unchanged: Cost
  /** Each Stack's message was changed so many times. */
  change: Cost
  /** A new process finds everything as it should be. */
  restart: Cost
  /** The most resident memory of a process, MB. */
  rss: number
}

export async function runTrial(server: ApiServer, api: Api, keeper: Keeper, options: TrialOptions): Promise<Figures> {
  const { name, namespace, n, touches, changes } = options
  const user = `bench-${namespace}`
  const kubeconfig = await server.kubeconfigFor({ name: user, group: 'system:masters' })
  await createStacks(api, namespace, n)
  const started = () => startReconciling(server, keeper, { ...options, user, kubeconfig })
  let running: Reconciling | undefined

  /** @param least how many reconciliations it takes at the least */
  async function costOf(program: Reconciling, least: number, work: () => Promise<void>): Promise<Cost> {
    const before = { since: Date.now(), cpu: program.cpu(), reconciliations: await program.reconciled() }
    await work()
    await program.settled(before.reconciliations + least)
    return costSince(program, before)
  }

  async function costSince(program: Reconciling, before: { since: number; cpu: number; reconciliations: number }) {
    const cpu = program.cpu() - before.cpu
    const count = countRequests(await server.requests({ user, since: before.since }))
    return {
      requests: count.gets + count.writes + count.lists,
      writes: count.writes,
      conflicts: count.conflicts,
      reconciliations: (await program.reconciled()) - before.reconciliations,
      cpu,
    }
  }

  async function converged(program: Reconciling): Promise<void> {
    for (const deadline = Date.now() + 300_000; ; await sleep(500)) {
      const wrong = await whatIsWrong(api, namespace, n)
      if (wrong === undefined) return
      if (Date.now() > deadline) throw new Error(`${name} does not converge: ${wrong}`)
      await program.settled(0)
    }
  }

  try {
    running = await started()
    const program = running
    const deployment = await costOf(program, n, () => converged(program))
    const own = countRequests(await server.requests({ user, namespace }))
    deployment.requests = own.gets + own.writes

    const unchanged = await costOf(program, n * touches, async () => {
      for (let i = 1; i <= touches; i++) {
        const done = await program.reconciled()
        await touchStacks(api, namespace, n, String(i))
        await program.settled(done + n)
      }
    })
    const change = await costOf(program, n * changes, async () => {
      for (let i = 1; i <= changes; i++) {
        await changeStacks(api, namespace, n, `change ${i}`)
        await converged(program)
      }
    })
    const first = program.peak()
    await program.stop()

    const since = Date.now()
    running = await started()
    await running.settled(n)
    const restart = await costSince(running, { since, cpu: 0, reconciliations: 0 })
    return { deployment, unchanged, change, restart, rss: Math.max(first, running.peak()) }
  } finally {
    await running?.stop()
    await deleteAll(api, namespace)
  }
}
