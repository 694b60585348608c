import { describe, expect, it } from 'vitest'
import {
  AlreadyExists,
  BadRequest,
  Conflict,
  Expired,
  errorOf,
  errorOfStatus,
  Forbidden,
  Invalid,
  type KubeError,
  MethodNotAllowed,
  NotFound,
  retryAfterOf,
  type Status,
  TooManyRequests,
  Unauthorized,
  Unavailable,
} from '../../controller/kube/errors.ts'
import type { Request, Response, Target } from '../../controller/kube/transport.ts'
import { messageOf, ShipmateError } from '../../shared/errors.ts'
import { errorCodes } from '../../shared/reasons.ts'

const target: Target = { verb: 'update', group: 'apps', resource: 'deployments', namespace: 'shop', name: 'till' }
const request: Request = { method: 'PUT', path: '/x', target }
const answer = (status: number, body: object | string, headers: Response['headers'] = {}): Response => ({
  status,
  headers,
  text: typeof body === 'string' ? body : JSON.stringify(body),
})
const failure = (code: number, reason: string, more: object = {}): Status => ({
  kind: 'Status',
  status: 'Failure',
  code,
  reason,
  message: `the server says ${reason}`,
  ...more,
})

describe("the server's refusals", () => {
  it.each([
    [400, 'BadRequest', BadRequest, 'BadRequest', 'never'],
    [401, 'Unauthorized', Unauthorized, 'Unauthorized', 'later'],
    [403, 'Forbidden', Forbidden, 'Forbidden', 'later'],
    [404, 'NotFound', NotFound, 'NotFound', 'never'],
    [405, 'MethodNotAllowed', MethodNotAllowed, 'MethodNotAllowed', 'never'],
    [406, 'NotAcceptable', BadRequest, 'BadRequest', 'never'],
    [409, 'AlreadyExists', AlreadyExists, 'AlreadyExists', 'fresh'],
    [409, 'Conflict', Conflict, 'Conflict', 'fresh'],
    [409, '', Conflict, 'Conflict', 'fresh'],
    [410, 'Expired', Expired, 'Expired', 'fresh'],
    [410, 'Gone', Expired, 'Expired', 'fresh'],
    [413, 'RequestEntityTooLarge', BadRequest, 'BadRequest', 'never'],
    [415, 'UnsupportedMediaType', BadRequest, 'BadRequest', 'never'],
    [422, 'Invalid', Invalid, 'Invalid', 'never'],
    [429, 'TooManyRequests', TooManyRequests, 'TooManyRequests', 'later'],
    [500, 'InternalError', Unavailable, 'Unavailable', 'later'],
    [502, '', Unavailable, 'Unavailable', 'later'],
    [503, 'ServiceUnavailable', Unavailable, 'Unavailable', 'later'],
    [504, 'Timeout', Unavailable, 'Unavailable', 'later'],
    [599, '', Unavailable, 'Unavailable', 'later'],
  ])('%i %s has a class of its own and says whether trying again helps', (status, reason, errorClass, code, retry) => {
    const error = errorOf(request, answer(status, failure(status, reason)))
    expect(error).toBeInstanceOf(errorClass)
    expect(error).toBeInstanceOf(ShipmateError)
    expect(error).toMatchObject({ code, retry, status, name: errorClass.name, target })
    expect(errorCodes).toHaveProperty(code)
    expect(error.message).toContain('update deployments.apps till in namespace shop')
    expect(error.message).toContain(`the server says ${reason}`)
  })

  it('keep all that the server said', () => {
    const said = failure(409, 'Conflict', { details: { name: 'till', kind: 'deployments', uid: 'u' } })
    expect(errorOf(request, answer(409, said))).toMatchObject({ answer: said })
  })

  it('say what they can of an answer that is not the API server’s', () => {
    const page = `<html>${'x'.repeat(10_000)}</html>`
    const error = errorOf(request, answer(502, page))
    expect(error.message).toContain('HTTP status 502')
    expect(error.message).toContain('<html>')
    expect(error.message.length).toBeLessThan(400)
    expect(errorOf(request, answer(404, '404 page not found\n')).message).toContain('404 page not found')
    expect(errorOf(request, answer(418, '')).message).toContain('HTTP status 418')
    for (const odd of ['null', '5', '"text"', '[]', '{"kind":"List"}']) {
      expect(errorOf(request, answer(404, odd)), odd).toBeInstanceOf(NotFound)
    }
  })

  it('say the message on one line', () => {
    expect(errorOf(request, answer(404, '404 page not found\n')).message).not.toContain('\n')
  })
})

describe('Forbidden', () => {
  const message =
    'deployments.apps "till" is forbidden: User "system:serviceaccount:shop:till" cannot update resource ' +
    '"deployments" in API group "apps" in the namespace "shop"'

  it('names the verb, the resource and the rule that is missing', () => {
    const error = errorOf(request, answer(403, failure(403, 'Forbidden', { message })))
    expect(error).toMatchObject({ rule: { apiGroups: ['apps'], resources: ['deployments'], verbs: ['update'] } })
    expect(error.message).toContain(message)
    expect(error.message).toContain(
      'the missing rule is {apiGroups: ["apps"], resources: ["deployments"], verbs: ["update"]}',
    )
  })

  it('names a subresource as RBAC does', () => {
    const patch: Request = { ...request, target: { ...target, verb: 'patch', subresource: 'status' } }
    const words = 'User "x" cannot patch resource "deployments/status" in API group "apps"'
    expect(errorOf(patch, answer(403, failure(403, 'Forbidden', { message: words })))).toMatchObject({
      rule: { apiGroups: ['apps'], resources: ['deployments/status'], verbs: ['patch'] },
    })
  })

  it('names the verb that was refused, which for an apply may be another than the one sent', () => {
    const apply: Request = { ...request, target: { ...target, verb: 'patch' } }
    const words = 'User "x" cannot create resource "deployments" in API group "apps"'
    expect(errorOf(apply, answer(403, failure(403, 'Forbidden', { message: words })))).toMatchObject({
      rule: { apiGroups: ['apps'], resources: ['deployments'], verbs: ['create'] },
    })
  })

  it('names the core group as RBAC does', () => {
    const list: Request = { method: 'GET', path: '/', target: { verb: 'list', group: '', resource: 'secrets' } }
    const error = errorOf(list, answer(403, failure(403, 'Forbidden', { message: 'User "x" cannot list' })))
    expect(error.message).toContain('{apiGroups: [""], resources: ["secrets"], verbs: ["list"]}')
  })

  it('speaks of no rule where none is missing: a quota, an admission plugin', () => {
    const quota = failure(403, 'Forbidden', { message: 'pods "x" is forbidden: exceeded quota: small' })
    expect(errorOf(request, answer(403, quota)).message).not.toContain('rule')
    expect(errorOf(request, answer(403, '')).message).not.toContain('rule')
  })
})

describe('Invalid', () => {
  const causes = [
    { field: 'spec.replicas', reason: 'FieldValueInvalid', message: 'must be at least 0' },
    { field: 'spec.selector', reason: 'FieldValueRequired', message: 'Required value' },
  ]

  it('has the causes by field', () => {
    const error = errorOf(request, answer(422, failure(422, 'Invalid', { details: { causes } })))
    expect(error).toBeInstanceOf(Invalid)
    expect((error as Invalid).causes).toEqual(causes)
  })

  it('is what a server means that fails to make sense of what is applied, though it says 500', () => {
    const message = 'failed to create typed patch object (a/b; /v1, Kind=Service): .spec.ports: duplicate entries'
    const error = errorOf(request, answer(500, failure(500, '', { message })))
    expect(error).toBeInstanceOf(Invalid)
    expect(error).toMatchObject({ status: 500, retry: 'never' })
  })

  it('has no causes where the server names none', () => {
    expect((errorOf(request, answer(422, 'no')) as KubeError).causes).toEqual([])
  })
})

describe('how long to wait', () => {
  it.each([
    ['5', 5000],
    ['0', 0],
    ['0.5', 500],
    [undefined, undefined],
    ['', undefined],
    ['-3', undefined],
    ['soon', undefined],
    ['Infinity', undefined],
    ['Wed, 21 Oct 2026 07:28:00 GMT', undefined],
  ])('is read from Retry-After: %j', (header, ms) => {
    expect(retryAfterOf({ status: 429, headers: { 'retry-after': header }, text: '' })).toBe(ms)
  })

  it('is the first where there are several', () => {
    expect(retryAfterOf({ status: 429, headers: { 'retry-after': ['2', '9'] }, text: '' })).toBe(2000)
  })

  it('is known from the header or from the details', () => {
    const busy = 'Too many requests, please try again later.'
    expect(errorOf(request, answer(429, busy, { 'retry-after': '7' }))).toMatchObject({ retryAfter: 7000 })
    const details = { retryAfterSeconds: 10 }
    expect(errorOf(request, answer(429, failure(429, 'TooManyRequests', { details })))).toMatchObject({
      retryAfter: 10_000,
    })
    expect(errorOf(request, answer(429, busy))).toMatchObject({ retryAfter: undefined })
    expect(errorOf(request, answer(503, 'x', { 'retry-after': '3' }))).toMatchObject({ retryAfter: 3000 })
  })
})

describe('whether the server may have acted', () => {
  it.each([
    [500, undefined, true],
    [500, '1', true],
    [502, undefined, true],
    [503, undefined, true],
    [503, '1', false],
    [504, undefined, true],
    [504, '1', true],
  ])('after %i with Retry-After %j', (status, header, mayHaveActed) => {
    expect(errorOf(request, answer(status, 'x', { 'retry-after': header }))).toMatchObject({ mayHaveActed })
  })
})

describe('errors in general', () => {
  it('keep their cause', () => {
    const cause = new Error('ECONNREFUSED')
    expect(new Unavailable('Unavailable', target, 'x', { mayHaveActed: false, cause }).cause).toBe(cause)
  })

  it('inside a stream are the same as outside', () => {
    expect(errorOfStatus(target, 410, failure(410, 'Expired'))).toBeInstanceOf(Expired)
    expect(errorOfStatus(target, 410, {})).toMatchObject({ message: expect.stringContaining('HTTP status 410') })
  })

  it('of a URL that is no resource name the server', () => {
    const health: Target = { verb: 'get', group: '', resource: '', name: '/readyz' }
    expect(errorOfStatus(health, 404, {}).message).toContain('get the server /readyz')
  })

  it('are told in words, whatever was thrown', () => {
    expect(messageOf(new Error('x'))).toBe('x')
    expect(messageOf(new TypeError())).toBe('TypeError')
    expect(messageOf('text')).toBe('text')
    expect(messageOf(undefined)).toBe('undefined')
    expect(messageOf(null)).toBe('null')
    expect(messageOf(Object.create(null))).toBeTypeOf('string')
  })
})
