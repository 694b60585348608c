/**
 * The decisions of the controllers, without a server: tables of cases, and worlds that are played to their end.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { selects } from '../../../controller/kube/labelselector.ts'
import type { Pod } from '../../../devcluster/controllers/common/pods.ts'
import { historyOf, type Revision } from '../../../devcluster/controllers/common/revisions.ts'
import { shareOf } from '../../../devcluster/controllers/common/shares.ts'
import { type CronJob, decideCronJob } from '../../../devcluster/controllers/cronjob/decide.ts'
import { type Deployment, newSize, shrinkOld } from '../../../devcluster/controllers/deployment/replicas.ts'
import { decideGarbage, type OwnerState } from '../../../devcluster/controllers/garbage/decide.ts'
import type { Node } from '../../../devcluster/controllers/garbage/graph.ts'
import { decideJob, tracking } from '../../../devcluster/controllers/job/decide.ts'
import type { Job } from '../../../devcluster/controllers/job/failures.ts'
import { formatIndexes, parseIndexes } from '../../../devcluster/controllers/job/indexes.ts'
import type { ReplicaSet } from '../../../devcluster/controllers/replicaset/decide.ts'
import { decideStatefulSet } from '../../../devcluster/controllers/statefulset/decide.ts'
import type { StatefulSet } from '../../../devcluster/controllers/statefulset/identity.ts'

const now = Date.parse('2026-01-01T12:00:00Z')
const meta = (name: string, more: object = {}) => ({
  ...{ name, namespace: 'n', uid: `uid-${name}`, resourceVersion: '1', generation: 1 },
  ...{ creationTimestamp: '2026-01-01T11:00:00Z', ...more },
})

test.each([
  [{ matchLabels: { a: '1' } }, { a: '1', b: '2' }, true],
  [{ matchLabels: { a: '1' } }, { a: '2' }, false],
  [{}, {}, true],
  [undefined, {}, false],
  [{ matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['1'] }] }, {}, true],
  [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }, {}, false],
])('%j selects %j: %s', (selector, labels, expected) => expect(selects(selector, labels)).toBe(expected))

test.each([
  ['25%', 3, 'up', 1],
  ['25%', 3, 'down', 0],
  [2, 100, 'up', 2],
  ['100%', 7, 'down', 7],
] as const)('%s of %d, %s: %d', (value, total, round, expected) => expect(shareOf(value, total, round)).toBe(expected))

test('indexes are written and read the same', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(50)), indexes => {
      expect([...parseIndexes(formatIndexes(indexes))]).toEqual(indexes.toSorted((a, b) => a - b))
    }),
  )
  expect(formatIndexes([5, 0, 1, 2])).toBe('0-2,5')
})

describe('StatefulSet', () => {
  const pod = (name: string, revision: string, ready: boolean): Pod =>
    ({
      metadata: meta(name, {
        labels: {
          'controller-revision-hash': revision,
          'statefulset.kubernetes.io/pod-name': name,
          'apps.kubernetes.io/pod-index': name.split('-').at(-1),
        },
      }),
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
    }) as unknown as Pod
  const world = fc.record({
    replicas: fc.integer({ min: 0, max: 5 }),
    before: fc.array(fc.boolean(), { maxLength: 7 }),
    partition: fc.nat(3),
    most: fc.integer({ min: 1, max: 3 }),
    isOrdered: fc.boolean(),
    luck: fc.infiniteStream(fc.nat(3)),
  })

  test('gets to what it wishes, without ever taking down more than it may', () => {
    fc.assert(
      fc.property(world, ({ replicas, before, partition, most, isOrdered, luck }) => {
        const set = {
          ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: meta('web'), status: {} },
          spec: {
            replicas,
            podManagementPolicy: isOrdered ? 'OrderedReady' : 'Parallel',
            updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition, maxUnavailable: most } },
            template: {},
          },
        } as unknown as StatefulSet
        const history = historyOf({ set, template: {}, hashLabel: 'h', collisions: 0 }, [])
        const revision = {
          metadata: meta('old'),
          revision: 1,
          data: { spec: { template: { $patch: 'replace' } } },
        } as unknown as Revision
        const current = { ...set, status: { currentRevision: 'old' } } as unknown as StatefulSet
        const facts = { set: current, revisions: [revision], history, claims: [], now }
        let pods = before.map((isReady, at) => pod(`web-${at}`, 'old', isReady))
        const isReady = (one: Pod) => one.status?.conditions?.[0]?.status === 'True'
        for (let round = 0; round < 200; round++) {
          const { actions } = decideStatefulSet({ ...facts, pods })
          const down = actions.filter(one => one.do === 'deletePod' && one.why === 'outdated')
          const inRange = pods.filter(one => Number(one.metadata.name.slice(4)) < replicas)
          const lost = down.filter(one => one.do === 'deletePod' && isReady(one.pod)).length
          const missing = replicas - inRange.filter(isReady).length
          if (lost > 0) expect(lost + missing).toBeLessThanOrEqual(most)
          const made = actions.filter(one => one.do === 'createPod')
          if (isOrdered)
            expect(
              made.length + actions.filter(one => one.do === 'deletePod' && one.why === 'scaled').length,
            ).toBeLessThanOrEqual(1)
          for (const action of actions) {
            if (action.do === 'deletePod') pods = pods.filter(one => one !== action.pod)
            if (action.do === 'createPod') {
              expect(pods.map(one => one.metadata.name)).not.toContain(action.pod.metadata.name)
              pods.push(
                pod(
                  action.pod.metadata.name ?? '',
                  action.pod.metadata.labels?.['controller-revision-hash'] ?? '',
                  false,
                ),
              )
            }
          }
          // One that is not ready becomes it, sooner or later; the last rounds leave nothing to chance.
          pods = pods.map(one =>
            round > 50 || luck.next().value === 0
              ? pod(one.metadata.name, one.metadata.labels?.['controller-revision-hash'] ?? '', true)
              : one,
          )
        }
        expect(pods.map(one => one.metadata.name).sort()).toEqual(
          Array.from({ length: replicas }, (_, at) => `web-${at}`),
        )
        for (const one of pods) {
          const isOld = one.metadata.labels?.['controller-revision-hash'] === 'old'
          expect(isOld).toBe(Number(one.metadata.name.slice(4)) < partition)
        }
      }),
    )
  })
})

test('a Deployment never has more pods than maxSurge allows, nor fewer available than maxUnavailable', () => {
  const numbers = fc.record({
    replicas: fc.integer({ min: 1, max: 8 }),
    maxSurge: fc.nat(3),
    maxUnavailable: fc.nat(3),
    luck: fc.infiniteStream(fc.boolean()),
  })
  fc.assert(
    fc.property(numbers, ({ replicas, maxSurge, maxUnavailable, luck }) => {
      const deployment = {
        spec: { replicas, strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge, maxUnavailable } } },
      } as unknown as Deployment
      const set = (name: string, size: number, available: number) =>
        ({
          metadata: meta(name),
          spec: { replicas: size },
          status: { availableReplicas: available },
        }) as unknown as ReplicaSet
      const least = replicas - Math.min(maxSurge + maxUnavailable === 0 ? 1 : maxUnavailable, replicas)
      let [old, fresh, available] = [replicas, 0, 0]
      for (let round = 0; round < 100 && (old > 0 || available < replicas); round++) {
        const sets = [set('old', old, old), set('new', fresh, available)] as [ReplicaSet, ReplicaSet]
        const size = newSize(deployment, sets, fresh)
        if (size !== fresh) fresh = size
        else old = shrinkOld(deployment, [sets[0]], sets[1]).get('old') ?? old
        expect(old + fresh).toBeLessThanOrEqual(replicas + maxSurge)
        expect(old + available).toBeGreaterThanOrEqual(least)
        if (available < fresh && (round > 50 || luck.next().value)) available++
      }
      expect([old, fresh]).toEqual([0, replicas])
    }),
  )
})

test('a Job counts each pod once, whatever is interrupted', () => {
  const ends = fc.array(fc.constantFrom<'Succeeded' | 'Failed'>('Succeeded', 'Failed'), { minLength: 1, maxLength: 6 })
  fc.assert(
    fc.property(ends, fc.infiniteStream(fc.boolean()), (phases, luck) => {
      let job = {
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: meta('j'),
        spec: { completions: 100, parallelism: 0, backoffLimit: 100, template: {} },
        status: {},
      } as unknown as Job
      let pods = phases.map(
        (phase, at) => ({ metadata: meta(`p${at}`, { finalizers: [tracking] }), status: { phase } }) as unknown as Pod,
      )
      for (let round = 0; round < 100; round++) {
        const isFine = () => round > 50 || luck.next().value === true
        const { status, release } = decideJob(job, pods, now)
        if (!isFine()) continue
        job = { ...job, status } as unknown as Job
        for (const pod of release) {
          if (!isFine()) break
          // Deleted by whoever, as soon as nothing holds it.
          pods = isFine()
            ? pods.filter(one => one !== pod)
            : pods.map(one => (one === pod ? ({ ...one, metadata: { ...one.metadata, finalizers: [] } } as Pod) : one))
        }
      }
      expect(job.status?.succeeded ?? 0).toBe(phases.filter(one => one === 'Succeeded').length)
      expect(job.status?.failed ?? 0).toBe(phases.filter(one => one === 'Failed').length)
      expect(job.status?.uncountedTerminatedPods).toEqual({})
    }),
  )
})

describe('garbage', () => {
  const owner = { apiVersion: 'v1', kind: 'X', name: 'o', uid: 'o' }
  const node = (more: Partial<Node> = {}): Node => ({
    ...{
      uid: 'u',
      name: 'u',
      namespace: 'n',
      resourceVersion: '1',
      owners: [owner],
      finalizers: [],
      isDeleting: false,
    },
    kind: { group: '', version: 'v1', kind: 'X', plural: 'xs', namespaced: true },
    ...more,
  })
  const two = [owner, { ...owner, uid: 'p' }]
  test.each<[string, Node, Node[], Record<string, OwnerState>, object]>([
    ['an owner is there', node(), [], { o: 'solid' }, { do: 'nothing' }],
    ['the owner is gone', node(), [], { o: 'gone' }, { do: 'delete', propagation: 'Background' }],
    ['nobody knows the owner', node(), [], { o: 'unknown' }, { do: 'nothing' }],
    ['one of two is gone', node({ owners: two }), [], { o: 'gone', p: 'solid' }, { do: 'dropOwners', keep: [two[1]] }],
    ['one of two is unknown', node({ owners: two }), [], { o: 'gone', p: 'unknown' }, { do: 'nothing' }],
    ['the owner waits', node(), [node()], { o: 'waiting' }, { do: 'delete', propagation: 'Foreground' }],
    [
      'it waits for nobody',
      node({ isDeleting: true, finalizers: ['foregroundDeletion'] }),
      [],
      {},
      { do: 'release', finalizer: 'foregroundDeletion' },
    ],
    ['it orphans', node({ isDeleting: true, finalizers: ['orphan'] }), [], {}, { do: 'orphan', dependents: [] }],
  ])('%s', (_, one, dependents, states, expected) => {
    expect(decideGarbage(one, dependents, ({ uid }) => states[uid] ?? 'unknown')).toEqual(expected)
  })
})

describe('CronJob', () => {
  const cron = (spec: object, last?: string) =>
    ({
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: meta('c'),
      spec: { schedule: '*/10 * * * *', jobTemplate: {}, ...spec },
      status: { lastScheduleTime: last },
    }) as unknown as CronJob
  const at = now + 60_000
  test('starts what was due last, once', () => {
    const { create, after } = decideCronJob(cron({}), [], at)
    expect(create?.metadata.annotations).toMatchObject({
      'batch.kubernetes.io/cronjob-scheduled-timestamp': '2026-01-01T12:00:00Z',
    })
    expect(after).toBe(9 * 60_000)
    expect(decideCronJob(cron({}, '2026-01-01T12:00:00Z'), [], at).create).toBeUndefined()
  })
  test('not when it is too late, nor while suspended, nor beside another when forbidden', () => {
    const running = { metadata: meta('other'), status: {} } as never
    expect(decideCronJob(cron({ startingDeadlineSeconds: 30 }), [], at).create).toBeUndefined()
    expect(decideCronJob(cron({ suspend: true }), [], at).create).toBeUndefined()
    expect(decideCronJob(cron({ concurrencyPolicy: 'Forbid' }), [running], at).create).toBeUndefined()
    expect(decideCronJob(cron({ concurrencyPolicy: 'Replace' }), [running], at).replace).toEqual([running])
  })
  test('in its own time zone', () => {
    expect(decideCronJob(cron({ schedule: '0 13 * * *', timeZone: 'Europe/Berlin' }), [], at).create).toBeDefined()
  })
})
