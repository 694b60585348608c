/**
 * The server of webhooks, asked by anybody: reviews, garbage, and callers that do not behave.
 */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request as send } from 'node:https'
import { connect as connectTcp } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { Registry } from 'prom-client'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  type AdmissionRequest,
  converting,
  type Hook,
  mutating,
  validating,
} from '../../../controller/runtime/index.ts'
import { hookMetrics } from '../../../controller/runtime/webhook/metrics.ts'
import { type ServerOptions, serveWebhooks, type WebhookServer } from '../../../controller/runtime/webhook/server.ts'
import { createAuthority, issue } from '../../../shared/authority.ts'
import { systemClock } from '../../../shared/clock.ts'
import { ShipmateError } from '../../../shared/errors.ts'
import { createLog } from '../../../shared/log.ts'

const span = { from: Date.now() - 60_000, until: Date.now() + 3_600_000 }
const authority = createAuthority(span)
const pair = () => issue(authority, 'server', { addresses: ['127.0.0.1'] }, span)
const rules = [{ operations: ['*'] as const, apiGroups: ['example.com'], apiVersions: ['v1'], resources: ['boats'] }]
const boat = { apiVersion: 'example.com/v1', kind: 'Boat', metadata: { name: 'ada' }, spec: { length: 4 } }

function review(more: object = {}): object {
  return {
    ...{ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' },
    request: {
      uid: 'uid-1',
      kind: { group: 'example.com', version: 'v1', kind: 'Boat' },
      resource: { group: 'example.com', version: 'v1', resource: 'boats' },
      ...{ name: 'ada', namespace: 'harbour', operation: 'CREATE', dryRun: true, object: boat, oldObject: null },
      userInfo: { username: 'jane', uid: '7', groups: ['sailors'], extra: { scope: ['sea'] } },
      options: { fieldManager: 'kubectl' },
      ...more,
    },
  }
}

interface Given {
  server: WebhookServer
  registry: Registry
  stop(): void
  call(path: string, body?: unknown, more?: Parameters<typeof send>[1]): Promise<{ status: number; text: string }>
}

async function serve(hooks: readonly Hook[], options: Partial<ServerOptions> = {}): Promise<Given> {
  const registry = new Registry()
  const stopping = new AbortController()
  const server = await serveWebhooks({
    ...{ hooks, clock: systemClock, log: createLog({ level: 'silent' }).logger, port: 0, host: '127.0.0.1', linger: 0 },
    ...{ metrics: hookMetrics(registry, systemClock), stopping: stopping.signal },
    ...options,
  })
  server.use(pair())
  onTestFinished(async () => {
    stopping.abort()
    await server.close()
  })
  const call: Given['call'] = async (path, body = review(), more = {}) => {
    const outgoing = send({
      ...{ host: '127.0.0.1', port: server.port, path, method: 'POST', ca: authority.cert, agent: false },
      headers: { 'content-type': 'application/json' },
      ...(more as object),
    })
    const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>
    outgoing.end(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body))
    const [response] = await answered
    let text = ''
    for await (const chunk of response.setEncoding('utf8')) text += chunk
    return { status: response.statusCode ?? 0, text }
  }
  return { server, registry, stop: () => stopping.abort(), call }
}

const never = vi.fn(async () => undefined)
const plain = validating({ name: 'plain.boats.example.com', path: '/plain', rules, handle: never })

describe('a review', () => {
  it('reaches its function with who asks, what, and whether it is a dry run, and is answered with its uid', async () => {
    let asked: AdmissionRequest | undefined
    const handle = async (request: AdmissionRequest) => {
      asked = request
      return undefined
    }
    const { call } = await serve([validating({ name: 'see.boats.example.com', path: '/see', rules, handle })])
    const { status, text } = await call('/see?timeout=5s', review({ oldObject: boat, operation: 'UPDATE' }))
    expect([status, JSON.parse(text)]).toEqual([
      200,
      { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid: 'uid-1', allowed: true } },
    ])
    expect(asked).toMatchObject({
      ...{ uid: 'uid-1', operation: 'UPDATE', name: 'ada', namespace: 'harbour', dryRun: true },
      ...{ object: boat, old: boat, options: { fieldManager: 'kubectl' }, kind: { kind: 'Boat' } },
      user: { name: 'jane', uid: '7', groups: ['sailors'], extra: { scope: ['sea'] } },
    })
  })

  it('of a DELETE has no object, and null says the same as nothing', async () => {
    const seen: unknown[] = []
    const handle = async ({ object, old, dryRun, user }: AdmissionRequest) =>
      void seen.push([object, old, dryRun, user])
    const { call } = await serve([
      validating({
        name: 'see.boats.example.com',
        path: '/see',
        rules,
        handle: async r => (await handle(r)) as undefined,
      }),
    ])
    await call('/see', review({ operation: 'DELETE', object: null, oldObject: boat, dryRun: null, userInfo: {} }))
    expect(seen).toEqual([[undefined, boat, false, { name: '', uid: undefined, groups: [], extra: {} }]])
  })

  it('is refused with all that is wrong, by field, value and what is accepted', async () => {
    const handle = async () => ({
      problems: [
        { field: 'spec.length', message: 'has to be odd' },
        { field: 'spec.crew[0].name', message: 'has to be there' },
        { field: 'metadata.labels["example.com/port"]', value: 'x', message: 'has to be a port' },
        { message: 'it would sink' },
      ],
      warnings: ['the weather\n is bad'],
    })
    const { call } = await serve([validating({ name: 'no.boats.example.com', path: '/no', rules, handle })])
    expect(JSON.parse((await call('/no')).text).response).toEqual({
      ...{ uid: 'uid-1', allowed: false, warnings: ['the weather is bad'] },
      status: {
        ...{ status: 'Failure', code: 422, reason: 'Invalid' },
        message:
          'spec.length is 4, but has to be odd; spec.crew[0].name is missing, but has to be there; ' +
          'metadata.labels["example.com/port"] is "x", but has to be a port; it would sink',
        details: {
          ...{ name: 'ada', group: 'example.com', kind: 'Boat' },
          causes: [
            { reason: 'FieldValueInvalid', field: 'spec.length', message: 'Invalid value: 4: has to be odd' },
            { reason: 'FieldValueRequired', field: 'spec.crew[0].name', message: 'Required value: has to be there' },
            {
              ...{ reason: 'FieldValueInvalid', field: 'metadata.labels["example.com/port"]' },
              message: 'Invalid value: "x": has to be a port',
            },
            { reason: 'FieldValueInvalid', field: 'object', message: 'it would sink' },
          ],
        },
      },
    })
  })

  it('is patched by what its function made of the object, in place or anew', async () => {
    const inPlace = async (request: AdmissionRequest) => {
      const object = request.object as unknown as typeof boat
      object.spec.length = 5
      return { object: request.object }
    }
    const anew = async () => ({ object: { ...boat, metadata: { name: 'ada', labels: { size: 'small' } } } as never })
    const { call } = await serve([
      mutating({ name: 'a.boats.example.com', path: '/a', rules, handle: inPlace }),
      mutating({ name: 'b.boats.example.com', path: '/b', rules, handle: anew }),
      mutating({ name: 'c.boats.example.com', path: '/c', rules, handle: async ({ object }) => ({ object }) }),
    ])
    const patchOf = async (path: string) => {
      const { allowed, patchType, patch } = JSON.parse((await call(path)).text).response
      return [allowed, patchType, patch && JSON.parse(Buffer.from(patch, 'base64').toString())]
    }
    expect(await patchOf('/a')).toEqual([true, 'JSONPatch', [{ op: 'replace', path: '/spec/length', value: 5 }]])
    expect(await patchOf('/b')).toEqual([
      ...[true, 'JSONPatch'],
      [{ op: 'add', path: '/metadata/labels', value: { size: 'small' } }],
    ])
    expect(await patchOf('/c')).toEqual([true, undefined, undefined])
  })

  it('of a conversion has all objects in their order, or says which could not be converted', async () => {
    const hook = converting({
      ...{ crd: 'boats.example.com', path: '/convert' },
      convert: async ({ object, to }) => {
        if (object.metadata.name === 'wreck') throw new Error('it has no hull')
        return { ...object, apiVersion: to }
      },
    })
    const { call } = await serve([hook])
    const ask = async (...names: string[]) => {
      const objects = names.map(name => ({ ...boat, metadata: { name, namespace: 'harbour' } }))
      const request = { uid: 'uid-2', desiredAPIVersion: 'example.com/v2', objects }
      const body = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'ConversionReview', request }
      return JSON.parse((await call('/convert', body)).text).response
    }
    const { convertedObjects, ...rest } = await ask('ada', 'bea')
    expect(rest).toEqual({ uid: 'uid-2', result: { status: 'Success' } })
    expect(convertedObjects.map((one: typeof boat) => [one.apiVersion, one.metadata.name])).toEqual([
      ['example.com/v2', 'ada'],
      ['example.com/v2', 'bea'],
    ])
    expect(await ask('ada', 'wreck')).toEqual({
      uid: 'uid-2',
      result: {
        status: 'Failure',
        message: 'Boat harbour/wreck cannot be converted from example.com/v1 to example.com/v2: it has no hull',
      },
    })
  })

  it('whose function throws, or comes too late, is not answered: what becomes of it is the failure policy’s', async () => {
    let signal: AbortSignal | undefined
    const hang = (request: AdmissionRequest) => {
      signal = request.signal
      return new Promise<undefined>(() => undefined)
    }
    const { call, registry } = await serve([
      validating({
        ...{ name: 'secret.boats.example.com', path: '/secret', rules },
        handle: () => Promise.reject(new TypeError('password is hunter2')),
      }),
      validating({
        ...{ name: 'told.boats.example.com', path: '/told', rules },
        handle: () => Promise.reject(new ShipmateError('Unavailable', 'the harbour is closed', 'later')),
      }),
      validating({ name: 'hang.boats.example.com', path: '/hang', rules, handle: hang }),
    ])
    expect(await call('/secret')).toEqual({
      status: 500,
      text: 'the webhook failed: the log of its operator says why\n',
    })
    expect(await call('/told')).toEqual({ status: 500, text: 'the harbour is closed\n' })
    expect(await call('/hang?timeout=50ms')).toEqual({ status: 504, text: 'the webhook was too late\n' })
    expect(signal?.aborted).toBe(true)
    const text = await registry.metrics()
    expect(text).toContain('shipmate_webhook_outcomes_total{webhook="hang.boats.example.com",outcome="failed"} 1')
    expect(text).toContain('controller_runtime_webhook_requests_total{webhook="hang.boats.example.com",code="504"} 1')
    expect(text).toContain('controller_runtime_webhook_latency_seconds_count{webhook="told.boats.example.com"} 1')
    expect(text).toContain('controller_runtime_webhook_requests_in_flight{webhook="hang.boats.example.com"} 0')
  })
})

describe('garbage', () => {
  const json = { 'content-type': 'application/json' }
  it.each([
    ['no JSON', '{"half":', {}, 400, 'the body is no JSON\n'],
    ['no UTF-8', Buffer.from([0x22, 0xff, 0x22]), {}, 400, 'the body is no JSON\n'],
    ['nothing', '', {}, 400, 'the body is no JSON\n'],
    [
      'another kind',
      { ...review(), kind: 'Pod' },
      {},
      400,
      /^this is no AdmissionReview of admission.k8s.io\/v1: kind: /,
    ],
    ['an old version', { ...review(), apiVersion: 'admission.k8s.io/v1beta1' }, {}, 400, /apiVersion: /],
    ['a review without a uid', review({ uid: '' }), {}, 400, /request.uid: /],
    ['a list', [], {}, 400, /^this is no AdmissionReview/],
    ['null', 'null', {}, 400, /^this is no AdmissionReview/],
    ['a form', 'a=b', { headers: { 'content-type': 'application/x-www-form-urlencoded' } }, 415, /application\/json/],
    ['3 MB of nothing', 'x'.repeat(3_000_000), {}, 400, 'the body is no JSON\n'],
    ['more than it takes', 'x'.repeat(8_000_000), {}, 413, 'the body is larger than 7340032 bytes\n'],
    [
      'more than it says, in pieces',
      'x'.repeat(8_000_000),
      { headers: { ...json, 'transfer-encoding': 'chunked' } },
      413,
      /larger/,
    ],
    ['a GET', '', { method: 'GET' }, 405, 'only POST\n'],
  ])('is refused, and reaches no function: %s', async (_, body, more, status, text) => {
    never.mockClear()
    const { call } = await serve([plain])
    const answer = await call('/plain', body, more)
    expect(answer.status).toBe(status)
    expect(answer.text).toMatch(text)
    expect(never).not.toHaveBeenCalled()
    expect((await call('/plain')).status, 'the next one is answered').toBe(200)
  })

  it('is told from a webhook by its path alone', async () => {
    const { call } = await serve([plain])
    for (const path of ['/', '/plain/', '/plainer', '//plain', '/../plain/x', '/%70lain'])
      expect((await call(path)).status, path).toBe(404)
  })

  /** A connection of one's own, on which anything can be written. */
  async function raw({ server }: Given): Promise<TLSSocket> {
    const socket = connect({ host: '127.0.0.1', port: server.port, ca: authority.cert })
    socket.on('error', () => undefined)
    await once(socket, 'secureConnect')
    onTestFinished(() => void socket.destroy())
    return socket
  }
  const head = 'POST /plain?timeout=50ms HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n'

  it('of many at once is bounded in all', async () => {
    // What all may hold is 18 times 1000 bytes.
    const given = await serve([plain], { maxBody: 1000, maxConversion: 1000 })
    const slow = `${head.replace('50ms', '30s')}content-length: 1000\r\n\r\n${' '.repeat(990)}`
    const sockets = await Promise.all(Array.from({ length: 18 }, () => raw(given)))
    for (const socket of sockets) socket.write(slow)
    const body = `{${' '.repeat(900)}}`
    await vi.waitFor(async () => expect((await given.call('/plain', body)).status).toBe(503))
    for (const socket of sockets) socket.destroy()
    await vi.waitFor(async () => expect((await given.call('/plain', review())).status).toBe(200))
  })

  it('that comes slowly holds nobody up, and is cut off', async () => {
    const given = await serve([plain])
    const socket = await raw(given)
    let text = ''
    socket.setEncoding('utf8').on('data', piece => (text += piece))
    const ended = once(socket, 'close')
    socket.write(`${head}content-length: 1000\r\n\r\n{"`)
    expect((await given.call('/plain')).status).toBe(200)
    await ended
    expect(text).toMatch(/^HTTP\/1.1 504 [\s\S]*the webhook was too late\n/)
  })

  it('that breaks off, or is no TLS at all, harms nobody', async () => {
    const given = await serve([plain])
    const socket = await raw(given)
    socket.write(`${head}content-length: 1000\r\n\r\n{"`)
    socket.destroy()
    const tcp = connectTcp(given.server.port, '127.0.0.1')
    tcp.on('error', () => undefined)
    const closed = once(tcp, 'close')
    tcp.end('GET / HTTP/1.1\r\n\r\n')
    tcp.resume()
    await closed
    expect((await given.call('/plain')).status).toBe(200)
  })
})

describe('on its way', () => {
  it('a new certificate counts for new connections, and cuts none', async () => {
    const given = await serve([plain])
    const tls = { host: '127.0.0.1', port: given.server.port, ca: authority.cert }
    const open = connect(tls)
    await once(open, 'secureConnect')
    const before = open.getPeerCertificate().serialNumber
    given.server.use(pair())
    const later = connect(tls)
    await once(later, 'secureConnect')
    expect(later.getPeerCertificate().serialNumber).not.toBe(before)
    const body = JSON.stringify(review())
    open.write(
      `POST /plain HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    const [answer] = await once(open, 'data')
    expect(String(answer)).toMatch(/^HTTP\/1.1 200 /)
    open.destroy()
    later.destroy()
  })

  it('down, it answers what is under way, waits for no idle connection, and takes no new one', async () => {
    const waiting = Promise.withResolvers<undefined>()
    const asked = Promise.withResolvers<void>()
    const handle = () => {
      asked.resolve()
      return waiting.promise
    }
    const given = await serve([validating({ name: 'wait.boats.example.com', path: '/wait', rules, handle })])
    const idle = connect({ host: '127.0.0.1', port: given.server.port, ca: authority.cert })
    idle.on('error', () => undefined)
    await once(idle, 'secureConnect')
    const underWay = given.call('/wait')
    await asked.promise
    given.stop()
    const closed = given.server.close()
    await once(idle, 'close')
    await expect(given.call('/wait')).rejects.toThrow('ECONNREFUSED')
    waiting.resolve(undefined)
    expect((await underWay).status).toBe(200)
    await closed
  })
})

describe('a declaration', () => {
  const options = { name: 'a.boats.example.com', path: '/a', rules, handle: never }
  it.each([
    [{ name: 'boats' }, 'webhook boats: its name has to be a domain name of three parts or more'],
    [{ path: 'a' }, 'webhook a.boats.example.com: path is "a", but has to be a path such as /inject'],
    [{ rules: [] }, 'webhook a.boats.example.com: rules is empty'],
    [{ timeoutSeconds: 60 }, 'timeoutSeconds is 60, but has to be a whole number from 1 to 30'],
  ])('that no API server would take is refused: %j', (wrong, message) => {
    expect(() => validating({ ...options, ...wrong })).toThrow(message)
  })
})
