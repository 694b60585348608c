/**
 * For who watches over it: what Prometheus reads and when it tells, and a dashboard for Grafana. The Prometheus operator's kinds have to be there.
 */
import { alertGroups } from './alerts.ts'
import { dashboard } from './dashboard.ts'
import { Expression, namespace, value, when } from './expression.ts'
import { controller, labels, selected } from './names.ts'

const apiVersion = 'monitoring.coreos.com/v1'
const metadata = { name: controller, namespace, labels }

/** Braces in it are Grafana's and Prometheus' own, not the chart's: they are part of an expression's text. */
const literally = (of: unknown) => new Expression(() => of, `fromJson ${backquoted(JSON.stringify(of))}`)
const backquoted = (text: string) => `\`${text.replaceAll('`', '\\u0060')}\``

export const monitoring: unknown[] = [
  when(value('metrics.serviceMonitor'), {
    apiVersion,
    kind: 'ServiceMonitor',
    metadata,
    spec: {
      selector: { matchLabels: selected },
      endpoints: [
        {
          port: 'metrics',
          scheme: 'https',
          // Each process makes a certificate of its own: the token is hidden from who listens, and that is all.
          tlsConfig: { insecureSkipVerify: true },
          bearerTokenFile: '/var/run/secrets/kubernetes.io/serviceaccount/token',
        },
      ],
    },
  }),
  when(value('metrics.podMonitor'), {
    apiVersion,
    kind: 'PodMonitor',
    metadata: { ...metadata, name: 'shipmate-sidecars' },
    spec: {
      namespaceSelector: { any: true },
      selector: { matchExpressions: [{ key: 'shipmate.dev/lifecycle', operator: 'Exists' }] },
      podMetricsEndpoints: [{ portNumber: 7080 }],
    },
  }),
  when(value('metrics.rules'), {
    apiVersion,
    kind: 'PrometheusRule',
    metadata,
    spec: literally({ groups: alertGroups }),
  }),
  when(value('metrics.dashboard'), {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'shipmate-dashboard', namespace, labels: { ...labels, grafana_dashboard: '1' } },
    data: literally({ 'shipmate.json': JSON.stringify(dashboard) }),
  }),
]
