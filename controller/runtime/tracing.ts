/**
 * OpenTelemetry spans, when an SDK is there; nothing at all when it is not.
 *
 * @opentelemetry/api alone does nothing; it is loaded when the manager starts, and finds an SDK whenever one is
 * registered.
 */
import type { Attributes, Span } from '@opentelemetry/api'
import { messageOf } from '../../shared/errors.ts'
import { describeTarget, type Interceptor } from '../kube/transport.ts'

export interface Tracing {
  /** Runs `work` inside a span. A rejection is recorded in it, and passed on. */
  span<R>(name: string, attributes: Attributes, work: () => R | Promise<R>): R | Promise<R>
  /** A span for each request. */
  readonly interceptor: Interceptor
}

const none: Tracing = { span: (_name, _attributes, work) => work(), interceptor: next => next }

/** Looks for the API once. Spans go to whatever SDK is registered, whether before or after this. */
export async function createTracing(): Promise<Tracing> {
  const api = await import('@opentelemetry/api').catch(() => undefined)
  if (!api) return none
  const tracer = api.trace.getTracer('shipmate')
  const failed = (span: Span, error: unknown) => {
    span.recordException(error instanceof Error ? error : messageOf(error))
    span.setStatus({ code: api.SpanStatusCode.ERROR, message: messageOf(error) })
  }

  return {
    span(name, attributes, work) {
      return tracer.startActiveSpan(name, { attributes }, async span => {
        // The API's own stand-in records nothing: then there is no SDK, and nothing to do around the work.
        if (!span.isRecording()) return work()
        try {
          return await work()
        } catch (error) {
          failed(span, error)
          throw error
        } finally {
          span.end()
        }
      })
    },
    interceptor: next => request => {
      const { target } = request
      const attributes = { 'http.request.method': request.method, 'url.path': request.path.split('?', 1)[0] as string }
      return tracer.startActiveSpan(
        describeTarget({ ...target, name: undefined }),
        { kind: api.SpanKind.CLIENT, attributes },
        async span => {
          if (!span.isRecording()) return next(request)
          try {
            const response = await next(request)
            span.setAttribute('http.response.status_code', response.status)
            if (response.status >= 400) span.setStatus({ code: api.SpanStatusCode.ERROR })
            return response
          } catch (error) {
            failed(span, error)
            throw error
          } finally {
            span.end()
          }
        },
      )
    },
  }
}

export { none as noTracing }
