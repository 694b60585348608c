import { describe, expect, test } from 'vitest'
import { type Next, planNext } from '../../../controller/app/decide/plan.ts'
import type { WishStatus, WorkloadView } from '../../../controller/app/view.ts'
import { graphOf } from '../../../shared/lifecycle/graph.ts'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import { at, base, workloadOf } from './views.ts'

interface Given {
  readonly memory?: Partial<WishStatus>
  readonly workload?: WorkloadView | undefined
  readonly isOwn?: boolean
  readonly action?: string
  readonly spec?: LifecycleSpec
}

function next(state: string, wished: string, given: Given = {}): Next {
  const { memory, isOwn = false, action, spec } = given
  return planNext({
    graph: spec ? graphOf(spec) : base.graph,
    state,
    wish: { state: wished, ...(action !== undefined && { action }) },
    memory: { hash: 'h', serial: 1, state: wished, passed: [], at: at(0), ...memory } as WishStatus,
    workload: 'workload' in given ? given.workload : workloadOf(),
    isOwn,
  })
}

const ended = workloadOf({ replicas: 0, keptReplicas: 2 })

describe('what comes next', () => {
  test('is nothing when the wished state is observed', () => {
    expect(next('Running', 'Running')).toMatchObject({ is: 'there', goal: { name: 'Running' } })
  })

  test('is to wait for a state that only probes can tell', () => {
    expect(next('Start', 'Running')).toMatchObject({ is: 'wait', for: { name: 'Running' } })
  })

  test('is the action of the wished state, from a state that leads to it', () => {
    const act = next('Running', 'Servicing', { action: 'reload' })
    expect(act).toMatchObject({ is: 'act', state: { name: 'Servicing' }, action: 'reload' })
  })

  test('is what lies on the way, were it only to wait', () => {
    const way = next('Start', 'Servicing', { action: 'backup' })
    expect(way).toMatchObject({ is: 'wait', goal: { name: 'Servicing' }, for: { name: 'Running' } })
  })

  test('is the stop on the way to the end, whose one action is implied', () => {
    expect(next('Running', 'End')).toMatchObject({ is: 'act', state: { name: 'Stopping' }, action: 'stop' })
    expect(next('Start', 'End')).toMatchObject({ is: 'act', action: 'stop' })
  })

  test('is the end once the last transient state before it was passed, whatever the probes still say', () => {
    const memory = { passed: ['Stopping'], passedFrom: 'Running' }
    for (const state of ['Running', 'Start', 'Unknown'])
      expect(next(state, 'End', { memory }), state).toMatchObject({ is: 'end', goal: { name: 'End' } })
  })

  test('is the end at once where nothing is', () => {
    expect(next('Start', 'End', { workload: undefined })).toMatchObject({ is: 'end' })
    expect(next('Start', 'End', { workload: workloadOf({ replicas: 0 }) })).toMatchObject({ is: 'end' })
  })

  test('is nothing at the end, once that has succeeded', () => {
    expect(next('End', 'End', { memory: { outcome: 'Succeeded' } })).toMatchObject({ is: 'there' })
  })

  test('is to create what we have scaled to zero, or what our template describes and is not there', () => {
    expect(next('End', 'Running', { workload: ended })).toMatchObject({ is: 'create' })
    expect(next('Start', 'Running', { workload: undefined, isOwn: true })).toMatchObject({ is: 'create' })
  })

  test('is not to scale up what somebody else has scaled to zero', () => {
    expect(next('Start', 'Running', { workload: workloadOf({ replicas: 0 }) })).toMatchObject({ is: 'wait' })
  })

  test('is not known from a state that is not known', () => {
    expect(next('Unknown', 'Running')).toMatchObject({ is: 'unknown', goal: { name: 'Running' } })
    expect(next('Unknown', 'End')).toMatchObject({ is: 'unknown' })
  })

  test('is not the end while a run of the stop is in progress that no operation asks for', () => {
    expect(next('Stopping', 'End')).toMatchObject({ is: 'busy', state: { name: 'Stopping' } })
    expect(next('Servicing', 'Running')).toMatchObject({ is: 'busy', goal: { name: 'Running' } })
  })

  test('after a transient wish was met is the first of its next', () => {
    const memory = { outcome: 'Succeeded', passed: ['Servicing'], passedFrom: 'Running' } as const
    expect(next('Running', 'Servicing', { memory, action: 'backup' })).toMatchObject({
      is: 'there',
      goal: { name: 'Running' },
    })
    expect(next('Start', 'Servicing', { memory, action: 'backup' })).toMatchObject({
      is: 'wait',
      for: { name: 'Running' },
    })
  })

  test('is never a second time what was passed', () => {
    const spec: LifecycleSpec = {
      states: [
        { name: 'Start', verb: 'Create', next: ['Preparing'] },
        { name: 'Preparing', actions: ['prepare'], next: ['Moving'] },
        { name: 'Moving', actions: ['move'], next: ['Moved'] },
        { name: 'Moved', when: 'probes.moved.ok', next: ['Start'] },
      ],
      actions: ['prepare', 'move'].map(name => ({ name, exec: { command: [name] } })),
    }
    const from = { passedFrom: 'Start' }
    expect(next('Start', 'Moved', { spec })).toMatchObject({ is: 'act', action: 'prepare' })
    const one = next('Start', 'Moved', { spec, memory: { passed: ['Preparing'], ...from } })
    expect(one).toMatchObject({ is: 'act', action: 'move' })
    const two = next('Start', 'Moved', { spec, memory: { passed: ['Preparing', 'Moving'], ...from } })
    expect(two).toMatchObject({ is: 'wait', for: { name: 'Moved' } })
  })

  test('is told by both names where there is no path', () => {
    const spec: LifecycleSpec = {
      states: [
        { name: 'Start', verb: 'Create', next: ['Left', 'Right'] },
        { name: 'Left', when: 'probes.l.ok', next: ['Left'] },
        { name: 'Right', when: 'probes.r.ok', next: ['Right'] },
      ],
    }
    expect(next('Left', 'Right', { spec })).toEqual({ is: 'noPath', from: 'Left', to: 'Right' })
    expect(next('Left', 'Gone', { spec })).toEqual({ is: 'noPath', from: 'Left', to: 'Gone' })
  })

  test('never leads through a state whose action would have to be guessed', () => {
    const spec: LifecycleSpec = {
      states: [
        { name: 'Start', verb: 'Create', next: ['Middle'] },
        { name: 'Middle', actions: ['a', 'b'], next: ['Goal'] },
        { name: 'Goal', when: 'probes.g.ok', next: ['Start'] },
      ],
      actions: ['a', 'b'].map(name => ({ name, exec: { command: [name] } })),
    }
    expect(next('Start', 'Goal', { spec })).toMatchObject({ is: 'noPath' })
    expect(next('Start', 'Middle', { spec, action: 'b' })).toMatchObject({ is: 'act', action: 'b' })
  })
})
