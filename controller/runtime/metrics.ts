/**
 * What can be counted, under controller-runtime's names and labels, so that its dashboards and alerts work; our own
 * begin with `shipmate_`.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { type Clock, systemClock } from '../../shared/clock.ts'
import type { Interceptor } from '../kube/transport.ts'
import type { QueueEvent } from './queue.ts'

/** controller-runtime's own buckets. */
const reconcileBuckets = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2,
  2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
]
const queueBuckets = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1000]

export type Metrics = ReturnType<typeof createMetrics>

export function createMetrics(options: { clock?: Clock | undefined } = {}) {
  const clock = options.clock ?? systemClock
  const registry = new Registry()
  const registers = [registry]
  const controllerLabels = ['controller'] as const
  const queueLabels = ['name', 'controller', 'priority'] as const
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]) =>
    new Counter<L>({ name, help, labelNames: [...labelNames], registers })
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[]) =>
    new Gauge<L>({ name, help, labelNames: [...labelNames], registers })
  const histogram = <L extends string>(name: string, help: string, labelNames: readonly L[], buckets: number[]) =>
    new Histogram<L>({ name, help, labelNames: [...labelNames], buckets, registers })

  const reconciles = counter('controller_runtime_reconcile_total', 'Reconciliations, by result.', [
    'controller',
    'result',
  ])
  const errors = counter('controller_runtime_reconcile_errors_total', 'Reconciliations that failed.', controllerLabels)
  const terminal = counter(
    'controller_runtime_terminal_reconcile_errors_total',
    'Reconciliations that failed for good.',
    controllerLabels,
  )
  const panics = counter(
    'controller_runtime_reconcile_panics_total',
    'Reconciliations that threw what a program error throws.',
    controllerLabels,
  )
  const seconds = histogram(
    'controller_runtime_reconcile_time_seconds',
    'Time a reconciliation takes.',
    controllerLabels,
    reconcileBuckets,
  )
  const workers = gauge(
    'controller_runtime_max_concurrent_reconciles',
    'Most reconciliations at once.',
    controllerLabels,
  )
  const active = gauge('controller_runtime_active_workers', 'Reconciliations under way.', controllerLabels)
  const depth = gauge('workqueue_depth', 'Keys that wait.', queueLabels)
  const adds = counter('workqueue_adds_total', 'Keys that began to wait.', ['name', 'controller'])
  const retries = counter('workqueue_retries_total', 'Keys that wait for a retry.', ['name', 'controller'])
  const waited = histogram(
    'workqueue_queue_duration_seconds',
    'Time a key waits.',
    ['name', 'controller'],
    queueBuckets,
  )
  const worked = histogram(
    'workqueue_work_duration_seconds',
    'Time a key is worked on.',
    ['name', 'controller'],
    queueBuckets,
  )
  const unfinished = gauge('workqueue_unfinished_work_seconds', 'Time spent so far on all keys under way.', [
    'name',
    'controller',
  ])
  const longest = gauge('workqueue_longest_running_processor_seconds', 'Time spent so far on the longest.', [
    'name',
    'controller',
  ])
  const requests = counter('rest_client_requests_total', 'Requests to the API server.', ['code', 'method', 'host'])
  const hotLoops = counter(
    'shipmate_hot_loops_total',
    'Times that a key was held for writing without getting anywhere.',
    controllerLabels,
  )
  const watches = gauge('shipmate_watch_up', '1 while a kind is watched, 0 while that fails or it is not served.', [
    'resource',
    'namespace',
  ])
  const failures = counter('shipmate_watch_failures_total', 'Watches and lists that failed.', ['resource', 'namespace'])
  const leading = gauge('leader_election_master_status', '1 while this process leads.', ['name'])

  return {
    registry,
    leading,
    watches,
    watchFailures: failures,

    /** The process's own: CPU, memory, event loop. Costs timers; so not for tests. */
    collectProcess: () => collectDefaultMetrics({ register: registry }),

    /** A controller's, bound to its name once: nothing is looked up while it works. */
    controller(name: string, concurrency: number, queueLength: () => number) {
      const labels = { controller: name }
      const queue = { name, controller: name }
      const started = new Set<{ at: number }>()
      const results = ['success', 'error', 'requeue', 'requeue_after'] as const
      const total = Object.fromEntries(
        results.map(result => [result, reconciles.labels({ ...labels, result })]),
      ) as Record<(typeof results)[number], Counter.Internal>
      for (const result of results) total[result].inc(0)
      for (const one of [errors, terminal, panics, hotLoops]) one.labels(labels).inc(0)
      workers.labels(labels).set(concurrency)
      const bound = {
        ...{
          active: active.labels(labels),
          seconds: seconds.labels(labels),
          waited: waited.labels(queue),
          worked: worked.labels(queue),
        },
        ...{ added: adds.labels(queue), retried: retries.labels(queue) },
      }
      bound.added.inc(0)
      bound.retried.inc(0)
      bound.active.set(0)
      collect(depth, () => depth.labels({ ...queue, priority: '' }).set(queueLength()))
      collect(unfinished, () => {
        const ages = [...started].map(({ at }) => (clock.monotonic() - at) / 1000)
        unfinished.labels(queue).set(ages.reduce((sum, age) => sum + age, 0))
        longest.labels(queue).set(Math.max(0, ...ages))
      })
      return {
        queued: (event: QueueEvent) => (event === 'added' ? bound.added : bound.retried).inc(),
        hotLoop: () => hotLoops.labels(labels).inc(),
        /** Call when work on a key begins; call what it returns with the result when it ends. */
        begin(since: number) {
          const token = { at: clock.monotonic() }
          started.add(token)
          bound.active.inc()
          bound.waited.observe((token.at - since) / 1000)
          return (result: (typeof results)[number], kind?: 'terminal' | 'panic') => {
            started.delete(token)
            const took = (clock.monotonic() - token.at) / 1000
            bound.active.dec()
            bound.seconds.observe(took)
            bound.worked.observe(took)
            total[result].inc()
            if (result === 'error') errors.labels(labels).inc()
            if (kind === 'terminal') terminal.labels(labels).inc()
            if (kind === 'panic') panics.labels(labels).inc()
          }
        },
      }
    },

    /** Counts requests by answer. */
    interceptor(host: string): Interceptor {
      const known = new Map<string, Counter.Internal>()
      const count = (code: string, method: string) => {
        const key = `${code} ${method}`
        let bound = known.get(key)
        if (!bound) {
          bound = requests.labels({ code, method, host })
          known.set(key, bound)
        }
        bound.inc()
      }
      return next => async request => {
        try {
          const response = await next(request)
          count(String(response.status), request.method)
          return response
        } catch (error) {
          count('<error>', request.method)
          throw error
        }
      }
    },
  }
}

/** Adds to what is computed when metrics are read: prom-client keeps one `collect` a metric. */
function collect(metric: object, more: () => void): void {
  const target = metric as { collect?: () => void }
  const before = target.collect
  target.collect = () => {
    before?.()
    more()
  }
}
