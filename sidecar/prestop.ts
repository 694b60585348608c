/**
 * What happens when Kubernetes ends the pod: the lifecycle's preStop action, once, after everything else has been cancelled.
 *
 * Guarantees: `post` resolves, whatever goes wrong, since a pod's end waits for it. Several at once are one. A stranger who only waits starts nothing.
 * What has succeeded, whoever asked for it and whichever agent saw its end, is not run again until a guard turns true.
 */
import { type Clock, sleep } from '../shared/clock.ts'
import type { Logger } from '../shared/log.ts'
import type { Journal } from './journal/journal.ts'
import type { Runs } from './runs/runs.ts'

/** How long a GET waits for a POST to come, and how long one that was served counts as come, in milliseconds: a pod's hooks are called together. */
const patience = 2000

export interface PreStopOptions {
  readonly podUid: string
  readonly clock: Clock
  readonly log: Logger
  readonly journal: Journal
  readonly runs: Runs
  /** The action to run, if one is declared. */
  readonly action: () => string | undefined
}

export interface PreStop {
  post(): Promise<void>
  wait(signal: AbortSignal): Promise<void>
}

export function createPreStop({ podUid, clock, log, journal, runs, action }: PreStopOptions): PreStop {
  let serving: Promise<void> | undefined
  let served = Number.NEGATIVE_INFINITY
  let came: () => void = () => {}
  let hasCome = new Promise<void>(resolve => {
    came = resolve
  })
  const prefix = `prestop.${podUid || 'none'}.`

  async function serve(): Promise<void> {
    const going = runs.inProgress().find(run => run.id.startsWith(prefix))
    if (going) log.info({ run: going.id }, 'preStop: its run from before is still going on')
    const id = going?.id ?? (await begin())
    if (id === undefined) return
    await runs.ended(id)
    const { phase, error } = runs.get(id)
    log.info({ run: id, phase, error }, 'preStop: its run has ended')
  }

  /** Nobody else begins a run from the first cancel on. Undefined if nothing is left to do. */
  async function begin(): Promise<string | undefined> {
    const name = action()
    if (name === undefined) {
      log.info({}, 'preStop: no action is declared')
      return undefined
    }
    if (hasSucceeded(name)) return undefined
    const number = journal.memory.memo.preStops + 1
    const id = `${prefix}${number}`
    runs.reserve(id)
    try {
      await cancelAll()
      // One of those may have been the same action, and done.
      if (hasSucceeded(name)) return undefined
      await journal.append({ t: 'memo', memo: { preStops: number } }, { needed: true })
      await runs.put(id, { action: name }, { isOwn: true })
      return id
    } finally {
      runs.reserve(undefined)
    }
  }

  function hasSucceeded(name: string): boolean {
    const has = journal.memory.memo.stopped === name
    if (has) log.info({}, 'preStop: has succeeded already')
    return has
  }

  async function cancelAll(): Promise<void> {
    for (let others = runs.inProgress(); others.length > 0; others = runs.inProgress()) {
      for (const run of others) {
        log.warn({ run: run.id, action: run.action }, 'preStop: a run in progress is cancelled')
        await runs.cancel(run.id)
      }
      await Promise.all(others.map(run => runs.ended(run.id)))
    }
  }

  return {
    post() {
      serving ??= serve()
        .catch(error => log.error({ err: error }, 'preStop could not be carried out'))
        .finally(() => {
          serving = undefined
          served = clock.monotonic()
          hasCome = new Promise<void>(resolve => {
            came = resolve
          })
        })
      came()
      return serving
    },
    async wait(signal) {
      if (!serving && clock.monotonic() - served > patience) {
        const waiting = new AbortController()
        await Promise.race([hasCome, sleep(clock, patience, AbortSignal.any([signal, waiting.signal])).catch(() => {})])
        waiting.abort()
      }
      await serving
    },
  }
}
