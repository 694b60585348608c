import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../../sidecar/config/parse.ts'

const seed = Number(process.env.SHIPMATE_SEED ?? 1)

describe('a text', () => {
  it.each([
    ['YAML', 'states:\n  - name: Start\n    next: [End]\n'],
    ['JSON', '{"states": [{"name": "Start", "next": ["End"]}]}'],
    ['JSON with tabs', '{\n\t"states": [\n\t\t{"name": "Start",\n\t\t"next": ["End"]}\n\t]\n}'],
    ['YAML with a mark of its byte order', '\ufeffstates: [{name: Start, next: [End]}]'],
    ['YAML with an alias', 'states: [{name: &s Start, next: [End]}]'],
  ])('in %s is read', (_, text) => {
    expect(parseConfig(text)).toMatchObject({ value: { states: [{ name: 'Start', next: ['End'] }] }, problems: [] })
  })

  it.each([
    ['a key twice', 'a: 1\na: 2', 2, 1, 'the key stands here twice'],
    ['a key twice, in JSON', '{"a": 1,\n "a": 2}', 2, 2, 'the key stands here twice'],
    ['two documents', 'a: 1\n---\nb: 2', 2, 1, 'a second document begins; one is read'],
    ['a tag', 'a: 1\nb: !foo 2', 2, 4, 'Unresolved tag: !foo'],
    ['bytes', 'a: !!binary aGVsbG8=', 1, 1, 'an object of a class is nothing that JSON has'],
    ['an unknown alias', 'a: *x', 1, 1, 'Unresolved alias (the anchor must be set before the alias): x'],
    ['a value that holds itself', 'a: &x [*x]', 1, 8, 'the value holds itself'],
    ['a list as a key', '? [1]\n: x', 1, 3, 'a key has to be a text'],
    ['__proto__', 'a:\n  __proto__: 1', 2, 3, '"__proto__" cannot be a name'],
    ['a number that is none', 'a: 1\nb: .nan', 2, 1, 'NaN is no number that JSON has'],
    ['half a character', '{"a": "\\ud800"}', 1, 2, 'the text has half of a surrogate pair'],
    ['a tab as indentation', 'a:\n\t- 1', 2, 1, 'Tabs are not allowed as indentation'],
    [
      'an open bracket',
      'a: [1',
      1,
      6,
      'Flow sequence in block collection must be sufficiently indented and end with a ]',
    ],
  ])('with %s is refused, with its place', (_, text, line, column, message) => {
    const { value, problems } = parseConfig(text)
    expect(value).toBeUndefined()
    expect(problems[0]).toEqual({ line, column, message })
  })

  it('that would grow without end by aliases is refused', () => {
    const names = [...'abcdefghij']
    const lines = names.map((name, i) => `${name}: &${name} [${Array(9).fill(i === 0 ? 'x' : `*${names[i - 1]}`)}]`)
    expect(parseConfig(lines.join('\n')).problems[0]?.message).toMatch(/Excessive alias count/)
  })

  it.each([
    ['deep', '['.repeat(50_000)],
    ['deep in another way', '- '.repeat(50_000)],
    ['long', `a: ${'x'.repeat(2 ** 20)}`],
  ])('that is too %s is refused', (_, text) => {
    expect(parseConfig(text).problems.length).toBeGreaterThan(0)
  })

  it('has a place for each of its parts, and for what is missing that of what is around it', () => {
    const { locate } = parseConfig('states:\n  - name: Start\n    next:\n      - A\n      - B\nx: &a\n  y: 1\nz: *a\n')
    expect(locate([])).toEqual({ line: 1, column: 1 })
    expect(locate(['states'])).toEqual({ line: 1, column: 1 })
    expect(locate(['states', 0])).toEqual({ line: 2, column: 5 })
    expect(locate(['states', 0, 'next'])).toEqual({ line: 3, column: 5 })
    expect(locate(['states', 0, 'next', 1])).toEqual({ line: 5, column: 9 })
    expect(locate(['states', 0, 'when'])).toEqual({ line: 2, column: 5 })
    expect(locate(['states', 7, 'when'])).toEqual({ line: 1, column: 1 })
    expect(locate(['z', 'y'])).toEqual({ line: 7, column: 3 })
  })

  it(`is read as JSON reads it: seed ${seed}`, { timeout: 60_000 }, () => {
    const property = fc.property(fc.jsonValue(), fc.constantFrom(0, 2, '\t'), (value, indent) => {
      const text = JSON.stringify(value, undefined, indent)
      const { value: read, problems } = parseConfig(text)
      if (problems.length === 0) expect(read).toEqual(JSON.parse(text))
      else expect(text).toContain('__proto__')
    })
    fc.assert(property, { seed })
  })
})
