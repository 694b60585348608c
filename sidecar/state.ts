/**
 * The pod's state as it is known: decided anew whenever a probe or a run says something new, and told when it has changed.
 *
 * Guarantee: what is told is decided from one moment's facts, in the same turn of the event loop as the answer that changed them.
 */
import type { Clock } from '../shared/clock.ts'
import type { CompiledLifecycle } from '../shared/lifecycle/compile.ts'
import { roleOf } from '../shared/lifecycle/guard.ts'
import { type ObservedProbe, observe, unknownState } from '../shared/lifecycle/observe.ts'
import type { Logger } from '../shared/log.ts'
import type { PodState } from '../shared/protocol/schemas.ts'
import type { Journal } from './journal/journal.ts'
import type { Memo, RunRecord } from './journal/records.ts'
import type { Probes } from './probes/scheduler.ts'

export type Observed = Pick<PodState, 'state' | 'since' | 'reason' | 'role' | 'run'>

export interface StateOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly journal: Journal
  readonly probes: Probes
  readonly lifecycle: () => CompiledLifecycle | undefined
  readonly inProgress: () => readonly RunRecord[]
  readonly onChange: () => void
}

export interface State {
  current(): Observed
  /** Decides anew. */
  refresh(): void
  /** The states whose guards hold; null as long as that is not known. */
  held(): readonly string[] | null
}

export function createState({ clock, log, journal, probes, lifecycle, inProgress, onChange }: StateOptions): State {
  let observed: Observed = {
    state: unknownState,
    since: new Date(clock.now()).toISOString(),
    reason: 'NotAnswered',
    role: null,
    run: null,
  }
  let held: string[] | null = null

  function refresh(): void {
    const before = observed
    const compiled = lifecycle()
    if (!compiled) return
    const view = probes.view()
    const seen: Record<string, ObservedProbe> = {}
    for (const [name, probe] of Object.entries(view)) seen[name] = { ...probe, answered: probes.answered(name) }
    const running = inProgress()
    const run = running.find(({ action }) => compiled.graph.transientOf(action)) ?? running[0] ?? null
    const { memo } = journal.memory
    const failed = (state: string, reason: string) => log.warn({ state, reason }, 'a guard could not be evaluated')
    const { state, reason, guardHeld, isKnown } = observe({
      lifecycle: compiled,
      probes: seen,
      run,
      everHeld: memo.everHeld,
      failed,
    })
    if (isKnown) {
      held = compiled.guards.filter(({ guard }) => guard.holds({ probes: seen, run })).map(guard => guard.state)
      note(guardHeld, held, memo)
    }
    const isSame = state === before.state && reason === before.reason
    observed = {
      state,
      since: state === before.state ? before.since : new Date(clock.now()).toISOString(),
      reason,
      role: roleOf(view),
      run: run && { id: run.id, action: run.action, phase: run.phase },
    }
    if (
      isSame &&
      observed.role === before.role &&
      observed.run?.id === before.run?.id &&
      observed.run?.phase === before.run?.phase
    )
      return
    if (!isSame) log.info({ state, reason, before: before.state }, 'the state has changed')
    onChange()
  }

  /** What must be known after a restart as well. */
  function note(guardHeld: boolean, holding: readonly string[], memo: Memo): void {
    const change: Partial<Memo> = {}
    if (guardHeld && !memo.everHeld) Object.assign(change, { everHeld: true })
    if (memo.stopped !== null) {
      const { held: before } = memo
      if (before === null) Object.assign(change, { held: holding })
      else if (holding.some(state => !before.includes(state))) Object.assign(change, { stopped: null, held: [] })
      else if (holding.length < before.length) Object.assign(change, { held: holding })
    }
    if (Object.keys(change).length > 0)
      remember(change).catch(error => log.warn({ err: error }, 'what was observed could not be written down'))
  }

  /** At once here, on disk as soon as it can be. */
  function remember(change: Partial<Memo>): Promise<void> {
    journal.memory.memo = { ...journal.memory.memo, ...change }
    return journal.append({ t: 'memo', memo: change })
  }

  return {
    current: () => observed,
    refresh,
    held: () => held,
  }
}
