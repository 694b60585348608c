import { describe, expect, test } from 'vitest'
import type { AppFacts } from '../../../controller/app/decide/app.ts'
import { observe } from '../../../controller/app/decide/observe.ts'
import { decideOperation, runIdOf } from '../../../controller/app/decide/operation.ts'
import type { Op, OpStatus, RunRecord, View } from '../../../controller/app/view.ts'
import { hashOf } from '../../../shared/canonical.ts'
import type { Action } from '../../../shared/lifecycle/model.ts'
import { lifecycle } from './sim.ts'
import {
  agentOf,
  appOf,
  at,
  facts,
  lifecycleViewOf,
  now,
  opOf,
  podOf,
  recordOf,
  saidOf,
  stateOf,
  viewOf,
  workloadOf,
} from './views.ts'

function decide(op: Op, view: Partial<View> = {}, learned: Partial<AppFacts> = {}, fence = 1) {
  const all = viewOf({ operations: [op], ...view })
  return decideOperation(all, op, { fence, observed: observe(all), facts: facts(learned) })
}

const target = { pod: 'db-0', uid: 'pod-0' }
const actionOf = (name: string) => lifecycle.actions?.find(one => one.name === name)
const begun = (
  runs: RunRecord[],
  { action = 'backup', ...more }: Partial<Omit<Op['spec'], 'settle'>> & { metadata?: object } = {},
) => {
  const { metadata, ...spec } = more
  const status = { phase: 'Running', targets: [target], startedAt: at(0), actionHash: hashOf(actionOf(action)), runs }
  return opOf({ spec: { action, ...spec }, status, ...(metadata && { metadata }) })
}
const asks = ({ asks }: { asks: readonly { ask: string }[] }) => asks.map(({ ask }) => ask)
const fresh = (over = {}) => ({ states: new Map([['pod-0', stateOf(over)]]) })
const failed = (code = 'ExitCode', over: Partial<RunRecord> = {}) =>
  recordOf({ phase: 'Failed', error: { code, message: 'no' }, finishedAt: at(0), ...over })
const lost = (over: Partial<RunRecord> = {}) =>
  recordOf({ phase: 'Unknown', error: { code: 'Lost', message: 'gone' }, podEnded: true, ...over })
const change = (name: string, over: Partial<Action>) =>
  lifecycleViewOf({
    ...lifecycle,
    actions: (lifecycle.actions ?? []).map(one => (one.name === name ? { ...one, ...over } : one)),
  })

describe('an operation that begins', () => {
  test('resolves its targets, and asks for what their pods have seen before it writes a run', () => {
    const first = decide(opOf())
    expect(first.status).toMatchObject({ phase: 'Running', targets: [target], actionHash: hashOf(actionOf('backup')) })
    expect(first.status.runs).toBeUndefined()
    expect(asks(first)).toEqual(['state'])
  })

  test('writes a run with its fence, journal, configuration and node, and does not send it yet', () => {
    const op = begun([])
    const { status, asks: none } = decide(op, {}, fresh())
    expect(status.runs).toMatchObject([
      {
        id: runIdOf(op, 'pod-0', 1),
        attempt: 1,
        fence: 65_537,
        journalId: 'journal',
        node: 'node',
        nodeBootId: 'kernel',
        phase: 'Written',
      },
    ])
    expect(none).toEqual([])
  })

  test('sends a run that stands in the status', () => {
    expect(asks(decide(begun([recordOf()])))).toEqual(['put'])
  })

  test('does not send again what its pod knows', () => {
    const pods = [podOf(0, { agent: agentOf({ runs: new Map([['run', saidOf()]]) }) })]
    expect(asks(decide(begun([recordOf()]), { pods }))).toEqual([])
  })

  test('needs another fence where the pod has seen a higher one', () => {
    expect(decide(begun([]), {}, fresh({ fence: 65_537 }))).toMatchObject({ needsFence: true })
    expect(decide(begun([]), {}, fresh({ fence: 65_536 })).needsFence).toBe(false)
  })

  test('has Failed if there is no such action or a parameter is wrong', () => {
    expect(decide(opOf({ spec: { action: 'nothing' } })).status).toMatchObject({
      phase: 'Failed',
      reason: 'UnknownAction',
    })
    expect(decide(opOf({ spec: { params: { x: 1 } } })).status).toMatchObject({
      phase: 'Failed',
      reason: 'InvalidParams',
    })
  })

  test('waits, and says for what', () => {
    const waits = (view: Partial<View>) => decide(begun([]), view).waiting?.what
    expect(decide(opOf(), { workload: workloadOf({ replicas: 2 }) }).waiting?.what).toBe('1 of 2 pods to be there')
    expect(waits({ pods: [] })).toBe('pod db-0 to be there')
    expect(waits({ pods: [podOf(0, { hasAgent: false })] })).toBe('a sidecar in db-0')
    expect(waits({ pods: [podOf(0, { agent: agentOf({ isReachable: false }) })] })).toBe(
      'the sidecar of db-0 to be reached',
    )
    expect(waits({ pods: [podOf(0, { agent: agentOf({ state: { configHash: 'old' } }) })] })).toBe(
      'db-0 to have the lifecycle lc as it is now',
    )
    expect(waits({ workload: workloadOf({ isRollingOut: true }) })).toBe('the rollout of the workload to be done')
    expect(decide(begun([]), {}, { asked: new Set(['state pod-0']) }).waiting?.what).toBe(
      'the sidecar of db-0 to answer',
    )
  })

  test('begins nothing while the app is paused, but goes on with what runs', () => {
    const app = appOf({ spec: { paused: true } })
    expect(decide(begun([]), { app }, fresh()).status.runs).toEqual([])
    const pods = [
      podOf(0, { agent: agentOf({ runs: new Map([['run', saidOf({ phase: 'Succeeded', finishedAt: at(0) })]]) }) }),
    ]
    expect(decide(begun([recordOf()]), { app, pods }).status).toMatchObject({ phase: 'Succeeded' })
  })

  test('goes to the pod that has the name now, if nothing was written for the one before', () => {
    const pods = [podOf(0, { uid: 'another' })]
    expect(decide(begun([]), { pods }).status.targets).toEqual([{ pod: 'db-0', uid: 'another' }])
    const written = decide(begun([recordOf()]), { pods })
    expect(written.status.targets).toEqual([target])
    expect(written.status.runs).toMatchObject([{ phase: 'Unknown', error: { code: 'PodReplaced' } }])
  })

  test('has Failed if its action is another one now', () => {
    const changed = { lifecycle: change('backup', { timeout: '2h' }) }
    const pods = [podOf(0, { agent: agentOf({ state: { configHash: changed.lifecycle.hash } }) })]
    expect(decide(begun([]), { ...changed, pods }, fresh()).status).toMatchObject({
      phase: 'Failed',
      reason: 'LifecycleChanged',
    })
  })

  test('has Failed if its target is gone, where names are not stable', () => {
    const workload = workloadOf({ hasStableNames: false })
    expect(decide(begun([]), { workload, pods: [] }).status).toMatchObject({ phase: 'Failed', reason: 'TargetGone' })
  })
})

describe('an operation that ends', () => {
  test('has Succeeded when all its targets have, one after the other', () => {
    const two = { ...begun([recordOf({ phase: 'Succeeded' })]) }
    const targets = [target, { pod: 'db-1', uid: 'pod-1' }]
    const op = { ...two, status: { ...two.status, targets } as OpStatus } as Op
    const view = { pods: [podOf(0), podOf(1)], workload: workloadOf({ replicas: 2 }) }
    const next = decide(op, view, { states: new Map([['pod-1', stateOf()]]) })
    expect(next.status.runs?.map(({ pod, fence }) => [pod, fence])).toEqual([
      ['db-0', 65_537],
      ['db-1', 65_538],
    ])
    expect(decide(begun([recordOf({ phase: 'Succeeded' })])).status).toMatchObject({
      phase: 'Succeeded',
      finishedAt: at(0),
    })
  })

  test('has Failed when one has, with its words, and begins no other', () => {
    expect(decide(begun([failed()]), {}, fresh()).status).toMatchObject({
      phase: 'Failed',
      reason: 'ExitCode',
      message: 'db-0: no',
    })
    expect(decide(begun([failed('TimedOut', { phase: 'TimedOut' })])).status).toMatchObject({ phase: 'TimedOut' })
  })

  test('never changes afterwards', () => {
    const { status } = begun([recordOf({ phase: 'Running' })])
    const op = opOf({ status: { ...status, phase: 'Failed', finishedAt: at(0) } })
    expect(decide(op, { pods: [] }).status).toBe(op.status)
  })

  test('is tried again at once, under another id, if it was NotStarted, whatever idempotent says', () => {
    const { status } = decide(begun([failed('NotStarted')]), {}, fresh())
    expect(status.runs).toMatchObject([{ attempt: 1 }, { attempt: 2, phase: 'Written', fence: 65_538 }])
  })

  test('is tried again as often as it says, after longer and longer', () => {
    const tried = (runs: RunRecord[], later = 0) =>
      decide(begun(runs, { action: 'tried' }), { now: now + later }, fresh())
    expect(tried([failed()])).toMatchObject({ until: now + 1000, waiting: { what: 'another attempt in db-0' } })
    expect(tried([failed()], 1000).status.runs).toHaveLength(2)
    const twice = [failed(), failed('ExitCode', { id: 'run2', attempt: 2 })]
    expect(tried(twice).until).toBe(now + 2000)
    const thrice = [...twice, failed('ExitCode', { id: 'run3', attempt: 3 })]
    expect(tried(thrice, 60_000).status).toMatchObject({ phase: 'Failed' })
    expect(tried([failed('InvalidParams')], 60_000).status).toMatchObject({ phase: 'Failed' })
  })
})

describe('an operation of which nobody knows how it ended', () => {
  test('is Unknown, is not tried again, and says what a person can do', () => {
    const so = decide(begun([lost()]), { pods: [podOf(0, { uid: 'another' })] }, fresh())
    expect(so.status).toMatchObject({ phase: 'Unknown', reason: 'OutcomeUnknown' })
    expect(so.status.finishedAt).toBeUndefined()
    expect(so.status.runs).toHaveLength(1)
    expect(so.stalled?.message).toMatch(/db-0 \(run run: gone\); find out, and say so in spec\.settle/)
  })

  test('is waited for while its processes may be alive, and its node is named', () => {
    const so = decide(begun([lost({ podEnded: false, lostAt: at(0) })]), { pods: [] })
    expect(so).toMatchObject({
      stalled: undefined,
      until: now + 3_630_000,
      waiting: { what: 'db-0 on node to be known to have ended backup' },
    })
  })

  test('is verified where that can tell, but not while it may be alive', () => {
    const op = (over = {}) => begun([lost(over)], { action: 'verified' })
    const pods = [podOf(0, { uid: 'another' })]
    expect(asks(decide(op(), { pods }))).toEqual(['verify'])
    expect(asks(decide(op({ podEnded: false, lostAt: at(0) }), { pods }))).toEqual([])
    expect(asks(decide(op(), { pods }, { verifyAt: () => now + 5 }))).toEqual([])
    const verdicts = (outcome: 'Succeeded' | 'Failed') => ({ verdicts: new Map([['run', outcome]]) as never })
    expect(decide(op(), { pods }, verdicts('Succeeded')).status.phase).toBe('Succeeded')
    expect(decide(op(), { pods }, verdicts('Failed')).status).toMatchObject({ phase: 'Failed', reason: 'NotApplied' })
  })

  test('is tried again if it may happen twice, in the pod that has the name now', () => {
    const op = begun([lost()], { action: 'reload' })
    const pods = [podOf(0, { uid: 'another' })]
    const so = decide(op, { pods }, { states: new Map([['another', stateOf()]]) })
    expect(so.status.runs).toMatchObject([
      { attempt: 1 },
      { attempt: 2, uid: 'another', id: runIdOf(op, 'another', 2) },
    ])
  })

  test('has ended Unknown if it is being deleted', () => {
    const op = begun([lost()], { metadata: { deletionTimestamp: at(0) } })
    expect(decide(op, { pods: [] }).status).toMatchObject({ phase: 'Unknown', finishedAt: at(0) })
  })

  test('is settled in its sidecar first, which would keep it for ever, and then here', () => {
    const runs = new Map([['run', saidOf({ phase: 'Unknown', error: { code: 'Lost', message: '' } })]])
    const pods = [podOf(0, { agent: agentOf({ runs }) })]
    const op = begun([lost({ podEnded: false })])
    const settle = [{ run: 'run', outcome: 'Succeeded', reason: 'I looked' }]
    const settled = { ...op, spec: { ...op.spec, settle } } as Op
    const first = decide(settled, { pods })
    expect(asks(first)).toEqual(['settle'])
    expect(first.status.finishedAt).toBeUndefined()
    const asked = { asked: new Set(['settle run']) }
    expect(decide(settled, { pods }, asked).status).toMatchObject({ phase: 'Succeeded', finishedAt: at(0) })
    expect(decide(settled, { pods: [] }).status).toMatchObject({ phase: 'Succeeded', finishedAt: at(0) })
  })
})

describe('an operation that is called off', () => {
  test('before its targets were resolved has ended at once', () => {
    expect(decide(opOf({ spec: { cancel: true } })).status).toMatchObject({ phase: 'Cancelled', finishedAt: at(0) })
    const late = decide(opOf({ spec: { deadline: '1m' } }), { now: now + 60_000 })
    expect(late.status).toMatchObject({ phase: 'Failed', reason: 'DeadlineExceeded' })
  })

  test('cancels what runs, and begins nothing', () => {
    const runs = new Map([['run', saidOf()]])
    const pods = [podOf(0, { agent: agentOf({ runs }) })]
    const op = begun([recordOf({ phase: 'Running' })], { cancel: true })
    expect(asks(decide(op, { pods }))).toEqual(['cancel'])
    expect(
      asks(decide(begun([recordOf({ phase: 'Running' })], { deadline: '1m' }), { pods, now: now + 60_000 })),
    ).toEqual(['cancel'])
  })

  test('has what was written, and perhaps sent, annulled', () => {
    expect(asks(decide(begun([recordOf()], { cancel: true })))).toEqual(['annul'])
    expect(decide(begun([recordOf({ phase: 'Cancelled' })], { cancel: true })).status).toMatchObject({
      phase: 'Cancelled',
    })
  })

  test('has Succeeded if that came first', () => {
    expect(decide(begun([recordOf({ phase: 'Succeeded' })], { cancel: true })).status).toMatchObject({
      phase: 'Succeeded',
    })
  })
})
