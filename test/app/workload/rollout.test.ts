/**
 * Whether a workload is being rolled out, and how many pods a DaemonSet should have.
 */
import { describe, expect, test } from 'vitest'
import {
  daemonReplicas,
  isDaemonSetRollingOut,
  isDeploymentRollingOut,
  isOtherRollingOut,
  isStatefulSetRollingOut,
} from '../../../controller/app/workload/rollout.ts'

const of = (spec: object, status: object, generation = 2) =>
  ({ metadata: { generation }, spec, status: { observedGeneration: 2, ...status } }) as never
const revisions = { currentRevision: 'a', updateRevision: 'b' }

describe('a StatefulSet', () => {
  test.each([
    ['at rest', { replicas: 3 }, { currentRevision: 'a', updateRevision: 'a', updatedReplicas: 3 }, false],
    ['whose change its controller has not seen', { replicas: 3 }, { observedGeneration: 1 }, true],
    ['half updated', { replicas: 3 }, { ...revisions, updatedReplicas: 1 }, true],
    ['all updated, the last not ready', { replicas: 3 }, { ...revisions, updatedReplicas: 3 }, false],
    ['with one replica by default', {}, { ...revisions, updatedReplicas: 0 }, true],
    [
      'updated down to its partition',
      { replicas: 3, updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 2 } } },
      { ...revisions, updatedReplicas: 1 },
      false,
    ],
    [
      'not yet updated down to its partition',
      { replicas: 3, updateStrategy: { rollingUpdate: { partition: 1 } } },
      { ...revisions, updatedReplicas: 1 },
      true,
    ],
    [
      'with a partition above its replicas',
      { replicas: 3, updateStrategy: { rollingUpdate: { partition: 9 } } },
      { ...revisions, updatedReplicas: 0 },
      false,
    ],
    [
      'that is updated by hand',
      { replicas: 3, updateStrategy: { type: 'OnDelete' } },
      { ...revisions, updatedReplicas: 0 },
      false,
    ],
  ])('%s', (_, spec, status, is) => expect(isStatefulSetRollingOut(of(spec, status))).toBe(is))
})

describe('a Deployment', () => {
  test.each([
    ['at rest', { replicas: 2 }, { replicas: 2, updatedReplicas: 2 }, false],
    ['with old pods', { replicas: 2 }, { replicas: 3, updatedReplicas: 2 }, true],
    ['half updated', { replicas: 2 }, { replicas: 2, updatedReplicas: 1 }, true],
    ['paused', { replicas: 2, paused: true }, { replicas: 2, updatedReplicas: 1 }, false],
    ['unseen', { replicas: 2 }, { observedGeneration: 1, replicas: 2, updatedReplicas: 2 }, true],
  ])('%s', (_, spec, status, is) => expect(isDeploymentRollingOut(of(spec, status))).toBe(is))
})

describe('a DaemonSet', () => {
  const [one, two] = [new Set(['a']), new Set(['a', 'b'])]
  test.each([
    ['at rest', {}, { currentNumberScheduled: 3, updatedNumberScheduled: 3 }, one, false],
    ['with pods of two revisions', {}, { currentNumberScheduled: 3, updatedNumberScheduled: 1 }, two, true],
    ['of which none is updated yet', {}, { currentNumberScheduled: 3, updatedNumberScheduled: 0 }, one, true],
    [
      'whose only old pod is on a node that is lost',
      {},
      { currentNumberScheduled: 3, updatedNumberScheduled: 2 },
      one,
      false,
    ],
    [
      'that a node joins',
      {},
      { desiredNumberScheduled: 4, currentNumberScheduled: 3, updatedNumberScheduled: 3 },
      one,
      false,
    ],
    ['without nodes', {}, { currentNumberScheduled: 0 }, new Set<string>(), false],
    ['unseen', {}, { observedGeneration: 1 }, one, true],
    ['that is updated by hand', { updateStrategy: { type: 'OnDelete' } }, { currentNumberScheduled: 3 }, two, false],
  ])('%s', (_, spec, status, revisions, is) => expect(isDaemonSetRollingOut(of(spec, status), revisions)).toBe(is))

  test('wishes a pod for every node that works, and that should have one', () => {
    const status = { desiredNumberScheduled: 4, currentNumberScheduled: 3 }
    expect(daemonReplicas(of({}, status), 3), 'one has joined').toBe(4)
    expect(daemonReplicas(of({}, status), 2), 'and one is lost').toBe(3)
    expect(daemonReplicas(of({}, { desiredNumberScheduled: 1, currentNumberScheduled: 1 }), 2), 'one is back').toBe(2)
    expect(daemonReplicas(of({}, {}), 2), 'nothing is counted yet').toBe(2)
  })
})

test('another kind is, while it says that it has not seen its newest generation', () => {
  expect(isOtherRollingOut(of({}, { observedGeneration: 1 }))).toBe(true)
  expect(isOtherRollingOut(of({}, {}))).toBe(false)
  expect(isOtherRollingOut({ metadata: { generation: 3 } } as never)).toBe(false)
})
