/**
 * The agent: configuration, probes, journal, runs and servers put together, from start to end.
 *
 * Guarantees: the state folder is ours before anything in it is touched. Nothing is asked of it over the API before the journal is recovered and a configuration is in
 * force. What it tells, it tells in the order in which it happened.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../shared/clock.ts'
import { type Action, defaults } from '../shared/lifecycle/model.ts'
import type { Logger } from '../shared/log.ts'
import { Problem } from '../shared/protocol/problems.ts'
import type { ActionView, PodState } from '../shared/protocol/schemas.ts'
import type { Agent } from './api.ts'
import { hashOfFile } from './calls/file.ts'
import type { Config } from './config/examine.ts'
import { createConfigStore } from './config/store.ts'
import { endRuns, timeLimit, waitForBound, within } from './drain.ts'
import { createEvents } from './events.ts'
import { type Fault, noFault } from './faults.ts'
import { ownIdentity } from './init/identity.ts'
import { type Journal, openJournal } from './journal/journal.ts'
import { createMeasures } from './measures.ts'
import { createPreStop, type PreStop } from './prestop.ts'
import { createProbes } from './probes/scheduler.ts'
import { stepsOf } from './runs/admit.ts'
import type { Bounds } from './runs/bounds.ts'
import { createRuns, type Runs } from './runs/runs.ts'
import type { AuthMode } from './server/gate.ts'
import { startServers } from './server/servers.ts'
import { createState, type State } from './state.ts'
import { openStateFolder } from './state-folder.ts'
import { version } from './version.ts'

export interface AgentOptions {
  /** The configuration's file. */
  readonly config: string
  readonly stateDir: string
  readonly listen: string
  readonly publicListen: string
  readonly auth: AuthMode
  readonly tlsDir?: string | undefined
  readonly tokenFile?: string | undefined
  /** How long a drain may take, the cancel grace included, in milliseconds. */
  readonly drainTimeoutMs: number
  readonly pod: { readonly name: string; readonly namespace: string; readonly uid: string }
  /** The name of the Lifecycle, which its signature covers. */
  readonly lifecycle: string
  /** How a wrapper is started: `shipmate-init exec`, or its twin. */
  readonly init: readonly string[]
  readonly clock: Clock
  readonly log: Logger
  /** For tests: called at each named point. */
  readonly fault?: Fault | undefined
  readonly bounds?: Bounds | undefined
}

export interface RunningAgent {
  readonly agent: Agent
  /** Host and port of the public server. */
  readonly public: string
  /** Resolves with both addresses when the API is open. */
  readonly listening: Promise<{ api: string; public: string }>
  /** Takes no new runs, lets those in progress end, cancels what is left in time, and closes. */
  drain(): Promise<void>
  /**
   * Makes room for the next agent: runs that can go on without this one do, those that cannot are waited for. False if `signal` was aborted meanwhile: nothing is
   * closed then, and a drain can follow.
   */
  replace(signal?: AbortSignal): Promise<boolean>
  /** Lets go of everything at once; runs go on. */
  close(): Promise<void>
}

/** What is there once the journal is recovered. */
interface Inside {
  readonly journal: Journal
  readonly runs: Runs
  readonly state: State
  readonly preStop: PreStop
}

export async function startAgent(options: AgentOptions): Promise<RunningAgent> {
  const { stateDir, clock, log, pod } = options
  const fault = options.fault ?? noFault
  const bootId = randomUUID()
  const events = createEvents({ bootId, clock })
  const recovered = Promise.withResolvers<Inside>()
  recovered.promise.catch(() => {})
  let inside: Inside | undefined
  let config: Config | undefined
  const opened = (): Inside => {
    if (!inside) throw new Problem('Unavailable', 'The journal is still being read.')
    return inside
  }

  await openStateFolder(stateDir, log)

  const tellState = () => {
    if (inside) events.publish({ type: 'state', state: podState() })
  }
  const podState = (): PodState => {
    const { journal, state } = opened()
    return {
      ...state.current(),
      probes: probes.view(),
      pod,
      configHash: config?.hash ?? '',
      ...(store.refused() !== undefined && { configError: store.refused() }),
      journalId: journal.memory.journalId,
      fence: journal.memory.fence,
      bootId,
      seq: events.seq,
      cursor: events.cursor,
      version: version(),
    }
  }

  const probes = createProbes({
    clock,
    log,
    onAnswer(name, probe, changed) {
      metrics.probed(name, probe)
      if (!changed) return
      events.publish({ type: 'probe', name, probe })
      inside?.state.refresh()
    },
  })

  const store = createConfigStore({
    file: options.config,
    stateDir,
    clock,
    log,
    ...(options.auth === 'mtls' &&
      options.tlsDir !== undefined && {
        signature: { tlsDir: options.tlsDir, namespace: pod.namespace, name: options.lifecycle },
      }),
    onChange(next) {
      config = next
      const declared = next.spec.probes ?? []
      probes.set(declared)
      metrics.declared(declared.map(({ name }) => name))
      noteFiles(next).catch(error => log.warn({ err: error }, 'the files that reloads wait for could not be noted'))
      inside?.state.refresh()
      tellState()
      servers?.openApi().catch(error => log.fatal({ err: error }, 'the API could not be opened'))
    },
    onRefused: () => tellState(),
  })

  const agent: Agent = {
    state: () => podState(),
    actions: () => (config?.spec.actions ?? []).map(viewOfAction),
    features: () => ({ protocol: 1, features: features() }),
    runs: () => opened().runs.list(),
    run: id => opened().runs.get(id),
    put: (id, body) => opened().runs.put(id, body),
    drop: id => opened().runs.drop(id),
    cancel: id => opened().runs.cancel(id),
    settle: (id, body) => opened().runs.settle(id, body),
    verify: body => opened().runs.verify(body),
    log: (id, offset, limit) => opened().runs.log(id, offset, limit),
    events,
    async preStop() {
      const { preStop } = await recovered.promise.catch(() => ({ preStop: undefined }))
      await preStop?.post()
    },
    async awaitPreStop(signal) {
      const { preStop } = await recovered.promise.catch(() => ({ preStop: undefined }))
      await preStop?.wait(signal)
    },
    missing() {
      return [
        ...(inside ? [] : ['the journal is being recovered']),
        ...(config ? [] : [`the configuration: ${store.refused() ?? `${options.config} is not there`}`]),
        ...(probes.awaited().length > 0 ? [`probes that have not answered yet: ${probes.awaited().join(', ')}`] : []),
        ...(inside?.journal.failure === undefined ? [] : [`the journal cannot be written: ${inside.journal.failure}`]),
      ]
    },
    metrics: () => metrics.page(),
  }
  const metrics = createMeasures({
    inside: () => inside && { journal: inside.journal, runs: inside.runs },
    events,
    readers: () => servers?.readers ?? 0,
    refused: () => store.refused() !== undefined,
    state: () => inside?.state.current().state,
  })
  let servers: Awaited<ReturnType<typeof startServers>> | undefined
  servers = await startServers({ ...options, agent, observe: metrics.answered })

  const open = async (): Promise<Inside> => {
    const journal = await openJournal({ stateDir, clock, log, fault })
    const runs: Runs = createRuns({
      ...options,
      fault,
      journal,
      podUid: pod.uid,
      config: () => config,
      held: () => state.held(),
      onRun(run) {
        events.publish({ type: 'run', run })
        state.refresh()
      },
      onLog: id => events.logGrown(id),
      onEnded: metrics.ended,
    })
    const state: State = createState({
      clock,
      log,
      journal,
      probes,
      lifecycle: () => config?.lifecycle,
      inProgress: runs.inProgress,
      onChange: tellState,
    })
    const preStop = createPreStop({
      podUid: pod.uid,
      clock,
      log,
      journal,
      runs,
      action: () => config?.spec.preStop,
    })
    inside = { journal, runs, state, preStop }
    await runs.recover()
    return inside
  }

  const close = async (): Promise<void> => {
    store.stop()
    probes.stop()
    await servers?.close()
    await inside?.runs.close()
    await inside?.journal.close()
  }

  try {
    recovered.resolve(await open())
    store.start()
  } catch (error) {
    recovered.reject(error)
    await close()
    throw error
  }

  /** What a later reload compares with: the content when the file was first seen. */
  async function noteFiles({ spec }: Config): Promise<void> {
    const { journal } = opened()
    const files: Record<string, string> = {}
    for (const { fileChanged } of (spec.actions ?? []).flatMap(stepsOf)) {
      const path = fileChanged?.path
      if (path !== undefined && !Object.hasOwn(journal.memory.memo.files, path)) files[path] = await hashOfFile(path)
    }
    if (Object.keys(files).length > 0)
      await journal.append({ t: 'memo', memo: { files: { ...files, ...journal.memory.memo.files } } })
  }

  const listening = new Promise<{ api: string; public: string }>(resolve => servers?.onListening(resolve))
  return {
    agent,
    public: servers.public,
    listening,
    async drain() {
      const limit = timeLimit(clock, options.drainTimeoutMs)
      await endRuns(opened().runs, clock, log, limit)
      // What is still being served, a verify for instance, may take longer than there is time.
      const isAnswered = await within(Promise.resolve(servers?.drain()), clock, limit.left())
      if (!isAnswered) log.warn({}, 'draining: calls are cut off, as the time is up')
      await close()
    },
    async replace(signal) {
      const limit = timeLimit(clock, options.drainTimeoutMs)
      if (!(await waitForBound(opened().runs, clock, log, limit, signal))) return false
      await close()
      return true
    },
    close,
  }
}

function viewOfAction(action: Action): ActionView {
  return {
    name: action.name,
    ...(action.description !== undefined && { description: action.description }),
    params: action.params ?? {},
    timeout: action.timeout ?? defaults.action.timeout,
    shared: action.shared ?? defaults.action.shared,
    idempotent: action.idempotent ?? defaults.action.idempotent,
    verify: action.verify !== undefined,
  }
}

/** `adopt` only where a process can be known again. */
function features(): string[] {
  const all = ['actions', 'annul', 'cancel', 'events', 'fence', 'logs', 'prestop', 'settle', 'steps', 'verify']
  return ownIdentity().boot === '' ? all : ['adopt', ...all]
}
