import { describe, expect, test } from 'vitest'
import type { Facts } from '../../../controller/app/decide/facts.ts'
import { advanceRun, aliveUntil, askable, quiet } from '../../../controller/app/decide/run.ts'
import type { RunRecord, View } from '../../../controller/app/view.ts'
import type { Run } from '../../../shared/protocol/schemas.ts'
import { agentOf, at, facts, now, opOf, podOf, recordOf, saidOf, viewOf, workloadOf } from './views.ts'

const backup = { name: 'backup', exec: { command: ['backup'] }, timeout: '1h' }

function advance(
  run: RunRecord,
  {
    more,
    ...view
  }: Partial<View> & { more?: { facts?: Partial<Facts>; settle?: object[]; isSameAction?: boolean } } = {},
): RunRecord {
  return advanceRun(run, {
    view: viewOf(view),
    op: opOf({ spec: more?.settle ? { settle: more.settle } : {} }),
    action: backup,
    isSameAction: more?.isSameAction ?? true,
    facts: facts(more?.facts),
  })
}

const knowing = (said: Partial<Run>) => [podOf(0, { agent: agentOf({ runs: new Map([['run', saidOf(said)]]) }) })]
const refused = (code: string, isOfAnnul = false) => ({
  more: { facts: { refusals: new Map([['run', { code, message: `because ${code}`, isOfAnnul }]]) } },
})
const unknown = recordOf({ phase: 'Unknown', error: { code: 'Lost', message: '' }, startedAt: at(-60) })

describe('a run', () => {
  test('that has ended is never changed, whatever its sidecar says', () => {
    for (const phase of ['Succeeded', 'Failed', 'Cancelled', 'TimedOut'] as const) {
      const run = recordOf({ phase })
      expect(advance(run, { pods: knowing({ phase: 'Running' }) })).toBe(run)
      expect(advance(run, { pods: [] })).toBe(run)
    }
  })

  test('is told as its sidecar says it', () => {
    const ended = {
      phase: 'Failed',
      finishedAt: at(5),
      exitCode: 3,
      error: { code: 'ExitCode', message: 'exited with 3' },
    } as const
    expect(advance(recordOf(), { pods: knowing(ended) })).toMatchObject({ ...ended, startedAt: at(0) })
    expect(advance(recordOf(), { pods: knowing({}) })).toMatchObject({ phase: 'Running' })
  })

  test('that did not succeed is told with the end of its log, once that was read or could not be', () => {
    const pods = knowing({ phase: 'Failed', finishedAt: at(1), log: { size: 9, keptHead: 9, tailFrom: 9 } })
    const run = recordOf({ phase: 'Running' })
    expect(advance(run, { pods })).toBe(run)
    expect(advance(run, { pods, more: { facts: { tails: new Map([['run', 'no space']]) } } })).toMatchObject({
      tail: 'no space',
    })
    expect(advance(run, { pods, more: { facts: { asked: new Set(['tail run']) } } })).toMatchObject({ phase: 'Failed' })
  })

  test('tells its progress when it has moved and it is time', () => {
    const run = recordOf({ phase: 'Running', progress: { percent: 40 } })
    const so = (percent: number, isDue = true) =>
      advance(run, { pods: knowing({ progress: { percent } }), more: { facts: { isProgressDue: () => isDue } } })
    expect(so(40.4)).toBe(run)
    expect(so(41)).toMatchObject({ progress: { percent: 41 } })
    expect(so(41, false)).toBe(run)
  })

  test('with a long result tells how long it was', () => {
    const pods = knowing({ phase: 'Succeeded', finishedAt: at(1), result: 'x'.repeat(10_000) })
    expect(advance(recordOf(), { pods }).result).toEqual({ omitted: '10002 characters; the sidecar has them' })
  })

  test('is Unknown when its pod is gone, replaced or ended, its journal another or its sidecar has forgotten it', () => {
    const running = recordOf({ phase: 'Running', startedAt: at(-60) })
    const now = at(0)
    const code = (run: RunRecord) => `${run.phase} ${run.error?.code}`
    expect(code(advance(running, { pods: [] }))).toBe('Unknown PodGone')
    expect(advance(running, { pods: [] }).lostAt).toBe(now)
    expect(code(advance(running, { pods: [podOf(0, { uid: 'another' })] }))).toBe('Unknown PodReplaced')
    const ended = advance(running, { pods: [podOf(0, { isEnded: true })] })
    expect(ended).toMatchObject({ phase: 'Unknown', error: { code: 'PodEnded' }, podEnded: true })
    const other = [podOf(0, { agent: agentOf({ state: { journalId: 'new' } }) })]
    expect(code(advance(running, { pods: other }))).toBe('Unknown JournalLost')
    expect(code(advance(running))).toBe('Unknown Forgotten')
  })

  test('is not taken for lost while its sidecar cannot be reached', () => {
    const run = recordOf({ phase: 'Running' })
    expect(advance(run, { pods: [podOf(0, { agent: agentOf({ isReachable: false }) })] })).toBe(run)
    expect(advance(run, { pods: [podOf(0, { agent: undefined })] })).toBe(run)
  })

  test('that was lost long after it was written may have been begun until then', () => {
    const written = recordOf({ writtenAt: at(-7200) })
    const other = [podOf(0, { agent: agentOf({ state: { journalId: 'new' } }) })]
    const lost = advance(written, { pods: other })
    expect(lost).toMatchObject({ phase: 'Unknown', lostAt: at(0) })
    expect(aliveUntil(lost, viewOf({ pods: other }), backup)).toBe(now + 3_630_000)
    expect(advance(written, refused('WrongJournal')).lostAt).toBe(at(0))
  })
})

describe('a run that was refused', () => {
  test.each(['UnknownAction', 'InvalidParams', 'UnknownField', 'InvalidBody', 'TooLarge'])('by %s has Failed', code => {
    expect(advance(recordOf(), refused(code))).toMatchObject({
      phase: 'Failed',
      error: { code, message: `because ${code}` },
    })
  })

  test.each([
    ['WrongJournal', 'JournalLost'],
    ['Fenced', 'Fenced'],
    ['IdReused', 'IdReused'],
  ])('by %s is Unknown: somebody else may have begun it', (code, as) => {
    expect(advance(recordOf(), refused(code))).toMatchObject({ phase: 'Unknown', error: { code: as } })
  })

  test.each([
    'Draining',
    'Locked',
    'TooManyRequests',
    'JournalFull',
    'WrongPod',
    'Unreachable',
    'Unauthorized',
    'MissingParam',
  ])('by %s is asked for again', code => {
    const run = recordOf()
    expect(advance(run, refused(code))).toBe(run)
  })

  test('by WrongConfig gets the new hash if its action is the same, and has Failed if it is not', () => {
    const run = recordOf({ configHash: 'old' })
    expect(advance(run, refused('WrongConfig'))).toMatchObject({
      phase: 'Written',
      configHash: viewOf().lifecycle?.hash,
    })
    const pods = [podOf(0, { agent: agentOf({ state: { configHash: 'older still' } }) })]
    expect(advance(run, { pods, ...refused('WrongConfig') })).toBe(run)
    const changed = { more: { ...refused('WrongConfig').more, isSameAction: false } }
    expect(advance(run, changed)).toMatchObject({ phase: 'Failed', error: { code: 'LifecycleChanged' } })
  })

  test('when it was to be annulled is Cancelled if nobody can begin it any more', () => {
    expect(advance(recordOf(), refused('Fenced', true))).toMatchObject({ phase: 'Cancelled' })
    expect(advance(recordOf(), refused('UnknownAction', true))).toMatchObject({ phase: 'Cancelled' })
    expect(advance(recordOf(), refused('WrongJournal', true))).toMatchObject({ phase: 'Unknown' })
    expect(advance(recordOf(), refused('Unreachable', true)).phase).toBe('Written')
  })
})

describe('an Unknown run', () => {
  test('is settled by verify, by a person, by its sidecar, and by nothing else', () => {
    const verdict = (outcome: 'Succeeded' | 'Failed' | 'Unknown') =>
      advance(unknown, { more: { facts: { verdicts: new Map([['run', outcome]]) } } })
    expect(verdict('Succeeded')).toMatchObject({ phase: 'Succeeded', finishedAt: at(0) })
    expect(verdict('Succeeded')).not.toHaveProperty('error')
    expect(verdict('Failed')).toMatchObject({ phase: 'Failed', error: { code: 'NotApplied' } })
    expect(verdict('Unknown')).toBe(unknown)
    const said = (outcome: string) =>
      advance(unknown, { more: { settle: [{ run: 'run', outcome, reason: 'I looked' }] } })
    expect(said('Succeeded').phase).toBe('Succeeded')
    expect(said('Failed')).toMatchObject({ phase: 'Failed', error: { code: 'Settled', message: 'I looked' } })
    expect(advance(unknown, { pods: knowing({ phase: 'Succeeded', finishedAt: at(1) }) }).phase).toBe('Succeeded')
    expect(advance(unknown, { pods: knowing({ phase: 'Running' }) })).toBe(unknown)
    expect(advance(unknown)).toBe(unknown)
  })

  test('is not settled by a word on another run, nor is one that is not Unknown', () => {
    expect(advance(unknown, { more: { settle: [{ run: 'other', outcome: 'Failed', reason: '' }] } })).toBe(unknown)
    const running = recordOf({ phase: 'Running' })
    const more = { settle: [{ run: 'run', outcome: 'Failed', reason: '' }] }
    expect(advance(running, { pods: knowing({}), more }).phase).toBe('Running')
  })

  const gone = { pods: [] }
  const node = (over: object) => ({
    ...gone,
    nodes: new Map([['node', { name: 'node', bootId: 'kernel', isOutOfService: false, ...over }]]),
  })
  const until = (view: Partial<View>, run = unknown) => aliveUntil(run, viewOf(view), backup)

  test('may be alive until its start, its time-out and its grace have passed', () => {
    expect(until(gone)).toBe(now - 60_000 + 3_630_000)
    expect(until({ ...gone, now: now + 3_570_000 })).toBeUndefined()
    expect(until(gone, recordOf({ phase: 'Unknown', lostAt: at(-10) }))).toBe(now - 10_000 + 3_630_000)
  })

  test('is dead if its pod has ended, or its node is gone, rebooted or out of service', () => {
    expect(until({ pods: [podOf(0, { isEnded: true })] })).toBeUndefined()
    expect(until(gone, { ...unknown, podEnded: true })).toBeUndefined()
    expect(until({ ...gone, nodes: new Map() })).toBeUndefined()
    expect(until(node({ bootId: 'another' }))).toBeUndefined()
    expect(until(node({ isOutOfService: true }))).toBeUndefined()
    // A pod that is still there says itself what its node means.
    expect(until({ nodes: new Map() })).toBeDefined()
  })

  test('is dead if its own sidecar calls it Unknown', () => {
    expect(until({ pods: knowing({ phase: 'Unknown' }) })).toBeUndefined()
  })

  test('is asked about in its own pod, or in the one that has its name now', () => {
    const other = podOf(0, { uid: 'another' })
    expect(askable(unknown, viewOf())?.uid).toBe('pod-0')
    expect(askable(unknown, viewOf({ pods: [other] }))?.uid).toBe('another')
    expect(askable(unknown, viewOf({ pods: [other], workload: workloadOf({ hasStableNames: false }) }))).toBeUndefined()
    expect(askable(unknown, viewOf({ pods: [podOf(0, { isTerminating: true })] }))).toBeUndefined()
  })
})

describe('a run that is not to be begun any more, in a sidecar that cannot write that down', () => {
  const old = (over: object = {}) => viewOf({ pods: [podOf(0, { agent: agentOf({ features: [], ...over }) })] })

  test('is Cancelled when nothing of it can be on its way any more', () => {
    expect(quiet(recordOf(), old())).toEqual({ run: recordOf(), until: now + 60_000 })
    expect(quiet(recordOf({ writtenAt: at(-60) }), old()).run).toMatchObject({ phase: 'Cancelled' })
  })

  test('is left as it is where it is known, cannot be asked for, or can be annulled', () => {
    const run = recordOf({ writtenAt: at(-60) })
    expect(quiet(run, viewOf()).run).toBe(run)
    expect(quiet(run, old({ isReachable: false })).run).toBe(run)
    expect(quiet(run, old({ runs: new Map([['run', saidOf()]]) })).run).toBe(run)
  })
})
