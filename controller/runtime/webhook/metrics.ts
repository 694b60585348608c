/**
 * What can be counted of webhooks: under controller-runtime's names, so that its dashboards work; what only we count begins with `shipmate_`.
 */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { Clock } from '../../../shared/clock.ts'
import type { AdmissionOutcome } from './admission.ts'

/** How a call ended. `unreadable`: it was no review; `failed`: the function did, or was too late. */
export type Outcome = AdmissionOutcome | 'converted' | 'unreadable' | 'failed'

export interface HookMetrics {
  /** Call when a request begins; call what it returns when it was answered. */
  begin(webhook: string): (outcome: Outcome, code: number) => void
  /** Until when the certificate in use holds, in milliseconds since 1970. */
  expires(at: number): void
}

export function hookMetrics(registry: Registry, clock: Clock): HookMetrics {
  const registers = [registry]
  const labelNames = ['webhook']
  const requests = new Counter({
    ...{ name: 'controller_runtime_webhook_requests_total', help: 'Calls of webhooks, by status of HTTP.', registers },
    labelNames: ['webhook', 'code'],
  })
  const seconds = new Histogram({
    ...{ name: 'controller_runtime_webhook_latency_seconds', help: 'Time a call of a webhook takes.' },
    ...{ labelNames, registers, buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] },
  })
  const underWay = new Gauge({
    ...{ name: 'controller_runtime_webhook_requests_in_flight', help: 'Calls of webhooks under way.' },
    ...{ labelNames, registers },
  })
  const outcomes = new Counter({
    ...{ name: 'shipmate_webhook_outcomes_total', help: 'Calls of webhooks, by what came of them.', registers },
    labelNames: ['webhook', 'outcome'],
  })
  const expiry = new Gauge({
    ...{ name: 'shipmate_webhook_certificate_expiry_timestamp_seconds', registers },
    help: 'When the certificate that the webhooks are served with ends, in seconds since 1970.',
  })
  return {
    begin(webhook) {
      const began = clock.monotonic()
      underWay.inc({ webhook })
      return (outcome, code) => {
        underWay.dec({ webhook })
        seconds.observe({ webhook }, (clock.monotonic() - began) / 1000)
        requests.inc({ webhook, code: String(code) })
        outcomes.inc({ webhook, outcome })
      }
    },
    expires: at => expiry.set(at / 1000),
  }
}
