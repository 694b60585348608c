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

/** Takes no new runs. Those in progress go on until the time, less their cancel grace, is up; then they are cancelled. */
export async function endRuns(runs: Runs, clock: Clock, log: Logger, timeoutMs: number): Promise<void> {
  const began = clock.monotonic()
  const left = () => timeoutMs - (clock.monotonic() - began)
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

/** Takes no new runs, and waits for those that this agent carries out itself. */
export async function waitForBound(runs: Runs, clock: Clock, log: Logger, timeoutMs: number): Promise<void> {
  runs.refuse('The sidecar is being replaced; ask again in a moment.')
  const bound = runs.bound()
  log.info({ waitingFor: bound, leaving: runs.inProgress().map(({ id }) => id) }, 'being replaced: runs go on')
  await within(Promise.all(bound.map(id => runs.ended(id))), clock, timeoutMs)
}

async function allEnded(runs: Runs, clock: Clock, timeoutMs: number): Promise<boolean> {
  return within(Promise.all(runs.inProgress().map(({ id }) => runs.ended(id))), clock, timeoutMs)
}

async function within(work: Promise<unknown>, clock: Clock, timeoutMs: number): Promise<boolean> {
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
