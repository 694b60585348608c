import { describe, expect, test } from 'vitest'
import { type AppDecision, type AppFacts, decideApp, operationFinalizer } from '../../../controller/app/decide/app.ts'
import { wishLabel } from '../../../controller/app/decide/queue.ts'
import { remember } from '../../../controller/app/decide/wish.ts'
import type { Op, View, Wish, WishStatus } from '../../../controller/app/view.ts'
import { agentOf, appOf, at, facts, opOf, podOf, recordOf, says, viewOf, workloadOf } from './views.ts'

const backup: Wish = { state: 'Servicing', action: 'backup' }
const memory = (wish: Wish, over: Partial<WishStatus> = {}): WishStatus => ({
  ...remember(undefined, wish, at(0)),
  ...over,
})
const nameOf = ({ serial, hash }: WishStatus) => `db-${serial}-${hash.slice(0, 8)}`

interface Given extends Partial<View> {
  readonly desired?: Wish
  readonly spec?: object
  readonly status?: object
  readonly metadata?: object
}

function decide(
  { desired, spec, status, metadata, ...view }: Given = {},
  learned: Partial<AppFacts> = {},
): AppDecision {
  const app = appOf({
    spec: { ...spec, ...(desired && { desired }) },
    ...(status && { status }),
    ...(metadata && { metadata }),
  })
  return decideApp(viewOf({ app, ...view }), facts(learned))
}

const made = (wish: WishStatus, over: { status?: object; spec?: object; metadata?: object } = {}): Op =>
  opOf({
    ...over,
    spec: { action: wish.state === 'End' ? 'stop' : 'backup', ...over.spec },
    metadata: { name: nameOf(wish), uid: 'op', labels: { [wishLabel]: 'app' }, ...over.metadata },
  })
/** What it does, but for telling who waits. */
const does = ({ effects }: AppDecision) =>
  effects.flatMap(effect => {
    if (effect.do === 'writeOperation' && effect.status.phase === 'Queued') return []
    return effect.do === 'ask' ? `ask ${effect.ask.ask}` : effect.do
  })

describe('a wish', () => {
  test('has its Operation made, is stored with the uid of it, and both are one write with its turn', () => {
    const so = decide({ desired: backup })
    expect(does(so)).toEqual(['createOperation'])
    expect(so.status).toEqual({ wish: memory(backup) })
    const next = decide({ desired: backup, operations: [made(memory(backup))] })
    expect(does(next)).toEqual([])
    expect(next.status).toMatchObject({ wish: { serial: 1, operation: { uid: 'op' } }, operation: { uid: 'op' } })
  })

  test('is stored first where nothing may be begun for it, and where the workload is still to be claimed', () => {
    const unclaimed = { workload: workloadOf({ claimedBy: undefined }) }
    const other = opOf({ metadata: { name: 'mine', uid: 'mine' }, status: { targets: [] } })
    const busy = {
      operations: [other],
      status: { operation: { name: 'mine', uid: 'mine', fence: 1, action: 'reload' } },
    }
    for (const given of [{ spec: { paused: true } }, unclaimed, busy]) {
      const so = decide({ desired: backup, ...given })
      expect(does(so)).not.toContain('createOperation')
      expect(does(so)).not.toContain('claim')
      expect(so.status.wish).toEqual(memory(backup))
    }
  })

  test('that stands and needs nothing done is stored by itself; for the workload nothing is done before that', () => {
    const absent = { workload: undefined, pods: [], spec: { template: {}, workload: undefined } }
    const so = decide({ desired: { state: 'Running' }, ...absent })
    expect(so.next?.is).toBe('create')
    expect(does(so)).toEqual([])
    expect(does(decide({ desired: { state: 'Running' }, ...absent, status: so.status }))).toEqual(['create'])
  })

  test('that needs a further Operation has it made under the next serial, and is stored with it', () => {
    const operation = { name: 'db-1-00000000', uid: 'first', outcome: 'Succeeded' as const }
    const wish = memory({ state: 'End' }, { operation })
    const so = decide({ desired: { state: 'End' }, status: { wish } })
    const further = { ...wish, serial: 2 }
    expect(so.effects).toMatchObject([{ do: 'createOperation', name: nameOf(further), action: 'stop' }])
    expect(so.status.wish).toEqual(wish)
    const next = decide({ desired: { state: 'End' }, status: { wish }, operations: [made(further)] })
    expect(next.status).toMatchObject({ wish: { serial: 2, operation: { uid: 'op' } }, operation: { uid: 'op' } })
  })

  test('that is stored makes an Operation, takes it up, and makes it the current one', () => {
    const wish = memory(backup)
    expect(does(decide({ desired: backup, status: { wish } }))).toEqual(['createOperation'])
    const op = made(wish)
    const taken = decide({ desired: backup, status: { wish }, operations: [op] })
    expect(taken.status).toMatchObject({ wish: { operation: { uid: 'op' } } })
    expect(does(taken)).toEqual([])
  })

  test('does not take up an Operation of its name that another app has made', () => {
    const wish = memory(backup)
    const op = made(wish, { metadata: { labels: { [wishLabel]: 'another app' }, finalizers: [] } })
    expect(decide({ desired: backup, status: { wish }, operations: [op] }).status.wish?.operation).toBeUndefined()
  })

  test('whose Operation vanished is Lost, and says what to do', () => {
    const wish = memory(backup, { operation: { name: 'op', uid: 'op' } })
    const so = decide({ desired: backup, status: { wish } })
    expect(so.status.wish).toMatchObject({ outcome: 'Lost' })
    expect(so.stalled?.message).toMatch(/vanished without an outcome: change the wish/)
  })

  test('that cannot be carried out is Stalled, and nothing is done', () => {
    const so = decide({ desired: { state: 'Nowhere' } })
    expect(so.stalled).toMatchObject({ reason: 'InvalidWish' })
    expect(does(so)).toEqual([])
  })

  test('for a state that no run may explain is not walked on from, and nothing is scaled away', () => {
    const wish = memory({ state: 'End' })
    const so = decide({ desired: { state: 'End' }, status: { wish }, pods: [says(0, 'Stopping')] })
    expect(does(so)).toEqual([])
    expect(so.waiting).toMatchObject({ what: 'Stopping to be over', next: 'then End' })
  })

  test('for the end is that of an app that is being deleted, were another one stored', () => {
    const metadata = { deletionTimestamp: at(0) }
    const so = decide({
      metadata,
      spec: { deletion: { policy: 'WalkToEnd' } },
      desired: backup,
      status: { wish: memory(backup) },
    })
    expect(so.wish).toMatchObject({ state: 'End', request: at(0) })
    expect(so.status.wish).toMatchObject({ serial: 2, state: 'End' })
  })

  test('that is taken away is remembered as none, so that the same one is another one later', () => {
    const so = decide({ status: { wish: memory(backup, { serial: 4 }) } })
    expect(so.status.wish).toMatchObject({ hash: 'none', serial: 5 })
  })
})

describe('an Operation of a wish', () => {
  const wish = memory(backup)

  test('that this view is too old to know is left alone', () => {
    const op = made(wish)
    for (const status of [undefined, { wish: memory({ state: 'Running' }, { serial: 0 }) }])
      expect(
        does(decide({ operations: [op], ...(status && { status, desired: { state: 'Running' } as Wish }) })),
      ).toEqual([])
  })

  test('is let go only when its outcome is stored', () => {
    const op = made(wish, { status: { phase: 'Succeeded', finishedAt: at(0), targets: [] } })
    const stored = (operation?: object) => ({
      desired: backup,
      status: { wish: { ...wish, operation } },
      operations: [op],
    })
    expect(does(decide(stored()))).not.toContain('releaseOperation')
    expect(does(decide(stored({ name: nameOf(wish), uid: 'op' })))).not.toContain('releaseOperation')
    const outcome = { name: nameOf(wish), uid: 'op', outcome: 'Succeeded' }
    expect(does(decide(stored(outcome)))).toContain('releaseOperation')
    const next = memory({ state: 'Running' }, { serial: 2 })
    expect(does(decide({ desired: { state: 'Running' }, status: { wish: next }, operations: [op] }))).toEqual([
      'releaseOperation',
    ])
  })

  test('of an earlier wish is never begun, and is Superseded once the new one is stored', () => {
    const op = made(wish)
    const desired: Wish = { ...backup, request: 'again' }
    const unstored = decide({ desired, status: { wish }, operations: [op] })
    expect(unstored.status.operation).toBeUndefined()
    const stored = decide({ desired, status: { wish: unstored.status.wish }, operations: [op] })
    expect(stored.effects[0]).toMatchObject({
      do: 'writeOperation',
      status: { phase: 'Cancelled', reason: 'Superseded' },
    })
  })

  test('that was made for a wish that was taken back before it was stored is passed over, then Superseded', () => {
    const before = memory({ state: 'Running' })
    const op = made(memory(backup, { serial: 2 }))
    for (const [desired, stored] of [
      [{ state: 'Running' }, before],
      [undefined, undefined],
    ] as const) {
      const given = { ...(desired && { desired }), operations: [op] }
      const so = decide({ ...given, ...(stored && { status: { wish: stored } }) })
      expect(does(so)).toEqual([])
      expect(so.status).toEqual({ wish: expect.objectContaining({ serial: 3 }) })
      expect(decide({ ...given, status: so.status }).effects[0]).toMatchObject({
        do: 'writeOperation',
        status: { phase: 'Cancelled', reason: 'Superseded' },
      })
    }
  })

  test('for a way that is not gone any more is passed over', () => {
    const stop = made(wish, { spec: { action: 'stop' } })
    const so = decide({ desired: backup, status: { wish }, operations: [stop] })
    expect(so.status).toEqual({ wish: expect.objectContaining({ serial: 2 }) })
    expect(does(so)).toEqual([])
  })

  test('that was made anew under the name of one that has an outcome is not begun, and is ended', () => {
    const done = {
      ...wish,
      outcome: 'Succeeded',
      operation: { name: nameOf(wish), uid: 'first', outcome: 'Succeeded' },
    }
    const op = made(wish, { metadata: { uid: 'second' } })
    const so = decide({ desired: backup, status: { wish: done }, operations: [op] })
    expect(so.status.operation).toBeUndefined()
    expect(does(so)).toEqual(['writeOperation'])
  })
})

describe('the current operation', () => {
  const operation = { name: 'mine', uid: 'mine', fence: 1, action: 'backup', state: 'Servicing' }
  const mine = (over: object = {}) => opOf({ metadata: { name: 'mine', uid: 'mine' }, ...over })
  const running = mine({
    status: { phase: 'Running', targets: [{ pod: 'db-0', uid: 'pod-0' }], runs: [recordOf({ phase: 'Running' })] },
  })

  test('is held by its finalizer first, and gets a fence above all that was seen', () => {
    const op = mine({ metadata: { name: 'mine', uid: 'mine', finalizers: [] } })
    expect(does(decide({ operations: [op] }))).toEqual(['holdOperation'])
    const pods = [podOf(0, { agent: agentOf({ state: { fence: 65_536 * 7 + 3 } }) })]
    const so = decide({ operations: [mine()], pods, status: { fence: 3 } })
    expect(so.status).toMatchObject({ operation: { uid: 'mine', fence: 8, state: 'Servicing' }, fence: 8 })
  })

  test('is cancelled for a wish that preempts, once that is stored, and for no other', () => {
    const desired = { state: 'End', preempt: true }
    const wish = memory(desired)
    const given = { desired, operations: [running], pods: [podOf(0, { agent: agentOf({ isReachable: false }) })] }
    expect(does(decide({ ...given, status: { operation, wish } }))).toContain('cancelOperation')
    expect(does(decide({ ...given, status: { operation } }))).not.toContain('cancelOperation')
    expect(does(decide({ ...given, desired: { state: 'End' }, status: { operation, wish } }))).not.toContain(
      'cancelOperation',
    )
  })

  test('that ended makes room, and is let go in the next decision', () => {
    const ended = mine({ status: { phase: 'Succeeded', finishedAt: at(0) } })
    const so = decide({ operations: [ended], status: { operation, fence: 1 } })
    expect(so.status).toEqual({ fence: 1 })
    expect(does(so)).toEqual([])
    expect(does(decide({ operations: [ended], status: { fence: 1 } }))).toEqual(['releaseOperation'])
    expect(ended.metadata.finalizers).toContain(operationFinalizer)
  })
})

describe('nothing is begun', () => {
  test('while the app is paused', () => {
    const so = decide({
      desired: backup,
      spec: { paused: true },
      status: { wish: memory(backup) },
      operations: [opOf()],
    })
    expect(does(so)).toEqual([])
    expect(so.status.operation).toBeUndefined()
    expect(so.waiting?.what).toBe('paused to be taken away')
  })

  test('for an app whose workload is another’s', () => {
    const workload = workloadOf({ claimedBy: { namespace: 'default', name: 'first', uid: 'first' } })
    const so = decide({ workload, desired: backup, status: { wish: memory(backup) }, operations: [opOf()] })
    expect(does(so)).toEqual([])
    expect(so.stalled).toMatchObject({ reason: 'Claimed', message: expect.stringContaining('default/first') })
  })

  test('without a lifecycle, and the status stays as it is', () => {
    const status = { wish: memory(backup), fence: 4 }
    const so = decide({ desired: backup, status, lifecycle: undefined })
    expect(so).toMatchObject({ status, effects: [], stalled: { reason: 'NoLifecycle' } })
  })
})
