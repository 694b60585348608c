/**
 * What the sidecar counts of itself.
 */
import type { ProbeState, Run } from '../shared/protocol/schemas.ts'
import type { Events } from './api.ts'
import type { Journal } from './journal/journal.ts'
import { createRegistry } from './metrics.ts'
import type { Runs } from './runs/runs.ts'
import type { Answered } from './server/api.ts'
import { version } from './version.ts'

export interface MeasuresOptions {
  /** Undefined until the journal is recovered. */
  readonly inside: () => { readonly journal: Journal; readonly runs: Runs } | undefined
  readonly events: Events
  /** How many read events. */
  readonly readers: () => number
  /** Whether the configuration's file is not what is in force. */
  readonly refused: () => boolean
  /** The state in which the pod is. */
  readonly state: () => string | undefined
}

export interface Measures {
  /** These are the probes from now on; others are on the page no longer. */
  declared(probes: readonly string[]): void
  probed(name: string, probe: ProbeState): void
  ended(run: Run): void
  answered(answer: Answered): void
  page(): string
}

const buckets = [0.1, 1, 10, 60, 600, 3600]

export function createMeasures({ inside, events, readers, refused, state }: MeasuresOptions): Measures {
  const registry = createRegistry()
  const info = registry.gauge('shipmate_sidecar_info', 'Always 1; the version of the agent.', ['version'])
  const inState = registry.gauge('shipmate_sidecar_state', 'Always 1; the state in which the pod is.', ['state'])
  const runs = registry.counter('shipmate_sidecar_runs_total', 'Runs that have ended.', ['action', 'phase'])
  const seconds = registry.histogram('shipmate_sidecar_run_duration_seconds', 'How long runs took.', buckets, [
    'action',
  ])
  const inProgress = registry.gauge('shipmate_sidecar_runs_in_progress', 'Runs in progress.')
  const probes = registry.gauge(
    'shipmate_sidecar_probe_ok',
    '1 if the probe is ok, 0 if it is not, -1 if that is not known.',
    ['probe'],
  )
  const failures = registry.counter(
    'shipmate_sidecar_probe_failures_total',
    'Attempts of a probe that were not a yes.',
    ['probe'],
  )
  const calls = registry.counter('shipmate_sidecar_http_requests_total', 'Answers of the API.', [
    'route',
    'method',
    'status',
  ])
  const journalBytes = registry.gauge('shipmate_sidecar_journal_bytes', 'The size of the journal.')
  const journalFailed = registry.gauge(
    'shipmate_sidecar_journal_failed',
    '1 if the journal could not be written last time.',
  )
  const configRefused = registry.gauge(
    'shipmate_sidecar_config_refused',
    "1 if the configuration's file is not in force, since it was refused.",
  )
  const seq = registry.gauge('shipmate_sidecar_events_seq', 'The number of the last event.')
  const eventReaders = registry.gauge('shipmate_sidecar_event_readers', 'Readers of events.')

  const probed = new Set<string>()

  info.set(1, { version: version() })
  registry.beforePage(() => {
    const { journal, runs: all } = inside() ?? {}
    inProgress.set(all?.inProgress().length ?? 0)
    journalBytes.set(journal?.size ?? 0)
    journalFailed.set(journal?.failure === undefined ? 0 : 1)
    configRefused.set(refused() ? 1 : 0)
    seq.set(events.seq)
    eventReaders.set(readers())
    inState.clear()
    const current = state()
    if (current !== undefined) inState.set(1, { state: current })
  })

  return {
    declared(names) {
      for (const probe of probed) {
        if (names.includes(probe)) continue
        probes.remove({ probe })
        failures.remove({ probe })
        probed.delete(probe)
      }
    },
    probed(probe, { ok, failures: failed }) {
      probed.add(probe)
      probes.set(ok === null ? -1 : Number(ok), { probe })
      if (failed > 0) failures.inc({ probe })
    },
    ended({ action, phase, startedAt, finishedAt }) {
      runs.inc({ action, phase })
      if (startedAt !== null && finishedAt !== null)
        seconds.observe((Date.parse(finishedAt) - Date.parse(startedAt)) / 1000, { action })
    },
    answered({ route, method, status }) {
      // A method is whatever a stranger sends: only those that a route has are counted by name.
      calls.inc({ route: route ?? 'none', method: route ? method : 'other', status: String(status) })
    },
    page: registry.page,
  }
}
