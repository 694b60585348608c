/**
 * What is counted of apps: the state of each and since when, operations by how they ended and how long they took.
 */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { Clock } from '../../shared/clock.ts'
import type { AppDecision } from './decide/app.ts'
import type { App, Op, OpStatus } from './view.ts'

export interface AppMetrics {
  stands(app: App, decision: AppDecision): void
  gone(app: { namespace: string; name: string }): void
  ended(op: Op, status: OpStatus): void
}

export function createAppMetrics(registry: Registry, clock: Clock): AppMetrics {
  const registers = [registry]
  const state = new Gauge({
    name: 'shipmate_app_state',
    help: '1 for the state that an app is in.',
    labelNames: ['namespace', 'app', 'state'],
    registers,
  })
  const since = new Gauge({
    name: 'shipmate_app_state_since_seconds',
    help: 'Since when an app is in its state, in seconds since 1970.',
    labelNames: ['namespace', 'app'],
    registers,
  })
  const operations = new Counter({
    name: 'shipmate_app_operations_total',
    help: 'Operations that ended, by action and outcome.',
    labelNames: ['action', 'outcome'],
    registers,
  })
  const durations = new Histogram({
    name: 'shipmate_app_operation_seconds',
    help: 'How long operations took, from the choice of their targets to their end.',
    labelNames: ['action', 'outcome'],
    buckets: [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14_400],
    registers,
  })
  const shown = new Map<string, string>()
  const keyOf = (namespace: string, name: string) => `${namespace}/${name}`
  return {
    stands({ metadata, status }, { observed }) {
      const { namespace = '', name: app } = metadata
      const key = keyOf(namespace, app)
      const before = shown.get(key)
      if (before === observed.state) return
      if (before !== undefined) state.remove({ namespace, app, state: before })
      shown.set(key, observed.state)
      state.set({ namespace, app, state: observed.state }, 1)
      const at = status?.state === observed.state && status.since ? Date.parse(status.since) : clock.now()
      since.set({ namespace, app }, at / 1000)
    },
    gone({ namespace, name }) {
      const key = keyOf(namespace, name)
      const before = shown.get(key)
      if (before === undefined) return
      shown.delete(key)
      state.remove({ namespace, app: name, state: before })
      since.remove({ namespace, app: name })
    },
    ended({ spec }, { phase = 'Unknown', startedAt, finishedAt }) {
      const labels = { action: spec.action, outcome: phase }
      operations.inc(labels)
      if (startedAt !== undefined && finishedAt !== undefined)
        durations.observe(labels, (Date.parse(finishedAt) - Date.parse(startedAt)) / 1000)
    },
  }
}
