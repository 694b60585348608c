/**
 * Pods to add a sidecar to: random ones, all of which an API server takes, with all that injection can be asked for.
 */
import fc from 'fast-check'
import type { Facts, Settings } from '../../../controller/webhook/inject/inject.ts'
import type { Container, PodTemplate } from '../../../controller/webhook/inject/template.ts'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'

export const settings: Settings = { version: '0.1.0', image: 'shipmate-sidecar:0.1.0' }

export const lifecycle: LifecycleSpec = {
  states: [{ name: 'Running', next: ['Running'] }],
  preStop: 'stop',
  actions: [
    {
      name: 'backup',
      exec: { command: ['backup'] },
      timeout: '2h',
      cancel: { grace: '20s' },
      verify: { exec: { command: ['there'] } },
    },
    { name: 'stop', exec: { command: ['stop'] }, timeout: '1m', cancel: { grace: '5s' } },
  ],
}

export interface Case {
  readonly pod: PodTemplate & { readonly spec: NonNullable<PodTemplate['spec']> }
  readonly facts: Facts
  readonly settings: Settings
}

const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const chosen = <T>(...values: T[]) => fc.constantFrom(...values)

/** Without what is undefined, as JSON has it. */
const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value))

const volumeNames = ['data', 'backup', 'tmp']
const hooks = [
  { preStop: { exec: { command: ['sync'] } } },
  { preStop: { httpGet: { path: '/prestop', port: 7080 } } },
  { postStart: { exec: { command: ['true'] } } },
]
const resources = [
  { requests: { cpu: '1', memory: '1Gi' } },
  { requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '1', memory: '1Gi' } },
  { limits: { cpu: '500m', memory: '256Mi' } },
]
const security = [
  { runAsUser: 999, runAsNonRoot: true, readOnlyRootFilesystem: true },
  { runAsGroup: 0, seLinuxOptions: { level: 's0:c1,c2' } },
  { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
]

function container(name: string): fc.Arbitrary<Container> {
  return fc.record({
    name: fc.constant(name),
    image: chosen('postgres:17', 'redis:8'),
    imagePullPolicy: optional(chosen('Always', 'IfNotPresent')),
    command: optional(fc.constant(['serve', '--all'])),
    env: optional(fc.constant([{ name: 'MODE', value: 'fast' }])),
    ports: optional(
      chosen(
        [{ containerPort: 5432 }],
        [
          { name: 'http', containerPort: 80 },
          { containerPort: 53, protocol: 'UDP' },
        ],
      ),
    ),
    volumeMounts: optional(
      fc.subarray(volumeNames).map(names => names.map(volume => ({ name: volume, mountPath: `/${volume}` }))),
    ),
    lifecycle: optional(chosen(...hooks)),
    resources: optional(chosen(...resources)),
    securityContext: optional(chosen(...security)),
  }) as fc.Arbitrary<Container>
}

const spec = fc.record({
  containers: fc
    .tuple(container('main'), optional(container('extra')))
    .map(all => all.filter(one => one !== undefined)),
  initContainers: optional(
    fc
      .tuple(container('prepare'), fc.boolean())
      .map(([{ lifecycle: _, ...one }, isNative]) => [{ ...one, ...(isNative && { restartPolicy: 'Always' }) }]),
  ),
  volumes: fc.constant(volumeNames.map(name => ({ name, emptyDir: {} }))),
  terminationGracePeriodSeconds: optional(fc.integer({ min: 0, max: 1000 })),
  securityContext: optional(chosen({ runAsUser: 0 }, { runAsUser: 999, fsGroup: 999 }, { runAsNonRoot: true })),
  imagePullSecrets: optional(chosen([{ name: 'theirs' }], [{ name: 'ours' }])),
  shareProcessNamespace: optional(fc.constant(true)),
  nodeSelector: optional(fc.constant({ disk: 'fast' })),
})

const annotations = fc.record({
  'example.com/theirs': optional(fc.constant('x')),
  'shipmate.dev/app': optional(chosen('orders', 'sessions')),
  'shipmate.dev/image-of': optional(fc.constant('main')),
  'shipmate.dev/image': optional(fc.constant('mine:1')),
  'shipmate.dev/volumes': optional(chosen('', 'backup=/elsewhere', 'data=/a, tmp=/b:ro')),
  'shipmate.dev/requests': optional(chosen('cpu=50m', 'cpu=50m,memory=128Mi')),
  'shipmate.dev/limits': optional(chosen('memory=2Gi', 'cpu=1,memory=32Mi')),
  'shipmate.dev/run-as-user': optional(chosen('0', '999')),
  'shipmate.dev/share-process-namespace': optional(chosen('true', 'false')),
  'shipmate.dev/native-sidecar': optional(chosen('true', 'false')),
})

/** A pod, what is known of it, and what holds for its cluster; one that is refused is not among them. */
export const cases: fc.Arbitrary<Case> = fc
  .record({
    metadata: fc.record({
      labels: fc.constant({ app: 'orders', 'shipmate.dev/lifecycle': 'postgres' }),
      annotations: optional(annotations),
    }),
    spec,
    lifecycle: optional(chosen(lifecycle, { actions: lifecycle.actions })),
    pullSecrets: optional(chosen(['ours'], ['ours', 'more'])),
    nativeSidecars: optional(fc.boolean()),
  })
  .map(({ metadata, spec, lifecycle, pullSecrets, nativeSidecars }) =>
    plain({
      pod: { metadata, spec },
      facts: { app: 'orders', lifecycle },
      settings: { ...settings, pullSecrets, nativeSidecars },
    }),
  )
  // What asks for more than it may have is refused.
  .filter(
    ({ pod }) =>
      !(
        pod.metadata.annotations?.['shipmate.dev/requests']?.includes('memory') &&
        pod.metadata.annotations['shipmate.dev/limits']?.includes('32Mi')
      ),
  ) as unknown as fc.Arbitrary<Case>
