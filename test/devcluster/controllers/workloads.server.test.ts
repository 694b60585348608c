/**
 * The controllers of devcluster beside the real kube-controller-manager: the same is done to both, by hand where a node would act, and both come to the same objects.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  ControllerRevision,
  DaemonSet,
  Deployment,
  EndpointSlice,
  Job,
  Node,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  ReplicaSet,
  Service,
  StatefulSet,
} from '../../../controller/kube/kinds.ts'
import { facts, report, runAll, type Side, startTwins, type Twins } from './twins.ts'

let twins: Twins

beforeAll(async () => {
  twins = await startTwins(async ({ client }) => {
    for (const name of ['n1', 'n2', 'n3']) {
      await client.create(Node, { metadata: { name, labels: { disk: name === 'n3' ? 'slow' : 'fast' } } })
      // The server taints what has not said that it is ready.
      await client.patch(Node, { name }, { merge: { spec: { taints: null } } })
    }
  })
}, 120_000)
afterAll(() => twins?.stop())

const labels = { app: 'x' }
const selector = { matchLabels: labels }
const template = (image = 'a:1', more: object = {}) => ({
  metadata: { labels },
  spec: { containers: [{ name: 'c', image }], ...more },
})

const statusOf = (list: unknown[]) => (list[0] as { status: Record<string, number | undefined> } | undefined)?.status

describe('StatefulSet', () => {
  const look = (namespace: string) => async (side: Side) => ({
    set: await facts(side, StatefulSet, namespace),
    pods: await facts(side, Pod, namespace),
    revisions: await facts(side, ControllerRevision, namespace),
    claims: (await facts(side, PersistentVolumeClaim, namespace)).map(claim => {
      const { metadata } = claim as { metadata: { name: string; labels: object; ownerReferences?: object[] } }
      return { name: metadata.name, labels: metadata.labels, owners: metadata.ownerReferences }
    }),
  })
  const set = (more: object = {}) => ({
    metadata: { name: 'web' },
    spec: { replicas: 2, serviceName: 'web', selector, template: template(), ...more },
  })

  test('is made, updated and scaled down in order', async () => {
    const namespace = await twins.namespace('sts-ordered')
    const volumeClaimTemplates = [
      {
        metadata: { name: 'data' },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
    ]
    const object = set({ volumeClaimTemplates })
    await twins.both(({ client }) => client.create(StatefulSet, { ...object, metadata: { name: 'web', namespace } }))
    await twins.agree(look(namespace), ({ pods, set }) => pods.length === 1 && statusOf(set)?.['replicas'] === 1)
    await twins.both(side => runAll(side, namespace))
    await twins.agree(look(namespace), ({ pods, set }) => pods.length === 2 && statusOf(set)?.['replicas'] === 2)
    await twins.both(side => runAll(side, namespace))
    await twins.agree(look(namespace), ({ set }) => statusOf(set)?.['availableReplicas'] === 2)
    const merge = { spec: { template: template('a:2') } }
    await twins.both(({ client }) => client.patch(StatefulSet, { name: 'web', namespace }, { merge }))
    await twins.agree(look(namespace), ({ set, pods }) => statusOf(set)?.['updatedReplicas'] === 1 && pods.length === 2)
    await twins.both(side => runAll(side, namespace))
    await twins.agree(look(namespace), ({ set }) => statusOf(set)?.['updatedReplicas'] === 2)
    await twins.both(side => runAll(side, namespace))
    await twins.agree(look(namespace), ({ set }) => statusOf(set)?.['currentReplicas'] === 2)
    await twins.both(({ client }) => client.setScale(StatefulSet, { name: 'web', namespace }, 1))
    await twins.agree(look(namespace), ({ pods, set }) => pods.length === 1 && statusOf(set)?.['replicas'] === 1)
    await twins.both(side => report(side, namespace, 'web-0', 'Failed'))
    const again = await twins.agree(look(namespace), ({ set }) => statusOf(set)?.['readyReplicas'] === undefined)
    expect(again.pods).toHaveLength(1)
  })

  test('in parallel, with a partition, other ordinals and claims that go', async () => {
    const namespace = await twins.namespace('sts-parallel')
    const volumeClaimTemplates = [
      {
        metadata: { name: 'data' },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
    ]
    const object = set({
      volumeClaimTemplates,
      replicas: 3,
      podManagementPolicy: 'Parallel',
      ordinals: { start: 5 },
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete', whenScaled: 'Delete' },
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1 } },
    })
    await twins.both(({ client }) => client.create(StatefulSet, { ...object, metadata: { name: 'web', namespace } }))
    await twins.agree(look(namespace), ({ pods, set }) => pods.length === 3 && statusOf(set)?.['replicas'] === 3)
    await twins.both(side => runAll(side, namespace))
    await twins.agree(look(namespace), ({ set }) => statusOf(set)?.['availableReplicas'] === 3)
    const merge = { spec: { template: template('a:2') } }
    await twins.both(({ client }) => client.patch(StatefulSet, { name: 'web', namespace }, { merge }))
    await twins.agree(look(namespace), ({ set }) => statusOf(set)?.['updatedReplicas'] === 1)
    await twins.both(side => runAll(side, namespace))
    await twins.agree(look(namespace), ({ set }) => statusOf(set)?.['updatedReplicas'] === 2)
    await twins.both(side => runAll(side, namespace))
    await twins.agree(look(namespace), ({ set }) => statusOf(set)?.['availableReplicas'] === 3)
    await twins.both(({ client }) => client.setScale(StatefulSet, { name: 'web', namespace }, 1))
    await twins.agree(look(namespace), ({ pods, set }) => pods.length === 1 && statusOf(set)?.['replicas'] === 1)
  })
})

test('Deployment: a rollout, a scale in its middle, a pause, a way back, and what is adopted', async () => {
  const namespace = await twins.namespace('deployment')
  const ref = { name: 'web', namespace }
  const look = async (side: Side) => ({
    deployment: await facts(side, Deployment, namespace),
    sets: await facts(side, ReplicaSet, namespace),
    pods: (await facts(side, Pod, namespace)).length,
  })
  const condition = (list: unknown[], type: string) =>
    (statusOf(list)?.['conditions'] as unknown as { type: string; reason: string }[] | undefined)?.find(
      one => one.type === type,
    )?.reason
  const patch = (spec: object) => twins.both(({ client }) => client.patch(Deployment, ref, { merge: { spec } }))
  await twins.both(({ client }) =>
    client.create(Deployment, {
      metadata: { name: 'web', namespace, annotations: { note: 'first' } },
      spec: { replicas: 4, selector, template: template(), revisionHistoryLimit: 1 },
    }),
  )
  await twins.agree(look, ({ deployment, pods }) => pods === 4 && statusOf(deployment)?.['unavailableReplicas'] === 4)
  await twins.both(side => runAll(side, namespace))
  await twins.agree(look, ({ deployment }) => condition(deployment, 'Progressing') === 'NewReplicaSetAvailable')
  await patch({ template: template('a:2') })
  await twins.agree(look, ({ deployment }) => statusOf(deployment)?.['updatedReplicas'] === 2)
  await patch({ replicas: 8 })
  await twins.agree(look, ({ deployment }) => statusOf(deployment)?.['replicas'] === 10)
  await twins.both(side => runAll(side, namespace))
  await twins.agree(look, ({ deployment }) => (statusOf(deployment)?.['updatedReplicas'] ?? 0) > 4)
  for (let round = 0; round < 4; round++) await twins.both(side => runAll(side, namespace))
  const done = async () => {
    await twins.both(side => runAll(side, namespace))
    return twins.both(async ({ client }) => {
      const { status } = await client.get(Deployment, ref)
      return status?.updatedReplicas === 8 && status.replicas === 8 && status.availableReplicas === 8
    })
  }
  await expect.poll(done, { timeout: 30_000 }).toEqual([true, true])
  await twins.agree(look, ({ deployment }) => condition(deployment, 'Progressing') === 'NewReplicaSetAvailable')
  await patch({ paused: true, template: template('a:3') })
  await twins.agree(look, ({ deployment }) => condition(deployment, 'Progressing') === 'DeploymentPaused')
  await patch({ paused: false, template: template('a:1'), strategy: { type: 'Recreate', rollingUpdate: null } })
  await twins.agree(look, ({ deployment, pods }) => pods === 8 && statusOf(deployment)?.['updatedReplicas'] === 8)
  await twins.both(side => runAll(side, namespace))
  const end = await twins.agree(
    look,
    ({ deployment }) => condition(deployment, 'Progressing') === 'NewReplicaSetAvailable',
  )
  expect(end.sets).toHaveLength(2)
  for (const { server } of twins.sides) {
    expect(await server.kubectl('-n', namespace, 'rollout', 'status', 'deployment/web')).toContain(
      'successfully rolled out',
    )
    await server.kubectl('-n', namespace, 'rollout', 'undo', 'deployment/web')
  }
  await twins.agree(look, ({ deployment, pods }) => pods === 8 && statusOf(deployment)?.['unavailableReplicas'] === 8)
})

test('DaemonSet: nodes that fit, an update of a few at a time', async () => {
  const namespace = await twins.namespace('daemonset')
  const look = async (side: Side) => ({
    set: await facts(side, DaemonSet, namespace),
    pods: await facts(side, Pod, namespace),
    revisions: await facts(side, ControllerRevision, namespace),
  })
  const ref = { name: 'agent', namespace }
  await twins.both(({ client }) =>
    client.create(DaemonSet, {
      metadata: ref,
      spec: { selector, template: template('a:1', { nodeSelector: { disk: 'fast' } }) },
    }),
  )
  await twins.agree(look, ({ set, pods }) => pods.length === 2 && statusOf(set)?.['currentNumberScheduled'] === 2)
  await twins.both(side => runAll(side, namespace))
  await twins.agree(look, ({ set }) => statusOf(set)?.['numberAvailable'] === 2)
  const merge = { spec: { template: template('a:2', { nodeSelector: { disk: 'fast' } }) } }
  await twins.both(({ client }) => client.patch(DaemonSet, ref, { merge }))
  await twins.agree(look, ({ set, pods }) => statusOf(set)?.['updatedNumberScheduled'] === 1 && pods.length === 2)
  await twins.both(side => runAll(side, namespace))
  await twins.agree(look, ({ set, pods }) => statusOf(set)?.['updatedNumberScheduled'] === 2 && pods.length === 2)
  await twins.both(side => runAll(side, namespace))
  await twins.agree(look, ({ set }) => statusOf(set)?.['numberAvailable'] === 2)
  await twins.both(({ client }) =>
    client.patch(Node, { name: 'n2' }, { merge: { metadata: { labels: { disk: 'slow' } } } }),
  )
  // The real one looks for the pods of a node by their binding, which these have not: it needs a nudge.
  const nudge = { merge: { metadata: { annotations: { nudged: 'yes' } } } }
  await twins.both(({ client }) => client.patch(DaemonSet, ref, nudge))
  await twins.agree(look, ({ set, pods }) => pods.length === 1 && statusOf(set)?.['desiredNumberScheduled'] === 1)
})

describe('Job', () => {
  const look = (namespace: string) => async (side: Side) => ({
    job: (await facts(side, Job, namespace)) as {
      status?: { succeeded?: number; failed?: number; active?: number; conditions?: { type: string }[] }
    }[],
    pods: await facts(side, Pod, namespace),
  })
  const job = (namespace: string, spec: object) => (side: Side) =>
    side.client.create(Job, {
      metadata: { name: 'work', namespace },
      spec: { template: template('a:1', { restartPolicy: 'Never' }), ...spec },
    } as never)
  const finish =
    (namespace: string, phase: 'Succeeded' | 'Failed', index = 0) =>
    async (side: Side) => {
      const pods = await side.client.list(Pod, { namespace })
      const open = pods.filter(({ status }) => status?.phase === 'Pending')
      const pod = open.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))[index]
      if (pod) await report(side, namespace, pod.metadata.name, phase)
    }

  test('completes', async () => {
    const namespace = await twins.namespace('job-completes')
    await twins.both(
      job(namespace, {
        completions: 2,
        parallelism: 1,
        template: { spec: template('a:1', { restartPolicy: 'Never' }).spec },
      }),
    )
    await twins.agree(look(namespace), ({ job }) => job[0]?.status?.active === 1)
    await twins.both(finish(namespace, 'Succeeded'))
    await twins.agree(look(namespace), ({ job }) => job[0]?.status?.succeeded === 1 && job[0].status.active === 1)
    await twins.both(finish(namespace, 'Succeeded'))
    await twins.agree(
      look(namespace),
      ({ job }) => job[0]?.status?.conditions?.some(one => one.type === 'Complete') ?? false,
    )
  })

  test('fails beyond its limit, and stops what still runs', async () => {
    const namespace = await twins.namespace('job-fails')
    await twins.both(job(namespace, { completions: 3, parallelism: 3, backoffLimit: 0 }))
    await twins.agree(look(namespace), ({ job }) => job[0]?.status?.active === 3)
    await twins.both(finish(namespace, 'Failed'))
    await twins.agree(
      look(namespace),
      ({ job }) => job[0]?.status?.conditions?.some(one => one.type === 'Failed') ?? false,
    )
  })

  test('counts by index, waits while suspended, and goes when its time is over', async () => {
    const namespace = await twins.namespace('job-indexed')
    await twins.both(
      job(namespace, {
        completions: 3,
        parallelism: 2,
        completionMode: 'Indexed',
        suspend: true,
        ttlSecondsAfterFinished: 1,
      }),
    )
    await twins.agree(
      look(namespace),
      ({ job }) => job[0]?.status?.conditions?.some(one => one.type === 'Suspended') ?? false,
    )
    await twins.both(({ client }) =>
      client.patch(Job, { name: 'work', namespace }, { merge: { spec: { suspend: false } } }),
    )
    await twins.agree(look(namespace), ({ job }) => job[0]?.status?.active === 2)
    await twins.both(finish(namespace, 'Succeeded', 1))
    await twins.agree(look(namespace), ({ job }) => job[0]?.status?.succeeded === 1 && job[0].status.active === 2)
    await twins.both(finish(namespace, 'Succeeded'))
    await twins.both(finish(namespace, 'Succeeded'))
    await twins.agree(look(namespace), ({ job, pods }) => job.length === 0 && pods.length === 0)
  })
})

test('PodDisruptionBudget: what may go, by number and by share', async () => {
  const namespace = await twins.namespace('budget')
  const look = (side: Side) =>
    facts(side, PodDisruptionBudget, namespace) as Promise<
      { metadata: { name: string }; status?: { disruptionsAllowed?: number; currentHealthy?: number } }[]
    >
  const wishes = {
    a: { minAvailable: 3 },
    b: { maxUnavailable: '30%' },
    c: { minAvailable: '50%' },
    d: { maxUnavailable: 0 },
  }
  // A pod of two budgets would be counted by one of them alone.
  await twins.both(async ({ client }) => {
    for (const [name, wish] of Object.entries(wishes)) {
      const selector = { matchLabels: { app: name } }
      const spec = { replicas: 4, selector, template: { ...template(), metadata: { labels: { app: name } } } }
      await client.create(ReplicaSet, { metadata: { name, namespace }, spec })
      await client.create(PodDisruptionBudget, { metadata: { name, namespace }, spec: { selector, ...wish } })
    }
  })
  await twins.agree(look, list => list.every(({ status }) => status?.disruptionsAllowed === 0) && list.length === 4)
  await expect.poll(() => twins.both(side => runAll(side, namespace)), { timeout: 30_000 }).toEqual([16, 16])
  await twins.agree(look, list => list.every(({ status }) => status?.currentHealthy === 4))
  await twins.both(async ({ client }) => {
    for (const app of Object.keys(wishes)) {
      const [pod] = await client.list(Pod, { namespace, labels: { app } })
      await client.delete(Pod, pod?.metadata ?? { name: '' })
    }
  })
  await twins.agree(look, list => list.every(({ status }) => status?.currentHealthy === 3))
})

test('EndpointSlice: addresses as they become ready, ports by name', async () => {
  const namespace = await twins.namespace('endpoints')
  const look = async (side: Side) => {
    const slices = (await facts(side, EndpointSlice, namespace)) as { metadata: { annotations?: object } }[]
    for (const { metadata } of slices) delete metadata.annotations
    return slices as { endpoints?: { conditions: { ready: boolean } }[] }[]
  }
  const containers = [{ name: 'c', image: 'a:1', ports: [{ name: 'http', containerPort: 8080 }] }]
  await twins.both(async ({ client }) => {
    await client.create(Service, {
      metadata: { name: 'web', namespace, labels: { tier: 'front' } },
      spec: { selector: labels, ports: [{ port: 80, targetPort: 'http' }] },
    })
    await client.create(Service, {
      metadata: { name: 'peers', namespace },
      spec: { selector: labels, clusterIP: 'None', publishNotReadyAddresses: true, ports: [{ name: 'x', port: 7 }] },
    })
    for (const name of ['p1', 'p2'])
      await client.create(Pod, {
        metadata: { name, namespace, labels },
        spec: { containers, hostname: name, subdomain: 'peers', nodeName: 'n1' },
      })
  })
  await twins.both(side =>
    report(side, namespace, 'p1', 'Running', { podIP: '10.1.0.1', podIPs: [{ ip: '10.1.0.1' }] }),
  )
  await twins.both(side =>
    report(side, namespace, 'p2', 'Pending', { podIP: '10.1.0.2', podIPs: [{ ip: '10.1.0.2' }] }),
  )
  await twins.agree(look, slices => slices.length === 2 && slices.every(({ endpoints }) => endpoints?.length === 2))
  await twins.both(side => report(side, namespace, 'p2', 'Running'))
  await twins.agree(look, slices =>
    slices.every(({ endpoints }) => endpoints?.every(one => one.conditions.ready) ?? false),
  )
})
