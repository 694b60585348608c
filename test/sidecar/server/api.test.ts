import { Agent } from 'node:http'
import { connect } from 'node:net'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { longestBody } from '../../../shared/protocol/schemas.ts'
import { aims } from '../../fixtures/sidecar-agent.ts'
import { undocumented } from '../../fixtures/sidecar-documented.ts'
import { type Came, call as callPlainly, raw, type Sent, start } from '../../fixtures/sidecar-server.ts'
import { VirtualClock } from '../../fixtures/virtual-clock.ts'

const wrong: string[] = []
afterEach(() => {
  expect(wrong.splice(0), 'answers that are not as /openapi.json says').toEqual([])
})

async function call(port: number, method: string, path: string, sent: Sent = {}): Promise<Came> {
  const came = await callPlainly(port, method, path, sent)
  const offence = undocumented(method, path, came)
  if (offence) wrong.push(offence)
  return came
}

const backup = { action: 'backup', params: { to: '/backup/1' } }
const codeOf = ({ status, json }: Came) => [status, json?.code]

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

describe('what a client may send', () => {
  const put = (body: string) => ['PUT', '/v1/runs/a', { body }] as const
  const refused: [string, readonly [string, string, Sent?], number, RegExp][] = [
    ['no body', ['PUT', '/v1/runs/a'], 400, /empty/],
    ['a body of another kind', put('[1]'), 400, /an array; it must be an object/],
    ['null', put('null'), 400, /null; it must be an object/],
    ['invalid UTF-8', ['PUT', '/v1/runs/a', { body: Buffer.from([0x22, 0xff, 0x22]) }], 400, /not UTF-8/],
    [
      'a secret in what is no JSON',
      put('{"password": "hunter2", }'),
      400,
      /^The body is not JSON: mistake at character \d+\.$/,
    ],
    [
      'deep nesting',
      put(`{"action":"backup","params":{"x":${'['.repeat(50_000)}${']'.repeat(50_000)}}}`),
      400,
      /deeper than 64/,
    ],
    ['__proto__', put('{"action":"backup","params":{"__proto__":{"polluted":1}}}'), 400, /__proto__/],
    ['a number without end', put('{"action":"backup","params":{"n":1e999}}'), 400, /larger than a double/],
    ['half a surrogate pair', put('{"action":"backup","params":{"n":"\\ud800"}}'), 400, /surrogate/],
    ['an attempt that is none', put('{"action":"backup","attempt":0}'), 400, /"attempt" is 0; it must be at least 1/],
    ['a huge attempt', put('{"action":"backup","attempt":1e300}'), 400, /"attempt" is 1e\+300/],
    [
      'a timeout that is none',
      put('{"action":"backup","timeout":"soon"}'),
      400,
      /"timeout" is "soon"; it must be a duration/,
    ],
    [
      'params of another kind',
      put('{"action":"backup","params":[]}'),
      400,
      /"params" is an array; it must be an object/,
    ],
    ['no action', put('{}'), 400, /"action" is missing; it must be a string/],
    ['an unknown field', put('{"action":"backup","prams":{}}'), 422, /no field "prams"; there are action, params/],
    [
      'another type',
      ['PUT', '/v1/runs/a', { body: '<a/>', headers: { 'content-type': 'text/xml' } }],
      400,
      /"text\/xml"; it must be application\/json/,
    ],
    [
      'another charset',
      ['PUT', '/v1/runs/a', { body: '{}', headers: { 'content-type': 'application/json; charset=utf-16' } }],
      400,
      /utf-16/,
    ],
    ['a compressed body', ['PUT', '/v1/runs/a', { body: '{}', headers: { 'content-encoding': 'gzip' } }], 400, /gzip/],
    ['an id too long', ['GET', `/v1/runs/${'a'.repeat(129)}`], 400, /ids match/],
    ['an id with a slash', ['GET', '/v1/runs/a%2Fb'], 400, /ids match/],
    ['an id that cannot be decoded', ['GET', '/v1/runs/%E0%A4%A'], 400, /ids match/],
    ['an id with a zero byte', ['GET', '/v1/runs/a%00'], 400, /ids match/],
    [
      'a wait that is none',
      ['GET', '/v1/state?since=x&wait=soon'],
      400,
      /"wait" in the query is "soon"; it must be a duration/,
    ],
    ['two waits', ['GET', '/v1/state?wait=1s&wait=2s'], 400, /"wait" more than once/],
    ['an unknown parameter', ['GET', '/v1/state?wiat=1s'], 400, /"wiat"; this call takes since, wait/],
    ['a parameter called __proto__', ['GET', '/v1/runs?__proto__=1'], 400, /takes none/],
    [
      'a negative offset',
      ['GET', '/v1/runs/a/log?offset=-1'],
      400,
      /"offset" in the query is "-1"; it must be a whole number/,
    ],
    ['an offset of many digits', ['GET', '/v1/runs/a/log?offset=99999999999999999999'], 400, /whole number/],
    ['an offset above what is exact', ['GET', '/v1/runs/a/log?offset=9999999999999999'], 400, /at most/],
    ['no limit', ['GET', '/v1/runs/a/log?limit=0'], 400, /at least 1/],
    [
      'an outcome that is none',
      ['POST', '/v1/runs/a/settle', { body: { outcome: 'Fine', reason: 'x' } }],
      400,
      /"outcome" is "Fine"; it must be one of "Succeeded", "Failed"/,
    ],
    ['no reason', ['POST', '/v1/runs/a/settle', { body: { outcome: 'Failed', reason: '' } }], 400, /some text/],
    ['events without an upgrade', ['GET', '/v1/events'], 400, /WebSocket/],
  ]

  it.each(refused)('%s is refused, and told why', async (_what, [method, path, sent], status, detail) => {
    const { port, lines } = await start()
    const came = await call(port, method, path, sent)
    expect([came.status, came.json?.detail]).toEqual([status, expect.stringMatching(detail)])
    expect(lines.filter(line => line.includes('"error"'))).toEqual([])
  })

  it.each([
    'application/json',
    'application/json; charset=UTF-8',
    'application/merge-patch+json',
    'text/plain;charset=UTF-8',
    '',
  ])('JSON is taken as "%s"', async type => {
    const { port } = await start()
    const came = await call(port, 'PUT', '/v1/runs/a', { body: backup, headers: type ? { 'content-type': type } : {} })
    expect(came.status).toBe(201)
  })

  it('a body of the longest size is taken; one byte more is 413, announced or chunked', async () => {
    const { port } = await start()
    const body = (size: number) => {
      const rest = JSON.stringify({ action: 'backup', params: { x: '' } }).length
      return JSON.stringify({ action: 'backup', params: { x: 'y'.repeat(size - rest) } })
    }
    expect((await call(port, 'PUT', '/v1/runs/a', { body: body(longestBody) })).status).toBe(201)
    const chunked = { 'transfer-encoding': 'chunked' }
    for (const headers of [{}, chunked]) {
      const came = await call(port, 'PUT', '/v1/runs/b', { body: body(longestBody + 1), headers })
      expect([...codeOf(came), came.headers.connection]).toEqual([413, 'TooLarge', 'close'])
    }
    expect((await call(port, 'PUT', '/v1/runs/a', { body: body(longestBody), headers: chunked })).status).toBe(200)
  })

  it('a body too large is refused before it is sent, if the client asks', async () => {
    const { port } = await start()
    const head = 'PUT /v1/runs/a HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n'
    const large = await raw(port, `${head}Content-Length: 1000000\r\n\r\n`)
    expect(large).toMatch(/^HTTP\/1\.1 413 /)
    const small = await raw(port, `${head}Connection: close\r\nContent-Length: 19\r\n\r\n{"action":"backup"}`)
    expect(small).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /)
  })

  it('the answer to a body too large arrives, though the client reads nothing before it has sent all', async () => {
    const { port } = await start()
    const socket = connect(port, '127.0.0.1').pause()
    onTestFinished(() => void socket.destroy())
    const errors: Error[] = []
    socket.on('error', error => errors.push(error))
    const size = 3_000_000
    socket.write(`PUT /v1/runs/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${size}\r\n\r\n`)
    for (let sent = 0; sent < size; sent += 100_000) {
      await new Promise(resolve => socket.write(Buffer.alloc(100_000, 'x'), resolve))
      // Time for the server to close the connection, if it would.
      await call(port, 'GET', '/v1/features')
    }
    let came = ''
    socket.on('data', chunk => {
      came += chunk
    })
    socket.resume()
    await expect.poll(() => came).toMatch(/^HTTP\/1\.1 413 [\s\S]*"code":"TooLarge"/)
    expect(errors).toEqual([])
  })

  it.each([
    ['nonsense', 'nonsense\r\n\r\n', /^HTTP\/1\.1 400 [\s\S]*"code":"InvalidBody"/],
    [
      'two lengths',
      'GET /v1/state HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      /^HTTP\/1\.1 400 /,
    ],
    [
      'length and chunks',
      'PUT /v1/runs/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      /^HTTP\/1\.1 400 /,
    ],
    [
      'headers too large',
      `GET /v1/state HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
      /^HTTP\/1\.1 431 /,
    ],
    [
      'an absolute URL',
      'GET http://localhost/v1/features HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
      /^HTTP\/1\.1 200 /,
    ],
    ['CONNECT', 'CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n', /^HTTP\/1\.1 404 /],
    [
      'an upgrade it does not know',
      'GET /v1/features HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n',
      /^HTTP\/1\.1 200 /,
    ],
    [
      'an upgrade it does not know, with a body',
      'PUT /v1/runs/a HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\nContent-Length: 19\r\n\r\n{"action":"backup"}',
      /^HTTP\/1\.1 201 /,
    ],
    [
      'another expectation',
      'GET /v1/features HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: miracles\r\n\r\n',
      /^HTTP\/1\.1 200 /,
    ],
  ])('%s on a bare connection', async (_what, bytes, expected) => {
    const { port } = await start()
    expect(await raw(port, bytes)).toMatch(expected)
  })

  it('a mistake of the agent is 503 and in the log, and tells the client nothing', async () => {
    const { port, agent, lines } = await start()
    agent.broken = new Error('secret path /var/x')
    const came = await call(port, 'GET', '/v1/state')
    expect(codeOf(came)).toEqual([503, 'Unavailable'])
    expect(came.text).not.toContain('secret')
    expect(lines.join()).toContain('secret path')
  })

  it('a page in a browser is refused with --auth none', async () => {
    const { port } = await start()
    const rebound = await call(port, 'GET', '/v1/state', { headers: { host: 'evil.example:7443' } })
    expect(codeOf(rebound)).toEqual([403, 'Forbidden'])
    const foreign = await call(port, 'POST', '/v1/runs/a/cancel', { headers: { origin: 'https://evil.example' } })
    expect(codeOf(foreign)).toEqual([403, 'Forbidden'])
    const own = await call(port, 'GET', '/v1/state', { headers: { host: '[::1]:1', origin: 'http://localhost:3000' } })
    expect(own.status).toBe(200)
  })
})

describe('held calls', () => {
  it('a state is held until there is a newer one', async () => {
    const clock = new VirtualClock()
    const { port, agent } = await start({ clock })
    const held = call(port, 'GET', '/v1/state?since=boot-1.0&wait=30s')
    await expect.poll(() => clock.pending).toBe(1)
    agent.change('Stopping')
    const { json } = await held
    expect([json.state, json.cursor]).toEqual(['Stopping', 'boot-1.1'])
    expect(clock.pending).toBe(0)
  })

  it('a state is held until the time is up, 60 s at most', async () => {
    for (const [wait, ms] of [
      ['30s', 30_000],
      ['5m', 60_000],
      ['999999h', 60_000],
    ] as const) {
      const clock = new VirtualClock()
      const { port } = await start({ clock })
      const held = call(port, 'GET', `/v1/state?since=boot-1.0&wait=${wait}`)
      await expect.poll(() => clock.pending).toBe(1)
      await clock.advance(ms - 1)
      expect(clock.pending).toBe(1)
      await clock.advance(1)
      expect((await held).json.cursor).toBe('boot-1.0')
    }
  })

  it.each([
    'since=boot-0.0&wait=30s',
    'since=&wait=30s',
    'since=boot-1.7&wait=30s',
    'since=boot-1.0',
    'wait=30s',
    'since=boot-1.0&wait=0s',
  ])('a state with %s is answered at once', async query => {
    const { port } = await start({ clock: new VirtualClock() })
    expect((await call(port, 'GET', `/v1/state?${query}`)).status).toBe(200)
  })

  it('a state is answered at once when there is something newer already', async () => {
    const { port, agent } = await start({ clock: new VirtualClock() })
    agent.change('Stopping')
    expect((await call(port, 'GET', '/v1/state?since=boot-1.0&wait=30s')).json.seq).toBe(1)
  })

  it('a run is held until it has ended', async () => {
    const clock = new VirtualClock()
    const { port, agent } = await start({ clock })
    await call(port, 'PUT', '/v1/runs/a', { body: backup })
    const held = call(port, 'GET', '/v1/runs/a?wait=30s')
    await expect.poll(() => clock.pending).toBe(1)
    agent.change('Servicing')
    expect(clock.pending).toBe(1)
    agent.finish('a', 'Unknown')
    expect((await held).json.phase).toBe('Unknown')
    expect((await call(port, 'GET', '/v1/runs/a?wait=30s')).json.phase).toBe('Unknown')
    expect(codeOf(await call(port, 'GET', '/v1/runs/b?wait=30s'))).toEqual([404, 'UnknownRun'])
  })

  it('a hold ends when its caller goes away', async () => {
    const clock = new VirtualClock()
    const { port } = await start({ clock })
    const gone = new AbortController()
    const held = callPlainly(port, 'GET', '/v1/state?since=boot-1.0&wait=30s', { signal: gone.signal })
    await expect.poll(() => clock.pending).toBe(1)
    gone.abort()
    await expect(held).rejects.toThrow()
    await expect.poll(() => clock.pending).toBe(0)
  })

  it('draining answers what is held, closes its connections and takes no new ones', async () => {
    const clock = new VirtualClock()
    const { port, servers, publicPort } = await start({ clock })
    const agent = new Agent({ keepAlive: true })
    onTestFinished(() => agent.destroy())
    expect((await call(port, 'GET', '/v1/state', { agent })).headers.connection).toBe('keep-alive')
    const held = call(port, 'GET', '/v1/state?since=boot-1.0&wait=30s', { agent })
    await expect.poll(() => clock.pending).toBe(1)
    const drained = servers.drain()
    const came = await held
    expect([came.status, came.headers.connection]).toEqual([200, 'close'])
    await drained
    await expect(callPlainly(port, 'GET', '/v1/state')).rejects.toThrow(/ECONNREFUSED/)
    expect((await callPlainly(publicPort, 'GET', '/livez')).status).toBe(200)
  })
})
