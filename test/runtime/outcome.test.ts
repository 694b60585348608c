import { describe, expect, it } from 'vitest'
import { Aborted, errorOfStatus, Unavailable } from '../../controller/kube/errors.ts'
import { NotLeading } from '../../controller/kube/gate.ts'
import { outcomeOf, outcomeOfError, type Result, TerminalError } from '../../controller/runtime/outcome.ts'
import { ShipmateError } from '../../shared/errors.ts'

const target = { verb: 'update', group: '', resource: 'configmaps', namespace: 'default', name: 'x' }

describe('what a reconcile function returns', () => {
  it('nothing: it is done', () => {
    expect(outcomeOf(undefined)).toEqual({ is: 'success' })
    expect(outcomeOf(null as unknown as Result)).toEqual({ is: 'success' })
  })

  it.each([0, 0.5, 1000, Number.MAX_SAFE_INTEGER])('come back after %s ms', after => {
    expect(outcomeOf({ requeueAfter: after })).toEqual({ is: 'comeBack', after })
  })

  it('never come back: it is done', () => {
    expect(outcomeOf({ requeueAfter: Number.POSITIVE_INFINITY })).toEqual({ is: 'success' })
  })

  it.each([
    [-1, '-1'],
    [Number.NaN, 'NaN'],
    [Number.NEGATIVE_INFINITY, '-Infinity'],
    [undefined, 'undefined'],
    [null, 'null'],
    ['5s', "'5s'"],
    [5n, '5n'],
    [{}, '{}'],
    [Object.create(null), '[Object: null prototype] {}'],
  ])('%o, which is no time: a program error that says so', (after, words) => {
    const outcome = outcomeOf({ requeueAfter: after } as unknown as Result)
    expect(outcome).toMatchObject({ is: 'failed', panic: true })
    expect(String((outcome as { error: Error }).error)).toBe(
      `TypeError: requeueAfter is ${words}; it must be milliseconds, 0 or more`,
    )
  })

  it.each([true, 5, 'done', {}, [], () => undefined])(
    '%o, which is nothing that it may return: a program error',
    result => {
      expect(outcomeOf(result as unknown as Result)).toMatchObject({ is: 'failed', panic: true })
    },
  )
})

describe('what a reconcile function throws', () => {
  it('an error: it failed', () => {
    const error = new Error('out of luck')
    expect(outcomeOfError(error, false)).toEqual({ is: 'failed', error, panic: false })
  })

  it.each([
    new TypeError('x is undefined'),
    new ReferenceError('x is not defined'),
    new RangeError('invalid array length'),
    'a string',
    undefined,
    null,
    42,
    Symbol('s'),
    {},
  ])('%o: the program is wrong', error => {
    expect(outcomeOfError(error, false)).toEqual({ is: 'failed', error, panic: true })
  })

  it('a TypeError by which fetch says that the network failed: the world is wrong', () => {
    const error = new TypeError('fetch failed', { cause: new Error('ECONNREFUSED') })
    expect(outcomeOfError(error, false)).toMatchObject({ is: 'failed', panic: false })
  })

  it('a TerminalError: it is not tried again, not even while it is called off', () => {
    const error = new TerminalError('spec.size must not shrink')
    expect(outcomeOfError(error, false)).toEqual({ is: 'terminal', error })
    expect(outcomeOfError(error, true)).toEqual({ is: 'terminal', error })
    expect(error).toMatchObject({ code: 'Terminal', retry: 'never', name: 'TerminalError' })
  })

  it.each([
    [409, 'Conflict'],
    [409, 'AlreadyExists'],
    [410, 'Expired'],
  ])('a %s %s: somebody else was faster, which is no failure', (code, reason) => {
    const error = errorOfStatus(target, code, { reason })
    expect(outcomeOfError(error, false)).toEqual({ is: 'outdated', error })
  })

  it.each([400, 401, 403, 404, 405, 422])('a %s: it failed', code => {
    expect(outcomeOfError(errorOfStatus(target, code, {}), false)).toMatchObject({
      is: 'failed',
      panic: false,
      after: undefined,
    })
  })

  it('a 429 that says how long to wait: it failed, and waits that long', () => {
    const error = errorOfStatus(target, 429, { details: { retryAfterSeconds: 7 } })
    expect(outcomeOfError(error, false)).toMatchObject({ is: 'failed', after: 7000 })
  })

  it('a 503 that says how long to wait: the same', () => {
    const error = new Unavailable('Unavailable', target, 'busy', { status: 503, mayHaveActed: false, retryAfter: 3000 })
    expect(outcomeOfError(error, false)).toMatchObject({ is: 'failed', after: 3000 })
  })

  it('that the lease is lost: it was called off', () => {
    expect(outcomeOfError(new NotLeading('lost'), false)).toEqual({ is: 'cancelled' })
  })

  it('that its call was aborted: it was called off, if it was; else it failed', () => {
    expect(outcomeOfError(new Aborted(target, 'stop'), true)).toEqual({ is: 'cancelled' })
    expect(outcomeOfError(new Aborted(target, 'its own timeout'), false)).toMatchObject({ is: 'failed', panic: false })
    expect(outcomeOfError(new DOMException('aborted', 'AbortError'), true)).toEqual({ is: 'cancelled' })
    expect(outcomeOfError(new DOMException('aborted', 'AbortError'), false)).toMatchObject({
      is: 'failed',
      panic: false,
    })
  })

  it('another error of ours while it is called off: it failed', () => {
    expect(outcomeOfError(new ShipmateError('Misuse', 'wrong', 'never'), true)).toMatchObject({ is: 'failed' })
  })
})
