/** Random parts of pods, as they stand in pods and in templates. */
import { type Dice, maybe, one, rarely, some } from './dice.ts'

type Part = Record<string, unknown>

export const labels = (dice: Dice): Record<string, string> =>
  Object.fromEntries(some(dice, 'a', 'b', 'c').map(name => [name, one(dice, '1', '2', 'x')]))

const probe = (dice: Dice): Part => ({
  ...one<Part>(
    dice,
    { httpGet: { port: one<unknown>(dice, 80, 'web') } },
    { httpGet: { port: 8080, path: '/healthz', scheme: 'HTTPS', httpHeaders: [{ name: 'A', value: 'b' }] } },
    { tcpSocket: { port: 80 } },
    { exec: { command: ['true'] } },
    { grpc: { port: 9000 } },
  ),
  ...maybe(dice, {
    initialDelaySeconds: () => one(dice, 0, 5),
    periodSeconds: () => one(dice, 0, 3),
    timeoutSeconds: () => one(dice, 0, 2),
    failureThreshold: () => one(dice, 0, 4),
  }),
})

const env = (dice: Dice) =>
  some<Part>(
    dice,
    { name: 'A', value: one(dice, '1', '2', '') },
    { name: 'B', value: 'x' },
    { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
    { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } },
    { name: 'KEY', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
    { name: 'MAP', valueFrom: { configMapKeyRef: { name: 'm', key: 'k', optional: true } } },
  )

const amounts = (dice: Dice): Part =>
  maybe(dice, {
    cpu: () => one<unknown>(dice, '1', '500m', 0.5, 2, '1.5'),
    memory: () => one<unknown>(dice, '1Gi', '1024Mi', '128M', '1e3', 1073741824),
  })

export const container = (dice: Dice, name: string): Part => ({
  name,
  image: one(dice, 'i:1', 'i:2', 'i', 'r.example:5000/i', 'i:latest', 'i@sha256:1'),
  ...maybe(dice, {
    command: () => one(dice, ['sh', '-c', 'x'], []),
    args: () => some(dice, 'x', 'y', 'z'),
    env: () => env(dice),
    envFrom: () => some<Part>(dice, { configMapRef: { name: 'm' } }, { prefix: 'P_', secretRef: { name: 's' } }),
    ports: () =>
      some<Part>(
        dice,
        { containerPort: 80, name: 'web' },
        { containerPort: 81, protocol: one(dice, 'TCP', 'UDP') },
        { containerPort: 82, hostPort: 0 },
      ),
    resources: () =>
      one<Part>(
        dice,
        {},
        { requests: amounts(dice) },
        { limits: { cpu: '2', memory: '2Gi' }, requests: amounts(dice) },
      ),
    imagePullPolicy: () => one(dice, 'Always', 'Never'),
    workingDir: () => one(dice, '', '/w'),
    livenessProbe: () => probe(dice),
    readinessProbe: () => probe(dice),
    startupProbe: () => probe(dice),
    lifecycle: () =>
      one<Part>(dice, { preStop: { exec: { command: ['sh'] } } }, { postStart: { httpGet: { port: 80 } } }, {}),
    securityContext: () => one<unknown>(dice, {}, null, { runAsUser: 1 }, { capabilities: { drop: ['ALL'] } }),
    volumeMounts: () =>
      some<Part>(dice, { name: 'v', mountPath: '/v' }, { name: 'w', mountPath: '/w', readOnly: true }),
    tty: () => one(dice, true, false),
    stdin: () => false,
  }),
})

const volumes = (dice: Dice): Part[] => [
  one<Part>(
    dice,
    { name: 'v', emptyDir: {} },
    { name: 'v' },
    { name: 'v', emptyDir: { medium: 'Memory', sizeLimit: '1024Ki' } },
  ),
  one<Part>(
    dice,
    { name: 'w', configMap: { name: 'x' } },
    { name: 'w', secret: { secretName: 's', optional: false } },
    { name: 'w', hostPath: { path: '/tmp' } },
    { name: 'w', persistentVolumeClaim: { claimName: 'c' } },
    { name: 'w', downwardAPI: { items: [{ path: 'p', fieldRef: { fieldPath: 'metadata.labels' } }] } },
    { name: 'w', projected: { sources: [{ serviceAccountToken: { path: 't' } }, { configMap: { name: 'x' } }] } },
  ),
]

const tolerations = (dice: Dice) =>
  some<Part>(
    dice,
    { key: 'a' },
    { key: 'b', operator: 'Exists', effect: 'NoSchedule' },
    { operator: 'Exists', tolerationSeconds: 5, effect: 'NoExecute' },
    { key: 'c', operator: 'Equal', value: 'd' },
  )

export const podSpec = (dice: Dice, restart: readonly string[] = ['Always']): Part => ({
  containers: [container(dice, 'c'), ...(rarely(dice, 3) ? [container(dice, 'd')] : [])],
  volumes: volumes(dice),
  ...(restart.includes('Always') && dice(2) === 0 ? {} : { restartPolicy: one(dice, ...restart) }),
  ...maybe(dice, {
    initContainers: () => [
      {
        ...container(dice, 'i'),
        livenessProbe: undefined,
        readinessProbe: undefined,
        startupProbe: undefined,
        lifecycle: undefined,
      },
    ],
    terminationGracePeriodSeconds: () => one(dice, 0, 5),
    nodeSelector: () => labels(dice),
    tolerations: () => tolerations(dice),
    imagePullSecrets: () => some(dice, { name: 'a' }, { name: 'b' }),
    securityContext: () => one<unknown>(dice, {}, { fsGroup: 1 }, { runAsNonRoot: true }, null),
    hostNetwork: () => false,
    dnsPolicy: () => one(dice, 'Default', 'ClusterFirst'),
    automountServiceAccountToken: () => one(dice, true, false),
    enableServiceLinks: () => one(dice, true, false),
    shareProcessNamespace: () => one(dice, true, false),
    hostname: () => one(dice, '', 'h'),
    affinity: () =>
      one<Part>(
        dice,
        {},
        {
          podAntiAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [
              { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { a: '1' } } },
            ],
          },
        },
        {
          nodeAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              { weight: 1, preference: { matchExpressions: [{ key: 'z', operator: 'In', values: ['a'] }] } },
            ],
          },
        },
      ),
    topologySpreadConstraints: () => [
      {
        maxSkew: 1,
        topologyKey: 'zone',
        whenUnsatisfiable: 'DoNotSchedule',
        labelSelector: { matchLabels: { a: '1' } },
      },
    ],
  }),
})
