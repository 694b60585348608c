import { describe, expect, it } from 'vitest'
import { backup, call, codeOf } from '../../fixtures/sidecar-client.ts'
import { raw, start } from '../../fixtures/sidecar-server.ts'

describe('each call', () => {
  it('GET /v1/state answers the state of the app in this pod', async () => {
    const { port } = await start()
    const came = await call(port, 'GET', '/v1/state')
    expect(came.status).toBe(200)
    expect(came.json).toMatchObject({ state: 'Running', bootId: 'boot-1', cursor: 'boot-1.0', pod: { uid: 'pod-uid' } })
  })

  it('GET of actions, features and runs answers them', async () => {
    const { port } = await start()
    expect((await call(port, 'GET', '/v1/actions')).json.actions).toHaveLength(1)
    expect((await call(port, 'GET', '/v1/features')).json).toEqual({ protocol: 1, features: ['adopt'] })
    expect((await call(port, 'GET', '/v1/runs')).json).toEqual({ runs: [] })
  })

  it('PUT of a run answers 201, and 200 when it is known; another body is refused', async () => {
    const { port } = await start()
    expect((await call(port, 'PUT', '/v1/runs/a', { body: backup })).status).toBe(201)
    const again = await call(port, 'PUT', '/v1/runs/a', { body: backup })
    expect([again.status, again.json.phase, again.json.attempt]).toEqual([200, 'Running', 1])
    const other = await call(port, 'PUT', '/v1/runs/a', { body: { action: 'backup' } })
    expect(codeOf(other)).toEqual([409, 'IdReused'])
  })

  it('GET, cancel and DELETE of a run', async () => {
    const { port, agent } = await start()
    await call(port, 'PUT', '/v1/runs/a', { body: backup })
    expect((await call(port, 'GET', '/v1/runs/a')).json).toMatchObject({ id: 'a', phase: 'Running' })
    expect(codeOf(await call(port, 'DELETE', '/v1/runs/a'))).toEqual([409, 'InProgress'])
    expect((await call(port, 'POST', '/v1/runs/a/cancel')).status).toBe(202)
    expect((await call(port, 'POST', '/v1/runs/a/cancel', { body: {} })).status).toBe(200)
    const deleted = await call(port, 'DELETE', '/v1/runs/a')
    expect([deleted.status, deleted.text]).toEqual([204, ''])
    expect(codeOf(await call(port, 'GET', '/v1/runs/a'))).toEqual([404, 'UnknownRun'])
    expect(agent.runs()).toEqual([])
  })

  it('settle and verify of an Unknown run', async () => {
    const { port, agent } = await start()
    await call(port, 'PUT', '/v1/runs/a', { body: backup })
    const settle = { body: { outcome: 'Failed', reason: 'the disk was empty' } }
    expect(codeOf(await call(port, 'POST', '/v1/runs/a/settle', settle))).toEqual([409, 'NotUnknown'])
    agent.finish('a', 'Unknown')
    expect((await call(port, 'POST', '/v1/verify', { body: { runId: 'a', action: 'backup' } })).json).toEqual({
      outcome: 'Unknown',
    })
    expect((await call(port, 'POST', '/v1/runs/a/settle', settle)).json.phase).toBe('Failed')
  })

  it('`.` and `..` are run ids like any other', async () => {
    const { port } = await start()
    const answer = await raw(
      port,
      `PUT /v1/runs/.. HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 19\r\n\r\n{"action":"backup"}`,
    )
    expect(answer).toMatch(/^HTTP\/1\.1 201 /)
    expect((await call(port, 'GET', '/v1/runs/%2E%2E')).json.id).toBe('..')
  })

  it('HEAD answers as GET does, without the body', async () => {
    const { port } = await start()
    const got = await call(port, 'GET', '/v1/features')
    const head = await call(port, 'HEAD', '/v1/features')
    expect([head.status, head.text]).toEqual([200, ''])
    expect(head.headers['content-length']).toBe(got.headers['content-length'])
  })

  it('a log comes in pieces, with headers that say where it is and where it goes on', async () => {
    const { port, agent } = await start()
    await call(port, 'PUT', '/v1/runs/a', { body: backup })
    agent.write('a', 'x'.repeat(100_000))
    const first = await call(port, 'GET', '/v1/runs/a/log')
    expect(first.headers).toMatchObject({ 'shipmate-log-offset': '0', 'shipmate-log-next': '65536' })
    const second = await call(port, 'GET', '/v1/runs/a/log?offset=65536&limit=10')
    expect([second.text, second.headers['shipmate-log-next']]).toEqual(['x'.repeat(10), '65546'])
    const all = await call(port, 'GET', '/v1/runs/a/log?limit=999999999')
    expect(all.bytes.length).toBe(100_000)
    const end = await call(port, 'GET', '/v1/runs/a/log?offset=100000')
    expect([end.status, end.text, end.headers['shipmate-log-next']]).toEqual([200, '', '100000'])
    agent.cut('a', 10, 50)
    expect((await call(port, 'GET', '/v1/runs/a/log?offset=20&limit=5')).headers['shipmate-log-offset']).toBe('50')
  })

  it('/openapi.json is the document, for this version', async () => {
    const { port } = await start()
    const { json } = await call(port, 'GET', '/openapi.json')
    expect([json.openapi, json.info.version]).toEqual(['3.1.0', '0.1.0'])
  })

  it('every answer says not to keep it, nor to guess its type, and nothing about what made it', async () => {
    const { port } = await start()
    for (const path of ['/v1/state', '/nothing']) {
      const { headers } = await call(port, 'GET', path)
      expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
      expect(headers).not.toHaveProperty('etag')
      expect(headers).not.toHaveProperty('x-powered-by')
    }
  })
})
