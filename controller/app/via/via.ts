/**
 * Apps without a sidecar: their pods are observed and asked from here, in the shapes in which sidecars speak, so that everything else is the same for both.
 *
 * Guarantees: a pod that is followed is probed at its probes' own intervals, so many at once; what is lost without a sidecar is lost in the open: the journal is this
 * process's memory and has its id, so another process finds runs in progress Unknown. After `close` nothing is called and nothing is left open.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../../shared/clock.ts'
import { type CompiledLifecycle, compileLifecycle } from '../../../shared/lifecycle/compile.ts'
import { roleOf } from '../../../shared/lifecycle/guard.ts'
import { observe, unknownState } from '../../../shared/lifecycle/observe.ts'
import type { PodState } from '../../../shared/protocol/schemas.ts'
import { type AppRef, appKey, type PodAddress } from '../agents/address.ts'
import type { Agents } from '../agents/agents.ts'
import { AgentError } from '../agents/errors.ts'
import type { AgentView, App, LifecycleView } from '../view.ts'
import { type Ask, createAsk, type Exec } from './asking.ts'
import { probeCall, type Way } from './calls.ts'
import { startProbes, type ViaProbes } from './probes.ts'
import { createRuns, type Ground, type ViaRuns } from './runs.ts'
import { createTurns } from './turns.ts'

export interface ViaOptions {
  readonly exec: Exec
  /** Called at once; must not throw. */
  readonly onChange: (app: AppRef, why: 'state' | 'run') => void
  readonly clock: Clock
  /** How many probes are asked at once. Default 32. */
  readonly probing?: number | undefined
}

export interface Via {
  /** How the pods of this app are asked, by the lifecycle as it is now. */
  agentsOf(app: App, lifecycle: LifecycleView | undefined): Agents
  unfollow(app: AppRef): void
  close(): Promise<void>
}

interface Followed {
  ground: Ground
  probes: ViaProbes
  readonly runs: ViaRuns
  everHeld: boolean
  observed: Pick<PodState, 'state' | 'since' | 'reason'>
  readonly since: number
  seq: number
}

export function createVia({ exec, onChange, clock, probing = 32 }: ViaOptions): Via {
  const journalId = randomUUID()
  const ask: Ask = createAsk(exec, clock)
  const turns = createTurns(probing)
  const pods = new Map<string, Followed>()
  const apps = new Map<string, Set<string>>()
  const time = () => new Date(clock.now()).toISOString()

  function probesOf(one: () => Followed, { address, way, lifecycle }: Ground): ViaProbes {
    return startProbes({
      probes: (lifecycle.spec.probes ?? []).map(probe => ({ probe, call: probeCall(probe, way) })),
      ...{ clock, turns },
      ask: (call, timeout, signal) => ask(address, way, call, { params: {}, timeout, signal }),
      onChange: () => refresh(one(), 'state'),
    })
  }

  function refresh(one: Followed, why: 'state' | 'run'): void {
    const { lifecycle, address } = one.ground
    if (pods.get(address.pod.uid) !== one) return
    const run = one.runs.inProgress() ?? null
    const { state, reason, guardHeld } = observe({ lifecycle, probes: one.probes.view(), run, everHeld: one.everHeld })
    one.everHeld ||= guardHeld
    const before = one.observed
    one.observed = { state, reason, since: state === before.state ? before.since : time() }
    one.seq++
    onChange(address.app, why)
  }

  function add(ground: Ground): void {
    const one: Followed = {
      ground,
      probes: probesOf(() => one, ground),
      runs: createRuns({
        ground: () => one.ground,
        ...{ journalId, clock },
        ask: (call, options) => ask(one.ground.address, one.ground.way, call, options),
        onChange: () => refresh(one, 'run'),
      }),
      everHeld: false,
      observed: { state: unknownState, since: time(), reason: 'NotAnswered' },
      since: clock.now(),
      seq: 0,
    }
    const key = appKey(ground.address.app)
    pods.set(ground.address.pod.uid, one)
    apps.set(key, (apps.get(key) ?? new Set()).add(ground.address.pod.uid))
  }

  function update(one: Followed, ground: Ground): void {
    const { address, way, hash } = one.ground
    const isSame =
      address.ip === ground.address.ip && hash === ground.hash && JSON.stringify(way) === JSON.stringify(ground.way)
    one.ground = ground
    if (isSame) return
    one.probes.stop()
    one.probes = probesOf(() => one, ground)
  }

  function remove(uid: string): void {
    const one = pods.get(uid)
    if (!one) return
    const key = appKey(one.ground.address.app)
    pods.delete(uid)
    apps.get(key)?.delete(uid)
    if (apps.get(key)?.size === 0) apps.delete(key)
    one.probes.stop()
    one.runs.stop()
  }

  const unfollow = (app: AppRef) => {
    for (const uid of [...(apps.get(appKey(app)) ?? [])]) remove(uid)
  }

  function stateOf(one: Followed): PodState {
    const { address, hash } = one.ground
    const probes = one.probes.view()
    const run = one.runs.inProgress()
    return {
      ...one.observed,
      role: roleOf(probes),
      probes: Object.fromEntries(Object.entries(probes).map(([name, { answered: _, ...probe }]) => [name, probe])),
      run: run ? { id: run.id, action: run.action, phase: run.phase } : null,
      pod: { ...address.pod, namespace: address.app.namespace },
      configHash: hash,
      ...{ journalId, fence: one.runs.fence, bootId: journalId, seq: one.seq, cursor: `${journalId}.${one.seq}` },
      version: 'via',
    }
  }

  function viewOf(one: Followed): AgentView | undefined {
    // Until each probe was tried nothing is known, as of a sidecar that is being connected to.
    if (!one.probes.isTried()) return undefined
    const runs = new Map(one.runs.all)
    return { isReachable: true, since: one.since, error: undefined, state: stateOf(one), runs, features }
  }

  function meant(address: PodAddress): Followed {
    const one = pods.get(address.pod.uid)
    if (one) return one
    throw new AgentError('Unavailable', address, 'the pod is not followed', { isSent: false })
  }

  return {
    agentsOf(app, lifecycle) {
      const way = app.spec.via as Way
      const compiled = lifecycle && compiledOf(lifecycle)
      return {
        follow(ref, wanted) {
          const uids = new Set(wanted.map(({ pod }) => pod.uid))
          for (const uid of [...(apps.get(appKey(ref)) ?? [])]) if (!uids.has(uid)) remove(uid)
          if (!lifecycle || !compiled) return
          for (const address of wanted) {
            const ground: Ground = { address, way, lifecycle: compiled, hash: lifecycle.hash }
            const one = pods.get(address.pod.uid)
            if (one) update(one, ground)
            else add(ground)
          }
        },
        unfollow,
        seen(uid) {
          const one = pods.get(uid)
          return one && viewOf(one)
        },
        state: async pod => stateOf(meant(pod)),
        put: async (pod, id, body) => meant(pod).runs.put(id, body),
        run: async (pod, id) => meant(pod).runs.all.get(id),
        cancel: async (pod, id) => meant(pod).runs.cancel(id),
        settle: async (pod, id, word) => meant(pod).runs.settle(id, word),
        verify: async (pod, body, signal) => meant(pod).runs.verify(body, signal),
        drop: async (pod, id) => meant(pod).runs.drop(id),
        log: async (pod, id, piece = {}) => meant(pod).runs.log(id, piece),
        close: async () => undefined,
      }
    },
    unfollow,
    async close() {
      for (const uid of [...pods.keys()]) remove(uid)
    },
  }
}

/** Those of a sidecar that hold here, too, for as long as this process lives; `adopt` does not. */
const features = ['annul', 'fence', 'verify']

const compiled = new WeakMap<LifecycleView, CompiledLifecycle>()

/** Undefined: it is wrong, which is told elsewhere. */
function compiledOf(view: LifecycleView): CompiledLifecycle | undefined {
  if (view.problems.length > 0) return undefined
  const made = compiled.get(view) ?? compileLifecycle(view.spec)
  compiled.set(view, made)
  return made
}

/** The sidecars' side and this one behind one name: an app is asked by one of them, and followed by no other. */
export interface AllAgents extends Agents {
  of(app: App, lifecycle: LifecycleView | undefined): Agents
}

export function bothWays(agents: Agents, via: Via): AllAgents {
  return {
    ...agents,
    of(app, lifecycle) {
      const ref = { namespace: app.metadata.namespace ?? '', name: app.metadata.name }
      if (!app.spec.via) {
        via.unfollow(ref)
        return agents
      }
      agents.unfollow(ref)
      return via.agentsOf(app, lifecycle)
    },
    unfollow(ref) {
      agents.unfollow(ref)
      via.unfollow(ref)
    },
    async close() {
      await via.close()
      await agents.close()
    },
  }
}
