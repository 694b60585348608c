import { context, type Exception, SpanKind, type SpanStatus, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { AlwaysOffSampler, InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Request, Response, Send } from '../../controller/kube/transport.ts'
import { createTracing, noTracing, type Tracing } from '../../controller/runtime/tracing.ts'

const exporter = new InMemorySpanExporter()
let tracing: Tracing

const request: Request = {
  method: 'PATCH',
  path: '/api/v1/namespaces/shop/configmaps/secret-name?fieldManager=x',
  target: { verb: 'patch', group: '', resource: 'configmaps', namespace: 'shop', name: 'secret-name' },
}

/** Registers an SDK, as an application would. */
function register(sampler?: AlwaysOffSampler) {
  const spanProcessors = [new SimpleSpanProcessor({ exporter })]
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors, ...(sampler && { sampler }) }))
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
}

const answering = (status: number): Send => vi.fn(async (): Promise<Response> => ({ status, headers: {}, text: '' }))
const spans = () => exporter.getFinishedSpans()

beforeEach(async () => {
  tracing = await createTracing()
})
afterEach(() => {
  exporter.reset()
  trace.disable()
  context.disable()
})

describe('with an SDK', () => {
  beforeEach(() => register())

  it('a piece of work is a span, with its attributes and its result', async () => {
    const result = await tracing.span('reconcile widget', { 'shipmate.object': 'default/x' }, async () => 42)
    expect(result).toBe(42)
    expect(spans()).toMatchObject([
      {
        name: 'reconcile widget',
        attributes: { 'shipmate.object': 'default/x' },
        status: { code: SpanStatusCode.UNSET },
      },
    ])
  })

  it.each([
    ['rejects', () => Promise.reject(new Error('out of luck'))],
    [
      'throws',
      () => {
        throw new Error('out of luck')
      },
    ],
  ])('work that %s is a span with an error, and the error is passed on', async (_how, work) => {
    await expect(async () => tracing.span('work', {}, work)).rejects.toThrow('out of luck')
    const status: SpanStatus = { code: SpanStatusCode.ERROR, message: 'out of luck' }
    expect(spans()).toMatchObject([
      { status, events: [{ name: 'exception', attributes: { 'exception.message': 'out of luck' } }] },
    ])
  })

  it.each([undefined, null, 'a string', Object.create(null)])(
    'work that throws %o is a span with an error, too',
    async thrown => {
      const work = () => Promise.reject(thrown as Exception)
      await expect(Promise.resolve(tracing.span('work', {}, work))).rejects.toBe(thrown)
      expect(spans()).toMatchObject([{ status: { code: SpanStatusCode.ERROR } }])
    },
  )

  it('a request is a client span, named by what it does and not by what object it does it to', async () => {
    await tracing.interceptor(answering(200))(request)
    expect(spans()).toMatchObject([
      {
        name: 'patch configmaps in namespace shop',
        kind: SpanKind.CLIENT,
        attributes: {
          'http.request.method': 'PATCH',
          'url.path': '/api/v1/namespaces/shop/configmaps/secret-name',
          'http.response.status_code': 200,
        },
        status: { code: SpanStatusCode.UNSET },
      },
    ])
  })

  it('a refused request is a span with an error, its answer is passed on', async () => {
    expect(await tracing.interceptor(answering(403))(request)).toMatchObject({ status: 403 })
    expect(spans()).toMatchObject([
      { attributes: { 'http.response.status_code': 403 }, status: { code: SpanStatusCode.ERROR } },
    ])
  })

  it('a request that fails is a span with an error, which is passed on', async () => {
    const failing: Send = () => Promise.reject(new Error('connection lost'))
    await expect(tracing.interceptor(failing)(request)).rejects.toThrow('connection lost')
    expect(spans()).toMatchObject([{ status: { code: SpanStatusCode.ERROR, message: 'connection lost' } }])
  })

  it('a request is part of the work that makes it, also of work beside other work', async () => {
    const send = tracing.interceptor(answering(200))
    const work = (name: string) =>
      tracing.span(name, {}, async () => {
        await new Promise(resolve => setImmediate(resolve))
        await send(request)
        await send(request)
      })
    await Promise.all([work('first'), work('second')])
    for (const name of ['first', 'second']) {
      const parent = spans()
        .find(span => span.name === name)
        ?.spanContext()
      const children = spans().filter(span => span.parentSpanContext?.spanId === parent?.spanId)
      expect(
        children.map(span => span.spanContext().traceId),
        `requests of ${name}`,
      ).toEqual([parent?.traceId, parent?.traceId])
    }
    expect(spans()).toHaveLength(6)
  })

  it('a request outside of all work is a span of its own', async () => {
    await tracing.interceptor(answering(200))(request)
    expect(spans()[0]?.parentSpanContext).toBeUndefined()
  })
})

it('spans go to an SDK that was registered before it was looked for', async () => {
  register()
  const late = await createTracing()
  await late.span('work', {}, () => undefined)
  expect(spans()).toHaveLength(1)
})

describe.each([
  ['without an SDK', () => undefined],
  ['with an SDK that samples nothing', () => register(new AlwaysOffSampler())],
])('%s', (_case, prepare) => {
  beforeEach(prepare)

  it('there is no span, and the work is done as if nothing were there', async () => {
    const work = vi.fn(() => 'done')
    expect(await tracing.span('work', {}, work)).toBe('done')
    expect(work).toHaveBeenCalledOnce()
    const error = new Error('out of luck')
    await expect(Promise.resolve(tracing.span('work', {}, () => Promise.reject(error)))).rejects.toBe(error)
    const send = answering(409)
    expect(await tracing.interceptor(send)(request)).toMatchObject({ status: 409 })
    expect(send).toHaveBeenCalledExactlyOnceWith(request)
    expect(spans()).toEqual([])
  })
})

describe('without even the API', () => {
  afterEach(() => {
    vi.doUnmock('@opentelemetry/api')
    vi.resetModules()
  })

  it('nothing is put around anything', async () => {
    vi.resetModules()
    vi.doMock('@opentelemetry/api', () => {
      throw new Error('Cannot find package')
    })
    const fresh = await import('../../controller/runtime/tracing.ts')
    const none = await fresh.createTracing()
    expect(none).toBe(fresh.noTracing)
    const send = answering(200)
    expect(none.interceptor(send)).toBe(send)
    expect(none.span('work', {}, () => 42)).toBe(42)
  })

  it('what stands in for it does nothing', () => {
    const send = answering(200)
    expect(noTracing.interceptor(send)).toBe(send)
  })
})
