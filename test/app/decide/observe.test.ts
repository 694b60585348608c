import { describe, expect, test } from 'vitest'
import { observe, unreachableGrace } from '../../../controller/app/decide/observe.ts'
import { agentOf, appOf, now, podOf, says, viewOf, workloadOf } from './views.ts'

const of = (replicas: number, pods: ReturnType<typeof podOf>[], spec: object = {}) =>
  observe(viewOf({ workload: workloadOf({ replicas }), pods, app: appOf({ spec }) }))

describe('the state of an app', () => {
  test('is that of all its pods', () => {
    expect(of(2, [says(0, 'Running'), says(1, 'Running')])).toMatchObject({ state: 'Running', reason: 'GuardHolds' })
  })

  test('is the earliest of them, if they differ', () => {
    expect(of(2, [says(0, 'Running'), says(1, 'Start', { reason: 'GuardLost' })])).toMatchObject({
      state: 'Start',
      reason: 'GuardLost',
    })
  })

  test('is the one that a quorum is in', () => {
    expect(of(3, [says(0, 'Start'), says(1, 'Running'), says(2, 'Running')], { quorum: 2 }).state).toBe('Running')
    expect(of(3, [says(0, 'Start'), says(1, 'Start'), says(2, 'Running')], { quorum: 2 }).state).toBe('Start')
  })

  test('is not held by a quorum of more pods than are wished', () => {
    expect(of(1, [says(0, 'Running')], { quorum: 3 }).state).toBe('Running')
  })

  test('is Unknown if one pod is, unless a quorum is in another', () => {
    const pods = [says(0, 'Running'), podOf(1, { hasAgent: false })]
    expect(of(2, pods)).toMatchObject({ state: 'Unknown', reason: 'NoSidecar' })
    expect(of(2, pods, { quorum: 1 }).state).toBe('Running')
  })

  test('is the initial one while pods are missing', () => {
    expect(of(2, [])).toMatchObject({ state: 'Start', reason: 'Missing' })
    expect(of(2, [says(0, 'Running')])).toMatchObject({ state: 'Start', reason: 'Missing' })
    expect(observe(viewOf({ workload: undefined, pods: [] }))).toMatchObject({ state: 'Start', reason: 'Missing' })
  })

  test('does not count pods that are being deleted', () => {
    expect(of(1, [says(0, 'Running'), podOf(1, { isTerminating: true, hasAgent: false })]).state).toBe('Running')
    expect(of(1, [podOf(0, { isTerminating: true })])).toMatchObject({ state: 'Start', reason: 'Missing' })
  })

  test('is End when we scaled it to zero, and the initial one when somebody else did', () => {
    const zero = (keptReplicas: number | undefined) =>
      observe(viewOf({ workload: workloadOf({ replicas: 0, keptReplicas }), pods: [] }))
    expect(zero(3)).toMatchObject({ state: 'End', reason: 'ScaledToZero' })
    expect(zero(undefined)).toMatchObject({ state: 'Start', reason: 'ScaledToZero' })
  })

  test('is End while a wish for it stands that has succeeded, whatever the pods say', () => {
    const app = appOf({ status: { wish: { hash: 'h', serial: 1, state: 'End', outcome: 'Succeeded', at: '' } } })
    expect(observe(viewOf({ app }))).toMatchObject({ state: 'End', reason: 'Ended' })
  })

  test('is the transient one that the current operation belongs to', () => {
    const operation = { name: 'op', uid: 'op', fence: 1, action: 'backup', state: 'Servicing' }
    expect(observe(viewOf({ app: appOf({ status: { operation } }) }))).toMatchObject({
      state: 'Servicing',
      reason: 'OperationInProgress',
    })
  })

  test('is Unknown without a lifecycle', () => {
    expect(observe(viewOf({ lifecycle: undefined }))).toMatchObject({ state: 'Unknown', reason: 'NoLifecycle' })
  })
})

describe('a pod', () => {
  const one = (pod: ReturnType<typeof podOf>) => of(1, [pod]).pods[0]

  test('without a sidecar is Unknown', () => {
    expect(one(podOf(0, { hasAgent: false }))).toMatchObject({ state: 'Unknown', reason: 'NoSidecar' })
  })

  test('that nobody has reached yet is Unknown', () => {
    expect(one(podOf(0, { agent: undefined }))).toMatchObject({ state: 'Unknown', reason: 'NotConnected' })
    const agent = agentOf({ isReachable: false, state: undefined })
    expect(one(podOf(0, { agent }))).toMatchObject({ state: 'Unknown', reason: 'Unreachable' })
  })

  test('that cannot be reached counts as it last said, for a while', () => {
    const since = now - unreachableGrace + 1
    const seen = of(1, [podOf(0, { agent: agentOf({ isReachable: false, since }) })])
    expect(seen).toMatchObject({ state: 'Running', until: now + 1 })
    const agent = agentOf({ isReachable: false, since: now - unreachableGrace })
    expect(one(podOf(0, { agent }))).toMatchObject({ state: 'Unknown', reason: 'Unreachable' })
  })

  test('that speaks of another lifecycle is Unknown', () => {
    expect(one(says(0, 'Elsewhere'))).toMatchObject({ state: 'Unknown', reason: 'OtherLifecycle' })
  })

  test('has the role that its probe printed, trimmed', () => {
    expect(one(says(0, 'Running', { role: ' primary\n' }))?.role).toBe('primary')
    expect(one(says(0, 'Running', { role: ' ' }))?.role).toBeUndefined()
  })
})
