/**
 * The app controller as a whole: its reconcilers, the connections to sidecars, and the root of trust, on one manager.
 *
 * Guarantees: sidecars are connected to only while this process leads, and no longer; nothing is asked of them before there is a root of trust; after `stop`
 * nothing is left open.
 */
import { sleep } from '../../shared/clock.ts'
import { messageOf, ShipmateError } from '../../shared/errors.ts'
import type { CachedClient } from '../kube/cached.ts'
import { createDiscovery } from '../kube/discovery.ts'
import { AlreadyExists } from '../kube/errors.ts'
import { exec } from '../kube/exec.ts'
import { keyOf, type Ref, type Snapshot } from '../kube/kind.ts'
import { ConfigMap, Pod, Secret } from '../kube/kinds.ts'
import type { Manager } from '../runtime/index.ts'
import { TerminalError } from '../runtime/index.ts'
import { addTo } from '../toolkit/operator.ts'
import { type AgentsOptions, createAgents } from './agents/agents.ts'
import { createAgentMetrics } from './agents/metrics.ts'
import { byApp, isUnsettled } from './gather.ts'
import { Lifecycle, Operation, StatefulApp } from './kinds.ts'
import { lifecycleReconciler } from './lifecycles.ts'
import { createMemory } from './memory.ts'
import { createAppMetrics } from './metrics.ts'
import { addOrphans } from './orphans/controller.ts'
import { appReconciler } from './reconciler.ts'
import { addSchedulesOf } from './schedule/operator.ts'
import { isOfShard, type Shard } from './shard.ts'
import { secretNameOf } from './trust/app-secret.ts'
import { readSignature } from './trust/lifecycle-config.ts'
import { type Lifetimes, usualLifetimes } from './trust/lifetimes.ts'
import { isSameTrust } from './trust/root.ts'
import { createTrust, type Trust } from './trust/trust.ts'
import type { Exec } from './via/asking.ts'
import { type AllAgents, bothWays, createVia } from './via/via.ts'
import type { App } from './view.ts'
import { createConcerns } from './workload/concerns.ts'
import { madeLabels } from './workload/marks.ts'
import { prepareCache } from './workload/places.ts'

export interface ShipmateOptions {
  /** The controller's own namespace: the root of trust is kept there. */
  readonly namespace: string
  /** Which part of the apps this process looks after. Default: all. */
  readonly shard?: Shard | undefined
  /** How often the progress of a run is written at most, in milliseconds. Default 10,000. */
  readonly progressEvery?: number | undefined
  readonly limits?: AgentsOptions['limits']
  readonly lifetimes?: Partial<Lifetimes> | undefined
}

const byLifecycle = 'lifecycle'
/** The root of trust is looked at at least so often, in milliseconds. */
const keepEvery = 600_000

export function addShipmate(manager: Manager, options: ShipmateOptions): void {
  const { cache, clock, client } = manager
  const { shard } = options
  const { propagation } = { ...usualLifetimes, ...options.lifetimes }
  const log = manager.log.child({ part: 'app' })
  prepareCache(cache, { manager: 'shipmate', isUnsettled })
  cache.informer(Operation).addIndex(byApp, ({ metadata, spec }) => [`${metadata.namespace}/${spec.app}`])
  cache.informer(StatefulApp).addIndex(byLifecycle, ({ metadata, spec }) => [`${metadata.namespace}/${spec.lifecycle}`])
  const appsOf = ({ metadata }: Snapshot): Ref[] =>
    cache
      .informer(StatefulApp)
      .by(byLifecycle, keyOf(metadata))
      .map(app => app.metadata)

  const trust = createTrust({ client, namespace: options.namespace, clock, log, lifetimes: options.lifetimes })
  const rooted = Promise.withResolvers<void>()
  let wake: (ref: Ref, reason: string) => void = () => {}
  let wakeLifecycle = wake
  const metrics = createAgentMetrics(manager.metrics.registry)
  const agents = leading(() =>
    bothWays(
      createAgents({
        credentials: trust,
        onChange: (app, why) => wake(app, `its sidecar: ${why}`),
        log,
        metrics,
        ...(options.limits && { limits: options.limits }),
        clock,
        random: manager.random,
      }),
      createVia({ exec: execOf(manager), onChange: (app, why) => wake(app, `itself: ${why}`), clock }),
    ),
  )
  const concerns = createConcerns(cache)
  const memory = createMemory(options.progressEvery)
  const isMine = ({ metadata }: Snapshot) => !shard || isOfShard(metadata.uid, shard)

  addTo(
    manager,
    appReconciler({
      agents: () => agents.current(),
      sources: { discovery: createDiscovery(client), concerns },
      concerns,
      memory,
      clock,
      appsOf,
      isMine,
      certify: async (app, working, signal) => {
        await unlessCalledOff(rooted.promise, signal)
        return certify(app, working, trust)
      },
      metrics: createAppMetrics(manager.metrics.registry, clock),
      listen(to) {
        wake = to
      },
    }),
    { crdCommand: 'kubectl apply -f deploy/crds' },
  )
  addTo(
    manager,
    lifecycleReconciler({
      async root(signal) {
        await unlessCalledOff(rooted.promise, signal)
        if (!trust.root) throw new Error('the root of trust is gone')
        return trust.root
      },
      now: () => clock.now(),
      appsOf,
      isMine,
      listen(to) {
        wakeLifecycle = to
      },
    }),
    { crdCommand: 'kubectl apply -f deploy/crds' },
  )
  addSchedulesOf(manager, isMine)
  addOrphans(manager)
  /** Nobody else tells them that whom to believe, or by what to sign, has changed. */
  const spread = () => {
    for (const { metadata } of cache.informer(StatefulApp).list()) wake(metadata, 'the root of trust')
    for (const { metadata } of cache.informer(Lifecycle).list()) wakeLifecycle(metadata, 'the root of trust')
  }

  manager.task(async signal => {
    try {
      const synced = [StatefulApp, Secret, ConfigMap, Lifecycle].map(kind => cache.informer<object>(kind).synced)
      await unlessCalledOff(Promise.all(synced), signal)
      for (let failures = 0; !signal.aborted; ) {
        let pause = keepEvery
        try {
          const before = trust.root
          const again = await trust.keep(followersOf(manager), signal)
          if (before && trust.root && !isSameTrust(before, trust.root)) spread()
          pause = Math.min(Math.max(again - clock.now(), 1000), keepEvery, propagation)
          failures = 0
          rooted.resolve()
        } catch (error) {
          if (signal.aborted) return
          pause = Math.min(1000 * 2 ** failures++, 60_000)
          log.error({ err: error }, `the root of trust could not be kept: ${messageOf(error)}`)
        }
        await sleep(clock, pause, signal).catch(() => undefined)
      }
    } finally {
      await agents.end()
    }
  })
}

/**
 * Waits for it, or rejects with the signal's reason. Who no longer leads must not wait for what comes of leading: until all work has ended, it does not lead again.
 */
async function unlessCalledOff(awaited: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const called = Promise.withResolvers<never>()
  const callOff = () => called.reject(signal.reason)
  if (signal.aborted) callOff()
  else signal.addEventListener('abort', callOff, { once: true })
  try {
    await Promise.race([awaited, called.promise])
  } finally {
    signal.removeEventListener('abort', callOff)
  }
}

/** What the root must not outrun. */
function followersOf({ cache }: Manager): Parameters<Trust['keep']>[0] {
  const apps = cache.informer(StatefulApp).list()
  const configs = cache.informer(ConfigMap)
  return {
    apps: apps.map(({ metadata: { namespace = '', name, uid } }) => ({
      app: { namespace, name, uid },
      secret: cache.informer(Secret).get({ namespace, name: secretNameOf(name) }),
    })),
    signatures: configs
      .list()
      .filter(({ metadata }) => metadata.name.startsWith('shipmate-lifecycle-'))
      .map(readSignature),
  }
}

/** Writes the app's certificate if it is due; answers when to look again, in milliseconds since 1970. */
async function certify({ metadata }: App, client: CachedClient, trust: Trust): Promise<number> {
  const { namespace = '', name, uid, deletionTimestamp } = metadata
  const ref = { namespace, name: secretNameOf(name) }
  const plan = trust.plan({ namespace, name, uid }, await client.find(Secret, ref))
  if (plan.do === 'refuse') throw new TerminalError(plan.reason)
  if (plan.do === 'nothing') return plan.again
  if (deletionTimestamp !== undefined) return Number.POSITIVE_INFINITY
  const labels = { ...plan.secret.metadata.labels, ...madeLabels }
  const secret = { ...plan.secret, metadata: { ...plan.secret.metadata, labels } }
  try {
    if (secret.metadata.resourceVersion === undefined) await client.create(Secret, secret as never)
    else await client.update(Secret, secret as never)
  } catch (error) {
    if (!(error instanceof AlreadyExists)) throw error
    // One that the cache does not show: without our mark, or not yet.
    const there = await client.live.find(Secret, ref)
    const again = trust.plan({ namespace, name, uid }, there as never)
    if (again.do === 'refuse') throw new TerminalError(again.reason, { cause: error })
    if (again.do === 'write')
      await client.update(Secret, { ...again.secret, metadata: { ...again.secret.metadata, labels } } as never)
  }
  return 0
}

/** Commands in containers, for apps without a sidecar. */
function execOf(manager: Manager): Exec {
  return async (pod, options) => {
    const { credentials } = manager
    if (!credentials) throw new ShipmateError('Misuse', 'exec needs a connection to a cluster of its own', 'never')
    const [first] = manager.cache.informer(Pod).get(pod)?.spec?.containers ?? []
    return exec(credentials, pod, { container: first?.name, ...options })
  }
}

/** Made when it is first used, ended when the process stops leading, and made anew when it leads again. */
function leading(create: () => AllAgents): { current(): AllAgents; end(): Promise<void> } {
  let current: AllAgents | undefined
  return {
    current() {
      current ??= create()
      return current
    },
    async end() {
      const last = current
      current = undefined
      await last?.close()
    },
  }
}
