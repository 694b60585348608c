import { Agent } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { longestBody } from '../../../shared/protocol/schemas.ts'
import type { Answered } from '../../../sidecar/server/api.ts'
import { backup, call, codeOf } from '../../fixtures/sidecar-client.ts'
import { call as callPlainly, raw, type Sent, start } from '../../fixtures/sidecar-server.ts'

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

  it.each([
    ['*', 404],
    ['host:1', 400],
    ['/v1/runs/\xe4', 400],
    ['/v1/runs/a\xa0', 400],
    ['/v1/features#x', 200],
    ['/v1/features?', 200],
    ['/v1/features?#x', 200],
  ])('the target "%s" is %i', async (target, status) => {
    const { port } = await start()
    const request = `GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`
    expect(await raw(port, Buffer.from(request, 'latin1'))).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  })

  it('each answer is told to who counts, by its route', async () => {
    const answers: Answered[] = []
    const { port } = await start({ observe: answer => answers.push(answer) })
    await call(port, 'HEAD', '/v1/features')
    await call(port, 'GET', '/v1/runs/a')
    await call(port, 'PATCH', '/v1/runs/a')
    await call(port, 'GET', '/nothing')
    expect(answers).toEqual([
      { route: 'getFeatures', method: 'HEAD', status: 200 },
      { route: 'getRun', method: 'GET', status: 404 },
      { route: undefined, method: 'PATCH', status: 405 },
      { route: undefined, method: 'GET', status: 404 },
    ])
  })

  it('a connection above the limit is closed; the others go on', async () => {
    const { port } = await start({ connections: 1 })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    expect((await call(port, 'GET', '/v1/features', { agent })).status).toBe(200)
    await expect(callPlainly(port, 'GET', '/v1/features')).rejects.toThrow()
    expect((await call(port, 'GET', '/v1/features', { agent })).status).toBe(200)
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
