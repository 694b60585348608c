/**
 * Regular expressions on their way to the server.
 */
import { expect, test } from 'vitest'
import { toRe2 } from '../../../controller/toolkit/crd/pattern.ts'

test.each([
  [/^[a-z]+(?:-[a-z]+)*$/, '^[a-z]+(?:-[a-z]+)*$'],
  [/^\d{1,3}\.\w\s\S\b$/, '^\\d{1,3}\\.\\w\\s\\S\\b$'],
  [/[[\]\-a]/, '[\\[\\]\\-a]'],
  [/[^[]x\[/, '[^\\[]x\\['],
  [/(?<name>a)/, '(?P<name>a)'],
  [/\u00e4\u{1F600}/u, '\\x{00e4}\\x{1F600}'],
  [/[\b]\0/, '[\\x08]\\x00'],
  [/\p{L}\P{Lu}/u, '\\p{L}\\P{Lu}'],
  [/a{1000}{/, 'a{1000}{'],
  [/[(?=]/, '[(?=]'],
  [/\(?=/, '\\(?='],
])('%s is %s there', ({ source }, pattern) => expect(toRe2(source)).toEqual({ pattern }))

test.each([
  [/a(?=b)/, /look-ahead/],
  [/a(?!b)/, /look-ahead/],
  [/(?<=a)b/, /look-behind/],
  [/(?<!a)b/, /look-behind/],
  [/(a)\1/, /reference back/],
  [/(?<a>a)\k<a>/, /reference back/],
  [/\cA/, /escape \\c/],
  [/\p{Script=Greek}/u, /property/],
  [/\ud83d/, /surrogate/],
  [/a{1,2000}/, /1000/],
])('%s cannot be told', ({ source }, problem) =>
  expect(toRe2(source)).toEqual({ problem: expect.stringMatching(problem) }),
)

test('a class of no characters cannot be told', () => expect(toRe2('[^]')).toHaveProperty('problem'))
