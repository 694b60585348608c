/**
 * What a cluster does by itself, beside the real kube-controller-manager: garbage collection, namespaces, accounts, roles; and what it does here alone: definitions, claims.
 */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { defineKind, type OwnerReference } from '../../../controller/kube/kind.ts'
import {
  ClusterRole,
  ConfigMap,
  CronJob,
  CustomResourceDefinition,
  Job,
  Namespace,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  Secret,
  ServiceAccount,
} from '../../../controller/kube/kinds.ts'
import { facts, type Side, startTwins, type Twins } from './twins.ts'

const Widget = defineKind<{ spec?: object }>({ group: 'ctl.example.com', version: 'v1', kind: 'Widget' })
const definition = (kind: string) => ({
  metadata: { name: `${kind.toLowerCase()}s.ctl.example.com` },
  spec: {
    group: 'ctl.example.com',
    scope: 'Namespaced',
    names: { kind, plural: `${kind.toLowerCase()}s`, singular: kind.toLowerCase(), listKind: `${kind}List` },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
})

let twins: Twins
beforeAll(async () => {
  twins = await startTwins(async ({ client }) => {
    await client.create(CustomResourceDefinition, definition('Widget'))
    await vi.waitFor(() => client.list(Widget), { timeout: 20_000 })
  })
}, 120_000)
afterAll(() => twins?.stop())

interface Owner {
  apiVersion: string
  kind: string
  metadata: { name: string; uid: string }
}
const owned = ({ apiVersion, kind, metadata: { name, uid } }: Owner, block = false): OwnerReference => ({
  ...{ apiVersion, kind, name, uid },
  ...(block ? { blockOwnerDeletion: true } : {}),
})

describe('garbage collection', () => {
  const names = (namespace: string) => async (side: Side) => {
    const maps = (await facts(side, ConfigMap, namespace)) as {
      metadata: { name: string; ownerReferences?: object[]; finalizers?: string[] }
    }[]
    return maps
      .filter(({ metadata }) => metadata.name !== 'kube-root-ca.crt')
      .map(({ metadata }) => `${metadata.name} ${metadata.ownerReferences?.length ?? 0} ${metadata.finalizers ?? ''}`)
  }

  /** widget w ← config map a ← config map b; a second owner of c. */
  const family =
    (namespace: string) =>
    async ({ client }: Side) => {
      const w = await client.create(Widget, { metadata: { name: 'w', namespace } })
      const other = await client.create(Secret, { metadata: { name: 'other', namespace } })
      const a = await client.create(ConfigMap, {
        metadata: { name: 'a', namespace, ownerReferences: [owned(w, true)] },
      })
      await client.create(ConfigMap, { metadata: { name: 'b', namespace, ownerReferences: [owned(a, true)] } })
      await client.create(ConfigMap, { metadata: { name: 'c', namespace, ownerReferences: [owned(w), owned(other)] } })
    }
  const end = (namespace: string, propagation: 'Background' | 'Foreground' | 'Orphan') => (side: Side) =>
    side.client.delete(Widget, { name: 'w', namespace }, { propagation })
  const widgets =
    (namespace: string) =>
    async ({ client }: Side) =>
      (await client.list(Widget, { namespace })).length

  test('in the background, dependents of dependents too, and who has another owner stays', async () => {
    const namespace = await twins.namespace('gc-background')
    await twins.both(family(namespace))
    await twins.both(end(namespace, 'Background'))
    expect(await twins.agree(names(namespace), left => left.length === 1 && left[0] === 'c 1 ')).toEqual(['c 1 '])
  })

  test('in the foreground the owner waits for those that block it', async () => {
    const namespace = await twins.namespace('gc-foreground')
    await twins.both(family(namespace))
    const hold = (finalizers: string[]) =>
      twins.both(({ client }) =>
        client.patch(ConfigMap, { name: 'b', namespace }, { merge: { metadata: { finalizers } } }),
      )
    await hold(['test.example.com/hold'])
    await twins.both(end(namespace, 'Foreground'))
    await twins.agree(names(namespace), left => left.join() === 'a 1 foregroundDeletion,b 1 test.example.com/hold,c 1 ')
    expect(await twins.both(widgets(namespace))).toEqual([1, 1])
    await hold([])
    await twins.agree(names(namespace), left => left.length === 1)
    await expect.poll(() => twins.both(widgets(namespace)), { timeout: 20_000 }).toEqual([0, 0])
  })

  test('orphans stay, without their owner', async () => {
    const namespace = await twins.namespace('gc-orphan')
    await twins.both(family(namespace))
    await twins.both(end(namespace, 'Orphan'))
    await twins.agree(names(namespace), left => left.join() === 'a 0 ,b 1 ,c 1 ')
    await expect.poll(() => twins.both(widgets(namespace)), { timeout: 20_000 }).toEqual([0, 0])
  })

  test('an owner that never was is gone, one in another namespace too; one of an unknown kind is nobody’s guess', async () => {
    const namespace = await twins.namespace('gc-absent')
    await twins.both(async ({ client }) => {
      const uid = '11111111-2222-4333-8444-555555555555'
      const elsewhere = await client.create(ConfigMap, { metadata: { name: 'elsewhere', namespace: 'default' } })
      const never = { apiVersion: 'v1', kind: 'Secret', name: 'never', uid }
      const unknown = { apiVersion: 'nobody.example.com/v1', kind: 'Thing', name: 'x', uid: uid.replace('1', '2') }
      const references = { never, elsewhere: owned(elsewhere), unknown }
      for (const [name, reference] of Object.entries(references))
        await client.create(ConfigMap, { metadata: { name, namespace, ownerReferences: [reference] } })
    })
    await twins.agree(names(namespace), left => left.join() === 'unknown 1 ')
  })

  test('a kind is collected as soon as it is defined', async () => {
    const [, ours] = twins.sides
    const { client } = ours
    const namespace = await twins.namespace('gc-new-kind')
    const Gadget = defineKind<{ spec?: object }>({ group: 'ctl.example.com', version: 'v1', kind: 'Gadget' })
    await client.create(CustomResourceDefinition, definition('Gadget'))
    await vi.waitFor(() => client.list(Gadget), { timeout: 20_000 })
    const gadget = await client.create(Gadget, { metadata: { name: 'g', namespace } })
    const child = await client.create(Gadget, {
      metadata: { name: 'child', namespace, ownerReferences: [owned(gadget)] },
    })
    await client.create(ConfigMap, { metadata: { name: 'm', namespace, ownerReferences: [owned(child)] } })
    await client.delete(Gadget, { name: 'g', namespace })
    await expect.poll(() => client.find(ConfigMap, { name: 'm', namespace }), { timeout: 20_000 }).toBeUndefined()
    await client.delete(CustomResourceDefinition, { name: 'gadgets.ctl.example.com' })
    await expect
      .poll(() => client.find(CustomResourceDefinition, { name: 'gadgets.ctl.example.com' }), { timeout: 20_000 })
      .toBeUndefined()
  })
})

test('a namespace has its account and the authority, and takes all with it once nothing holds it', async () => {
  const namespace = await twins.namespace('goes')
  const [, ours] = twins.sides
  for (const { client, server } of twins.sides) {
    await expect
      .poll(() => client.find(ServiceAccount, { name: 'default', namespace }), { timeout: 20_000 })
      .toBeDefined()
    await expect
      .poll(async () => (await client.find(ConfigMap, { name: 'kube-root-ca.crt', namespace }))?.data?.['ca.crt'], {
        timeout: 20_000,
      })
      .toBe(await readFile(server.caFile, 'utf8'))
  }
  await twins.both(async ({ client }) => {
    await client.create(ConfigMap, { metadata: { name: 'held', namespace, finalizers: ['test.example.com/hold'] } })
    await client.create(Widget, { metadata: { name: 'w', namespace } })
    await client.create(Pod, { metadata: { name: 'p', namespace }, spec: { containers: [{ name: 'c', image: 'a' }] } })
    await client.delete(Namespace, { name: namespace })
  })
  const look = async ({ client }: Side) => {
    const { status } = await client.get(Namespace, { name: namespace })
    return status?.conditions
      ?.map(({ type, status, reason, message }) => `${type} ${status} ${reason} ${message}`)
      .sort()
  }
  await twins.agree(
    look,
    conditions => conditions?.some(one => one.startsWith('NamespaceFinalizersRemaining True')) ?? false,
  )
  await twins.both(({ client }) =>
    client.patch(ConfigMap, { name: 'held', namespace }, { merge: { metadata: { finalizers: [] } } }),
  )
  await expect.poll(() => ours.client.find(Namespace, { name: namespace }), { timeout: 20_000 }).toBeUndefined()
  expect((await ours.client.list(Namespace)).map(({ metadata }) => metadata.name)).toEqual(
    expect.arrayContaining(['default', 'kube-system', 'kube-public', 'kube-node-lease']),
  )
})

test('ClusterRoles are put together', async () => {
  const rule = (resource: string) => ({ apiGroups: ['x.example.com'], resources: [resource], verbs: ['get'] })
  await twins.both(async ({ client }) => {
    const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { part: 'sum' } }] }
    await client.create(ClusterRole, { metadata: { name: 'sum' }, aggregationRule, rules: [] })
    await client.create(ClusterRole, {
      metadata: { name: 'z', labels: { part: 'sum' } },
      rules: [rule('a'), rule('b')],
    })
    await client.create(ClusterRole, {
      metadata: { name: 'y', labels: { part: 'sum' } },
      rules: [rule('b'), rule('c')],
    })
  })
  const look = async ({ client }: Side) => (await client.get(ClusterRole, { name: 'sum' })).rules ?? []
  await twins.agree(look, rules => rules.length === 3)
})

test('a claim is bound, kept while a pod uses it, and takes its volume with it', async () => {
  const [, { client }] = twins.sides
  const namespace = await twins.namespace('claims')
  const ref = { name: 'data', namespace }
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
  await client.create(PersistentVolumeClaim, { metadata: ref, spec })
  await expect
    .poll(async () => (await client.get(PersistentVolumeClaim, ref)).status?.phase, { timeout: 20_000 })
    .toBe('Bound')
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }]
  await client.create(Pod, {
    metadata: { name: 'p', namespace },
    spec: { containers: [{ name: 'c', image: 'a' }], volumes },
  })
  const { volumeName = '' } = (await client.get(PersistentVolumeClaim, ref)).spec ?? {}
  expect((await client.get(PersistentVolume, { name: volumeName })).spec?.claimRef?.name).toBe('data')
  await client.delete(PersistentVolumeClaim, ref)
  expect((await client.get(PersistentVolumeClaim, ref)).metadata.deletionTimestamp).toBeDefined()
  await client.delete(Pod, { name: 'p', namespace })
  await expect.poll(() => client.find(PersistentVolumeClaim, ref), { timeout: 20_000 }).toBeUndefined()
  // The server's own protection of volumes has no controller here.
  await client
    .patch(PersistentVolume, { name: volumeName }, { merge: { metadata: { finalizers: [] } } })
    .catch(() => undefined)
  await expect.poll(() => client.find(PersistentVolume, { name: volumeName }), { timeout: 20_000 }).toBeUndefined()
})

test('a CronJob that was due makes its Job, of the same name', { timeout: 150_000 }, async () => {
  const namespace = await twins.namespace('cron')
  const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'a' }] } }
  await twins.both(({ client }) =>
    client.create(CronJob, {
      metadata: { name: 'tick', namespace },
      spec: {
        schedule: '* * * * *',
        concurrencyPolicy: 'Forbid',
        jobTemplate: { metadata: { labels: { of: 'tick' } }, spec: { template } },
      },
    }),
  )
  const look = async (side: Side) => ({
    jobs: await facts(side, Job, namespace),
    cron: await facts(side, CronJob, namespace),
  })
  await expect
    .poll(() => twins.both(async ({ client }) => (await client.list(Job, { namespace })).length), {
      timeout: 90_000,
      interval: 500,
    })
    .toEqual([1, 1])
  await twins.agree(look, ({ jobs }) => jobs.length === 1)
})
