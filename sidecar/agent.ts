/**
 * The agent: configuration, probes, journal, runs and servers put together, from start to end.
 *
 * Guarantees: the state folder is ours before anything in it is touched. Nothing is asked of it over the API before the journal is recovered and a configuration is in
 * force. What it tells, it tells in the order in which it happened.
 */
import { randomUUID } from 'node:crypto'
import { chmod } from 'node:fs/promises'
import type { Clock } from '../shared/clock.ts'
import { type Action, defaults } from '../shared/lifecycle/model.ts'
import type { Logger } from '../shared/log.ts'
import { Problem } from '../shared/protocol/problems.ts'
import type { ActionView, PodState } from '../shared/protocol/schemas.ts'
import type { Agent } from './api.ts'
import { hashOfFile } from './calls/file.ts'
import type { Config } from './config/examine.ts'
import { createConfigStore } from './config/store.ts'
import { endRuns, waitForBound } from './drain.ts'
import { createEvents } from './events.ts'
import { type Fault, noFault } from './faults.ts'
import { ownIdentity } from './init/identity.ts'
import { type Journal, openJournal } from './journal/journal.ts'
import { createMeasures } from './measures.ts'
import { createPreStop, type PreStop } from './prestop.ts'
import { createProbes } from './probes/scheduler.ts'
import { stepsOf } from './runs/admit.ts'
import type { Bounds } from './runs/bounds.ts'
import { makeFolder } from './runs/folder.ts'
import { createRuns, type Runs } from './runs/runs.ts'
import type { AuthMode } from './server/gate.ts'
import { startServers } from './server/servers.ts'
import { createState, type State } from './state.ts'
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
  /** Makes room for the next agent: runs that can go on without this one do. */
  replace(): Promise<void>
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
  const within = (): Inside => {
    if (!inside) throw new Problem('Unavailable', 'The journal is still being read.')
    return inside
  }

  await makeFolder(stateDir)
  // The root of a volume may be another's; then what is in it is ours alone, but its names are not.
  await chmod(stateDir, 0o700).catch(() =>
    log.warn({ stateDir }, 'the state folder is not ours; name a folder inside it, so that it can be kept from others'),
  )

  const tellState = () => {
    if (inside) events.publish({ type: 'state', state: podState() })
  }
  const podState = (): PodState => {
    const { journal, state } = within()
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
      probes.set(next.spec.probes ?? [])
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
    runs: () => within().runs.list(),
    run: id => within().runs.get(id),
    put: (id, body) => within().runs.put(id, body),
    drop: id => within().runs.drop(id),
    cancel: id => within().runs.cancel(id),
    settle: (id, body) => within().runs.settle(id, body),
    verify: body => within().runs.verify(body),
    log: (id, offset, limit) => within().runs.log(id, offset, limit),
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
        ...(config && !probes.settled() ? ['probes that have not answered yet'] : []),
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
      onSucceeded: state.stopped,
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
    const { journal } = within()
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
      await endRuns(within().runs, clock, log, options.drainTimeoutMs)
      await servers?.drain()
      await close()
    },
    async replace() {
      await waitForBound(within().runs, clock, log, options.drainTimeoutMs)
      await close()
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
  const all = ['actions', 'cancel', 'events', 'fence', 'logs', 'prestop', 'settle', 'steps', 'verify']
  return ownIdentity().boot === '' ? all : ['adopt', ...all]
}
