import { expect, it } from 'vitest'
import { nearest, shown, suggestion } from '../../shared/nearest.ts'

const states = ['Start', 'Running', 'Servicing', 'Stopping', 'End']

it.each([
  ['Runing', 'Running'],
  ['running', 'Running'],
  ['Stoping', 'Stopping'],
  ['Sevricing', 'Servicing'],
  ['end', 'End'],
])('%s was meant to be %s', (name, meant) => {
  expect(nearest(name, states)).toBe(meant)
  expect(suggestion(name, states)).toBe(`; did you mean "${meant}"?`)
})

it('what is near nothing gets the list', () => {
  expect(suggestion('Backup', ['a', 'b'])).toBe('; there are a, b')
  expect(suggestion('Backup', [])).toBe('; there are none')
  expect(suggestion('x'.repeat(100_000), states)).toContain('there are Start')
  expect(
    suggestion(
      '?',
      Array.from({ length: 50 }, (_, i) => `name${i}`),
    ),
  ).toMatch(/name11, …$/)
})

it('a value is shown as JSON, cut when it is long, whatever it is', () => {
  expect(shown({ a: 1 })).toBe('{"a":1}')
  expect(shown('x'.repeat(200))).toHaveLength(98)
  expect(shown(1n)).toBe('bigint')
  expect(shown(undefined)).toBe('undefined')
})
