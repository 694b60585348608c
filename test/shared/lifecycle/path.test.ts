import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { appendToPath, expandPath, longestPath } from '../../../shared/lifecycle/path.ts'

const walk = (states: readonly string[], from = '') => states.reduce(appendToPath, from)
const words = (text: string) => text.split(' ')

describe('the path of an app', () => {
  test.each([
    ['Start', '>Start'],
    ['Start Running', '>Start>Running'],
    ['Start Running Servicing Running', '>Start>Running>Servicing>Running'],
    ['Start Running Servicing Running Servicing', '>Start>(Running<>Servicing)x2'],
    ['Start Running Servicing Running Servicing Running Servicing Running', '>Start>(Running<>Servicing)x3>Running'],
    ['Start Running Stopping End Start Running Stopping End', '>(Start>Running>Stopping>End)x2'],
    ['A B A B C A B A B C', '>((A<>B)x2>C)x2'],
    ['A B A B C A B A B C A B A B C A', '>((A<>B)x2>C)x3>A'],
    ['A A B B', '>A>B'],
  ])('%s is %s', (states, path) => {
    expect(walk(words(states))).toBe(path)
  })

  test('to stay where it is, is no step', () => {
    expect(appendToPath('>Start>(Running<>Servicing)x2', 'Servicing')).toBe('>Start>(Running<>Servicing)x2')
  })

  test('a state may be called as a round ends', () => {
    expect(walk(['x2', 'x', 'x2', 'x', 'x3'])).toBe('>(x2<>x)x2>x3')
    expect(expandPath('>(x2<>x)x2>x3').states).toEqual(['x2', 'x', 'x2', 'x', 'x3'])
  })

  test.each(['what is this', '>A>(B', '(A<>B)x2', '>A>>B', '>(A<>B)', '>A)x2', '>(A<>B)x0'])(
    'what is no path is forgotten: %s',
    path => {
      expect(appendToPath(path, 'Running')).toBe('…>Running')
    },
  )

  test('what no state is called cannot be mistaken for something else', () => {
    expect(appendToPath('>A', '>B>(C')).toBe('>A>_B__C')
  })
})

describe('of any states', () => {
  const state = fc.oneof(
    fc.constantFrom('A', 'B', 'C', 'x2', 'Start', 'Running'),
    fc.stringMatching(/^[A-Za-z]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$/),
  )
  const round = fc.tuple(fc.array(state, { maxLength: 6 }), fc.nat(9))
  const steps = fc
    .array(round, { maxLength: 12 })
    .map(rounds => rounds.flatMap(([states, times]) => Array.from({ length: times }, () => states).flat()))
  const withoutStays = (states: readonly string[]) => states.filter((one, at) => one !== states[at - 1])

  test('what is told is what was, up to the newest; all of it, as long as nothing was dropped', () => {
    fc.assert(
      fc.property(steps, states => {
        const { isWhole, states: told } = expandPath(walk(states))
        const all = withoutStays(states)
        expect(told).toEqual(all.slice(all.length - told.length))
        if (isWhole) expect(told).toEqual(all)
        else expect(told.length).toBeGreaterThan(0)
      }),
      { numRuns: 300 },
    )
  })

  test('it is never too long', () => {
    fc.assert(
      fc.property(steps, states => {
        expect(walk(states).length).toBeLessThanOrEqual(longestPath)
      }),
    )
  })

  test('a round that goes on for ever does not grow, but for its number', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.constantFrom(...'ABCDEFGHIJ'), { minLength: 2 }), states => {
        const path = walk(Array.from({ length: 40 }, () => states).flat())
        expect(path).toBe(`>(${states.join(states.length === 2 ? '<>' : '>')})x40`)
      }),
    )
  })

  test('nothing that is given makes it fail', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'>()<x2A…') }), fc.string(), (path, name) => {
        const made = appendToPath(path, name)
        expect(made.length).toBeLessThanOrEqual(Math.max(longestPath, path.length + 1))
        expandPath(path, 100)
      }),
    )
  })
})
