/**
 * The controller itself: its Deployments, one for each shard, the budget for their disruption, the Services to reach it, and whom it may talk to.
 */
import { images } from '../../shared/images.ts'
import { Expression, given, item, namespace, repeat, text, value, when } from './expression.ts'
import {
  controller,
  hasCertManager,
  hasWebhooks,
  labels,
  metricsService,
  ports,
  selected,
  shardIndex,
  shardName,
  shards,
  shardText,
  watched,
  webhookSecret,
  webhookService,
} from './names.ts'

const image = (name: keyof typeof images) => {
  const whole = text`${value('registry')}/${images[name]}:${value('tag')}`
  const bare = text`${images[name]}:${value('tag')}`
  return new Expression(
    scope => (scope.values.registry === '' ? bare : whole).of(scope),
    `ternary (${bare.go}) (${whole.go}) (eq $.Values.registry "")`,
  )
}
const joined = (path: string) =>
  new Expression(scope => (value<string[]>(path).of(scope) ?? []).join(','), `join "," $.Values.${path}`)
const hasShards = new Expression(({ values }) => values.shards > 1, 'gt (int $.Values.shards) 1')
const certificates = '/etc/shipmate/webhook'

const pod = {
  serviceAccountName: controller,
  imagePullSecrets: when(value('pullSecrets'), [repeat(value('pullSecrets'), { name: item })]),
  priorityClassName: given('priorityClassName'),
  // What the controller takes to end in good order, and some more.
  terminationGracePeriodSeconds: 40,
  // No uid: the image names one, and where the cluster gives another (OpenShift) that does as well.
  securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
  affinity: given('affinity'),
  nodeSelector: given('nodeSelector'),
  tolerations: given('tolerations'),
  containers: [
    {
      name: 'controller',
      image: image('controller'),
      imagePullPolicy: value('pullPolicy'),
      args: [
        text`--log-level=${value('logLevel')}`,
        `--port=${ports.health}`,
        `--metrics-port=${ports.metrics}`,
        when(value('metrics.auth'), '--metrics-auth'),
        when(hasShards, text`--shard=${shardText}`),
        repeatNamespaces(),
        when(hasWebhooks, `--webhook-port=${ports.webhook}`),
        when(hasCertManager, `--webhook-cert-dir=${certificates}`),
      ],
      env: [
        { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
        // What pods get that are given a sidecar.
        { name: 'SHIPMATE_SIDECAR_IMAGE', value: image('sidecar') },
        { name: 'SHIPMATE_PULL_SECRETS', value: joined('pullSecrets') },
      ],
      ports: [
        { name: 'health', containerPort: ports.health },
        { name: 'metrics', containerPort: ports.metrics },
        when(hasWebhooks, { name: 'webhook', containerPort: ports.webhook }),
      ],
      livenessProbe: { httpGet: { path: '/healthz', port: 'health' }, timeoutSeconds: 5 },
      readinessProbe: { httpGet: { path: '/readyz', port: 'health' }, periodSeconds: 5, timeoutSeconds: 5 },
      resources: given('resources'),
      // Why it ended stands in the pod's status.
      terminationMessagePolicy: 'FallbackToLogsOnError',
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
      volumeMounts: when(hasCertManager, [{ name: 'webhook-tls', mountPath: certificates, readOnly: true }]),
    },
  ],
  volumes: when(hasCertManager, [{ name: 'webhook-tls', secret: { secretName: webhookSecret } }]),
}

/** The option takes several words: each is given by itself. */
function repeatNamespaces(): unknown {
  return repeat(watched, text`--watch-namespace=${item}`)
}

const shardLabels = { 'shipmate.dev/shard': shardIndex }

export const deployment: unknown[] = [
  repeat(shards, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: shardName, namespace, labels: { ...labels, ...shardLabels } },
    spec: {
      replicas: value('replicas'),
      selector: { matchLabels: { ...selected, ...shardLabels } },
      template: {
        metadata: { labels: { ...labels, ...shardLabels }, annotations: given('podAnnotations') },
        spec: pod,
      },
    },
  }),
  {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: controller, namespace, labels },
    spec: { maxUnavailable: 1, selector: { matchLabels: selected } },
  },
]

function service(name: string, port: { name: string; port: number; targetPort: string }): object {
  const metadata = { name, namespace, labels }
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: { selector: selected, ports: [{ ...port, protocol: 'TCP' }] },
  }
}

export const services: unknown[] = [
  service(metricsService, { name: 'metrics', port: ports.metrics, targetPort: 'metrics' }),
  when(hasWebhooks, service(webhookService, { name: 'webhook', port: 443, targetPort: 'webhook' })),
]

const tcp = (port: unknown) => ({ protocol: 'TCP', port })
const dns = [tcp(53), { protocol: 'UDP', port: 53 }]

export const network: unknown[] = [
  when(value('networkPolicy.enabled'), {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: controller, namespace, labels },
    spec: {
      podSelector: { matchLabels: selected },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        // From anywhere: probes come from nodes, and admission from the API server, which no selector finds. Metrics ask who is there.
        { ports: [tcp(ports.health), tcp(ports.metrics), when(hasWebhooks, tcp(ports.webhook))] },
      ],
      egress: [
        { ports: dns },
        { ports: [repeat(value('networkPolicy.apiServerPorts'), tcp(item))] },
        // Sidecars are in pods, wherever those are.
        {
          to: [{ namespaceSelector: {} }],
          ports: [repeat(value('networkPolicy.sidecarPorts'), tcp(item))],
        },
      ],
    },
  }),
]
