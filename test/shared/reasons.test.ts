import { describe, expect, it } from 'vitest'
import { errorCodes, reasons } from '../../shared/reasons.ts'

describe.each(Object.entries({ ...errorCodes, ...reasons }))('%s', (word, entry) => {
  it('is one word in CamelCase, as conditions and events need it', () => {
    expect(word).toMatch(/^[A-Z][A-Za-z]{2,63}$/)
  })

  it('says what it means and what a person can do, in sentences', () => {
    expect(entry.means).toMatch(/^[A-Z].*\.$/)
    expect(entry.todo).toMatch(/^[A-Z].*\.$/)
  })
})

it('a word means one thing: no code of an error is the reason of an event', () => {
  expect(Object.keys(errorCodes).filter(word => word in reasons)).toEqual([])
})
