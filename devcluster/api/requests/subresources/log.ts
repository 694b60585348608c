/**
 * `pods/log`: what a container wrote, as the pod's node has it.
 */
import { type FieldError, invalid } from '../../problems.ts'
import type { ApiResponse, Asked, LogOptions } from '../../types.ts'
import type { Context } from '../context.ts'
import { containerOf, running } from './pod-place.ts'

const isTrue = (text: string | null) => text !== null && text !== 'false' && text !== '0'

export async function log(context: Context, asked: Asked): Promise<ApiResponse> {
  const { query, signal } = asked.request
  const options = optionsOf(query)
  let container = ''
  const { place, runtime } = running(context, asked, pod => {
    container = containerOf(pod, query.get('container'))
  })
  const stop = AbortSignal.any([signal, context.closing])
  const pieces = runtime.logs(place, { ...options, container }, stop)[Symbol.asyncIterator]()
  // The first is waited for: a container that has no log is an error of the request, not an end of it.
  const first = options.follow ? undefined : await pieces.next()
  return {
    status: 200,
    headers: { 'content-type': 'text/plain', 'cache-control': 'no-cache, private' },
    body: (async function* () {
      try {
        if (first?.done) return
        if (first) yield first.value
        for (;;) {
          const { done, value } = await pieces.next()
          if (done) return
          yield value
        }
      } finally {
        await pieces.return?.()
      }
    })(),
  }
}

function optionsOf(query: URLSearchParams): Omit<LogOptions, 'container'> {
  const number = (name: string) => (query.get(name) ? Number(query.get(name)) : undefined)
  const [tailLines, limitBytes, sinceSeconds] = ['tailLines', 'limitBytes', 'sinceSeconds'].map(number)
  const errors: FieldError[] = []
  const atLeast = (field: string, value: number | undefined, least: number, detail: string) => {
    if (value !== undefined && value < least) errors.push({ mistake: 'FieldValueInvalid', field, value, detail })
  }
  atLeast('tailLines', tailLines, 0, 'must be greater than or equal to 0')
  atLeast('limitBytes', limitBytes, 1, 'must be greater than 0')
  atLeast('sinceSeconds', sinceSeconds, 1, 'must be greater than 0')
  const sinceTime = query.get('sinceTime') || undefined
  if (sinceTime && sinceSeconds !== undefined) {
    errors.push({
      mistake: 'FieldValueForbidden',
      field: '',
      detail: 'at most one of `sinceTime` or `sinceSeconds` may be specified',
    })
  }
  if (errors.length > 0) throw invalid({ group: '', kind: 'PodLogOptions' }, '', errors)
  return {
    follow: isTrue(query.get('follow')),
    previous: isTrue(query.get('previous')),
    timestamps: isTrue(query.get('timestamps')),
    tailLines,
    limitBytes,
    sinceSeconds,
    sinceTime,
  }
}
