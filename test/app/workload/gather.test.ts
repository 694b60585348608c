/**
 * Which pods are a workload's, among those that look like it.
 */
import { expect, test } from 'vitest'
import { livePodsOf } from '../../../controller/app/workload/gather.ts'
import { prepareCache } from '../../../controller/app/workload/places.ts'
import { Cache } from '../../../controller/kube/cache.ts'
import type { CachedClient } from '../../../controller/kube/cached.ts'
import { Client } from '../../../controller/kube/client.ts'
import { Deployment, Pod } from '../../../controller/kube/kinds.ts'
import { aPod, aWorkload } from './objects.ts'

const cache = new Cache(new Client(() => Promise.reject(new Error('no request is expected'))))
prepareCache(cache, { manager: 'shipmate', isUnsettled: () => false })
const client = { by: (_: unknown, index: string, value: string) => cache.informer(Pod).by(index, value) }
const seen = (more: object) =>
  livePodsOf(client as unknown as CachedClient, aWorkload(more)).map(({ metadata }) => metadata.name)

function put(name: string, kind: string, owner: string, uid: string, labels: object = { app: 'db' }): void {
  const ownerReferences = [{ apiVersion: 'apps/v1', kind, name: owner, uid, controller: true }]
  cache.informer(Pod).wrote(aPod(name, { metadata: { labels, ownerReferences } }) as never)
}

test('a pod of an earlier workload of the same name, or that was relabelled, does not count', () => {
  put('db-10', 'StatefulSet', 'db', 'set-1')
  put('db-9', 'StatefulSet', 'db', 'set-1')
  put('db-1', 'StatefulSet', 'db', 'set-0')
  put('db-2', 'StatefulSet', 'db', 'set-1', { app: 'other' })
  put('db-3', 'DaemonSet', 'db', 'set-1')
  expect(seen({})).toEqual(['db-9', 'db-10'])
})

test('a pod of a Deployment is one of a ReplicaSet that is named after it and after the hash of its pods', () => {
  const hash = (value: string) => ({ app: 'db', 'pod-template-hash': value })
  put('a', 'ReplicaSet', 'web-5f7', 'r-1', hash('5f7'))
  put('b', 'ReplicaSet', 'web-5f7', 'r-2', hash('other'))
  put('c', 'ReplicaSet', 'web', 'r-3')
  put('d', 'ReplicaSet', 'web-two-5f7', 'r-4', hash('5f7'))
  expect(seen({ of: Deployment, kind: 'Deployment', name: 'web', uid: 'd-1' })).toEqual(['a'])
})
