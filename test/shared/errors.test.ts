import { describe, expect, it } from 'vitest'
import { messageOf, ShipmateError } from '../../shared/errors.ts'

describe('an error of ours', () => {
  it('carries its code, whether a retry helps, its class and its cause', () => {
    class Special extends ShipmateError {}
    const cause = new Error('why')
    const error = new Special('Misuse', 'wrong', 'never', { cause })
    expect(error).toBeInstanceOf(Error)
    expect(error).toMatchObject({ name: 'Special', code: 'Misuse', message: 'wrong', retry: 'never', cause })
    expect(String(error)).toBe('Special: wrong')
  })
})

describe('the text of what was thrown', () => {
  it.each([
    [new Error('out of luck'), 'out of luck'],
    [new TypeError(''), 'TypeError'],
    ['a string', 'a string'],
    [undefined, 'undefined'],
    [null, 'null'],
    [42n, '42'],
    [Symbol('s'), 'Symbol(s)'],
    [{ toString: () => 'told' }, 'told'],
  ])('%o is %s', (thrown, text) => {
    expect(messageOf(thrown)).toBe(text)
  })

  it.each([
    ['an object without a prototype', Object.create(null)],
    [
      'one that cannot be told',
      {
        toString: () => {
          throw new Error('no')
        },
      },
    ],
    ['a symbol made of nothing', Object(Symbol())],
  ])('of %s is some text, and nothing is thrown', (_what, thrown) => {
    expect(messageOf(thrown)).toEqual(expect.any(String))
  })

  it('of an error whose message is none is some text all the same', () => {
    const error = new Error('x')
    Object.defineProperty(error, 'message', { value: undefined })
    expect(messageOf(error)).toBe('Error')
  })

  it('of an error that throws when it is read is some text all the same', () => {
    const error = new Error('x')
    Object.defineProperty(error, 'message', {
      get: () => {
        throw new Error('no')
      },
    })
    expect(messageOf(error)).toEqual(expect.any(String))
  })
})
