import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Conflict } from '../../controller/kube/errors.ts'
import { TerminalError } from '../../controller/runtime/index.ts'
import { consolidate, createResults, errorKind, type Operation, operations } from '../../controller/toolkit/results.ts'

describe('what follows from all operations', () => {
  const on = 'Deployment a'

  it('is success, if nothing failed', () => {
    expect(consolidate([{ code: 'Created', on }])).toEqual({ is: 'success', requeueAfter: undefined })
  })

  it('is the first error, whatever succeeds after it', () => {
    const first: Operation = { code: 'CreateFailed', on, error: new Error('first') }
    const done = consolidate([first, { code: 'Created', on }, { code: 'UpdateFailed', on, error: new Error('second') }])
    expect(done).toMatchObject({ is: 'error', because: first })
  })

  it('is giving up, also after an error', () => {
    const given: Operation = { code: 'GivenUp', on, note: 'frozen' }
    expect(consolidate([{ code: 'CreateFailed', on, error: new Error('x') }, given])).toMatchObject({
      is: 'givenUp',
      because: given,
    })
  })

  it('comes back at the earliest time asked for, and never after more than 6 hours', () => {
    const asks = (...times: number[]) =>
      consolidate(times.map(requeueAfter => ({ code: 'ComeBack', on, requeueAfter }))).requeueAfter
    expect(asks(5000, 300, 7000)).toBe(300)
    expect(asks(100 * 3_600_000)).toBe(6 * 3_600_000)
    expect(asks(-5)).toBe(0)
  })

  it('does not depend on the order of what succeeded', () => {
    const codes = Object.keys(operations) as (keyof typeof operations)[]
    const succeeded = fc
      .constantFrom(...codes.filter(code => code !== 'GivenUp'))
      .map((code): Operation => ({ code, on }))
    const property = fc.property(fc.array(succeeded), succeeded, (others, one) => {
      const error: Operation = { code: 'CreateFailed', on, error: new Error('x') }
      expect(consolidate([...others, error, one]).because).toBe(error)
      expect(consolidate([error, ...others, one]).because).toBe(error)
    })
    fc.assert(property, { seed: Number(process.env.SHIPMATE_SEED) })
  })
})

it('what is printed can be read', () => {
  const results = createResults()
  results.add({ code: 'Created', on: 'Deployment sample' })
  results.add({ code: 'CreateDelayed', on: 'Service sample', requeueAfter: 1000 })
  results.add({ code: 'UpdateFailed', on: 'ConfigMap sample', error: new Error('quota exceeded') })
  expect(String(results).split('\n')).toEqual([
    'Deployment sample: was created',
    'Service sample: waits, as enough others were created at once (again in 1000 ms)',
    'ConfigMap sample: could not be changed: quota exceeded',
  ])
  expect(results.counters()).toEqual({ Created: 1, CreateDelayed: 1, UpdateFailed: 1 })
})

it.each([
  [new TerminalError('x'), 'Terminal'],
  [new Conflict('Conflict', 'fresh', 409, { verb: 'get', group: '', resource: 'x' }, {}), 'Conflict'],
  [new TypeError('x'), 'TypeError'],
  ['text', 'string'],
])('%s is of the kind %s', (error, kind) => {
  expect(errorKind(error)).toBe(kind)
})
