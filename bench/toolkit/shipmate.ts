/**
 * The ten children of a Stack by the toolkit: only what is wished is written down, and the server fills in the rest.
 *
 * No controllers run beside the API server, so no Deployment ever gets ready: a Stack is ready when all has been written, as in the Go program.
 */
import { advancedReconciler, mutable, type ResourceOf, run } from 'shipmate'
import { ConfigMap, Deployment, Secret, Service, StatefulSet } from 'shipmate/kube'
import { Stack } from './stack.ts'

type Spec = ResourceOf<typeof Stack>['spec']
type Cr = { readonly metadata: { readonly name: string }; readonly spec: Spec }

const named = (part: string) => (cr: Cr) => `${cr.metadata.name}-${part}`
const labelsOf = (cr: Cr, part: string) => ({
  'app.kubernetes.io/name': part,
  'app.kubernetes.io/instance': cr.metadata.name,
})

const configMap = (part: string, data: (spec: Spec) => Record<string, string>) =>
  mutable(ConfigMap, Stack, {
    name: named(part),
    mutateWithInitialData: cr => ({ metadata: { labels: labelsOf(cr, part) }, data: data(cr.spec) }),
  })

const secret = (part: string, data: (spec: Spec) => Record<string, string>) =>
  mutable(Secret, Stack, {
    name: named(part),
    mutateWithInitialData: cr => ({
      metadata: { labels: labelsOf(cr, part) },
      data: Object.fromEntries(
        Object.entries(data(cr.spec)).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
      ),
    }),
  })

const service = (part: string, port: number, headless: boolean) =>
  mutable(Service, Stack, {
    name: named(part),
    mutateWithInitialData: cr => ({
      metadata: { labels: labelsOf(cr, part) },
      spec: {
        selector: labelsOf(cr, part),
        ports: [{ name: 'main', port, targetPort: 'main' }],
        ...(headless && { clusterIP: 'None' }),
      },
    }),
  })

const template = (cr: Cr, part: string, image: string, port: number) => ({
  metadata: { labels: labelsOf(cr, part) },
  spec: {
    containers: [
      {
        name: part,
        image,
        env: [{ name: 'PASSWORD', valueFrom: { secretKeyRef: { name: named('credentials')(cr), key: 'password' } } }],
        ports: [{ name: 'main', containerPort: port }],
        readinessProbe: { httpGet: { path: '/ready', port: 'main' } },
        resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { memory: '128Mi' } },
        volumeMounts: [{ name: 'settings', mountPath: '/settings' }],
      },
    ],
    volumes: [{ name: 'settings', configMap: { name: named('settings')(cr) } }],
  },
})

const deployment = (part: string, port: number, replicas: (spec: Spec) => number) =>
  mutable(Deployment, Stack, {
    name: named(part),
    mutateWithInitialData: cr => ({
      metadata: { labels: labelsOf(cr, part) },
      spec: {
        replicas: replicas(cr.spec),
        selector: { matchLabels: labelsOf(cr, part) },
        template: template(cr, part, cr.spec.image, port),
      },
    }),
    ready: () => true,
  })

const store = mutable(StatefulSet, Stack, {
  name: named('store'),
  mutateWithInitialData: cr => ({
    metadata: { labels: labelsOf(cr, 'store') },
    spec: {
      replicas: 1,
      serviceName: named('store')(cr),
      selector: { matchLabels: labelsOf(cr, 'store') },
      template: template(cr, 'store', 'example.com/store:1', 5432),
      volumeClaimTemplates: [
        {
          metadata: { name: 'data' },
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
        },
      ],
    },
  }),
  ready: () => true,
})

const { BENCH_NAMESPACE: namespace = 'default', BENCH_CONCURRENCY = '10', BENCH_PORT = '8081' } = process.env
const address = { host: '127.0.0.1', port: Number(BENCH_PORT) }

const operator = advancedReconciler(Stack, {
  resources: [
    configMap('settings', ({ message }) => ({ message, level: 'info' })),
    configMap('scripts', () => ({ 'start.sh': '#!/bin/sh\nexec /server --settings /settings\n' })),
    configMap('dashboards', () => ({ 'overview.json': '{"title":"Overview","panels":[]}' })),
    secret('credentials', ({ password }) => ({ user: 'stack', password })),
    secret('tokens', () => ({ session: 'a token for sessions' })),
    service('web', 80, false),
    service('store', 5432, true),
    deployment('web', 8080, ({ replicas }) => replicas),
    deployment('worker', 9090, () => 1),
    store,
  ],
  concurrency: Number(BENCH_CONCURRENCY),
})

await run(operator, { namespaces: [namespace], election: false, health: address, metrics: address })
