import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Cache } from '../../controller/kube/cache.ts'
import { CachedClient } from '../../controller/kube/cached.ts'
import { Client } from '../../controller/kube/client.ts'
import type { ShapeOf, Snapshot } from '../../controller/kube/kind.ts'
import { type DaemonSet, type Deployment, type Job, Pod, type StatefulSet } from '../../controller/kube/kinds.ts'
import {
  countRunning,
  exitsOf,
  jobExits,
  listPods,
  nextPartition,
  podsOf,
  withStringData,
} from '../../controller/toolkit/workloads.ts'
import { ModelServer } from '../fixtures/model-server.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'

type LiveSet = Snapshot<ShapeOf<typeof StatefulSet>>
type LivePod = Snapshot<ShapeOf<typeof Pod>>

const seed = Number(process.env.SHIPMATE_SEED ?? 1)
const live = <T>(kind: string, body: object, metadata: object = {}) =>
  ({ kind, metadata: { name: 'db', namespace: 'default', uid: 'u', generation: 2, ...metadata }, ...body }) as T

describe('the pods of a workload', () => {
  it('are counted from its status', () => {
    const status = { observedGeneration: 2, readyReplicas: 1, availableReplicas: 1, updatedReplicas: 2 }
    const counts = { replicas: 3, ready: 1, available: 1, updated: 2, remaining: 2 }
    expect(podsOf(live<LiveSet>('StatefulSet', { spec: { replicas: 3 }, status }))).toEqual(counts)
    type LiveDeployment = Snapshot<ShapeOf<typeof Deployment>>
    expect(podsOf(live<LiveDeployment>('Deployment', { spec: { replicas: 3 }, status }))).toEqual(counts)
    const daemons = { desiredNumberScheduled: 3, numberReady: 1, numberAvailable: 1, updatedNumberScheduled: 2 }
    type LiveDaemonSet = Snapshot<ShapeOf<typeof DaemonSet>>
    expect(
      podsOf(live<LiveDaemonSet>('DaemonSet', { spec: {}, status: { ...daemons, observedGeneration: 2 } })),
    ).toEqual(counts)
  })

  it('are none that is updated while the newest generation was not seen', () => {
    const status = { observedGeneration: 1, readyReplicas: 3, updatedReplicas: 3 }
    expect(podsOf(live<LiveSet>('StatefulSet', { spec: { replicas: 3 }, status }))).toMatchObject({
      updated: 0,
      ready: 3,
    })
  })

  it('are none where it is not there', () => {
    expect(podsOf(undefined)).toEqual({ replicas: 0, ready: 0, available: 0, updated: 0, remaining: 0 })
  })

  it('are all to come where there is no status', () => {
    expect(podsOf(live<LiveSet>('StatefulSet', { spec: {} }))).toEqual({
      ...{ replicas: 1, ready: 0, available: 0, updated: 0, remaining: 1 },
    })
  })
})

describe('an ordered roll-out', () => {
  const set = (partition: number, status: object, spec: object = {}) =>
    live<LiveSet>('StatefulSet', {
      spec: { replicas: 3, updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition } }, ...spec },
      status: {
        observedGeneration: 2,
        replicas: 3,
        readyReplicas: 3,
        currentRevision: 'a',
        updateRevision: 'b',
        ...status,
      },
    })
  const pod = (ordinal: number, revision: string, ready: boolean) =>
    ({
      metadata: { name: `db-${ordinal}`, labels: { 'controller-revision-hash': revision } },
      status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
    }) as unknown as LivePod

  it('begins with no pod: while nothing is rolled out the partition is the number of replicas', () => {
    expect(nextPartition(undefined, 3)).toBe(3)
    expect(nextPartition(set(0, { currentRevision: 'b', updatedReplicas: 3 }), 3)).toBe(3)
    expect(nextPartition(set(3, { currentRevision: 'b', updatedReplicas: 3 }), 3)).toBe(3)
  })

  it('goes on by one pod when those above are updated and ready', () => {
    expect(nextPartition(set(3, { updatedReplicas: 0 }), 3)).toBe(2)
    expect(nextPartition(set(2, { updatedReplicas: 1 }), 3)).toBe(1)
    expect(nextPartition(set(1, { updatedReplicas: 2 }), 3)).toBe(0)
    expect(nextPartition(set(0, { updatedReplicas: 3 }), 3)).toBe(0)
  })

  it('waits while one is not updated, not ready, or the newest generation was not seen', () => {
    expect(nextPartition(set(2, { updatedReplicas: 0 }), 3)).toBe(2)
    expect(nextPartition(set(2, { updatedReplicas: 1, readyReplicas: 2 }), 3)).toBe(2)
    expect(nextPartition(set(2, { updatedReplicas: 1, observedGeneration: 1 }), 3)).toBe(2)
    expect(nextPartition(set(2, { updatedReplicas: 1, replicas: 2 }), 3)).toBe(2)
  })

  it('is not over after a change back while pods of the other revision are left', () => {
    expect(nextPartition(set(1, { currentRevision: 'b', updatedReplicas: 2, readyReplicas: 2 }), 3)).toBe(1)
  })

  it('does not wait for a pod below that the update may heal, where the pods are known', () => {
    const pods = [pod(0, 'a', false), pod(1, 'a', true), pod(2, 'b', true)]
    const status = { updatedReplicas: 1, readyReplicas: 2 }
    expect(nextPartition(set(2, status), 3, pods)).toBe(1)
    expect(nextPartition(set(2, status), 3, [pod(0, 'a', true), pod(1, 'a', true), pod(2, 'b', false)])).toBe(2)
    expect(nextPartition(set(2, status), 3, pods.slice(0, 2))).toBe(2)
    const shifted = [pod(5, 'a', true), pod(6, 'a', true), pod(7, 'b', true)]
    expect(nextPartition(set(2, status, { ordinals: { start: 5 } }), 3, shifted)).toBe(1)
  })

  it('never lets a pod go before those above it, and ends, whatever order pods become ready in', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.infiniteStream(fc.boolean()),
        fc.boolean(),
        (replicas, chance, know) => {
          const pods = Array.from({ length: replicas }, () => ({ revision: 'a', ready: true }))
          let partition = replicas
          let currentRevision = 'a'
          let rounds = 0
          while (currentRevision !== 'b' || partition !== replicas) {
            expect(rounds++).toBeLessThan(2000)
            const updatedReplicas = pods.filter(({ revision }) => revision === 'b').length
            const readyReplicas = pods.filter(({ ready }) => ready).length
            if (updatedReplicas === replicas && readyReplicas === replicas && partition === 0) currentRevision = 'b'
            const known = pods.map(({ revision, ready }, ordinal) => pod(ordinal, revision, ready))
            const now = set(partition, { replicas, updatedReplicas, readyReplicas, currentRevision }, { replicas })
            const next = nextPartition(now, replicas, know ? known : undefined)
            if (currentRevision === 'a') {
              expect(partition - next === 0 || partition - next === 1).toBe(true)
              if (next < partition) expect(pods.slice(partition).every(p => p.ready && p.revision === 'b')).toBe(true)
            }
            partition = next
            // As the server does: from the last on, one at a time, and none while another is not ready.
            for (let ordinal = replicas - 1; ordinal >= 0; ordinal--) {
              const one = pods[ordinal] as (typeof pods)[number]
              if (!one.ready) {
                one.ready = chance.next().value === true
                break
              }
              if (ordinal >= partition && one.revision !== 'b' && currentRevision === 'a') {
                Object.assign(one, { revision: 'b', ready: false })
                break
              }
            }
          }
        },
      ),
      { seed },
    )
  })

  it('follows the number of replicas', () => {
    expect(nextPartition(set(3, { updatedReplicas: 0 }), 2)).toBe(2)
    expect(nextPartition(set(2, { updatedReplicas: 1 }), 5)).toBe(2)
    expect(nextPartition(set(2, { updatedReplicas: 1 }), 0)).toBe(0)
  })
})

describe('a Secret', () => {
  it('has its texts in the form in which the server keeps them', () => {
    const secret = { metadata: { name: 's' }, data: { a: 'eA==', b: 'eQ==' }, stringData: { b: 'ä\n', c: '' } }
    const kept = withStringData(secret)
    expect(kept).toEqual({ metadata: { name: 's' }, data: { a: 'eA==', b: 'w6QK', c: '' } })
    expect(withStringData(kept)).toEqual(kept)
    expect(secret.data.b).toBe('eQ==')
  })

  it('keeps every text', () => {
    const texts = fc.dictionary(fc.stringMatching(/^[a-z.]{1,8}$/), fc.string({ unit: 'grapheme' }))
    fc.assert(
      fc.property(texts, stringData => {
        const { data } = withStringData({ stringData, data: {} as Record<string, string> })
        for (const [key, text] of Object.entries(stringData))
          expect(Buffer.from(data[key] ?? '', 'base64').toString()).toBe(text)
      }),
      { seed },
    )
  })
})

describe('how pods ended', () => {
  const ended = (name: string, exitCode: number, reason?: string) => ({
    name,
    state: { terminated: { exitCode, ...(reason && { reason }) } },
  })

  it('is the exit code of each container that has', () => {
    const pods = [
      {
        metadata: { name: 'p1' },
        status: {
          containerStatuses: [ended('a', 0), { name: 'b', state: { running: {} } }],
          initContainerStatuses: [ended('prepare', 1)],
        },
      },
      { metadata: { name: 'p2' }, status: { containerStatuses: [ended('a', 137, 'OOMKilled')] } },
      { metadata: { name: 'p3' } },
    ] as unknown as LivePod[]
    expect(exitsOf(pods)).toEqual([
      { pod: 'p1', container: 'prepare', exitCode: 1, isInit: true },
      { pod: 'p1', container: 'a', exitCode: 0, isInit: false },
      { pod: 'p2', container: 'a', exitCode: 137, isInit: false, reason: 'OOMKilled' },
    ])
  })

  it('is asked of the pods that the workload selects and controls', async () => {
    const clock = new VirtualClock()
    const server = new ModelServer({ clock })
    const direct = new Client(request => server.answer(request))
    const client = new CachedClient(direct, new Cache(direct, { clock }))
    const job = live<Snapshot<ShapeOf<typeof Job>>>('Job', {
      spec: { selector: { matchLabels: { job: 'x' }, matchExpressions: [{ key: 'no', operator: 'DoesNotExist' }] } },
    })
    const make = async (name: string, labels: Record<string, string>, uid: string, kind = 'Job') => {
      const ownerReferences = [{ apiVersion: 'batch/v1', kind, name: 'x', uid, controller: true }]
      const status = { phase: 'Running', containerStatuses: [ended('main', 3)] }
      await direct.create(Pod, {
        metadata: { name, labels, ownerReferences },
        spec: { containers: [] },
        status,
      } as never)
    }
    await make('own', { job: 'x' }, 'u')
    await make('foreign', { job: 'x' }, 'other', 'ReplicaSet')
    await make('unlabelled', {}, 'u')
    await make('excluded', { job: 'x', no: '' }, 'u')
    const names = async (workload: Parameters<typeof listPods>[1]) =>
      (await listPods(client, workload)).map(({ metadata }) => metadata.name)
    expect(await names(job)).toEqual(['own'])
    expect(await names({ ...job, spec: {} } as typeof job)).toEqual([])
    type LiveDeployment = Snapshot<ShapeOf<typeof Deployment>>
    expect(
      await names(live<LiveDeployment>('Deployment', { spec: { selector: { matchLabels: { job: 'x' } } } })),
    ).toEqual(['foreign'])
    expect(await jobExits(client, job)).toEqual([{ pod: 'own', container: 'main', exitCode: 3, isInit: false }])
    expect(await countRunning(client, job)).toBe(1)
  })
})
