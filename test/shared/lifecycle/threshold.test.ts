import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  differs,
  no,
  none,
  nothingKnown,
  type Outcome,
  step,
  type Thresholds,
  viewOf,
  yes,
} from '../../../shared/lifecycle/threshold.ts'

const attempts = { y: yes('v'), n: no('w', 'said no'), '-': none('no answer') }
const outcomes: Record<string, Outcome> = { y: 'yes', n: 'no', '-': 'none' }
type Letter = keyof typeof attempts

function known(letters: string, successThreshold = 1, failureThreshold = 3) {
  const thresholds = { successThreshold, failureThreshold }
  let memory = nothingKnown
  let at = 0
  for (const letter of letters) memory = step(memory, attempts[letter as Letter], ++at, thresholds)
  return memory
}

describe('a probe', () => {
  it.each([
    ['', null],
    ['y', true],
    ['-', null],
    ['-----', null],
    ['--y', true],
    // Not known until a third failure in a row, so that one answer after a start says no more than any other.
    ['n', null],
    ['nn', null],
    ['nnn', false],
    ['n--', null],
    ['--n', false],
    ['nny', true],
    // Ok until the third failure in a row.
    ['yn', true],
    ['ynn', true],
    ['ynnn', false],
    ['ynnyn', true],
    ['y--', true],
    // No answer is not a no.
    ['y---', null],
    ['ynn-', null],
    ['y--n', false],
    ['y---n', false],
    ['y---y', true],
    // Not ok until a yes.
    ['nnny', true],
    ['nnnyn', true],
    ['nnn-', null],
  ])('that answered "%s" (failure threshold 3) is ok: %s', (letters, ok) => {
    expect(known(letters).ok).toBe(ok)
  })

  it.each([
    ['y', null],
    ['yy', true],
    ['yny', null],
    ['ynyy', true],
    ['-y', null],
    ['nnny', false],
    ['nnnyy', true],
    ['yy--y', true],
    ['yy---y', null],
    ['yy---yy', true],
  ])('that answered "%s" (success threshold 2) is ok: %s', (letters, ok) => {
    expect(known(letters, 2).ok).toBe(ok)
  })

  it('shows the value of its last answer, and the error of its last attempt', () => {
    expect(known('y')).toMatchObject({ value: 'v', error: null, failures: 0 })
    expect(known('yn')).toMatchObject({ value: 'w', error: 'said no', failures: 1 })
    expect(known('yn-')).toMatchObject({ value: 'w', error: 'no answer', failures: 2 })
    expect(known('yn-y')).toMatchObject({ value: 'v', error: null, failures: 0 })
  })

  it('has answered once it has said yes or no often enough, for ever', () => {
    expect(known('---').answered).toBe(false)
    expect(known('-n').answered).toBe(false)
    expect(known('-nn').answered).toBe(true)
    expect(known('y----').answered).toBe(true)
  })

  it('is told with the time of its last attempt', () => {
    expect(viewOf(nothingKnown)).toEqual({ ok: null, value: null, error: null, at: null, failures: 0 })
    expect(viewOf(known('y-'))).toEqual({
      ok: true,
      value: 'v',
      error: 'no answer',
      at: '1970-01-01T00:00:00.002Z',
      failures: 1,
    })
  })

  it('is news only by ok, value or error', () => {
    const view = viewOf(known('y-'))
    expect(differs(view, { ...view, at: null, failures: 9 })).toBe(false)
    expect(differs(view, { ...view, ok: null })).toBe(true)
    expect(differs(view, { ...view, value: 'x' })).toBe(true)
    expect(differs(view, { ...view, error: null })).toBe(true)
  })
})

describe('whatever a probe answers', () => {
  const history = fc.string({ unit: fc.constantFrom('y', 'n', '-'), maxLength: 30 })
  const threshold = fc.integer({ min: 1, max: 5 })
  const holds = (claim: (letters: string, thresholds: Thresholds) => void) =>
    fc.assert(
      fc.property(history, threshold, threshold, (letters, successThreshold, failureThreshold) =>
        claim(letters, { successThreshold, failureThreshold }),
      ),
      { seed: Number(process.env['SHIPMATE_SEED']), numRuns: 500 },
    )

  it('it turns to true by a yes only, to false by an answer, to null by no answer', () => {
    holds((letters, { successThreshold, failureThreshold }) => {
      const before = known(letters.slice(0, -1), successThreshold, failureThreshold).ok
      const now = known(letters, successThreshold, failureThreshold).ok
      if (before === now) return
      const last = outcomes[letters.at(-1) ?? '']
      if (now === true) expect(last).toBe('yes')
      if (now === false) expect(last).not.toBe('none')
      if (now === null) expect(last).toBe('none')
    })
  })

  it('it does not lose what it was before the threshold of failures', () => {
    holds((letters, { successThreshold, failureThreshold }) => {
      const before = known(letters, successThreshold, failureThreshold)
      for (let more = 1; before.failures + more < failureThreshold; more++) {
        expect(known(letters + '-'.repeat(more), successThreshold, failureThreshold).ok).toBe(before.ok)
        expect(known(letters + 'n'.repeat(more), successThreshold, failureThreshold).ok).toBe(before.ok)
      }
    })
  })

  it('it is true after enough yes, false after enough no, null after enough silence', () => {
    holds((letters, { successThreshold, failureThreshold }) => {
      expect(known(letters + 'y'.repeat(successThreshold), successThreshold, failureThreshold).ok).toBe(true)
      expect(known(letters + 'n'.repeat(failureThreshold), successThreshold, failureThreshold).ok).toBe(false)
      expect(known(letters + '-'.repeat(failureThreshold), successThreshold, failureThreshold).ok).toBe(null)
    })
  })
})
