// One simulated sidecar: its state, its runs and its numbered messages, by the protocol's rules. It has no process and no disk: a run
// is a timer. What a controller could get wrong is checked as a sidecar does: the pod, the journal, the fence, the configuration.

import { randomUUID } from 'node:crypto'
import type { Message, PodState, PutRun, Run } from '../../shared/protocol/schemas.ts'

export interface SimulatedPod {
  namespace: string
  app: string
  name: string
  uid: string
  ip: string
}

export interface Answer {
  status: number
  body: object | undefined
}

export interface Simulated {
  readonly pod: SimulatedPod
  state(): PodState
  runs(): Run[]
  /** Another state is observed; tells it. */
  say(state: string): void
  put(id: string, body: PutRun): Answer
  run(id: string): Answer
  drop(id: string): Answer
  /** Messages after a cursor, if they are all remembered. */
  since(cursor: string | null): Message[] | undefined
  /** What a reader gets who has no such cursor. */
  reset(): Message
  readonly readers: Set<(text: string) => void>
}

/** How long a run takes, ms. */
const runTakes = 50
const remembered = 16
const transient = 'Servicing'

type News = { type: 'state' } | { type: 'run'; run: Run }

/** @param onPut hears of each run that begins */
export function simulate(pod: SimulatedPod, configHash: string, onPut: () => void): Simulated {
  const journalId = randomUUID()
  const bootId = randomUUID().slice(0, 8)
  const runs = new Map<string, Run>()
  const memory: Message[] = []
  const readers = new Set<(text: string) => void>()
  const now = () => new Date().toISOString()
  let seq = 1
  let fence = 0
  let observed = 'Running'
  let since = now()
  let current: Run | undefined

  const state = (): PodState => ({
    state: current ? transient : observed,
    since,
    reason: current ? 'RunInProgress' : observed === 'Start' ? 'GuardLost' : 'Observed',
    role: null,
    probes: { accepting: { ok: observed === 'Running', value: null, error: null, at: since, failures: 0 } },
    run: current ? { id: current.id, action: current.action, phase: current.phase } : null,
    pod: { name: pod.name, namespace: pod.namespace, uid: pod.uid },
    ...{ configHash, journalId, fence, bootId, seq, cursor: `${bootId}.${seq}`, version: '0.1.0' },
  })

  function tell(news: News): void {
    seq++
    const stamp = { seq, cursor: `${bootId}.${seq}`, at: now() }
    const message: Message = news.type === 'state' ? { ...stamp, type: 'state', state: state() } : { ...stamp, ...news }
    memory.push(message)
    if (memory.length > remembered) memory.shift()
    const text = JSON.stringify(message)
    for (const reader of readers) reader(text)
  }

  function move(run: Run, change: Partial<Run>): Run {
    const next = { ...run, ...change }
    runs.set(run.id, next)
    if (current?.id === run.id) current = next
    tell({ type: 'run', run: next })
    return next
  }

  return {
    pod,
    state,
    readers,
    runs: () => [...runs.values()],
    say(next) {
      observed = next
      since = now()
      tell({ type: 'state' })
    },
    put(id, body) {
      const known = runs.get(id)
      if (body.podUid !== pod.uid) return refused(409, 'WrongPod')
      if (known) return { status: 200, body: known }
      if (body.journalId !== journalId) return refused(409, 'WrongJournal')
      if (body.fence === undefined || body.fence <= fence) return refused(409, 'Fenced', { fence })
      if (body.configHash !== configHash) return refused(409, 'WrongConfig')
      if (current) return refused(409, 'Locked', { run: current.id })
      onPut()
      fence = body.fence
      const { action, params = {}, attempt = 1 } = body
      const empty = { startedAt: null, finishedAt: null, exitCode: null, progress: null, result: null, error: null }
      const log = { size: 0, keptHead: 0, tailFrom: 0 }
      const accepted: Run = { id, action, params, phase: 'Accepted', attempt, ...empty, log }
      runs.set(id, accepted)
      current = accepted
      tell({ type: 'run', run: accepted })
      tell({ type: 'state' })
      setTimeout(() => {
        const running = move(accepted, { phase: 'Running', startedAt: now() })
        setTimeout(() => {
          move(running, { phase: 'Succeeded', finishedAt: now(), exitCode: 0 })
          current = undefined
          since = now()
          tell({ type: 'state' })
        }, runTakes)
      }, 2)
      return { status: 201, body: accepted }
    },
    run(id) {
      const run = runs.get(id)
      return run ? { status: 200, body: run } : refused(404, 'UnknownRun')
    },
    drop(id) {
      const run = runs.get(id)
      if (!run) return refused(404, 'UnknownRun')
      if (run.finishedAt === null) return refused(409, 'InProgress')
      runs.delete(id)
      return { status: 204, body: undefined }
    },
    since(cursor) {
      const [boot, text] = cursor?.split('.') ?? []
      const from = Number(text)
      if (boot !== bootId || !(from <= seq) || from < seq - memory.length) return undefined
      return memory.slice(memory.length - (seq - from))
    },
    reset: () => ({
      seq,
      cursor: `${bootId}.${seq}`,
      at: now(),
      type: 'reset',
      state: state(),
      runs: [...runs.values()],
    }),
  }
}

export function refused(status: number, code: string, more: object = {}): Answer {
  return { status, body: { type: 'about:blank', title: code, status, detail: code, code, ...more } }
}
