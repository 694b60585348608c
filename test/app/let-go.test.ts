/**
 * When an app that is being deleted goes.
 */
import { expect, test } from 'vitest'
import { wishHash, wishOf } from '../../controller/app/decide/wish.ts'
import { decideLetGo } from '../../controller/app/let-go.ts'
import { appOf, at, base, now } from './decide/views.ts'

const deletionTimestamp = at(0)
const own = { workload: undefined, template: { spec: {} }, desired: { state: 'Running' } }
const decide = (
  { spec = own, status, metadata }: { spec?: object; status?: object; metadata?: object } = {},
  more: { now?: number; lifecycle?: undefined; isNamespaceTerminating?: boolean; isUninstalled?: boolean } = {},
) =>
  decideLetGo({
    app: appOf({ spec, ...(status && { status }), metadata: { deletionTimestamp, ...metadata } }),
    ...{ lifecycle: base, now, isNamespaceTerminating: false, isUninstalled: false, ...more },
  })

test('one with an existing workload goes at once, whatever its lifecycle and its time', () => {
  expect(decide({ spec: {} })).toEqual({ is: 'go' })
  expect(decide({ spec: {} }, { lifecycle: undefined, now: now + 1e9 })).toEqual({ is: 'go' })
})

test('one of its own walks, until its deadline', () => {
  expect(decide()).toEqual({ is: 'walk', until: now + 600_000 })
  expect(decide({ spec: { ...own, deletion: { deadline: '5s' } } })).toEqual({ is: 'walk', until: now + 5000 })
})

test('it goes when the end that the deletion asks for is stored, and by no earlier one', () => {
  const app = appOf({ spec: own, metadata: { deletionTimestamp } })
  const wish = wishOf({ app, lifecycle: base })
  if (!wish) throw new Error('nothing is wished')
  const ended = { serial: 2, state: 'End', outcome: 'Succeeded', at: at(0) }
  expect(decide({ status: { wish: { ...ended, hash: wishHash(wish) } } })).toEqual({ is: 'go' })
  expect(decide({ status: { wish: { ...ended, hash: wishHash({ state: 'End' }) } } }).is).toBe('walk')
})

test('it goes unstopped, with a word on it, past its deadline, when a person says so, without a lifecycle, and when all are uninstalled', () => {
  const reason = (step: ReturnType<typeof decide>) => (step.is === 'go' ? step.event?.reason : step)
  expect(reason(decide({}, { now: now + 600_000 }))).toBe('DeletionOverdue')
  const annotations = { 'shipmate.dev/skip-lifecycle': 'true' }
  expect(reason(decide({ metadata: { annotations } }))).toBe('LifecycleSkipped')
  expect(reason(decide({}, { lifecycle: undefined }))).toBe('LifecycleGone')
  expect(reason(decide({}, { isUninstalled: true }))).toBe('Uninstalled')
})

test('in a namespace that goes, nothing is walked and nothing said', () => {
  expect(decide({}, { isNamespaceTerminating: true })).toEqual({ is: 'go' })
})
