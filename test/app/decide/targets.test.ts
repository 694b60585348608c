import { describe, expect, test } from 'vitest'
import { observe } from '../../../controller/app/decide/observe.ts'
import { inTurn, type Order, resolveTargets } from '../../../controller/app/decide/targets.ts'
import type { PodView } from '../../../controller/app/view.ts'
import { podOf, says, viewOf, workloadOf } from './views.ts'

function resolve(target: string, pods: PodView[], { replicas = pods.length, order = 'serial' as Order } = {}) {
  const workload = workloadOf({ replicas })
  const observed = observe(viewOf({ pods, workload })).pods
  const resolved = resolveTargets({ target, order, workload, pods, observed })
  return 'targets' in resolved ? resolved.targets.map(({ pod }) => pod) : resolved
}

const primary = (n: number) => says(n, 'Running', { role: 'primary' })
const replica = (n: number) => says(n, 'Running', { role: 'replica' })
const silent = (n: number) => podOf(n, { agent: undefined })

describe('the targets of an operation', () => {
  test('all: every pod, in the order of their numbers', () => {
    expect(
      resolve(
        'all',
        [10, 9, 1].map(n => says(n, 'Running')),
      ),
    ).toEqual(['db-1', 'db-9', 'db-10'])
  })

  test('all: not before all are there, but without asking who they are', () => {
    expect(resolve('all', [replica(0)], { replicas: 3 })).toEqual({ waitFor: '2 of 3 pods to be there' })
    expect(resolve('all', [silent(0), replica(1)])).toEqual(['db-0', 'db-1'])
  })

  test('one: the first that is ready', () => {
    expect(resolve('one', [podOf(0, { isReady: false }), says(1, 'Running')])).toEqual(['db-1'])
    expect(resolve('one', [podOf(0, { isReady: false })])).toEqual({ waitFor: 'a pod to be ready' })
  })

  test('a name: that pod', () => {
    expect(resolve('db-1', [replica(0), replica(1)])).toEqual(['db-1'])
    expect(resolve('db-7', [replica(0)])).toEqual({ waitFor: 'pod db-7 to be there' })
  })

  test('primary and replicas: by what they say of themselves', () => {
    const pods = [replica(0), primary(1), replica(2)]
    expect(resolve('primary', pods)).toEqual(['db-1'])
    expect(resolve('replicas', pods)).toEqual(['db-0', 'db-2'])
  })

  test('primary and replicas: not while one of them has not said', () => {
    expect(resolve('primary', [primary(0), silent(1)])).toEqual({ waitFor: 'the role of db-1 to be known' })
    expect(resolve('replicas', [primary(0)])).toEqual({ waitFor: 'a pod that says that it is a replica' })
  })

  test('two primaries, or none, are for a person', () => {
    expect(resolve('primary', [primary(0), primary(1)])).toEqual({
      stalled: { reason: 'SeveralPrimaries', message: 'db-0 and db-1 both say that they are the primary' },
    })
    expect(resolve('replicas', [replica(0), replica(1)])).toMatchObject({ stalled: { reason: 'NoPrimary' } })
    expect(resolve('all', [primary(0), primary(1)], { order: 'primaryLast' })).toMatchObject({
      stalled: { reason: 'SeveralPrimaries' },
    })
  })

  test('are told with their role', () => {
    const pods = [primary(0)]
    const observed = observe(viewOf({ pods })).pods
    const choice = { target: 'all', order: 'serial', workload: workloadOf(), pods, observed } as const
    expect(resolveTargets(choice)).toEqual({ targets: [{ pod: 'db-0', uid: 'pod-0', role: 'primary' }] })
  })
})

describe('their turn', () => {
  const targets = ['primary', 'replica', 'replica'].map((role, n) => ({ pod: `db-${n}`, uid: `${n}`, role }))
  const turn = (order: Order, ...done: string[]) =>
    inTurn(targets, order, ({ pod }) => done.includes(pod)).map(({ pod }) => pod)

  test('parallel: all at once; serial: one after the other', () => {
    expect(turn('parallel', 'db-1')).toEqual(['db-0', 'db-2'])
    expect(turn('serial')).toEqual(['db-0'])
    expect(turn('serial', 'db-0')).toEqual(['db-1'])
    expect(turn('serial', 'db-0', 'db-1', 'db-2')).toEqual([])
  })

  test('primaryLast: the primary when all others are done', () => {
    expect(turn('primaryLast')).toEqual(['db-1'])
    expect(turn('primaryLast', 'db-1')).toEqual(['db-2'])
    expect(turn('primaryLast', 'db-1', 'db-2')).toEqual(['db-0'])
  })
})
