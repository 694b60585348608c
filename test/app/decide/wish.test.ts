import { describe, expect, test } from 'vitest'
import {
  arrive,
  deletionPolicy,
  endingOf,
  goalOf,
  isBeforeEnd,
  operationName,
  remember,
  serialOf,
  settleWish,
  wishHash,
  wishOf,
  wishProblem,
} from '../../../controller/app/decide/wish.ts'
import type { WishStatus } from '../../../controller/app/view.ts'
import { lifecycle } from './sim.ts'
import { appOf, at, base, lifecycleViewOf } from './views.ts'

const memory = (over: Partial<WishStatus> = {}): WishStatus =>
  ({ hash: 'h', serial: 1, state: 'Servicing', passed: [], at: at(0), ...over }) as WishStatus
const { graph } = base

describe('what is wished', () => {
  test('is another wish if the state, the action, a parameter, a Secret or the request is another one', () => {
    const wish = { state: 'Servicing', action: 'backup', params: { to: '/a' }, request: '1' }
    const others = [
      { ...wish, state: 'Running' },
      { ...wish, action: 'reload' },
      { ...wish, params: { to: '/b' } },
      { ...wish, paramsFrom: [{ name: 'key', secretKeyRef: { name: 's', key: 'k' } }] },
      { ...wish, request: '2' },
    ]
    expect(new Set([wish, ...others].map(wishHash)).size).toBe(6)
  })

  test('is the same wish whatever the order of its fields, and with or without preempt', () => {
    const a = { state: 'Servicing', params: { x: 1, y: 2 } }
    expect(wishHash({ params: { y: 2, x: 1 }, state: 'Servicing', preempt: true })).toBe(wishHash(a))
  })

  test('is remembered as it was while it is the same', () => {
    const first = remember(undefined, { state: 'Running' }, at(0))
    expect(first).toMatchObject({ serial: 1, state: 'Running', passed: [] })
    expect(remember(first, { state: 'Running' }, at(9))).toBe(first)
  })

  test('A, B and A are three wishes, and no two of their Operations have the same name', () => {
    const names = new Set<string>()
    let so: WishStatus | undefined
    for (const request of ['a', 'b', 'a']) {
      so = remember(so, { state: 'Servicing', request }, at(0))
      names.add(operationName(appOf(), so))
    }
    expect(so?.serial).toBe(3)
    expect(names.size).toBe(3)
  })

  test('of an app that is being deleted is its end, at the time of its deletion', () => {
    const metadata = { deletionTimestamp: at(5) }
    const view = { app: appOf({ metadata, spec: { deletion: { policy: 'WalkToEnd' } } }), lifecycle: base }
    expect(wishOf(view)).toEqual({ state: 'End', request: at(5), preempt: false })
    expect(wishOf({ ...view, app: appOf({ metadata }) })).toBeUndefined()
  })

  test('at deletion is nothing for an existing workload and for an app that is only observed', () => {
    expect(deletionPolicy(appOf({ spec: { desired: { state: 'Running' } } }))).toBe('Orphan')
    expect(deletionPolicy(appOf({ spec: { workload: undefined, template: {} } }))).toBe('Orphan')
    const own = { workload: undefined, template: {}, desired: { state: 'Running' } }
    expect(deletionPolicy(appOf({ spec: own }))).toBe('WalkToEnd')
  })
})

describe('the name of a wish’s Operation', () => {
  test('tells its serial, and no other name does', () => {
    const app = appOf()
    expect(serialOf(app, operationName(app, memory({ serial: 42, hash: '0123456789' })))).toBe(42)
    for (const name of ['db-42', 'db-x-01234567', 'other-1-01234567', 'db-1-nothexhe', 'db-1-01234567-1'])
      expect(serialOf(app, name), name).toBeUndefined()
  })
})

describe('what a wish has come to', () => {
  const settle = (so: WishStatus, ending: 'Succeeded' | 'Failed', transient?: string) =>
    settleWish(so, { ending, transient, observed: 'Running', now: at(1) })

  test('stands in its operation and, for a state that was wished itself, in the wish', () => {
    const so = memory({ operation: { name: 'op', uid: 'u' } })
    expect(settle(so, 'Succeeded', 'Servicing')).toMatchObject({
      outcome: 'Succeeded',
      passed: ['Servicing'],
      passedFrom: 'Running',
      operation: { outcome: 'Succeeded' },
    })
    expect(settle(so, 'Failed', 'Servicing')).toMatchObject({ outcome: 'Failed', passed: [] })
  })

  test('a state on the way is passed, and the wish goes on', () => {
    const so = settle(memory({ state: 'End', operation: { name: 'op', uid: 'u' } }), 'Succeeded', 'Stopping')
    expect(so).toMatchObject({ passed: ['Stopping'] })
    expect(so.outcome).toBeUndefined()
  })

  test('what was passed is forgotten once another observed state is reached, but not before an end', () => {
    const so = memory({ state: 'Running', passed: ['Servicing'], passedFrom: 'Start' })
    expect(arrive(so, graph, 'Start')).toBe(so)
    expect(arrive(so, graph, 'Servicing')).toBe(so)
    expect(arrive(so, graph, 'Unknown')).toBe(so)
    expect(arrive(so, graph, 'Running')).toMatchObject({ passed: [] })
    expect(arrive(so, graph, 'Running')).not.toHaveProperty('passedFrom')
    const end = memory({ state: 'End', passed: ['Stopping'], passedFrom: 'Running' })
    expect(isBeforeEnd(end, graph)).toBe(true)
    expect(arrive(end, graph, 'Start')).toBe(end)
  })

  test('a transient wish that has come to something is followed by the first of its next', () => {
    expect(goalOf(memory(), graph)?.name).toBe('Servicing')
    expect(goalOf(memory({ outcome: 'Failed' }), graph)?.name).toBe('Running')
    expect(goalOf(memory({ state: 'Running', outcome: 'Failed' }), graph)?.name).toBe('Running')
  })

  test('an operation without an end has none, were it Unknown', () => {
    expect(endingOf({ phase: 'Unknown' } as never)).toBeUndefined()
    expect(endingOf({ phase: 'Failed', finishedAt: at(0) } as never)).toBe('Failed')
  })
})

describe('a wish that cannot be carried out', () => {
  const problem = (wish: object) => wishProblem(wish as never, base, 'lc')

  test('is told with the field, the value and the nearest name', () => {
    expect(problem({ state: 'Runing' })).toMatch(
      /spec\.desired\.state: "?Runing"? is no state in lifecycle lc.*Running/,
    )
    expect(problem({ state: 'Servicing', action: 'bakcup' })).toMatch(/spec\.desired\.action: .*bakcup.*backup/)
  })

  test('has to name an action where there are several', () => {
    expect(problem({ state: 'Servicing' })).toBe(
      'spec.desired.action: Servicing has several actions; name one: backup, reload',
    )
    expect(problem({ state: 'Stopping' })).toBeUndefined()
    expect(problem({ state: 'Running' })).toBeUndefined()
  })

  test('is told which parameter is wrong, and that secrets come from a Secret', () => {
    const params = { to: { type: 'string', pattern: '^/' }, key: { type: 'string', writeOnly: true } }
    const actions = (lifecycle.actions ?? []).map(action => (action.name === 'backup' ? { ...action, params } : action))
    const view = lifecycleViewOf({ ...lifecycle, actions } as never)
    const of = (more: object) => wishProblem({ state: 'Servicing', action: 'backup', ...more } as never, view, 'lc')
    const from = (name: string) => [{ name, secretKeyRef: { name: 's', key: 'k' } }]
    expect(of({ params: { to: 'x' } })).toMatch(/spec\.desired\.params\.to|spec\.desired\.to/)
    expect(of({ params: { key: 'k' } })).toBe(
      'spec.desired.params.key is secret: give it by paramsFrom, out of a Secret',
    )
    expect(of({ paramsFrom: from('kye') })).toMatch(/spec\.desired\.paramsFrom: .*kye.* is no parameter.*key/)
    expect(of({ params: { to: '/x' }, paramsFrom: from('key') })).toBeUndefined()
  })
})
