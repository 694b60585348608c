/**
 * Which apps a changed object concerns.
 */
import { describe, expect, test, vi } from 'vitest'
import { Operation, StatefulApp } from '../../../controller/app/kinds.ts'
import { createConcerns, nodeMatters } from '../../../controller/app/workload/concerns.ts'
import { prepareCache } from '../../../controller/app/workload/places.ts'
import { Cache } from '../../../controller/kube/cache.ts'
import { Client } from '../../../controller/kube/client.ts'
import { Pod } from '../../../controller/kube/kinds.ts'
import { anApp, aPod, namespace } from './objects.ts'

function setUp(apps: readonly { name: string; spec: object }[]) {
  const cache = new Cache(new Client(() => Promise.reject(new Error('no request is expected'))))
  prepareCache(cache, { manager: 'shipmate', isUnsettled: ({ phase }) => phase === 'Unknown' })
  for (const { name, spec } of apps) cache.informer(StatefulApp).wrote(anApp(spec, { name, uid: name }) as never)
  return { cache, concerns: createConcerns(cache) }
}

const workload = (kind: string, name: string, apiVersion = 'apps/v1') => ({ workload: { apiVersion, kind, name } })
const owned = (kind: string, name: string, apiVersion = 'apps/v1') => ({
  ownerReferences: [{ apiVersion, kind, name, uid: 'x', controller: true }],
})
const names = (refs: readonly { name: string }[]) => refs.map(({ name }) => name)

describe('a pod concerns', () => {
  const { concerns } = setUp([
    { name: 'set', spec: workload('StatefulSet', 'db') },
    { name: 'again', spec: workload('StatefulSet', 'db') },
    { name: 'dep', spec: workload('Deployment', 'web') },
    { name: 'replica', spec: workload('ReplicaSet', 'web-7c9f') },
    { name: 'own', spec: { workload: undefined, template: { spec: {} } } },
  ])
  test.each<[string, object, string[]]>([
    ['every app of the StatefulSet that controls it', owned('StatefulSet', 'db'), ['again', 'set']],
    ['the app whose own StatefulSet it is', owned('StatefulSet', 'own'), ['own']],
    ['no app by the name of another kind', owned('DaemonSet', 'db'), []],
    ['no app by the name in another group', owned('StatefulSet', 'db', 'apps.kruise.io/v1beta1'), []],
    [
      'the app of the Deployment above',
      { ...owned('ReplicaSet', 'web-7c9f'), labels: { 'pod-template-hash': '7c9f' } },
      ['dep', 'replica'],
    ],
    ['none in another namespace', { ...owned('StatefulSet', 'db'), namespace: 'elsewhere' }, []],
    ['nobody, if nobody controls it', {}, []],
  ])('%s', (_, metadata, apps) => expect(names(concerns.ofPod(aPod('x', { metadata }))).sort()).toEqual(apps))
})

test('a pod concerns apps whose workload selects it, until they are gone', () => {
  const { cache, concerns } = setUp([{ name: 'a', spec: workload('CloneSet', 'c', 'apps.kruise.io/v1alpha1') }])
  const app = cache.informer(StatefulApp).get({ namespace, name: 'a' })
  concerns.remember(app as never, { matchLabels: { app: 'c' } })
  const pod = (labels: object, more: object = {}) => aPod('x', { metadata: { labels, ...more } })
  expect(names(concerns.ofPod(pod({ app: 'c', x: 'y' })))).toEqual(['a'])
  expect(names(concerns.ofPod(pod({ app: 'd' })))).toEqual([])
  expect(names(concerns.ofPod(pod({ app: 'c' }, { namespace: 'elsewhere' })))).toEqual([])
  concerns.remember(app as never, { matchExpressions: [{ key: 'tier', operator: 'In', values: ['d'] }] })
  expect(names(concerns.ofPod(pod({ app: 'c' })))).toEqual([])
  expect(names(concerns.ofPod(pod({ tier: 'd' })))).toEqual(['a'])
  cache.informer(StatefulApp).erased({ namespace, name: 'a' }, 'a')
  expect(names(concerns.ofPod(pod({ tier: 'd' })))).toEqual([])
})

test('a workload concerns its apps', () => {
  const { concerns } = setUp([{ name: 'a', spec: workload('StatefulSet', 'db') }])
  const set = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { namespace, name: 'db' } }
  expect(concerns.ofWorkload(set as never)).toEqual([{ namespace, name: 'a' }])
})

test('what was made for an app concerns it, and what others made nobody', () => {
  const { concerns } = setUp([])
  const made = (labels: object) => concerns.ofMade({ metadata: { namespace, name: 'x', labels } } as never)
  expect(made({ 'shipmate.dev/app': 'a', 'shipmate.dev/app-uid': 'u' })).toEqual([{ namespace, name: 'a' }])
  expect(made({ 'shipmate.dev/app': 'a' })).toEqual([])
})

test('a node concerns apps with an open run there, wherever their pods are now, and apps of a DaemonSet', () => {
  const { cache, concerns } = setUp([
    { name: 'a', spec: workload('StatefulSet', 'db') },
    { name: 'daemon', spec: workload('DaemonSet', 'd') },
  ])
  const operation = (name: string, app: string, phase: string) => ({
    ...{ apiVersion: 'shipmate.dev/v1alpha1', kind: 'Operation', spec: { app, action: 'x' } },
    metadata: { name, namespace, uid: name, resourceVersion: '1' },
    status: { runs: [{ node: 'n1', phase }] },
  })
  cache.informer(Operation).wrote(operation('o1', 'a', 'Unknown') as never)
  cache.informer(Operation).wrote(operation('o2', 'b', 'Succeeded') as never)
  const put = (name: string, metadata: object) => cache.informer(Pod).wrote(aPod(name, { metadata }) as never)
  put('db-0', owned('StatefulSet', 'db'))
  put('d-x', owned('DaemonSet', 'd'))
  expect(names(concerns.ofNode({ metadata: { name: 'n1' } } as never)).sort()).toEqual(['a', 'daemon'])
  expect(concerns.ofNode({ metadata: { name: 'n2' } } as never)).toEqual([])
})

test('among ten thousand apps no other is looked at', () => {
  const many = Array.from({ length: 10_000 }, (_, i) => ({ name: `a${i}`, spec: workload('StatefulSet', `db${i}`) }))
  const { cache, concerns } = setUp(many)
  const apps = cache.informer(StatefulApp)
  const list = vi.spyOn(apps, 'list')
  const by = vi.spyOn(apps, 'by')
  expect(names(concerns.ofPod(aPod('x', { metadata: owned('StatefulSet', 'db77') })))).toEqual(['a77'])
  expect(list).not.toHaveBeenCalled()
  expect(by).toHaveBeenCalledTimes(1)
})

test('a node matters when it comes, reboots, leaves service or readiness, and not when its heart beats', () => {
  const node = (more: { taints?: object[]; ready?: string; bootID?: string; beat?: string }) => ({
    metadata: { name: 'n1' },
    spec: { taints: more.taints ?? [] },
    status: {
      nodeInfo: { bootID: more.bootID ?? 'b' },
      conditions: [{ type: 'Ready', status: more.ready ?? 'True', lastHeartbeatTime: more.beat }],
    },
  })
  const matters = (old: object | undefined, object: object) => nodeMatters({ old, object } as never)
  expect(matters(undefined, node({}))).toBe(true)
  expect(matters(node({}), node({ beat: 'now' }))).toBe(false)
  expect(matters(node({}), node({ bootID: 'c' }))).toBe(true)
  expect(matters(node({}), node({ ready: 'Unknown' }))).toBe(true)
  expect(matters(node({}), node({ taints: [{ key: 'node.kubernetes.io/out-of-service' }] }))).toBe(true)
  expect(matters(node({}), node({ taints: [{ key: 'other' }] }))).toBe(false)
})
