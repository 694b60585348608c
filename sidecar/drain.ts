/**
 * How the agent lets go of its runs: to the end of the container (drain), or to the next agent (replace).
 *
 * Guarantee: neither takes longer than it is given.
 */
import { type Clock, sleep } from '../shared/clock.ts'
import type { Logger } from '../shared/log.ts'
import { cancelOf } from './runs/command.ts'
import type { Runs } from './runs/runs.ts'

/** What the last SIGKILL, and the writing down of the end, may take beyond the grace, in milliseconds. */
const margin = 500

export interface TimeLimit {
  /** All of it, in milliseconds. */
  readonly timeoutMs: number
  /** What is left of it; not less than 0. */
  left(): number
}

/** Counts from now. */
export function timeLimit(clock: Clock, timeoutMs: number): TimeLimit {
  const until = clock.monotonic() + timeoutMs
  return { timeoutMs, left: () => Math.max(until - clock.monotonic(), 0) }
}

/** Takes no new runs. Those in progress go on until the time, less their cancel grace, is up; then they are cancelled. */
export async function endRuns(runs: Runs, clock: Clock, log: Logger, { timeoutMs, left }: TimeLimit): Promise<void> {
  runs.refuse('The sidecar is stopping.')
  const grace = Math.max(
    0,
    ...runs.inProgress().map(({ declaration }) => (declaration ? cancelOf(declaration).graceMs : 0)),
  )
  log.info({ runs: runs.inProgress().map(({ id }) => id), timeoutMs }, 'draining: no new runs')
  if (await allEnded(runs, clock, left() - grace - margin)) return
  for (const run of runs.inProgress()) {
    log.warn({ run: run.id, action: run.action }, 'draining: a run is cancelled, as the time is up')
    await runs.cancel(run.id)
  }
  if (await allEnded(runs, clock, left())) return
  log.error({ runs: runs.inProgress().map(({ id }) => id) }, 'draining: these runs did not end in time')
}

/** Takes no new runs, and waits for those that this agent carries out itself. False as soon as `signal` is aborted. */
export async function waitForBound(
  runs: Runs,
  clock: Clock,
  log: Logger,
  { left }: TimeLimit,
  signal?: AbortSignal,
): Promise<boolean> {
  runs.refuse('The sidecar is being replaced; ask again in a moment.')
  const bound = runs.bound()
  log.info({ waitingFor: bound, leaving: runs.inProgress().map(({ id }) => id) }, 'being replaced: runs go on')
  const given = Promise.all(bound.map(id => runs.ended(id)))
  await within(signal ? Promise.race([given, aborted(signal)]) : given, clock, left())
  return !signal?.aborted
}

async function allEnded(runs: Runs, clock: Clock, timeoutMs: number): Promise<boolean> {
  return within(Promise.all(runs.inProgress().map(({ id }) => runs.ended(id))), clock, timeoutMs)
}

/** Whether it is done in time. */
export async function within(work: Promise<unknown>, clock: Clock, timeoutMs: number): Promise<boolean> {
  const waiting = new AbortController()
  try {
    return await Promise.race([
      work.then(() => true),
      sleep(clock, Math.max(timeoutMs, 0), waiting.signal).then(() => false),
    ])
  } finally {
    waiting.abort()
  }
}

/** Resolves when it is. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
