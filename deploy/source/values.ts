/**
 * What can be set where Shipmate is installed: the values of the Helm chart, with their defaults, which are what the plain manifests have. One schema gives the type,
 * values.yaml with its comments, and values.schema.json.
 */
import { z } from 'zod'
import manifest from '../../package.json' with { type: 'json' }
import { defaultRegistry } from '../../shared/images.ts'
import { levels } from '../../shared/log.ts'

const name = z.string().regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/)
const on = (what: string) => z.boolean().default(true).describe(what)
const off = (what: string) => z.boolean().default(false).describe(what)
const anything = z.record(z.string(), z.unknown())

const podLabels = { 'app.kubernetes.io/name': 'shipmate-controller' }
const apart = {
  podAntiAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      {
        weight: 100,
        podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: podLabels } },
      },
    ],
  },
}

export const valuesSchema = z.strictObject({
  registry: z
    .string()
    .regex(/^([a-zA-Z0-9.-]+(:\d+)?(\/[a-z0-9._-]+)*)?$/)
    .default(defaultRegistry)
    .describe(
      "Of every image: the controller's, and the sidecar's that pods get. `shipmate images` lists what to mirror.",
    ),
  tag: z
    .string()
    .regex(/^[\w][\w.-]{0,127}$/)
    .default(manifest.version)
    .describe('Of every image.'),
  pullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).default('IfNotPresent').describe('Of every image.'),
  pullSecrets: z
    .array(name)
    .default([])
    .describe('The names of Secrets by which images are pulled; they stand in the namespace of the pod that pulls.'),
  replicas: z.int().min(1).default(2).describe('Of each shard; one of them works, the others wait.'),
  shards: z
    .int()
    .min(1)
    .max(100)
    .default(1)
    .describe('Into how many parts the apps are divided, each with a Deployment of its own.'),
  watchNamespaces: z
    .array(name)
    .default([])
    .describe('Look after apps in these namespaces only, with rights in no others. Empty: all.'),
  logLevel: z.enum(levels).default('info').describe('How much the log says.'),
  resources: anything
    .default({ requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '1Gi' } })
    .describe("The controller's. docs/footprint.md says what it takes."),
  affinity: anything.default(apart).describe('By default replicas keep to different nodes, where there are any.'),
  nodeSelector: z.record(z.string(), z.string()).default({}).describe('On which nodes it may be.'),
  tolerations: z.array(anything).default([]).describe('Which taints it bears.'),
  priorityClassName: z
    .union([name, z.literal('')])
    .default('')
    .describe('Of its pods.'),
  podAnnotations: z.record(z.string(), z.string()).default({}).describe('Of its pods.'),
  serviceAccountAnnotations: z.record(z.string(), z.string()).default({}).describe('Of its account.'),
  metrics: z
    .strictObject({
      auth: on(
        'Metrics are for who may get /metrics, as the API server says: bind the ClusterRole shipmate-metrics-reader.',
      ),
      serviceMonitor: off("A ServiceMonitor for the controller: needs the Prometheus operator's kinds."),
      podMonitor: off('A PodMonitor for the sidecars.'),
      rules: off('Alerts, as a PrometheusRule.'),
      dashboard: off("A dashboard, as a ConfigMap that Grafana's sidecar finds."),
    })
    .prefault({}),
  networkPolicy: z
    .strictObject({
      enabled: on('Restrict whom the controller talks to, and who talks to it.'),
      apiServerPorts: z
        .array(z.int().min(1).max(65_535))
        .min(1)
        .default([443, 6443])
        .describe('Where the API server listens.'),
      sidecarPorts: z
        .array(z.int().min(1).max(65_535))
        .min(1)
        .default([7443])
        .describe('Where sidecars listen: 7443, and what annotations of pods say (shipmate.dev/api-port).'),
    })
    .prefault({}),
  webhooks: z
    .strictObject({
      enabled: off('Admission: sidecars added to pods by a label, and wrong objects refused.'),
      certManager: off('The certificate from cert-manager. By default the controller makes and rotates its own.'),
    })
    .prefault({}),
  crds: z.strictObject({ install: on('With the chart. They stay when it is uninstalled.') }).prefault({}),
  rbac: z
    .strictObject({ aggregate: on('Who may view, edit or administrate a namespace may do so with apps.') })
    .prefault({}),
})

export type Values = z.infer<typeof valuesSchema>

export const defaults: Values = valuesSchema.parse({})
