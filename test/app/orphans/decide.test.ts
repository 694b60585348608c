import { describe, expect, it } from 'vitest'
import type { Operation } from '../../../controller/app/kinds.ts'
import { type Around, decideOrphan } from '../../../controller/app/orphans/decide.ts'
import type { Snapshot } from '../../../controller/kube/kind.ts'

const now = Date.parse('2026-06-01T12:00:00Z')
const holds = 'shipmate.dev/operation'
const around: Around = { now, app: 'u1', apps: ['orders-db'], isNamespaceTerminating: false, hasSchedule: false }
const gone = { ...around, app: undefined }

function op(metadata: object, status: object = {}, spec: object = {}): Snapshot<Operation> {
  return {
    metadata: { name: 'x', namespace: 'n', uid: 'o', ...metadata },
    spec: { app: 'orders-bd', action: 'backup', ttlSecondsAfterFinished: 60, ...spec },
    status,
  } as unknown as Snapshot<Operation>
}
const over = (seconds: number, phase = 'Succeeded') => ({
  phase,
  finishedAt: new Date(now - seconds * 1000).toISOString(),
})
const deletionTimestamp = '2026-06-01T11:00:00Z'

describe('the finalizer', () => {
  it.each<[string, Around, object, string[]]>([
    ['stays while the app is there', around, { finalizers: [holds] }, []],
    ['goes when the app is not', gone, { finalizers: [holds] }, [holds]],
    [
      "of a wish of another app's goes",
      around,
      { finalizers: [holds], labels: { 'shipmate.dev/wish-of': 'u0' } },
      [holds],
    ],
    ["of a wish of the app's stays", around, { finalizers: [holds], labels: { 'shipmate.dev/wish-of': 'u1' } }, []],
    [
      'goes in a namespace that goes',
      { ...around, isNamespaceTerminating: true },
      { finalizers: [holds], deletionTimestamp },
      [holds],
    ],
    ['of others is not ours', gone, { finalizers: ['theirs.example.com/x'] }, []],
    ['of a schedule that is gone goes', around, { finalizers: ['shipmate.dev/schedule'] }, ['shipmate.dev/schedule']],
    [
      'of a schedule stays while that is there',
      { ...around, hasSchedule: true },
      { finalizers: ['shipmate.dev/schedule'] },
      [],
    ],
  ])('%s', (_, there, metadata, expected) => {
    expect(decideOrphan(op(metadata), there).release).toEqual(expected)
  })
})

describe('an unknown app', () => {
  it('is told, with the nearest name', () => {
    expect(decideOrphan(op({}), gone).stalled).toEqual({
      message: 'There is no StatefulApp "orders-bd" in namespace n; did you mean "orders-db"?',
    })
  })
  it('is taken back when it is there, and when the Operation has ended', () => {
    const conditions = [{ type: 'Stalled', reason: 'UnknownApp' }]
    expect(decideOrphan(op({}, { conditions }), around).stalled).toBeUndefined()
    expect(decideOrphan(op({}, { conditions, ...over(5) }), gone).stalled).toBeUndefined()
  })
  it("leaves an app's own words alone", () => {
    expect(decideOrphan(op({}, { conditions: [{ type: 'Stalled', reason: 'X' }] }), around).stalled).toBe('keep')
    expect(decideOrphan(op({}), around).stalled).toBe('keep')
  })
})

describe('what is finished', () => {
  it('goes when its time is over, and not before', () => {
    expect(decideOrphan(op({}, over(60)), around)).toMatchObject({ isOver: true, until: undefined })
    expect(decideOrphan(op({}, over(59)), around)).toMatchObject({ isOver: false, until: now + 1000 })
    expect(decideOrphan(op({}, over(0), { ttlSecondsAfterFinished: 0 }), around).isOver).toBe(true)
  })
  it.each([
    ['Unknown', {}, over(9999, 'Unknown')],
    ['Running', {}, over(9999, 'Running')],
    ['held by its app', { finalizers: [holds] }, over(9999)],
    ['held by somebody', { finalizers: ['theirs.example.com/x'] }, over(9999)],
    ['going already', { deletionTimestamp }, over(9999)],
    ['without a time', {}, { phase: 'Succeeded' }],
  ])('is not one that is %s', (_, metadata, status) => {
    expect(decideOrphan(op(metadata, status), around)).toMatchObject({ isOver: false, until: undefined })
  })
})
