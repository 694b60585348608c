import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { defineKind, type Kind, type Snapshot } from '../../controller/kube/kind.ts'
import * as kinds from '../../controller/kube/kinds.ts'
import { readinessOf } from '../../controller/toolkit/readiness.ts'

const Widget = defineKind<object>({ group: 'example.com', version: 'v1', kind: 'Widget' })

function readiness(kind: Kind, body: object, metadata: object = {}) {
  const live = { apiVersion: 'v1', kind: kind.kind, metadata: { name: 'x', generation: 2, ...metadata }, ...body }
  return readinessOf(kind, live as unknown as Snapshot)
}

const condition = (type: string, status = 'True', more: object = {}) => ({ type, status, ...more })

interface Case {
  kind: Kind
  what: string
  body: object
  ready?: boolean
  failed?: boolean
  reason: string
}

const { Deployment, StatefulSet, DaemonSet, Job, PersistentVolumeClaim, Pod, Service, CustomResourceDefinition } = kinds
const seen = { observedGeneration: 2 }
const deployed = { ...seen, replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3 }
const stateful = { ...deployed, currentRevision: 'b', updateRevision: 'b' }
const daemons = {
  ...seen,
  desiredNumberScheduled: 2,
  currentNumberScheduled: 2,
  updatedNumberScheduled: 2,
  numberReady: 2,
  numberAvailable: 2,
}
const complete = { conditions: [condition('SuccessCriteriaMet'), condition('Complete')] }

const cases: Case[] = [
  {
    kind: Deployment,
    what: 'all pods available',
    body: { spec: { replicas: 3 }, status: deployed },
    ready: true,
    reason: 'Ready',
  },
  {
    kind: Deployment,
    what: 'scaled to zero',
    body: { spec: { replicas: 0 }, status: seen },
    ready: true,
    reason: 'Ready',
  },
  { kind: Deployment, what: 'no status yet', body: { spec: { replicas: 0 } }, reason: 'NotObserved' },
  {
    kind: Deployment,
    what: 'the status of an older generation',
    body: { spec: { replicas: 3 }, status: { ...deployed, observedGeneration: 1 } },
    reason: 'NotObserved',
  },
  { kind: Deployment, what: 'one replica by default', body: { spec: {}, status: seen }, reason: 'NotUpdated' },
  {
    kind: Deployment,
    what: 'old pods left',
    body: { spec: { replicas: 3 }, status: { ...deployed, replicas: 4 } },
    reason: 'OldPods',
  },
  {
    kind: Deployment,
    what: 'a pod not ready',
    body: { spec: { replicas: 3 }, status: { ...deployed, readyReplicas: 2 } },
    reason: 'PodsNotReady',
  },
  {
    kind: Deployment,
    what: 'a pod not available',
    body: { spec: { replicas: 3 }, status: { ...deployed, availableReplicas: 2 } },
    reason: 'PodsNotAvailable',
  },
  {
    kind: Deployment,
    what: 'too late',
    body: {
      spec: { replicas: 3 },
      status: { ...deployed, conditions: [condition('Progressing', 'False', { reason: 'ProgressDeadlineExceeded' })] },
    },
    failed: true,
    reason: 'ProgressDeadlineExceeded',
  },
  {
    kind: Deployment,
    what: 'no quota',
    body: { spec: {}, status: { ...seen, conditions: [condition('ReplicaFailure')] } },
    reason: 'ReplicaFailure',
  },
  {
    kind: StatefulSet,
    what: 'all pods ready',
    body: { spec: { replicas: 3 }, status: stateful },
    ready: true,
    reason: 'Ready',
  },
  { kind: StatefulSet, what: 'no status yet', body: { spec: { replicas: 0 } }, reason: 'NotObserved' },
  {
    kind: StatefulSet,
    what: 'a roll-out under way',
    body: { spec: { replicas: 3 }, status: { ...stateful, updatedReplicas: 1 } },
    reason: 'NotUpdated',
  },
  {
    kind: StatefulSet,
    what: 'a roll-out not closed',
    body: { spec: { replicas: 3 }, status: { ...stateful, currentRevision: 'a' } },
    reason: 'NotUpdated',
  },
  {
    kind: StatefulSet,
    what: 'rolled out down to its partition',
    body: {
      spec: { replicas: 3, updateStrategy: { rollingUpdate: { partition: 2 } } },
      status: { ...stateful, currentRevision: 'a', updatedReplicas: 1 },
    },
    ready: true,
    reason: 'Ready',
  },
  {
    kind: StatefulSet,
    what: 'not rolled out down to its partition',
    body: {
      spec: { replicas: 3, updateStrategy: { rollingUpdate: { partition: 1 } } },
      status: { ...stateful, updatedReplicas: 1 },
    },
    reason: 'NotUpdated',
  },
  {
    kind: StatefulSet,
    what: 'updated by hand, a pod not ready',
    body: {
      spec: { replicas: 3, updateStrategy: { type: 'OnDelete' } },
      status: { ...stateful, updatedReplicas: 0, readyReplicas: 2 },
    },
    reason: 'PodsNotReady',
  },
  {
    kind: StatefulSet,
    what: 'scaled down, pods left',
    body: { spec: { replicas: 1 }, status: stateful },
    reason: 'OldPods',
  },
  { kind: DaemonSet, what: 'a pod on every node', body: { spec: {}, status: daemons }, ready: true, reason: 'Ready' },
  {
    kind: DaemonSet,
    what: 'no node to run on',
    body: { spec: {}, status: { ...seen, desiredNumberScheduled: 0 } },
    ready: true,
    reason: 'Ready',
  },
  { kind: DaemonSet, what: 'no node counted', body: { spec: {}, status: seen }, reason: 'NotObserved' },
  {
    kind: DaemonSet,
    what: 'a node without',
    body: { spec: {}, status: { ...daemons, currentNumberScheduled: 1 } },
    reason: 'NotScheduled',
  },
  {
    kind: DaemonSet,
    what: 'an old pod',
    body: { spec: {}, status: { ...daemons, updatedNumberScheduled: 1 } },
    reason: 'NotUpdated',
  },
  {
    kind: DaemonSet,
    what: 'a pod not ready',
    body: { spec: {}, status: { ...daemons, numberReady: 1 } },
    reason: 'PodsNotReady',
  },
  {
    kind: Job,
    what: 'all succeeded',
    body: { spec: { completions: 2 }, status: { ...complete, succeeded: 2 } },
    ready: true,
    reason: 'Completed',
  },
  {
    kind: Job,
    what: 'running',
    body: { spec: { completions: 2 }, status: { active: 1, succeeded: 1 } },
    reason: 'JobRunning',
  },
  {
    kind: Job,
    what: 'all pods succeeded, but no word that it is over',
    body: { spec: { completions: 1 }, status: { succeeded: 1 } },
    reason: 'JobRunning',
  },
  {
    kind: Job,
    what: 'called complete with too few successes',
    body: { spec: { completions: 2 }, status: { ...complete, succeeded: 1 } },
    reason: 'JobRunning',
  },
  { kind: Job, what: '0 of 0', body: { spec: { completions: 0 }, status: complete }, reason: 'NothingToComplete' },
  {
    kind: Job,
    what: 'a queue of work, done',
    body: { spec: { parallelism: 2 }, status: { ...complete, succeeded: 1 } },
    ready: true,
    reason: 'Completed',
  },
  {
    kind: Job,
    what: 'done by a policy',
    body: { spec: { completions: 5, successPolicy: { rules: [] } }, status: { ...complete, succeeded: 2 } },
    ready: true,
    reason: 'Completed',
  },
  {
    kind: Job,
    what: 'failed',
    body: { spec: { completions: 1 }, status: { conditions: [condition('Failed', 'True', { message: 'too many' })] } },
    failed: true,
    reason: 'JobFailed',
  },
  { kind: Job, what: 'suspended', body: { spec: { completions: 1, suspend: true } }, reason: 'Suspended' },
  { kind: Job, what: 'just created', body: { spec: { completions: 1 } }, reason: 'JobRunning' },
  { kind: PersistentVolumeClaim, what: 'bound', body: { status: { phase: 'Bound' } }, ready: true, reason: 'Bound' },
  { kind: PersistentVolumeClaim, what: 'pending', body: { status: { phase: 'Pending' } }, reason: 'Pending' },
  { kind: PersistentVolumeClaim, what: 'without a status', body: {}, reason: 'Pending' },
  { kind: PersistentVolumeClaim, what: 'lost', body: { status: { phase: 'Lost' } }, failed: true, reason: 'Lost' },
  {
    kind: Pod,
    what: 'ready',
    body: { status: { phase: 'Running', conditions: [condition('Ready')] } },
    ready: true,
    reason: 'Ready',
  },
  { kind: Pod, what: 'succeeded', body: { status: { phase: 'Succeeded' } }, ready: true, reason: 'Succeeded' },
  { kind: Pod, what: 'failed', body: { status: { phase: 'Failed' } }, failed: true, reason: 'PodFailed' },
  { kind: Pod, what: 'running, not ready', body: { status: { phase: 'Running' } }, reason: 'NotReady' },
  {
    kind: Pod,
    what: 'without a node',
    body: {
      status: { phase: 'Pending', conditions: [condition('PodScheduled', 'False', { reason: 'Unschedulable' })] },
    },
    reason: 'Unschedulable',
  },
  {
    kind: Pod,
    what: 'crashing',
    body: {
      status: {
        phase: 'Running',
        containerStatuses: [{ name: 'a', state: { waiting: { reason: 'CrashLoopBackOff' } } }],
      },
    },
    failed: true,
    reason: 'CrashLoopBackOff',
  },
  {
    kind: Pod,
    what: 'without an image',
    body: {
      status: {
        phase: 'Pending',
        containerStatuses: [{ name: 'a', state: { waiting: { reason: 'ImagePullBackOff' } } }],
      },
    },
    reason: 'ImagePullBackOff',
  },
  { kind: Service, what: 'there', body: { spec: {}, status: { loadBalancer: {} } }, ready: true, reason: 'Exists' },
  {
    kind: CustomResourceDefinition,
    what: 'served',
    body: { status: { conditions: [condition('Established')] } },
    ready: true,
    reason: 'Established',
  },
  { kind: CustomResourceDefinition, what: 'new', body: {}, reason: 'NotEstablished' },
  {
    kind: CustomResourceDefinition,
    what: 'with names of others',
    body: { status: { conditions: [condition('NamesAccepted', 'False', { reason: 'ListKindConflict' })] } },
    failed: true,
    reason: 'ListKindConflict',
  },
  { kind: Widget, what: 'no conditions', body: {}, ready: true, reason: 'Exists' },
  { kind: Widget, what: 'Ready', body: { status: { conditions: [condition('Ready')] } }, ready: true, reason: 'Ready' },
  {
    kind: Widget,
    what: 'not Ready',
    body: { status: { conditions: [condition('Ready', 'False', { reason: 'Rebuilding' })] } },
    reason: 'Rebuilding',
  },
  {
    kind: Widget,
    what: 'Ready unknown, for no reason in a word',
    body: { status: { conditions: [condition('Ready', 'Unknown', { reason: 'no idea' })] } },
    reason: 'Unknown',
  },
  {
    kind: Widget,
    what: 'Ready, but Reconciling',
    body: { status: { conditions: [condition('Ready'), condition('Reconciling')] } },
    reason: 'Reconciling',
  },
  {
    kind: Widget,
    what: 'Stalled',
    body: { status: { conditions: [condition('Ready'), condition('Stalled', 'True', { reason: 'WishFailed' })] } },
    failed: true,
    reason: 'WishFailed',
  },
  {
    kind: Widget,
    what: 'no longer Stalled',
    body: { status: { conditions: [condition('Ready'), condition('Stalled', 'False')] } },
    ready: true,
    reason: 'Ready',
  },
  {
    kind: Widget,
    what: 'Ready, of an older generation',
    body: { status: { observedGeneration: 1, conditions: [condition('Ready')] } },
    reason: 'NotObserved',
  },
]

describe('readiness', () => {
  it.each(cases.map(one => [one.kind.kind, one.what, one] as const))('of a %s: %s', (_kind, _what, one) => {
    const { ready, failed = false, reason, message } = readiness(one.kind, one.body)
    expect({ ready, failed, reason }).toEqual({
      ready: one.ready ?? false,
      failed: one.failed ?? false,
      reason: one.reason,
    })
    expect(message).not.toBe('')
  })

  it('is not for what is being deleted, or is not there', () => {
    for (const { kind, body } of cases) {
      expect(readiness(kind, body, { deletionTimestamp: 'now' })).toMatchObject({ ready: false, reason: 'Terminating' })
      expect(readinessOf(kind, undefined)).toMatchObject({ ready: false, reason: 'NotFound' })
    }
  })

  it('has a word for a reason and a message, whatever the object is', () => {
    const all = Object.values(kinds) as Kind[]
    const count = fc.option(fc.nat(3), { nil: undefined })
    const word = fc.option(fc.oneof(fc.string(), fc.constantFrom('Good', 'bad word')), { nil: undefined })
    const type = fc.constantFrom('Ready', 'Reconciling', 'Stalled', 'Complete', 'Failed', 'Progressing', 'PodScheduled')
    const conditions = fc.array(
      fc.record({ type, status: fc.constantFrom('True', 'False', 'Unknown'), reason: word, message: word }),
    )
    const status = fc.record({
      ...{ observedGeneration: count, replicas: count, readyReplicas: count, updatedReplicas: count, succeeded: count },
      ...{ availableReplicas: count, desiredNumberScheduled: count, numberReady: count, phase: word },
      conditions: fc.option(conditions, { nil: undefined }),
    })
    const spec = fc.option(fc.record({ replicas: count, completions: count }), { nil: undefined })
    fc.assert(
      fc.property(fc.constantFrom(...all), fc.option(status), spec, (kind, status, spec) => {
        const { ready, failed, reason, message } = readiness(kind, { status, spec })
        expect(reason).toMatch(/^[A-Z][A-Za-z0-9]*$/)
        expect(message).not.toBe('')
        expect(ready && failed).toBeFalsy()
        // Never ready by the word of a controller that looked at something else.
        if (status?.observedGeneration !== undefined && status.observedGeneration !== 2) expect(ready).toBe(false)
      }),
      { seed: Number(process.env.SHIPMATE_SEED ?? 1), numRuns: 500 },
    )
  })
})
