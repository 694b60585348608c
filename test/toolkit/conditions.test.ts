import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type Condition, conditionsFor, type Standing, withConditions } from '../../controller/toolkit/conditions.ts'

const words = fc.record({ reason: fc.constantFrom('Missing', 'Forbidden'), message: fc.string() })
const standing: fc.Arbitrary<Standing> = fc.oneof(
  fc.constant<Standing>({ is: 'ready' }),
  fc
    .tuple(fc.constantFrom('waiting', 'failing', 'stalled', 'givenUp'), words)
    .map(([is, said]) => ({ is, ...said }) as Standing),
  fc.tuple(fc.boolean(), words).map(([failed, said]): Standing => ({ is: 'deleting', failed, ...said })),
)
const later = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`

it('conditions are what kstatus and metav1 expect, whatever happens in whatever order', () => {
  const property = fc.property(fc.array(standing, { minLength: 1, maxLength: 12 }), standings => {
    let before: Condition[] = [
      { type: 'Backup', status: 'True', reason: 'Done', message: 'theirs', lastTransitionTime: later(0) },
    ]
    for (const [second, one] of standings.entries()) {
      const after = withConditions(before, conditionsFor(one), { now: later(second), generation: second })
      const by = Object.fromEntries(after.map(condition => [condition.type, condition]))
      const { Ready, Reconciling, Stalled, Backup } = by
      expect(Backup).toEqual(before.find(({ type }) => type === 'Backup'))
      expect(Ready).toBeDefined()
      expect(new Set(after.map(({ type }) => type)).size).toBe(after.length)
      expect(Reconciling && Stalled).toBeUndefined()
      if (Ready?.status === 'True') expect([Reconciling, Stalled]).toEqual([undefined, undefined])
      for (const abnormal of [Reconciling, Stalled]) expect([undefined, 'True']).toContain(abnormal?.status)
      for (const { type, status, lastTransitionTime, reason, observedGeneration } of after) {
        const old = before.find(other => other.type === type)
        expect(lastTransitionTime).toBe(old?.status === status ? old.lastTransitionTime : later(second))
        expect(reason).toMatch(/^[A-Z][A-Za-z]*$/)
        if (type !== 'Backup') expect(observedGeneration).toBe(second)
      }
      expect(withConditions(after, conditionsFor(one), { now: later(59), generation: second })).toEqual(after)
      before = after
    }
  })
  fc.assert(property, { seed: Number(process.env.SHIPMATE_SEED), numRuns: 300 })
})

it('a condition of the operator’s own is kept beside them, and changes only when it changes', () => {
  const wanted = { type: 'Deployed', status: 'True', reason: 'Done', message: 'all' } as const
  const first = withConditions([], [wanted], { now: later(1), generation: 1 })
  const second = withConditions(first, [{ ...wanted, message: 'all of them' }], { now: later(2), generation: 1 })
  expect(second).toEqual([{ ...wanted, message: 'all of them', lastTransitionTime: later(1), observedGeneration: 1 }])
})
