/**
 * What an object in the cache costs in memory, beside its JSON: as the server sends it, and as the cache keeps it.
 *
 * `npm run bench:cache [-- OBJECTS]`. Each way is measured on its own objects, after a garbage collection; ratios, not absolutes, are what counts.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Client } from '../controller/kube/client.ts'
import { Informer } from '../controller/kube/informer.ts'
import type { Kind, Live } from '../controller/kube/kind.ts'
import { ConfigMap, Pod } from '../controller/kube/kinds.ts'

const count = Number(process.argv[2] ?? 20_000)
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const unreachable = new Client(() => Promise.reject(new Error('this cache is filled by hand')))

function informer<T extends object>(kind: Kind<T>, options: ConstructorParameters<typeof Informer<T>>[2] = {}) {
  const one = new Informer<T>(unreachable, kind, options)
  return { put: (object: Live<T>) => one.wrote(object), read: () => one.list().length }
}

function everything() {
  const all: object[] = []
  return { put: (object: object) => void all.push(object), read: () => all.length }
}

const leaf = {}
const statusFields = {
  'f:status': {
    'f:conditions': Object.fromEntries(
      ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map(type => [
        `k:{"type":"${type}"}`,
        { '.': leaf, 'f:type': leaf, 'f:status': leaf, 'f:lastTransitionTime': leaf, 'f:lastProbeTime': leaf },
      ]),
    ),
    'f:containerStatuses': leaf,
    'f:hostIP': leaf,
    'f:phase': leaf,
    'f:podIP': leaf,
    'f:podIPs': leaf,
    'f:startTime': leaf,
  },
}

console.log(`${count} objects each; bytes per object\n`)
console.log(
  `${'kind'.padEnd(12)}${'how it is kept'.padEnd(44)}${'JSON'.padStart(8)}${'heap'.padStart(8)}${'heap/JSON'.padStart(11)}`,
)
for (const [kind, make] of [
  [Pod, pod],
  [ConfigMap, configMap],
] as const) {
  const json = JSON.stringify(make(0)).length
  const ways = {
    'as parsed, in an array': everything,
    'in the cache': () => informer(kind as Kind<object>),
    'in the cache, our managedFields entry kept': () => informer(kind as Kind<object>, { keepManager: 'shipmate' }),
    'in the cache, read (so frozen)': () => informer(kind as Kind<object>),
    'in the cache, transformed to metadata': () => informer(kind as Kind<object>, { transform: dropBody }),
  }
  for (const [name, way] of Object.entries(ways)) {
    const heap = measure(way(), make, name.includes('frozen'))
    console.log(
      `${kind.kind.padEnd(12)}${name.padEnd(44)}${json.toFixed(0).padStart(8)}${heap.toFixed(0).padStart(8)}${(heap / json).toFixed(2).padStart(11)}`,
    )
  }
}

function measure(
  store: { put: (object: never) => void; read: () => number },
  make: (i: number) => object,
  read: boolean,
): number {
  collect()
  const before = process.memoryUsage().heapUsed
  for (let i = 0; i < count; i++) store.put(JSON.parse(JSON.stringify(make(i))) as never)
  if (read) store.read()
  collect()
  const after = process.memoryUsage().heapUsed
  if (store.read() !== count) throw new Error('objects got lost')
  return (after - before) / count
}

function dropBody(object: object): void {
  for (const part of ['spec', 'status', 'data'] as const) (object as Record<string, unknown>)[part] = undefined
}

function metadata(i: number, manager: string, fields: object) {
  return {
    name: `object-${i}`,
    namespace: `namespace-${i % 50}`,
    uid: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
    resourceVersion: String(100_000 + i),
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: {
      'app.kubernetes.io/name': 'web',
      'app.kubernetes.io/instance': `web-${i}`,
      'pod-template-hash': '7d4b9c6f5',
    },
    ownerReferences: [
      {
        apiVersion: 'apps/v1',
        kind: 'ReplicaSet',
        name: `web-${i >> 3}`,
        uid: `owner-${i >> 3}`,
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
    managedFields: [
      {
        manager,
        operation: 'Apply',
        apiVersion: 'v1',
        time: '2026-01-01T00:00:00Z',
        fieldsType: 'FieldsV1',
        fieldsV1: fields,
      },
      {
        manager: 'kubelet',
        operation: 'Update',
        apiVersion: 'v1',
        time: '2026-01-01T00:00:05Z',
        fieldsType: 'FieldsV1',
        fieldsV1: statusFields,
        subresource: 'status',
      },
    ],
  }
}

function pod(i: number): object {
  const own = {
    'f:metadata': { 'f:labels': { 'f:app.kubernetes.io/name': leaf } },
    'f:spec': { 'f:containers': { 'k:{"name":"web"}': { '.': leaf, 'f:image': leaf, 'f:name': leaf } } },
  }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: metadata(i, 'shipmate', own),
    spec: {
      containers: [
        {
          name: 'web',
          image: 'registry.example.com/web:1.2.3',
          ports: [{ containerPort: 8080, protocol: 'TCP' }],
          env: [
            { name: 'POD_NAME', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } } },
            { name: 'LEVEL', value: 'info' },
          ],
          resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '256Mi' } },
          volumeMounts: [{ name: 'token', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount', readOnly: true }],
          terminationMessagePath: '/dev/termination-log',
          terminationMessagePolicy: 'File',
          imagePullPolicy: 'IfNotPresent',
        },
      ],
      volumes: [
        {
          name: 'token',
          projected: {
            defaultMode: 420,
            sources: [{ serviceAccountToken: { expirationSeconds: 3607, path: 'token' } }],
          },
        },
      ],
      nodeName: `node-${i % 20}`,
      serviceAccountName: 'default',
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      tolerations: [
        { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
      ],
    },
    status: {
      phase: 'Running',
      podIP: `10.0.${i % 250}.${i % 249}`,
      startTime: '2026-01-01T00:00:01Z',
      conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map(type => ({
        type,
        status: 'True',
        lastProbeTime: null,
        lastTransitionTime: '2026-01-01T00:00:03Z',
      })),
      containerStatuses: [
        {
          name: 'web',
          ready: true,
          started: true,
          restartCount: 0,
          image: 'registry.example.com/web:1.2.3',
          state: { running: { startedAt: '2026-01-01T00:00:02Z' } },
        },
      ],
    },
  }
}

function configMap(i: number): object {
  const own = {
    'f:data': { 'f:value': leaf },
    'f:metadata': { 'f:ownerReferences': { [`k:{"uid":"owner-${i >> 3}"}`]: leaf } },
  }
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: metadata(i, 'shipmate', own), data: { value: String(i) } }
}
