import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileLifecycle } from '../../../shared/lifecycle/compile.ts'
import { type Facts, observe } from '../../../shared/lifecycle/observe.ts'
import { postgres } from './postgres.ts'

const seed = Number(process.env.SHIPMATE_SEED ?? 1)
const lifecycle = compileLifecycle(postgres)
const yes = { ok: true, value: null, answered: true }
const no = { ok: false, value: null, answered: true }
const silent = { ok: null, value: null, answered: true }
const unasked = { ok: null, value: null, answered: false }

const state = (more: Partial<Facts>) =>
  observe({ lifecycle, probes: { accepting: yes, role: unasked }, run: null, everHeld: false, ...more })

describe("a pod's state", () => {
  it('is the one whose guard holds', () => {
    expect(state({})).toEqual({ state: 'Running', reason: 'GuardHolds', guardHeld: true, isKnown: true })
  })

  it('is the initial one while no guard has ever held', () => {
    expect(state({ probes: { accepting: no } })).toEqual({
      state: 'Start',
      reason: 'NeverHeld',
      guardHeld: false,
      isKnown: true,
    })
  })

  it('is the initial one again when the guard is lost', () => {
    expect(state({ probes: { accepting: no }, everHeld: true })).toMatchObject({ state: 'Start', reason: 'GuardLost' })
  })

  it('is not known before a probe of a guard has answered', () => {
    const unknown = { state: 'Unknown', reason: 'NotAnswered', guardHeld: false, isKnown: false }
    expect(state({ probes: { accepting: unasked } })).toEqual(unknown)
    expect(state({ probes: {}, everHeld: true })).toEqual(unknown)
    expect(state({ probes: { accepting: { ok: null, value: null } } })).toEqual(unknown)
  })

  it('is not known when a probe of a guard no longer answers', () => {
    expect(state({ probes: { accepting: silent }, everHeld: true })).toMatchObject({
      state: 'Unknown',
      reason: 'NoAnswer',
    })
  })

  it('does not depend on a probe that no guard uses', () => {
    expect(state({ probes: { accepting: yes, role: silent } }).state).toBe('Running')
  })

  it('is the transient one while its run is in progress, whatever probes say', () => {
    for (const accepting of [yes, no, silent, unasked]) {
      expect(state({ probes: { accepting }, run: { action: 'backup' } })).toMatchObject({
        state: 'Servicing',
        reason: 'RunInProgress',
        guardHeld: accepting.ok === true,
        isKnown: accepting.ok !== null,
      })
    }
  })

  it('is what is observed while a run that no state lists is in progress', () => {
    const other = compileLifecycle({
      ...postgres,
      states: postgres.states.map(one => ({ ...one, actions: undefined })) as never,
    })
    expect(state({ lifecycle: other, run: { action: 'backup' } }).state).toBe('Running')
    expect(state({ run: { action: 'nothing such' } }).state).toBe('Running')
  })

  it('is what is observed while a run of a state with a guard is in progress', () => {
    const guarded = compileLifecycle({
      ...postgres,
      states: [
        { name: 'Start', next: ['Running'] },
        { name: 'Running', when: 'probes.accepting.ok', actions: ['backup'], next: ['Start'] },
      ],
    })
    expect(state({ lifecycle: guarded, probes: { accepting: no }, run: { action: 'backup' } }).state).toBe('Start')
  })

  it('is the first of several whose guards hold', () => {
    const several = compileLifecycle({
      probes: postgres.probes,
      states: [
        { name: 'Start', next: ['Primary'] },
        { name: 'Primary', when: 'role == "primary"', next: ['Running'] },
        { name: 'Running', when: 'probes.accepting.ok', next: ['Start'] },
      ],
    })
    const role = (value: string) => ({ ok: true, value, answered: true })
    expect(state({ lifecycle: several, probes: { accepting: yes, role: role('primary') } }).state).toBe('Primary')
    expect(state({ lifecycle: several, probes: { accepting: yes, role: role('replica') } }).state).toBe('Running')
    expect(state({ lifecycle: several, probes: { accepting: yes, role: silent } }).reason).toBe('NoAnswer')
    expect(state({ lifecycle: several, probes: { accepting: silent, role: unasked } }).reason).toBe('NotAnswered')
  })

  it('is not known without states', () => {
    expect(state({ lifecycle: compileLifecycle({}) })).toEqual({
      state: 'Unknown',
      reason: 'NoStates',
      guardHeld: false,
      isKnown: true,
    })
  })

  it('is not that of a guard that cannot be evaluated, which is told', () => {
    const failing = compileLifecycle({
      probes: postgres.probes,
      states: [
        { name: 'Start', next: ['Running'] },
        { name: 'Running', when: 'int(probes.accepting.value) > 1', next: ['Start'] },
      ],
    })
    const told: string[] = []
    const failed = (name: string) => told.push(name)
    const facts = { lifecycle: failing, probes: { accepting: { ok: true, value: 'x', answered: true } }, failed }
    expect([state(facts).state, state(facts).state]).toEqual(['Start', 'Start'])
    expect(told).toEqual(['Running'])
  })
})

it(`the state is always one that was declared, or Unknown with a reason for it: seed ${seed}`, () => {
  const answer = fc.constantFrom(yes, no, silent, unasked, undefined)
  const facts = fc.record({
    accepting: answer,
    role: answer,
    run: fc.constantFrom(null, { action: 'backup' }, { action: 'stop' }, { action: 'other' }),
    everHeld: fc.boolean(),
  })
  const property = fc.property(facts, ({ accepting, role, run, everHeld }) => {
    const probes = { ...(accepting && { accepting }), ...(role && { role }) }
    const seen = observe({ lifecycle, probes, run, everHeld })
    if (run?.action === 'backup') expect(seen.state).toBe('Servicing')
    else if (run?.action === 'stop') expect(seen.state).toBe('Stopping')
    else if (accepting?.ok == null) expect(seen.state).toBe('Unknown')
    else expect(seen.state).toBe(accepting.ok ? 'Running' : 'Start')
    expect(seen.guardHeld).toBe(accepting?.ok === true)
  })
  fc.assert(property, { seed })
})
