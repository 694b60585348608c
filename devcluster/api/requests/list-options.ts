/**
 * The query of a list or a watch, held against the rules of the server. Pure.
 */
import { ApiError, badRequest, type FieldError, invalid } from '../problems.ts'

export interface ListOptions {
  readonly resourceVersion: string
  readonly match: 'Exact' | 'NotOlderThan' | ''
  readonly limit: number | undefined
  readonly continue: string
  readonly allowBookmarks: boolean
  readonly sendInitialEvents: boolean | undefined
  readonly timeoutSeconds: number | undefined
}

const about = { group: 'meta.k8s.io', kind: 'ListOptions' }

export function listOptions(query: URLSearchParams, isWatch: boolean): ListOptions {
  const options: ListOptions = {
    resourceVersion: query.get('resourceVersion') ?? '',
    match: (query.get('resourceVersionMatch') ?? '') as ListOptions['match'],
    limit: integer(query.get('limit')) || undefined,
    continue: query.get('continue') ?? '',
    allowBookmarks: boolean(query.get('allowWatchBookmarks')) ?? false,
    sendInitialEvents: boolean(query.get('sendInitialEvents')),
    timeoutSeconds: integer(query.get('timeoutSeconds')),
  }
  const errors = isWatch ? watchMistakes(options) : listMistakes(options)
  if (errors.length > 0) throw invalid(about, '', errors)
  return options
}

function integer(text: string | null): number | undefined {
  if (text === null || text === '') return undefined
  if (!/^[+-]?\d+$/.test(text)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`)
  return Number(text)
}

function boolean(text: string | null): boolean | undefined {
  if (text === null) return undefined
  return text !== '0' && text.toLowerCase() !== 'false'
}

const forbidden = (field: string, detail: string): FieldError => ({ mistake: 'FieldValueForbidden', field, detail })

const unsupported = (value: string, ...values: string[]): FieldError => ({
  mistake: 'FieldValueNotSupported',
  field: 'resourceVersionMatch',
  value,
  detail: `supported values: ${values.map(one => JSON.stringify(one)).join(', ')}`,
})

function listMistakes({ match, resourceVersion, continue: token, sendInitialEvents }: ListOptions): FieldError[] {
  const errors: FieldError[] = []
  const at = 'resourceVersionMatch'
  if (sendInitialEvents !== undefined) {
    errors.push(forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'))
  }
  if (match === '') return errors
  if (resourceVersion === '')
    errors.push(forbidden(at, 'resourceVersionMatch is forbidden unless resourceVersion is provided'))
  if (token !== '') errors.push(forbidden(at, 'resourceVersionMatch is forbidden when continue is provided'))
  if (match !== 'Exact' && match !== 'NotOlderThan') errors.push(unsupported(match, 'Exact', 'NotOlderThan', ''))
  if (match === 'Exact' && resourceVersion === '0') {
    errors.push(forbidden(at, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
  }
  return errors
}

function watchMistakes({ match, continue: token, sendInitialEvents }: ListOptions): FieldError[] {
  const errors: FieldError[] = []
  const at = 'resourceVersionMatch'
  if (match !== '') {
    if (sendInitialEvents === undefined) {
      errors.push(forbidden(at, 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided'))
    }
    if (match !== 'NotOlderThan') errors.push(unsupported(match, 'NotOlderThan'))
    if (token !== '') errors.push(forbidden(at, 'resourceVersionMatch is forbidden when continue is provided'))
  } else if (sendInitialEvents !== undefined) {
    errors.push(forbidden(at, 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'))
  } else if (token !== '') {
    errors.push(forbidden(at, 'resourceVersionMatch is forbidden when continue is provided'))
  }
  return errors
}

/** The number in a resourceVersion; 0 for none. */
export function revisionOf(text: string, refuse: (why: string) => ApiError): number {
  if (text === '') return 0
  if (!/^\d+$/.test(text)) {
    const why = `strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`
    throw refuse(`resourceVersion: Invalid value: ${JSON.stringify(text)}: ${why}`)
  }
  return Number(text)
}

export const badRevision = (why: string) => badRequest(`invalid resource version: ${why}`)

/** Nobody has written that much yet. */
export function tooLargeRevision(asked: number, current: number): ApiError {
  return new ApiError(504, 'Timeout', `Timeout: Too large resource version: ${asked}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  })
}
