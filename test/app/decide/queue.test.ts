import { describe, expect, test } from 'vitest'
import { type QueueOptions, queueOf, wishLabel } from '../../../controller/app/decide/queue.ts'
import { scheduleFinalizer } from '../../../controller/app/schedule/child.ts'
import type { Op, View } from '../../../controller/app/view.ts'
import { lifecycle } from './sim.ts'
import { at, lifecycleViewOf, opOf, viewOf, workloadOf } from './views.ts'

const named = (name: string, spec: object = {}, metadata: object = {}, status?: object) =>
  opOf({ metadata: { name, uid: name, ...metadata }, spec, ...(status && { status }) })

function queue(operations: Op[], options: Partial<QueueOptions> = {}, more: Partial<View> = {}) {
  const all = { wished: undefined, state: 'Running', asked: undefined, isEnding: false, ...options }
  const { next, waiting } = queueOf(viewOf({ operations, ...more }), all)
  return { next: next?.metadata.name, waiting: waiting.map(({ op, for: what }) => [op.metadata.name, what]) }
}

describe('whose turn it is', () => {
  test('the wish comes first, then priority, then age, then the name', () => {
    const [a, b] = [named('a', {}, { creationTimestamp: at(1) }), named('b', {}, { creationTimestamp: at(0) })]
    expect(queue([a, b]).next).toBe('b')
    expect(queue([named('d'), named('c')]).next).toBe('c')
    expect(queue([b, named('high', { priority: 1 }, { creationTimestamp: at(9) })]).next).toBe('high')
    const wish = named('wish', { priority: -1 })
    const asked = { wished: 'wish', asked: 'backup' }
    expect(queue([b, named('high', { priority: 9 }), wish], asked).next).toBe('wish')
  })

  test('who waits is told what for, and holds nobody', () => {
    const first = named('first', { suspend: true, priority: 9 })
    expect(queue([first, named('second'), named('third')])).toEqual({
      next: 'second',
      waiting: [
        ['first', 'suspend to be taken away'],
        ['third', 'its turn, after second'],
      ],
    })
  })

  test('who has ended is not in it', () => {
    expect(queue([named('a', {}, {}, { phase: 'Failed', finishedAt: at(0) })])).toEqual({
      next: undefined,
      waiting: [],
    })
    expect(queue([named('a', {}, {}, { phase: 'Unknown' })]).next).toBe('a')
  })

  test('an action of a transient state waits for a state from which that follows', () => {
    expect(queue([named('a')], { state: 'Start' })).toEqual({
      next: undefined,
      waiting: [['a', 'a state from which Servicing follows; it is Start']],
    })
    expect(queue([named('a', { action: 'verified' })], { state: 'Start' }).next).toBe('a')
  })

  test('nothing but an action that says so is begun during a rollout', () => {
    const workload = workloadOf({ isRollingOut: true })
    expect(queue([named('a')], {}, { workload }).waiting).toEqual([['a', 'the rollout of the workload to be done']])
    const actions = (lifecycle.actions ?? []).map(action => ({ ...action, duringRollout: true }))
    const more = { workload, lifecycle: lifecycleViewOf({ ...lifecycle, actions }) }
    expect(queue([named('a')], {}, more).next).toBe('a')
  })

  test('on the way to the end only the wish is carried out', () => {
    const wish = named('wish', { action: 'stop' })
    const { next, waiting } = queue([named('a'), wish], { wished: 'wish', asked: 'stop', isEnding: true })
    expect(next).toBe('wish')
    expect(waiting).toEqual([['a', 'the app to be started again']])
  })

  test('the wish’s Operation waits until its action is what comes next', () => {
    expect(queue([named('wish')], { wished: 'wish', asked: 'stop' }).waiting).toEqual([
      ['wish', 'backup to be what comes next'],
    ])
  })

  test('what was made for another wish is never begun', () => {
    const past = named('db-1-00000000', {}, { labels: { [wishLabel]: 'app' } })
    expect(queue([past, named('a')], { wished: 'db-2-00000000' }).next).toBe('a')
    expect(queue([past]).next).toBeUndefined()
    const ofOther = named('db-1-00000000', {}, { labels: { [wishLabel]: 'another app' } })
    expect(queue([ofOther]).next).toBe('db-1-00000000')
  })

  test('a schedule’s Operation waits until its tick is noted', () => {
    const made = named('a', {}, { finalizers: [scheduleFinalizer] })
    expect(queue([made]).waiting).toEqual([['a', 'its schedule to have noted it']])
  })

  test('who is cancelled needs no turn: it is ended whatever it waits for', () => {
    expect(queue([named('a', { cancel: true, suspend: true })], { state: 'Start' }).next).toBe('a')
    expect(queue([named('a', {}, { deletionTimestamp: at(0) })], { state: 'Start' }).next).toBe('a')
  })
})
