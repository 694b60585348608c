import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRedactor } from '../../../sidecar/init/redact.ts'
import { secretsAndChunks, seed } from './arbitraries.ts'
import { redacted } from './reference.ts'

function through(secrets: string[], ...chunks: string[]): string[] {
  const redactor = createRedactor(secrets.map(secret => Buffer.from(secret)))
  return [...chunks.map(chunk => redactor.push(Buffer.from(chunk)).toString()), redactor.end().toString()]
}

describe('the redactor', () => {
  it('replaces each occurrence', () => {
    expect(through(['secret'], 'a secret, secretsecret').join('')).toBe('a ***, ******')
  })

  it('finds a secret wherever it is cut, and shows nothing of it before it is decided', () => {
    expect(through(['secret'], 'a se', 'cr', 'et b')).toEqual(['a ', '', '*** b', ''])
    expect(through(['secret'], 'a se', 'cr', 'ed b')).toEqual(['a ', '', 'secred b', ''])
    expect(through(['secret'], 'a secr')).toEqual(['a ', 'secr'])
  })

  it('prefers the longer of two that begin at the same byte, and waits for it', () => {
    expect(through(['ab', 'abcd'], 'xabcdx').join('')).toBe('x***x')
    expect(through(['ab', 'abcd'], 'xab', 'cx')).toEqual(['x', '***cx', ''])
    expect(through(['ab', 'abcd'], 'xabc')).toEqual(['x', '***c'])
  })

  it('shows no byte of two that overlap', () => {
    expect(through(['abc', 'cde'], 'xabcdex').join('')).toBe('x***x')
    expect(through(['aa'], 'xaaax').join('')).toBe('x***x')
    expect(through(['abcde', 'bc'], 'xabcdex').join('')).toBe('x***x')
    expect(through(['abc', 'bcd', 'd'], 'abc', 'd', 'd').join('')).toBe('******')
  })

  it('ignores empty secrets, and has nothing to do without any', () => {
    expect(through(['', 'a'], 'banana').join('')).toBe('b***n***n***')
    expect(through([], 'banana')).toEqual(['banana', ''])
  })

  it('is the same for every text, secrets and chunks as for the text as a whole', () => {
    fc.assert(
      fc.property(secretsAndChunks, ({ secrets, chunks }) => {
        const redactor = createRedactor(secrets)
        const got = Buffer.concat([...chunks.map(redactor.push), redactor.end()])
        expect(got.toString('latin1')).toBe(redacted(secrets, Buffer.concat(chunks)).toString('latin1'))
      }),
      { seed, numRuns: 3000 },
    )
  })

  it('holds back less than the longest secret', () => {
    fc.assert(
      fc.property(secretsAndChunks, ({ secrets, chunks }) => {
        const redactor = createRedactor(secrets)
        for (const chunk of chunks) redactor.push(chunk)
        expect(redactor.end().length).toBeLessThan(Math.max(1, ...secrets.map(secret => 3 * secret.length)))
      }),
      { seed, numRuns: 500 },
    )
  })
})
