/**
 * Workloads on a real API server with the real controllers: what is seen of them, Create, the end, claims and the gate.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { StatefulApp } from '../../../controller/app/kinds.ts'
import type { App } from '../../../controller/app/view.ts'
import { decideClaim, gatherClaim, releaseClaim, takeClaim } from '../../../controller/app/workload/claim.ts'
import { create, decideCreate } from '../../../controller/app/workload/create.ts'
import { decideEnd, end, gatherEnd } from '../../../controller/app/workload/end.ts'
import { decideGate, gate, gatherGate } from '../../../controller/app/workload/gate.ts'
import { nodesOf, readTemplate, type Workload } from '../../../controller/app/workload/gather.ts'
import { scaleToZero, scaleUp } from '../../../controller/app/workload/scale.ts'
import { Conflict, NotFound, TooManyRequests } from '../../../controller/kube/errors.ts'
import { type Applied, defineKind } from '../../../controller/kube/kind.ts'
import {
  ConfigMap,
  CustomResourceDefinition,
  DaemonSet,
  Deployment,
  Node,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  Service,
  StatefulSet,
} from '../../../controller/kube/kinds.ts'
import { TerminalError } from '../../../controller/runtime/index.ts'
import { type Cluster, type Eyes, hasControllers, startCluster } from './cluster.ts'

const patience = { timeout: 30_000, interval: 50 }
const labels = { app: 'db' }
const pods = { metadata: { labels }, spec: { containers: [{ name: 'db', image: 'db' }] } }
const claims = (...names: string[]) =>
  names.map(name => ({
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  }))

const Gadget = defineKind<{ spec?: { size?: number }; status?: { now?: number; pods?: string } }>({
  ...{ group: 'workload.test', version: 'v1', kind: 'Gadget' },
})
const gadgets = {
  metadata: { name: 'gadgets.workload.test' },
  spec: {
    group: 'workload.test',
    scope: 'Namespaced',
    names: { kind: 'Gadget', plural: 'gadgets' },
    versions: [
      {
        ...{ name: 'v1', served: true, storage: true },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        subresources: {
          status: {},
          scale: {
            specReplicasPath: '.spec.size',
            statusReplicasPath: '.status.now',
            labelSelectorPath: '.status.pods',
          },
        },
      },
    ],
  },
}

describe.skipIf(!hasControllers)('a workload', { timeout: 120_000 }, () => {
  let cluster: Cluster
  let eyes: Eyes
  let namespace: string

  beforeAll(async () => {
    cluster = await startCluster()
    await cluster.client.apply(CustomResourceDefinition, gadgets as Applied<object>)
    await vi.waitFor(() => cluster.client.list(Gadget), patience)
    await cluster.node('n1')
    await cluster.node('n2')
  }, 120_000)
  afterAll(() => cluster?.stop())
  beforeEach(async () => {
    namespace = await cluster.namespace()
    eyes = await cluster.open()
  })
  afterEach(() => eyes?.close())

  const app = (spec: object, name = 'orders') =>
    eyes.app(cluster.client, { metadata: { name, namespace }, spec: { lifecycle: 'postgres', ...spec } })
  const on = (kind: string, apiVersion = 'apps/v1', name = 'db') => ({ workload: { apiVersion, kind, name } })
  const place = (name: string) => ({ namespace, name })
  const names = (all: readonly { name: string }[]) => all.map(({ name }) => name)

  function statefulSet(spec: object = {}) {
    const usual = { replicas: 2, serviceName: 'db', podManagementPolicy: 'Parallel' }
    const object = {
      metadata: place('db'),
      spec: { ...usual, selector: { matchLabels: labels }, template: pods, ...spec },
    }
    return cluster.client.create(StatefulSet, object as never)
  }

  describe('is seen', () => {
    test('with the pods that it controls, in their order, and none that merely look like them', async () => {
      await statefulSet({ replicas: 11 })
      await cluster.client.create(Pod, { metadata: { ...place('db-99'), labels }, spec: pods.spec })
      const set = await app(on('StatefulSet'))
      await eyes.until(set, ({ pods }) => expect(names(pods)).toEqual(Array.from({ length: 11 }, (_, i) => `db-${i}`)))
      await eyes.until(set, ({ workload }) => expect(workload?.isRollingOut).toBe(false))
      eyes.asked()
      expect((await eyes.look(set)).workload).toMatchObject({
        ...{ kind: 'StatefulSet', name: 'db', replicas: 11, isScalable: true, hasStableNames: true },
        ...{ isOutdated: false, isBeingDeleted: false, keptReplicas: undefined, claimedBy: undefined },
      })
      expect(eyes.asked(), 'from the cache').toEqual([])
    })

    test('with the pods of a Deployment, through its ReplicaSets', async () => {
      const spec = { replicas: 2, selector: { matchLabels: labels }, template: pods }
      await cluster.client.create(Deployment, { metadata: place('db'), spec } as never)
      await cluster.client.create(Pod, { metadata: { ...place('stray'), labels }, spec: pods.spec })
      const web = await app(on('Deployment'))
      const [first] = await eyes.until(web, ({ pods }) => {
        expect(pods).toHaveLength(2)
        return pods
      })
      expect(first?.name).toMatch(/^db-/)
      expect(await eyes.read(web)).toMatchObject({ replicas: 2, hasStableNames: false })
      const pod = eyes.cache.informer(Pod).get(place(first?.name ?? ''))
      expect(eyes.concerns.ofPod(pod as never)).toEqual([place('orders')])
    })

    test('as a DaemonSet, by the nodes that should have a pod and work', async () => {
      const spec = { selector: { matchLabels: labels }, template: pods }
      await cluster.client.create(DaemonSet, { metadata: place('db'), spec } as never)
      const daemon = await app(on('DaemonSet'))
      const made = await eyes.until(daemon, ({ pods, workload }) => {
        expect(pods).toHaveLength(2)
        expect(workload?.replicas).toBe(2)
        return names(pods)
      })
      for (const name of made) {
        const { spec } = await cluster.client.get(Pod, place(name))
        const terms = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
        await cluster.run(place(name), terms?.[0]?.matchFields?.[0]?.values?.[0] ?? 'the node that it is meant for')
      }
      await eyes.until(daemon, ({ pods }) => expect(pods.map(({ node }) => node).sort()).toEqual(['n1', 'n2']))
      expect(await nodesOf(eyes.client, ['n1', 'gone'])).toEqual(
        new Map([['n1', { name: 'n1', bootId: 'boot-n1', isOutOfService: false }]]),
      )
      const status = { conditions: [{ type: 'Ready', status: 'Unknown' }] }
      await cluster.client.patch(Node, { name: 'n2' }, { merge: { status } }, { subresource: 'status' })
      await eyes.until(daemon, ({ pods, workload }) => {
        expect(workload).toMatchObject({ replicas: 1, isScalable: false })
        expect(pods, 'its pod is still seen').toHaveLength(2)
      })
      expect(eyes.concerns.ofNode(eyes.cache.informer(Node).get({ name: 'n2' }) as never)).toEqual([place('orders')])
      const taints = [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' as const }]
      await cluster.client.patch(Node, { name: 'n2' }, { merge: { spec: { taints } } })
      // Anything that makes its controller count anew.
      await cluster.client.patch(DaemonSet, place('db'), { merge: { spec: { minReadySeconds: 1 } } })
      await vi.waitFor(async () => {
        const { status } = await cluster.client.get(DaemonSet, place('db'))
        expect(status?.desiredNumberScheduled, 'which does not count it now').toBe(1)
      }, patience)
      await eyes.until(daemon, ({ workload }) => expect(workload).toMatchObject({ replicas: 1, isRollingOut: false }))
      await cluster.client.patch(Node, { name: 'n2' }, { merge: { spec: { taints: null } } })
      const again = { conditions: [{ type: 'Ready', status: 'True' }] }
      await cluster.client.patch(Node, { name: 'n2' }, { merge: { status: again } }, { subresource: 'status' })
      await eyes.until(daemon, ({ workload }) => expect(workload?.replicas).toBe(2))
    })

    test('as any kind with a scale subresource, and by its selector alone', async () => {
      await cluster.client.create(Gadget, { metadata: place('db'), spec: { size: 4 } })
      await cluster.client.patch(
        Gadget,
        place('db'),
        { merge: { status: { now: 1, pods: 'app=db' } } },
        { subresource: 'status' },
      )
      await cluster.client.create(Pod, { metadata: { ...place('mine'), labels }, spec: pods.spec })
      await cluster.client.create(Pod, { metadata: { ...place('other'), labels: { app: 'x' } }, spec: pods.spec })
      const gadget = await app(on('Gadget', 'workload.test/v1'))
      await eyes.until(gadget, ({ workload, pods }) => {
        expect(workload).toMatchObject({ replicas: 4, isScalable: true, hasStableNames: false })
        expect(names(pods)).toEqual(['mine'])
      })
      expect(eyes.concerns.ofPod(eyes.cache.informer(Pod).get(place('mine')) as never)).toEqual([place('orders')])
    })

    test('not, where there is none, and with a reason where there can be none', async () => {
      expect(await eyes.read(await app(on('StatefulSet'), 'a'))).toBeUndefined()
      expect(await eyes.read(await app(on('Gadget', 'workload.test/v1'), 'b'))).toBeUndefined()
      const map = eyes.read(await app(on('ConfigMap', 'v1'), 'c'))
      await expect(map).rejects.toThrow(TerminalError)
      await expect(map).rejects.toThrow('spec.workload: a ConfigMap has no scale subresource')
      const typo = eyes.read(await app(on('Statefulset'), 'd'))
      await expect(typo).rejects.toThrow(NotFound)
      await expect(typo).rejects.toThrow('nearest: StatefulSet (apps/v1)')
    })
  })

  /** Takes steps until there is nothing to do, or something to wait for. */
  async function createAll(one: App): Promise<string[]> {
    const taken: string[] = []
    for (;;) {
      const workload = await eyes.read(one)
      const step = decideCreate(one, workload, await readTemplate(eyes.client, one))
      taken.push(step.is)
      if (['nothing', 'wait', 'refused'].includes(step.is) || taken.length > 9) return taken
      try {
        await create(eyes.client, one, step)
      } catch (error) {
        // A controller wrote meanwhile: seen anew, and decided anew.
        if (!(error instanceof Conflict)) throw error
        taken.pop()
        const before = workload?.resourceVersion
        await eyes.until(one, ({ workload }) => expect(workload?.resourceVersion).not.toBe(before))
      }
    }
  }

  async function endStep(one: App) {
    const { workload, pods } = await eyes.look(one)
    const step = decideEnd(await gatherEnd(eyes.client, one, workload, pods))
    await end(eyes.client, one, step)
    return step
  }

  function endAll(one: App): Promise<void> {
    return vi.waitFor(async () => expect((await endStep(one)).is).toBe('done'), patience)
  }

  describe('of a template', () => {
    const template = (spec: object = {}, more: object = {}) => ({
      template: {
        spec: {
          ...{ replicas: 2, podManagementPolicy: 'Parallel', volumeClaimTemplates: claims('data') },
          // In other words than the server's.
          template: { spec: { containers: [{ name: 'db', image: 'db', resources: { requests: { cpu: '1000m' } } }] } },
          ...spec,
        },
        configMaps: { conf: { 'db.conf': 'a' } },
        ...more,
      },
    })
    const change = async (one: App, spec: object): Promise<App> => {
      const { metadata } = await cluster.client.patch(StatefulApp, one.metadata, { merge: { spec } })
      return vi.waitFor(() => {
        const found = eyes.cache.informer(StatefulApp).get(metadata)
        expect(found?.metadata.resourceVersion).toBe(metadata.resourceVersion)
        return found as App
      }, patience)
    }

    test('is made, and then nothing is sent, by us or by who comes after us', async () => {
      const one = await app(template())
      expect(await createAll(one)).toEqual(['apply', 'nothing'])
      const set = await cluster.client.get(StatefulSet, place('orders'))
      expect(set.metadata.ownerReferences, 'what the way to the end needs is nobody’s').toBeUndefined()
      await cluster.client.get(Service, place('orders'))
      expect((await cluster.client.get(ConfigMap, place('orders-conf'))).data).toEqual({ 'db.conf': 'a' })
      await eyes.until(one, ({ pods }) => expect(names(pods)).toEqual(['orders-0', 'orders-1']))
      await eyes.until(one, ({ workload }) => expect(workload?.isRollingOut).toBe(false))
      eyes.asked()
      expect((await eyes.read(one))?.isOutdated).toBe(false)
      expect(await createAll(one)).toEqual(['nothing'])
      expect(eyes.asked()).toEqual([])
      const next = await cluster.open()
      try {
        const step = decideCreate(one, await next.read(one), await readTemplate(next.client, one))
        expect(step).toEqual({ is: 'nothing' })
        expect(next.asked()).toEqual([])
      } finally {
        await next.close()
      }
    })

    test('is put back when somebody changes it, and follows the template', async () => {
      const one = await app(template())
      await createAll(one)
      await cluster.client.patch(ConfigMap, place('orders-conf'), { merge: { data: { 'db.conf': 'b' } } })
      await eyes.until(one, ({ workload }) => expect(workload?.isOutdated).toBe(true))
      eyes.asked()
      expect(await createAll(one)).toEqual(['apply', 'nothing'])
      expect(eyes.asked()).toEqual(['patch configmaps orders-conf'])
      const changed = await change(one, { template: { configMaps: { conf: null, more: { x: 'y' } } } })
      expect((await eyes.read(changed))?.isOutdated).toBe(true)
      expect(await createAll(changed)).toEqual(['apply', 'nothing'])
      const left = (await cluster.client.list(ConfigMap, { namespace })).map(({ metadata }) => metadata.name)
      expect(left.filter(name => name.startsWith('orders'))).toEqual(['orders-more'])
    })

    test('is refused, by its field, where the server lets nothing change', async () => {
      const one = await app(template())
      await createAll(one)
      const changed = await change(one, { template: { spec: { volumeClaimTemplates: claims('other') } } })
      await expect(createAll(changed)).rejects.toThrow(
        'spec.template: spec.volumeClaimTemplates of StatefulSet orders cannot be changed once it is there',
      )
      const wrong = await change(one, {
        template: { spec: { podManagementPolicy: 'Sometimes', volumeClaimTemplates: claims('data') } },
      })
      await expect(createAll(wrong)).rejects.toThrow(TerminalError)
      const unknown = await change(one, { template: { spec: { podManagementPolicy: 'Parallel', colour: 'red' } } })
      await expect(createAll(unknown)).rejects.toThrow(TerminalError)
      await expect(createAll(unknown)).rejects.toThrow(/colour/)
      const senseless = await change(one, { template: { spec: { colour: null, template: 'x' } } })
      expect((await eyes.read(senseless))?.isOutdated, 'which keeps nobody from looking').toBe(true)
      await expect(createAll(senseless)).rejects.toThrow('spec.template.spec.template has to be an object')
      await endAll(senseless)
    })

    test('takes nothing over that was there before, seen by the cache or not', async () => {
      await cluster.client.create(ConfigMap, { metadata: place('orders-conf'), data: { mine: 'x' } })
      const one = await app(template())
      await expect(createAll(one)).rejects.toThrow('ConfigMap orders-conf was there before')
      expect((await cluster.client.get(ConfigMap, place('orders-conf'))).data).toEqual({ mine: 'x' })
      expect(await cluster.client.find(StatefulSet, place('orders'))).toBeUndefined()
    })

    test('is scaled to zero and back up, whatever it was scaled to meanwhile', async () => {
      const one = await app(template({ replicas: undefined }))
      await createAll(one)
      await cluster.client.setScale(StatefulSet, place('orders'), 3)
      await eyes.until(one, ({ pods }) => expect(pods).toHaveLength(3))
      await endAll(one)
      expect(await eyes.look(one)).toMatchObject({
        workload: { replicas: 0, keptReplicas: 3, isOutdated: false },
        pods: [],
      })
      expect(await createAll(one)).toEqual(['scaleUp', 'nothing'])
      await eyes.until(one, ({ workload, pods }) => {
        expect(workload).toMatchObject({ replicas: 3, keptReplicas: undefined, annotatedReplicas: undefined })
        expect(pods).toHaveLength(3)
      })
    })

    test('with a number of replicas is not outdated while it is at zero, and comes back with that number', async () => {
      const one = await app(template())
      await createAll(one)
      await endAll(one)
      expect((await eyes.read(one))?.isOutdated).toBe(false)
      const four = await change(one, { template: { spec: { replicas: 4 } } })
      expect(await createAll(four)).toEqual(['scaleUp', 'apply', 'nothing'])
      expect(await eyes.read(four)).toMatchObject({ replicas: 4, isOutdated: false })
    })

    test('is deleted with everything but its volumes, pods first', async () => {
      const one = await app({ ...template(), onEnd: 'Delete' })
      await createAll(one)
      await eyes.until(one, ({ pods }) => expect(pods).toHaveLength(2))
      await cluster.run(place('orders-1'), 'n1')
      await vi.waitFor(async () => {
        const step = await endStep(one)
        expect(step).toEqual({ is: 'wait', for: 'pod orders-1 to end' })
      }, patience)
      await cluster.client.get(Service, place('orders'))
      expect(decideCreate(one, await eyes.read(one), await readTemplate(eyes.client, one))).toEqual({
        is: 'wait',
        for: 'StatefulSet orders to be gone',
      })
      await cluster.end(place('orders-1'))
      await endAll(one)
      expect(await cluster.client.find(StatefulSet, place('orders'))).toBeUndefined()
      expect(await cluster.client.find(Service, place('orders'))).toBeUndefined()
      expect(await cluster.client.find(ConfigMap, place('orders-conf'))).toBeUndefined()
      const kept = await cluster.client.list(PersistentVolumeClaim, { namespace })
      expect(kept.map(({ metadata }) => metadata.name).sort()).toEqual(['data-orders-0', 'data-orders-1'])
      expect(await createAll(one), 'and it may be started again').toEqual(['apply', 'nothing'])
    })
  })

  describe('that exists', () => {
    test('is scaled to the number that it had when it was written, not when it was read', async () => {
      await statefulSet()
      const one = await app(on('StatefulSet'))
      const before = (await eyes.until(one, ({ workload, pods }) => {
        expect(pods).toHaveLength(2)
        return workload
      })) as Workload
      await cluster.client.setScale(StatefulSet, place('db'), 5)
      await expect(scaleToZero(eyes.client, before)).rejects.toThrow(Conflict)
      await eyes.until(one, ({ workload }) => expect(workload?.replicas).toBe(5))
      await endAll(one)
      const { metadata, spec } = await cluster.client.get(StatefulSet, place('db'))
      expect([metadata.annotations?.['shipmate.dev/replicas'], spec?.replicas]).toEqual(['5', 0])
      await cluster.client.setScale(StatefulSet, place('db'), 1)
      await eyes.until(one, ({ workload }) => expect(workload?.replicas).toBe(1))
      expect(await createAll(one), 'somebody has scaled it up').toEqual(['forget', 'nothing'])
    })

    test('of another kind is scaled by its scale subresource, by its version too', async () => {
      await cluster.client.create(Gadget, { metadata: place('db'), spec: { size: 4 } })
      const status = { now: 4, pods: 'app=db' }
      await cluster.client.patch(Gadget, place('db'), { merge: { status } }, { subresource: 'status' })
      const one = await app(on('Gadget', 'workload.test/v1'))
      const before = (await eyes.read(one)) as Workload
      await cluster.client.setScale(Gadget, place('db'), 3)
      await expect(scaleToZero(eyes.client, before)).rejects.toThrow(Conflict)
      await expect(scaleUp(eyes.client, before, 9)).rejects.toThrow(Conflict)
      await endAll(one)
      expect(await eyes.read(one)).toMatchObject({ replicas: 0, keptReplicas: 3 })
      expect(await createAll(one)).toEqual(['scaleUp', 'nothing'])
      expect(await eyes.read(one)).toMatchObject({ replicas: 3, annotatedReplicas: undefined })
    })

    test('is deleted with its own volumes, after it and its pods are gone, and with no others', async () => {
      await statefulSet({ volumeClaimTemplates: claims('data') })
      const other = (name: string, more: object) => {
        const [claim] = claims(name)
        return cluster.client.create(PersistentVolumeClaim, {
          ...claim,
          metadata: { ...place(name), ...more },
        } as never)
      }
      await other('data-db-backup', { labels })
      await other('data-db-7', { labels: { app: 'x' } })
      await other('logs-db-0', { labels })
      const one = await app({ ...on('StatefulSet'), onEnd: 'DeleteWithVolumes' })
      await eyes.until(one, ({ pods }) => expect(pods).toHaveLength(2))
      await cluster.run(place('db-0'), 'n1')
      await vi.waitFor(async () => expect(await endStep(one)).toEqual({ is: 'wait', for: 'pod db-0 to end' }), patience)
      const there = await cluster.client.list(PersistentVolumeClaim, { namespace })
      expect(there.filter(({ metadata }) => metadata.deletionTimestamp)).toEqual([])
      await cluster.end(place('db-0'))
      await endAll(one)
      const left = await cluster.client.list(PersistentVolumeClaim, { namespace })
      expect(left.map(({ metadata }) => metadata.name).sort()).toEqual(['data-db-7', 'data-db-backup', 'logs-db-0'])
      expect(await cluster.client.find(StatefulSet, place('db'))).toBeUndefined()
    })

    test('is left alone as an orphan', async () => {
      await statefulSet()
      const one = await app({ ...on('StatefulSet'), onEnd: 'Orphan' })
      await eyes.until(one, ({ pods }) => expect(pods).toHaveLength(2))
      eyes.asked()
      await endAll(one)
      expect(eyes.asked()).toEqual([])
    })

    test('has one app, and another once the first is gone', async () => {
      await statefulSet()
      const [a, b] = [await app(on('StatefulSet'), 'a'), await app(on('StatefulSet'), 'b')]
      const claim = async (one: App) => {
        const workload = await eyes.read(one)
        const step = decideClaim(one, workload, await gatherClaim(eyes.client, one, workload))
        if (step.is === 'take') await takeClaim(eyes.client, one, workload as Workload)
        return step
      }
      const before = await eyes.until(a, ({ workload, pods }) => {
        expect(pods).toHaveLength(2)
        return workload as Workload
      })
      await vi.waitFor(async () => expect((await claim(a)).is).toBe('ours'), patience)
      await expect(takeClaim(eyes.client, b, before), 'as fast as the other').rejects.toThrow(Conflict)
      expect(await claim(b)).toMatchObject({ is: 'held', by: { name: 'a', namespace } })
      await cluster.client.delete(StatefulApp, place('a'))
      await vi.waitFor(async () => expect((await claim(b)).is).toBe('ours'), patience)
      await releaseClaim(eyes.client, a, await eyes.read(a))
      expect((await eyes.read(b))?.claimedBy, 'only its own').toMatchObject({ name: 'b' })
      await releaseClaim(eyes.client, b, await eyes.read(b))
      expect((await eyes.read(b))?.claimedBy).toBeUndefined()
    })

    test('is gated against evictions while a run is in progress', async () => {
      await statefulSet()
      const one = await app(on('StatefulSet'))
      await eyes.until(one, ({ pods }) => expect(pods).toHaveLength(2))
      await cluster.run(place('db-0'), 'n1')
      await cluster.run(place('db-1'), 'n2')
      await eyes.until(one, ({ pods }) => expect(pods.every(({ isReady }) => isReady)).toBe(true))
      const set = async (isWanted: boolean) => {
        const step = decideGate(one, gatherGate(eyes.client, one, await eyes.read(one)), isWanted)
        await gate(eyes.client, one, step)
        return step
      }
      expect(await set(true)).toMatchObject({ gated: { status: 'True' } })
      const budget = await cluster.client.get(PodDisruptionBudget, place('shipmate-orders'))
      expect(budget.metadata.ownerReferences).toMatchObject([{ kind: 'StatefulApp', uid: one.metadata.uid }])
      await expect(cluster.client.evict(place('db-0'))).rejects.toThrow(TooManyRequests)
      eyes.asked()
      await set(true)
      expect(eyes.asked(), 'it is there already').toEqual([])
      await set(false)
      expect(await cluster.client.find(PodDisruptionBudget, place('shipmate-orders'))).toBeUndefined()
      await cluster.client.evict(place('db-0'))

      const other = { metadata: place('theirs'), spec: { minAvailable: 1, selector: { matchLabels: labels } } }
      await cluster.client.create(PodDisruptionBudget, other as never)
      await vi.waitFor(async () => expect((await set(true)).gated).toMatchObject({ reason: 'OtherBudget' }), patience)
      await vi.waitFor(async () => {
        await set(true)
        expect(await cluster.client.find(PodDisruptionBudget, place('shipmate-orders'))).toBeUndefined()
      }, patience)
    })
  })
})
