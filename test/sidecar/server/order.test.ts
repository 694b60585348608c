import { describe, expect, it } from 'vitest'
import { longestBody } from '../../../shared/protocol/schemas.ts'
import { aims } from '../../fixtures/sidecar-agent.ts'
import { backup, call, codeOf } from '../../fixtures/sidecar-client.ts'
import { type Sent, start } from '../../fixtures/sidecar-server.ts'

describe('the order of refusals', () => {
  const big = 'x'.repeat(longestBody + 1)
  // Each has every fault of those below it, too.
  const cases: [string, string, string, Sent, number, string][] = [
    ['no such route', 'PUT', '/v1/nothing/%zz?x=1', { body: big }, 404, 'NotFound'],
    ['no such method', 'PATCH', '/v1/runs/%zz?x=1', { body: big }, 405, 'MethodNotAllowed'],
    ['a body too large', 'PUT', '/v1/runs/%zz?x=1', { body: big }, 413, 'TooLarge'],
    ['a bad id', 'PUT', '/v1/runs/%zz', { body: { action: 'backup', more: 1 } }, 400, 'InvalidBody'],
    [
      'a query it does not take',
      'PUT',
      '/v1/runs/a?wait=1s',
      { body: { action: 'backup', more: 1 } },
      400,
      'InvalidBody',
    ],
    ['no JSON', 'PUT', '/v1/runs/a', { body: '{' }, 400, 'InvalidBody'],
    ['a wrong field and an unknown one', 'PUT', '/v1/runs/a', { body: { action: 1, more: 1 } }, 400, 'InvalidBody'],
    [
      'an unknown field',
      'PUT',
      '/v1/runs/a',
      { body: { action: 'backup', more: 1, podUid: 'x' } },
      422,
      'UnknownField',
    ],
    ['another pod', 'PUT', '/v1/runs/known', { body: { action: 'none', podUid: 'x', fence: 0 } }, 409, 'WrongPod'],
    ['an id of another body', 'PUT', '/v1/runs/known', { body: { action: 'none', fence: 0 } }, 409, 'IdReused'],
    [
      'another journal',
      'PUT',
      '/v1/runs/a',
      { body: { action: 'none', journalId: 'x', fence: 0 } },
      409,
      'WrongJournal',
    ],
    ['a fence too low', 'PUT', '/v1/runs/a', { body: { action: 'none', fence: 0, configHash: 'x' } }, 409, 'Fenced'],
    ['another configuration', 'PUT', '/v1/runs/a', { body: { action: 'none', configHash: 'x' } }, 409, 'WrongConfig'],
    ['no such action', 'PUT', '/v1/runs/a', { body: { action: 'none', params: { bad: 1 } } }, 404, 'UnknownAction'],
    ['bad parameters', 'PUT', '/v1/runs/a', { body: { action: 'backup', params: { bad: 1 } } }, 422, 'InvalidParams'],
    ['a run in progress', 'PUT', '/v1/runs/a', { body: { action: 'backup' } }, 409, 'Locked'],
  ]

  it.each(cases)('%s: %s %s', async (_why, method, path, sent, status, code) => {
    const { port, agent } = await start()
    await call(port, 'PUT', '/v1/runs/known', { body: backup })
    agent.isFull = true
    const came = await call(port, method, path, sent)
    expect(codeOf(came)).toEqual([status, code])
    expect(came.headers['content-type']).toBe('application/problem+json')
    expect(came.json).toMatchObject({ type: `urn:shipmate:problem:${code}`, status })
    expect(came.json.detail).not.toBe('')
  })

  it('draining comes after the known id and before everything else', async () => {
    const { port, agent } = await start()
    await call(port, 'PUT', '/v1/runs/known', { body: backup })
    agent.isDraining = true
    expect((await call(port, 'PUT', '/v1/runs/known', { body: backup })).status).toBe(200)
    const other = { action: 'none', journalId: 'x' }
    expect(codeOf(await call(port, 'PUT', '/v1/runs/a', { body: other }))).toEqual([503, 'Draining'])
  })

  it('a full journal is 507', async () => {
    const { port, agent } = await start()
    agent.isFull = true
    expect(codeOf(await call(port, 'PUT', '/v1/runs/a', { body: backup }))).toEqual([507, 'JournalFull'])
  })

  it('a refusal keeps what it has to add', async () => {
    const { port } = await start()
    await call(port, 'PUT', '/v1/runs/known', { body: { ...backup, ...aims, fence: 7 } })
    const fenced = await call(port, 'PUT', '/v1/runs/a', { body: { ...backup, fence: 7 } })
    expect(fenced.json).toMatchObject({ code: 'Fenced', fence: 7 })
  })

  it.each([
    ['/v1/state', 'GET, HEAD'],
    ['/v1/runs/a', 'GET, HEAD, PUT, DELETE'],
    ['/v1/runs/a/cancel', 'POST'],
    ['/v1/verify', 'POST'],
    ['/v1/events', 'GET, HEAD'],
  ])('405 at %s names %s', async (path, allow) => {
    const { port } = await start()
    for (const method of ['OPTIONS', 'PATCH', 'TRACE']) {
      const came = await call(port, method, path)
      expect([came.status, came.headers.allow]).toEqual([405, allow])
    }
  })

  it.each([
    '/',
    '/v1',
    '/v1/',
    '/v1/State',
    '/v1/state/',
    '/v1/runs/',
    '/v1//state',
    '/v1/runs/a/',
    '/v1/runs/a/b',
    '*',
    '/v2/state',
  ])('there is no %s', async path => {
    const { port } = await start()
    expect(codeOf(await call(port, 'GET', path))).toEqual([404, 'NotFound'])
  })
})
