/**
 * What things are called on the cluster, and the labels that all of them have.
 */

import { leaseOf } from '../../controller/app/shard.ts'
import manifest from '../../package.json' with { type: 'json' }
import { both, Expression, value } from './expression.ts'

export const controller = 'shipmate-controller'
export const systemNamespace = 'shipmate-system'
export const webhookService = 'shipmate-webhook'
export const webhookSecret = 'shipmate-webhook-tls'
export const metricsService = 'shipmate-metrics'
/** Of the two registrations of webhooks. */
export const registration = 'shipmate'

export const ports = { health: 8081, metrics: 8443, webhook: 9443 } as const

/** By these the controller's pods are found. */
export const selected = { 'app.kubernetes.io/name': controller }

export const labels = {
  ...selected,
  'app.kubernetes.io/part-of': 'shipmate',
  'app.kubernetes.io/version': manifest.version,
}

export const shards: Expression<number[]> = new Expression(
  ({ values }) => Array.from({ length: values.shards }, (_, index) => index),
  'until (int $.Values.shards)',
)

/** Of a shard: its Deployment and its Lease have the same. */
export const shardName: Expression<string> = new Expression(
  ({ values, item }) => leaseOf(controller, { index: item as number, count: values.shards }),
  `ternary "${controller}" (printf "${controller}-%d-of-%d" (int $item) (int $.Values.shards)) (lt (int $.Values.shards) 2)`,
)

export const shardText: Expression<string> = new Expression(
  ({ values, item }) => `${item as number}/${values.shards}`,
  'printf "%d/%d" (int $item) (int $.Values.shards)',
)

export const shardIndex: Expression<string> = new Expression(({ item }) => `${item as number}`, 'toString $item')

export const watched: Expression<string[]> = value('watchNamespaces')
export const hasWebhooks: Expression = value('webhooks.enabled')
export const hasCertManager: Expression = both(hasWebhooks, value('webhooks.certManager'))
