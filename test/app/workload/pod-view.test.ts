/**
 * What is seen of a pod and of a node.
 */
import { describe, expect, test } from 'vitest'
import { trimNode, trimPod } from '../../../controller/app/workload/places.ts'
import { isWorking, nodeView, podView } from '../../../controller/app/workload/pod-view.ts'
import { aPod } from './objects.ts'

const deleted = { deletionTimestamp: '2026-01-01T00:00:00Z' }
const terminated = (name = 'db') => ({ name, state: { terminated: { exitCode: 0 } } })
const running = (name = 'db') => ({ name, state: { running: {} } })

describe('a pod is ended', () => {
  test.each<[string, object, boolean]>([
    [
      'when it is being deleted and its containers have terminated',
      { metadata: deleted, status: { containerStatuses: [terminated()] } },
      true,
    ],
    ['not while one runs', { metadata: deleted, status: { containerStatuses: [running()] } }, false],
    ['not when they have terminated but may be restarted', { status: { containerStatuses: [terminated()] } }, false],
    [
      'not when somebody calls it Failed whose containers were last seen running',
      { metadata: deleted, status: { phase: 'Failed', containerStatuses: [running()] } },
      false,
    ],
    ['not when nothing is known of a container', { metadata: deleted, status: {} }, false],
    ['when it has succeeded', { status: { phase: 'Succeeded', containerStatuses: [terminated()] } }, true],
    [
      'when none is ever restarted',
      { spec: { restartPolicy: 'Never' }, status: { containerStatuses: [terminated()] } },
      true,
    ],
    [
      'not when a container has a policy of its own',
      {
        spec: { restartPolicy: 'Never', containers: [{ name: 'db', restartPolicy: 'Always' }] },
        status: { containerStatuses: [terminated()] },
      },
      false,
    ],
    [
      'not while a sidecar among the init containers runs',
      {
        metadata: deleted,
        spec: { initContainers: [{ name: 'agent' }] },
        status: { containerStatuses: [terminated()], initContainerStatuses: [running('agent')] },
      },
      false,
    ],
    [
      'not while somebody debugs in it',
      {
        metadata: deleted,
        spec: { ephemeralContainers: [{ name: 'debug' }] },
        status: { containerStatuses: [terminated()], ephemeralContainerStatuses: [running('debug')] },
      },
      false,
    ],
    ['when it is being deleted and never reached a node', { metadata: deleted, spec: { nodeName: undefined } }, true],
    ['not when it has not reached a node yet', { spec: { nodeName: undefined } }, false],
  ])('%s', (_, more, is) => {
    const pod = aPod('db-0', more)
    expect(podView(pod).isEnded).toBe(is)
    const trimmed = structuredClone(pod)
    trimPod(trimmed as never)
    expect(podView(trimmed), 'what is kept of it tells the same').toEqual(podView(pod))
  })
})

describe('a pod has an agent', () => {
  test.each<[string, object, boolean]>([
    ['in a container', { spec: { containers: [{ name: 'shipmate-sidecar' }] } }, true],
    ['in an init container', { spec: { initContainers: [{ name: 'shipmate-sidecar' }] } }, true],
    ['where an annotation says so', { metadata: { annotations: { 'shipmate.dev/api-port': '1' } } }, true],
    ['else not', {}, false],
  ])('%s', (_, more, is) => expect(podView(aPod('db-0', more)).hasAgent).toBe(is))
})

test('a pod is seen with its address, its node and whether it is ready', () => {
  const status = { podIP: '10.0.0.1', conditions: [{ type: 'Ready', status: 'True' }] }
  expect(podView(aPod('db-0', { status }))).toMatchObject({
    ...{ name: 'db-0', uid: 'uid-db-0', ip: '10.0.0.1', node: 'n1' },
    ...{ isReady: true, isTerminating: false, agent: undefined },
  })
})

test('a node is seen with its boot id and its service; what is kept of it tells the same', () => {
  const taints = [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }]
  const conditions = [{ type: 'Ready', status: 'True' }]
  const images = [{ names: ['a'] }]
  const make = (spec: object) =>
    ({
      metadata: { name: 'n1', annotations: { a: 'b' } },
      spec,
      status: { conditions, images, nodeInfo: { bootID: 'b1' } },
    }) as never
  const node = make({ taints })
  expect(nodeView(node)).toEqual({ name: 'n1', bootId: 'b1', isOutOfService: true })
  expect(isWorking(node)).toBe(false)
  expect(isWorking(make({}))).toBe(true)
  expect(isWorking(undefined)).toBe(false)
  const trimmed = structuredClone(make({ taints })) as { status: object }
  trimNode(trimmed as never)
  expect(trimmed.status).not.toHaveProperty('images')
  expect(nodeView(trimmed as never)).toEqual(nodeView(node))
})
