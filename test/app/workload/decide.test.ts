/**
 * What is decided about a workload: Create, the end, the claim and the gate.
 */
import { describe, expect, test } from 'vitest'
import { decideClaim } from '../../../controller/app/workload/claim.ts'
import { decideCreate } from '../../../controller/app/workload/create.ts'
import { decideEnd, type EndView, endingOf, isEndDone } from '../../../controller/app/workload/end.ts'
import { decideGate } from '../../../controller/app/workload/gate.ts'
import type { Part } from '../../../controller/app/workload/template.ts'
import { belongs } from '../../../controller/app/workload/volumes.ts'
import { anApp, aWorkload, templateApp } from './objects.ts'

const none = { parts: [], leftovers: [] }
const scaledDown = aWorkload({ replicas: 0, annotatedReplicas: 3, keptReplicas: 3 })

describe('Create', () => {
  const part = (more: object) => ({ kind: { kind: 'Service' }, isDifferent: false, ...more }) as unknown as Part
  const live = (metadata: object = {}) => ({ metadata: { name: 'orders', ...metadata } })

  test('leaves an existing workload as it is', () =>
    expect(decideCreate(anApp(), aWorkload(), none)).toEqual({ is: 'nothing' }))
  test('does not scale up what somebody else has scaled to zero', () =>
    expect(decideCreate(anApp(), aWorkload({ replicas: 0 }), none)).toEqual({ is: 'nothing' }))
  test('scales back up to the number that was kept', () =>
    expect(decideCreate(anApp(), scaledDown, none)).toMatchObject({ is: 'scaleUp', to: 3 }))
  test('forgets the number once somebody else has scaled up', () =>
    expect(decideCreate(anApp(), aWorkload({ annotatedReplicas: 3 }), none)).toMatchObject({ is: 'forget' }))
  test('waits for a workload that should be there', () =>
    expect(decideCreate(anApp(), undefined, none)).toEqual({ is: 'wait', for: 'StatefulSet db to be there' }))
  test('waits for one that is going', () =>
    expect(decideCreate(templateApp(), aWorkload({ isBeingDeleted: true }), none)).toEqual({
      is: 'wait',
      for: 'StatefulSet db to be gone',
    }))
  test('applies what differs from the template, and that alone', () => {
    const different = part({ isDifferent: true })
    const step = decideCreate(templateApp(), aWorkload(), { parts: [part({}), different], leftovers: [] })
    expect(step).toEqual({ is: 'apply', parts: [different], leftovers: [] })
  })
  test('takes away what the template asks for no more', () => {
    const leftovers = [{ kind: {}, live: live() }] as never
    expect(decideCreate(templateApp(), aWorkload(), { parts: [], leftovers })).toMatchObject({ is: 'apply', leftovers })
  })
  test('brings it up to the template before it scales up, and to the number of the template', () => {
    const app = templateApp()
    const parts = [part({ isDifferent: true })]
    expect(decideCreate(app, scaledDown, { parts, leftovers: [] })).toMatchObject({ is: 'apply' })
    const five = templateApp({ spec: { replicas: 5, template: {} } })
    expect(decideCreate(five, scaledDown, none)).toMatchObject({ is: 'scaleUp', to: 5 })
  })
  test('touches nothing at all where something is not ours', () => {
    const parts = [part({ isDifferent: true }), part({ foreign: 'Service orders is theirs', isDifferent: true })]
    const step = decideCreate(templateApp(), undefined, { parts, leftovers: [] })
    expect(step).toEqual({ is: 'refused', message: 'Service orders is theirs' })
  })
  test('waits for a part that is being deleted', () => {
    const parts = [part({ isDifferent: true, live: live({ deletionTimestamp: 'now' }) })]
    expect(decideCreate(templateApp(), undefined, { parts, leftovers: [] })).toEqual({
      is: 'wait',
      for: 'Service orders to be gone',
    })
  })
})

describe('the end', () => {
  const view = (more: Partial<EndView>): EndView => ({
    ...{ ending: 'ScaleToZero', workload: aWorkload(), pods: [], made: [], claims: [], ...more },
  })
  const pods = ['a', 'b', 'c', 'd', 'e'].map(name => ({ name }))
  const claim = (more: object = {}) => ({ name: 'data-db-0', uid: 'c', isMarked: true, isBeingDeleted: false, ...more })
  const made = [{ kind: {}, live: { metadata: {} } }] as never

  test('is to scale to zero, or to leave alone what cannot be scaled, unless the app says otherwise', () => {
    expect(endingOf(anApp(), aWorkload())).toBe('ScaleToZero')
    expect(endingOf(anApp(), undefined)).toBe('ScaleToZero')
    expect(endingOf(anApp(), aWorkload({ isScalable: false }))).toBe('Orphan')
    expect(endingOf(anApp({ onEnd: 'Delete' }), aWorkload({ isScalable: false }))).toBe('Delete')
  })
  test('of an orphan is at once', () => expect(isEndDone(view({ ending: 'Orphan', pods }))).toBe(true))
  test('scales, then waits for the pods by their names, then is done', () => {
    expect(decideEnd(view({}))).toMatchObject({ is: 'scale' })
    expect(decideEnd(view({ workload: scaledDown, pods }))).toEqual({
      is: 'wait',
      for: 'pods a, b, c and 2 more to end',
    })
    expect(decideEnd(view({ workload: scaledDown }))).toEqual({ is: 'done' })
    expect(decideEnd(view({ workload: undefined }))).toEqual({ is: 'done' })
  })
  test('refuses to scale what cannot be scaled', () =>
    expect(decideEnd(view({ workload: aWorkload({ kind: 'DaemonSet', isScalable: false }) }))).toEqual({
      is: 'refused',
      message: 'spec.onEnd: a DaemonSet cannot be scaled to zero; use Orphan, Delete or DeleteWithVolumes',
    }))
  test('deletes the workload, waits for its pods, and then takes away what they needed', () => {
    const ending = 'Delete'
    const going = aWorkload({ isBeingDeleted: true })
    expect(decideEnd(view({ ending, pods, made }))).toMatchObject({ is: 'delete' })
    expect(decideEnd(view({ ending, workload: going, pods: [{ name: 'a' }], made }))).toEqual({
      is: 'wait',
      for: 'pod a to end',
    })
    expect(decideEnd(view({ ending, workload: going, made }))).toMatchObject({ is: 'wait' })
    expect(decideEnd(view({ ending, workload: undefined, made }))).toMatchObject({ is: 'prune' })
    expect(decideEnd(view({ ending, workload: undefined }))).toEqual({ is: 'done' })
  })
  test('marks the volumes before the workload goes, and deletes them after', () => {
    const ending = 'DeleteWithVolumes'
    expect(decideEnd(view({ ending, claims: [claim({ isMarked: false })] }))).toMatchObject({ is: 'mark' })
    expect(decideEnd(view({ ending, claims: [claim()] }))).toMatchObject({ is: 'delete' })
    const late = { ending, workload: aWorkload({ isBeingDeleted: true }), pods, claims: [claim({ isMarked: false })] }
    expect(decideEnd(view(late as never)), 'made while it was being deleted').toMatchObject({ is: 'mark' })
    const gone = { ending, workload: undefined } as const
    expect(decideEnd(view({ ...gone, claims: [claim()] }))).toMatchObject({ is: 'deleteClaims' })
    expect(decideEnd(view({ ...gone, claims: [claim({ isBeingDeleted: true })] }))).toEqual({
      is: 'wait',
      for: 'claim data-db-0 to be gone',
    })
    expect(decideEnd(view(gone))).toEqual({ is: 'done' })
  })
})

test.each([
  ['data-db-0', { app: 'db', more: 'x' }, true],
  ['data-db-12', { app: 'db' }, true],
  ['data-db-0', { app: 'other' }, false],
  ['data-db-0', undefined, false],
  ['data-db-x-0', { app: 'db' }, false],
  ['data-db-', { app: 'db' }, false],
  ['other-db-0', { app: 'db' }, false],
])('the claim %s with labels %j', (name, labels, is) =>
  expect(belongs({ metadata: { name, labels } } as never, aWorkload())).toBe(is),
)

test('no claim is told from others by expressions', () => {
  const selector = { matchExpressions: [{ key: 'app', operator: 'Exists' }] }
  expect(belongs({ metadata: { name: 'data-db-0', labels: { app: 'db' } } } as never, aWorkload({ selector }))).toBe(
    false,
  )
})

describe('a claim on a workload', () => {
  const claimedBy = { namespace: 'shop', name: 'first', uid: 'app-0' }
  test('is taken where there is none', () => expect(decideClaim(anApp(), aWorkload(), undefined).is).toBe('take'))
  test('is ours', () =>
    expect(decideClaim(anApp(), aWorkload({ claimedBy: { ...claimedBy, uid: 'app-1' } }), undefined).is).toBe('ours'))
  test('is held by an app that is there', () =>
    expect(decideClaim(anApp(), aWorkload({ claimedBy }), 'app-0')).toEqual({
      is: 'held',
      by: claimedBy,
      message: 'StatefulSet db belongs to StatefulApp shop/first; a workload has one app',
    }))
  test('is taken over from one that is gone, or has only a namesake', () => {
    expect(decideClaim(anApp(), aWorkload({ claimedBy }), undefined).is).toBe('take')
    expect(decideClaim(anApp(), aWorkload({ claimedBy }), 'app-9').is).toBe('take')
  })
  test('is not written on what is going, or not there', () => {
    expect(decideClaim(anApp(), aWorkload({ isBeingDeleted: true }), undefined).is).toBe('nothing')
    expect(decideClaim(anApp(), undefined, undefined).is).toBe('nothing')
  })
})

describe('the gate', () => {
  const budget = (name: string, more: { metadata?: object; selector?: object } = {}) =>
    ({
      metadata: { name, ...more.metadata },
      spec: { selector: more.selector ?? { matchLabels: { app: 'db' } } },
    }) as never
  const ours = budget('shipmate-orders', { metadata: { labels: { 'shipmate.dev/app-uid': 'app-1' } } })
  const view = (...budgets: never[]) => ({ workload: aWorkload(), podLabels: [{ app: 'db' }], budgets })

  test('is held while it is wanted', () =>
    expect(decideGate(anApp(), view(), true)).toMatchObject({
      is: 'hold',
      budget: {
        metadata: { name: 'shipmate-orders' },
        spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'db' } } },
      },
      gated: { status: 'True', reason: 'Gated' },
    }))
  test('is removed when it is not wanted any more, whoever left it', () => {
    expect(decideGate(anApp(), view(ours), false)).toEqual({ is: 'remove', budget: ours, gated: undefined })
    expect(decideGate(anApp(), { ...view(ours), workload: undefined }, true)).toMatchObject({ is: 'remove' })
    expect(decideGate(anApp(), view(), false)).toEqual({ is: 'nothing', gated: undefined })
  })
  test('is none where another budget selects these pods, and the app says so', () => {
    const gated = { status: 'False', reason: 'OtherBudget' }
    const other = budget('db')
    expect(decideGate(anApp(), view(other), true)).toMatchObject({ is: 'nothing', gated })
    expect(decideGate(anApp(), view(ours, other), true)).toMatchObject({ is: 'remove', budget: ours, gated })
    expect(decideGate(anApp(), view(budget('all', { selector: {} })), true)).toMatchObject({ is: 'nothing', gated })
    expect(decideGate(anApp(), view(budget('x', { selector: { matchLabels: { app: 'x' } } })), true).is).toBe('hold')
  })
  test("is none where the name is somebody else's, which is left alone", () => {
    const theirs = budget('shipmate-orders', { selector: { matchLabels: { app: 'x' } } })
    expect(decideGate(anApp(), view(theirs), true)).toMatchObject({ is: 'nothing', gated: { reason: 'OtherBudget' } })
    expect(decideGate(anApp(), view(theirs), false)).toMatchObject({ is: 'nothing' })
  })
  test('of an earlier app of the same name goes first', () => {
    const old = budget('shipmate-orders', { metadata: { labels: { 'shipmate.dev/app-uid': 'app-0' } } })
    expect(decideGate(anApp(), view(old), true)).toMatchObject({ is: 'remove', budget: old })
  })
  test('is not made again and again while the app is deleted in the foreground', () =>
    expect(decideGate(anApp({}, { finalizers: ['foregroundDeletion'] }), view(), true).is).toBe('nothing'))
})
