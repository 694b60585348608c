/**
 * A model of all that is around the app controller's decisions: an API server with versions, pods with agents that keep a journal and count effects, and controllers
 * that may crash between any two requests, act on old reads, or be two. Everything is chosen by a `pick`, so that a run can be replayed or all of them tried.
 */

import { settle } from '../../../controller/app/carry-out.ts'
import { type AppFacts, type Effect, isSame, operationFinalizer } from '../../../controller/app/decide/app.ts'
import { type Ask, askKey, type Refusal } from '../../../controller/app/decide/facts.ts'
import { wishLabel } from '../../../controller/app/decide/queue.ts'
import type { App, Op, OpStatus, PodView, View, Wish } from '../../../controller/app/view.ts'
import { graphOf } from '../../../shared/lifecycle/graph.ts'
import { configHash } from '../../../shared/lifecycle/hash.ts'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import type { Phase, PodState, PutRun, Run } from '../../../shared/protocol/schemas.ts'
import { isInProgress, isTerminal } from '../../../shared/run.ts'

export const lifecycle: LifecycleSpec = {
  states: [
    { name: 'Start', verb: 'Create', next: ['Running', 'Stopping'] },
    { name: 'Running', when: 'probes.up.ok', next: ['Servicing', 'Stopping'] },
    { name: 'Servicing', actions: ['backup', 'reload'], next: ['Running'] },
    { name: 'Stopping', actions: ['stop'], next: ['End'] },
    { name: 'End', verb: 'Delete', next: ['Start'] },
  ],
  probes: [{ name: 'up', exec: { command: ['true'] } }],
  actions: [
    { name: 'backup', exec: { command: ['backup'] }, timeout: '1h' },
    { name: 'reload', exec: { command: ['reload'] }, idempotent: true },
    { name: 'stop', exec: { command: ['stop'] } },
    { name: 'verified', exec: { command: ['x'] }, verify: { exec: { command: ['y'] } } },
    { name: 'tried', exec: { command: ['x'] }, retries: 2 },
  ],
}

/** Thrown where a controller dies. */
export class Crash extends Error {}
export class Conflict extends Error {}

interface Stored<T> {
  object: T
  version: number
}

export class Agent {
  readonly name: string
  uid: string
  journalId: string
  fence = 0
  state = 'Running'
  bootId = 1
  isReachable = true
  hash: string
  readonly runs = new Map<string, Run>()
  /** Every execution that was really begun: `id`. */
  readonly effects: string[]

  constructor(name: string, uid: string, effects: string[], spec: LifecycleSpec) {
    this.name = name
    this.uid = uid
    this.journalId = `journal-${uid}`
    this.effects = effects
    this.hash = configHash(spec)
  }

  get podState(): PodState {
    const going = [...this.runs.values()].find(run => isInProgress(run.phase))
    return {
      state: this.state,
      since: '2026-01-01T00:00:00Z',
      reason: 'Held',
      role: this.name.endsWith('-0') ? 'primary' : 'replica',
      probes: {},
      run: going ? { id: going.id, action: going.action, phase: going.phase } : null,
      pod: { name: this.name, namespace: 'default', uid: this.uid },
      configHash: this.hash,
      journalId: this.journalId,
      fence: this.fence,
      bootId: String(this.bootId),
      seq: 0,
      cursor: '',
      version: '1',
    }
  }

  put(id: string, body: PutRun): Run {
    const refuse = (code: string) => {
      throw Object.assign(new Error(code), { code })
    }
    if (body.podUid !== this.uid) refuse('WrongPod')
    const known = this.runs.get(id)
    if (known) return known
    if (body.journalId !== this.journalId) refuse('WrongJournal')
    if ((body.fence ?? 0) <= this.fence) refuse('Fenced')
    if (body.configHash !== this.hash && !body.cancelled) refuse('WrongConfig')
    if (!body.cancelled && [...this.runs.values()].some(run => isInProgress(run.phase))) refuse('Locked')
    this.fence = body.fence ?? this.fence
    const run: Run = {
      id,
      action: body.action,
      params: {},
      phase: body.cancelled ? 'Cancelled' : 'Running',
      attempt: body.attempt ?? 1,
      startedAt: '2026-01-01T00:00:00Z',
      finishedAt: null,
      exitCode: null,
      progress: null,
      result: null,
      error: null,
      log: { size: 0, keptHead: 0, tailFrom: 0 },
    }
    this.runs.set(id, run)
    if (!body.cancelled) this.effects.push(id)
    return run
  }

  end(id: string, phase: Phase, code?: string): void {
    const run = this.runs.get(id)
    if (!run || isTerminal(run.phase)) return
    this.runs.set(id, {
      ...run,
      phase,
      finishedAt: '2026-01-01T00:00:01Z',
      error: code === undefined ? null : { code, message: code },
    })
  }

  /** The container dies, and all children with it. */
  die(): void {
    this.bootId++
    for (const run of this.runs.values()) if (isInProgress(run.phase)) this.end(run.id, 'Unknown', 'Lost')
  }
}

export class World {
  now = Date.parse('2026-01-01T00:00:00Z')
  version = 1
  app: Stored<App>
  readonly operations = new Map<string, Stored<Op>>()
  readonly agents: Agent[] = []
  readonly effects: string[] = []
  replicas: number
  kept: number | undefined
  isThere = true
  spec: LifecycleSpec
  #uids = 0
  /** Called before each request of a controller: throws Crash where it dies. */
  request: (what: string) => void = () => {}
  /** Whether the answer to a request gets lost after it was carried out. */
  losesAnswer: (what: string) => boolean = () => false

  constructor({
    replicas = 1,
    spec = lifecycle,
    desired,
  }: { replicas?: number; spec?: LifecycleSpec; desired?: Wish } = {}) {
    this.replicas = replicas
    this.spec = spec
    this.app = {
      version: 1,
      object: {
        apiVersion: 'shipmate.dev/v1alpha1',
        kind: 'StatefulApp',
        metadata: { name: 'db', namespace: 'default', uid: 'app-uid', generation: 1 },
        spec: {
          lifecycle: 'lc',
          workload: { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db' },
          deletion: { deadline: '10m' },
          paused: false,
          ...(desired && { desired }),
        },
      } as unknown as App,
    }
    this.scale()
  }

  /** As many pods as are wished. */
  scale(): void {
    while (this.agents.length > this.replicas) this.agents.pop()
    for (let n = this.agents.length; n < this.replicas; n++)
      this.agents.push(new Agent(`db-${n}`, `pod-${++this.#uids}`, this.effects, this.spec))
  }

  /** The pod goes and another takes its name. */
  replace(n: number): void {
    this.agents[n] = new Agent(`db-${n}`, `pod-${++this.#uids}`, this.effects, this.spec)
  }

  wish(desired: Wish | undefined): void {
    const { desired: _, ...spec } = this.app.object.spec
    this.app = {
      version: ++this.version,
      object: { ...this.app.object, spec: { ...spec, ...(desired && { desired }) } } as App,
    }
  }

  addOperation(name: string, spec: Partial<Op['spec']> & { action: string }): void {
    const object = {
      apiVersion: 'shipmate.dev/v1alpha1',
      kind: 'Operation',
      metadata: {
        name,
        namespace: 'default',
        uid: `op-${++this.#uids}`,
        creationTimestamp: new Date(this.now).toISOString(),
      },
      spec: { app: 'db', priority: 0, ttlSecondsAfterFinished: 86_400, suspend: false, cancel: false, ...spec },
    } as unknown as Op
    this.operations.set(name, { object, version: ++this.version })
  }

  /** All that a controller could read now. */
  read(): Snapshot {
    return {
      app: this.app,
      operations: new Map([...this.operations].map(([name, stored]) => [name, { ...stored }])),
    }
  }

  view({ app, operations }: Snapshot): View {
    const at = <T extends object>({ object, version }: Stored<T>) =>
      ({ ...object, metadata: { ...(object as { metadata: object }).metadata, resourceVersion: String(version) } }) as T
    return {
      now: this.now,
      app: at(app),
      lifecycle: { spec: this.spec, graph: graphOf(this.spec), hash: configHash(this.spec), problems: [] },
      workload: this.isThere
        ? {
            apiVersion: 'apps/v1',
            kind: 'StatefulSet',
            name: 'db',
            uid: 'sts',
            replicas: this.replicas,
            isScalable: true,
            keptReplicas: this.kept,
            isRollingOut: false,
            isOutdated: false,
            hasStableNames: true,
            isBeingDeleted: false,
            claimedBy: { namespace: 'default', name: 'db', uid: 'app-uid' },
          }
        : undefined,
      pods: this.agents.map(
        (agent): PodView => ({
          name: agent.name,
          uid: agent.uid,
          ip: '127.0.0.1',
          node: 'node',
          isReady: true,
          isTerminating: false,
          isEnded: false,
          hasAgent: true,
          agent: {
            isReachable: agent.isReachable,
            since: 0,
            error: undefined,
            state: agent.podState,
            runs: new Map(agent.runs),
            features: ['adopt', 'annul', 'fence', 'verify'],
          },
        }),
      ),
      nodes: new Map([['node', { name: 'node', bootId: 'boot', isOutOfService: false }]]),
      operations: [...operations.values()].map(at),
      isNamespaceTerminating: false,
    }
  }

  /** One reconciliation, from `snapshot`. Throws Crash or Conflict as it comes. */
  async reconcile(snapshot: Snapshot = this.read()): Promise<void> {
    let mine = snapshot
    const states = new Map<string, PodState>()
    const refusals = new Map<string, Refusal>()
    const asked = new Set<string>()
    const verdicts = new Map<string, 'Succeeded' | 'Failed' | 'Unknown'>()
    let isEndDone: boolean | undefined
    const facts = (): AppFacts => ({
      states,
      refusals,
      verdicts,
      tails: new Map(),
      asked,
      verifyAt: () => 0,
      isProgressDue: () => true,
      isEndDone,
      endWaits: undefined,
    })
    const carryOut = async (effect: Effect): Promise<View> => {
      this.request(effect.do === 'ask' ? `ask ${effect.ask.ask}` : effect.do)
      switch (effect.do) {
        case 'writeOperation':
          this.#writeOperation(effect.op, stored => ({ ...stored, status: effect.status as OpStatus }))
          break
        case 'holdOperation':
          this.#writeOperation(effect.op, stored => ({
            ...stored,
            metadata: { ...stored.metadata, finalizers: [operationFinalizer] },
          }))
          break
        case 'releaseOperation':
          this.#writeOperation(effect.op, stored => ({ ...stored, metadata: { ...stored.metadata, finalizers: [] } }))
          break
        case 'cancelOperation':
          this.#writeOperation(effect.op, stored => ({ ...stored, spec: { ...stored.spec, cancel: true } }))
          break
        case 'createOperation':
          if (!this.operations.has(effect.name)) {
            this.addOperation(effect.name, { action: effect.action })
            const made = this.operations.get(effect.name) as Stored<Op>
            made.object = {
              ...made.object,
              metadata: {
                ...made.object.metadata,
                finalizers: [operationFinalizer],
                labels: { [wishLabel]: 'app-uid' },
              },
            } as Op
          }
          break
        case 'ask':
          this.#ask(effect.ask, { states, refusals, asked, verdicts })
          break
        case 'create':
          if (this.kept !== undefined) this.replicas = this.kept
          this.kept = undefined
          this.isThere = true
          this.scale()
          for (const agent of this.agents) agent.state = 'Running'
          break
        case 'end':
          if (this.replicas > 0) this.kept = this.replicas
          this.replicas = 0
          this.scale()
          isEndDone = true
          break
        case 'claim':
          break
      }
      if (this.losesAnswer(effect.do)) throw new Crash('the answer was lost')
      // What it wrote it knows; what it has not written it may know from before.
      mine = { app: mine.app, operations: this.#known(mine, effect) }
      return this.view(mine)
    }
    const { decision } = await settle(this.view(mine), { carryOut, facts })
    const before = mine.app.object.status ?? {}
    const { wish, operation, fence } = before
    const next = { ...decision.status, state: decision.observed.state }
    if (
      isSame(next, {
        ...(wish && { wish }),
        ...(operation && { operation }),
        ...(fence !== undefined && { fence }),
        state: before.state,
      })
    )
      return
    this.request('status')
    if (this.app.version !== mine.app.version) throw new Conflict('status')
    this.app = { version: ++this.version, object: { ...this.app.object, status: next } as App }
  }

  #known(mine: Snapshot, effect: Effect): Snapshot['operations'] {
    const name = effect.do === 'createOperation' ? effect.name : 'op' in effect ? effect.op.metadata.name : undefined
    const stored = name === undefined ? undefined : this.operations.get(name)
    if (name === undefined) return mine.operations
    const operations = new Map(mine.operations)
    if (stored) operations.set(name, { ...stored })
    return operations
  }

  #writeOperation(op: Op, change: (stored: Op) => Op): void {
    const stored = this.operations.get(op.metadata.name)
    if (!stored || String(stored.version) !== op.metadata.resourceVersion) throw new Conflict(op.metadata.name)
    stored.object = change(stored.object)
    stored.version = ++this.version
  }

  #ask(
    ask: Ask,
    learned: {
      states: Map<string, PodState>
      refusals: Map<string, Refusal>
      asked: Set<string>
      verdicts: Map<string, 'Succeeded' | 'Failed' | 'Unknown'>
    },
  ): void {
    learned.asked.add(askKey(ask))
    const agent = this.agents.find(({ uid }) => uid === ask.pod.uid)
    if (!agent?.isReachable) return
    if (ask.ask === 'state') return void learned.states.set(agent.uid, agent.podState)
    const { run } = ask
    switch (ask.ask) {
      case 'put':
      case 'annul':
        try {
          const { attempt, uid, fence, configHash: hash, journalId } = run
          const body = { action: run.id.split('.')[0] ?? '', attempt, podUid: uid, fence, configHash: hash, journalId }
          agent.put(run.id, { ...body, ...(ask.ask === 'annul' && { cancelled: true }) } as PutRun)
        } catch (error) {
          const { code } = error as { code: string }
          learned.refusals.set(run.id, { code, message: code, isOfAnnul: ask.ask === 'annul' })
        }
        return
      case 'cancel':
        return agent.end(run.id, 'Cancelled', 'Cancelled')
      case 'verify':
        return void learned.verdicts.set(run.id, this.effects.includes(run.id) ? 'Succeeded' : 'Failed')
      case 'drop':
        return void agent.runs.delete(run.id)
      default:
    }
  }

  /** Reconciles until nothing changes any more, ending runs as they come. */
  async converge(options: { end?: Phase; most?: number } = {}): Promise<void> {
    const { end = 'Succeeded', most = 60 } = options
    for (let n = 0; n < most; n++) {
      const before = this.version
      const had = this.effects.length
      await this.reconcile().catch(error => {
        if (!(error instanceof Conflict)) throw error
      })
      let isMoved = false
      for (const agent of this.agents)
        for (const run of agent.runs.values())
          if (isInProgress(run.phase)) {
            agent.end(run.id, end, end === 'Failed' ? 'ExitCode' : undefined)
            isMoved = true
          }
      this.now += 1000
      if (this.version === before && this.effects.length === had && !isMoved) return
    }
    throw new Error(`not settled after ${most} reconciliations: ${JSON.stringify(this.app.object.status)}`)
  }
}

export interface Snapshot {
  readonly app: Stored<App>
  readonly operations: ReadonlyMap<string, Stored<Op>>
}
