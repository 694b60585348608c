/**
 * What the server refuses and how it says so: a Status in the words that clients and people know.
 */
export interface StatusCause {
  reason?: string
  message?: string
  field?: string
}

export interface Status {
  kind: 'Status'
  apiVersion: 'v1'
  metadata: { continue?: string; remainingItemCount?: number; resourceVersion?: string }
  status: 'Success' | 'Failure'
  message?: string
  reason?: string
  details?: {
    name?: string
    group?: string
    kind?: string
    uid?: string
    causes?: StatusCause[]
    retryAfterSeconds?: number
  }
  code: number
}

export class ApiError extends Error {
  readonly status: Status
  constructor(code: number, reason: string, message: string, details?: Status['details']) {
    super(message)
    this.name = 'ApiError'
    this.status = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      ...(reason ? { reason } : {}),
      ...(details ? { details } : {}),
      code,
    }
  }
}

/** Of what an error speaks: the resource, with its group. */
interface About {
  readonly group: string
  readonly resource: string
}

const named = ({ group, resource }: About) => (group === '' ? resource : `${resource}.${group}`)
const details = ({ group, resource }: About, name: string) => ({
  ...(name ? { name } : {}),
  ...(group ? { group } : {}),
  kind: resource,
})

export const badRequest = (message: string) => new ApiError(400, 'BadRequest', message)

export const unauthorized = () => new ApiError(401, 'Unauthorized', 'Unauthorized')

export const forbidden = (about: About, name: string, why: string) =>
  new ApiError(
    403,
    'Forbidden',
    `${named(about)}${name ? ` "${name}"` : ''} is forbidden: ${why}`,
    details(about, name),
  )

export const notFound = (about: About, name: string) =>
  new ApiError(404, 'NotFound', `${named(about)} "${name}" not found`, details(about, name))

/** A path that nothing is served at. */
export const unknownPath = () => new ApiError(404, 'NotFound', 'the server could not find the requested resource', {})

export const methodNotAllowed = () =>
  new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {})

export const alreadyExists = (about: About, name: string) =>
  new ApiError(409, 'AlreadyExists', `${named(about)} "${name}" already exists`, details(about, name))

export const conflict = (about: About, name: string, why: string) =>
  new ApiError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${named(about)} "${name}": ${why}`,
    details(about, name),
  )

export const modified = 'the object has been modified; please apply your changes to the latest version and try again'

/** The history that was asked for is gone. */
export const expired = (message: string) => new ApiError(410, 'Expired', message)

export const tooLarge = (limit: number) =>
  new ApiError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${limit}`)

export const unsupportedMediaType = (accepted: readonly string[]) =>
  new ApiError(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  )

export const internal = (message: string) =>
  new ApiError(500, 'InternalError', `Internal error occurred: ${message}`, { causes: [{ message }] })

/** The kinds of mistakes in a field, as the server's causes name them. */
export type FieldMistake =
  | 'FieldValueRequired'
  | 'FieldValueInvalid'
  | 'FieldValueTypeInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueDuplicate'
  | 'FieldValueForbidden'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueNotFound'

export interface FieldError {
  readonly mistake: FieldMistake
  /** `spec.containers[0].name`; `<nil>` for none. */
  readonly field: string
  readonly value?: unknown
  readonly detail?: string | undefined
}

const words: Record<FieldMistake, string> = {
  FieldValueRequired: 'Required value',
  FieldValueInvalid: 'Invalid value',
  FieldValueTypeInvalid: 'Invalid value',
  FieldValueNotSupported: 'Unsupported value',
  FieldValueDuplicate: 'Duplicate value',
  FieldValueForbidden: 'Forbidden',
  FieldValueTooLong: 'Too long',
  FieldValueTooMany: 'Too many',
  FieldValueNotFound: 'Not found',
}

const withoutValue: readonly FieldMistake[] = ['FieldValueRequired', 'FieldValueForbidden', 'FieldValueTooLong']

/** Of objects and lists the server writes what HTML could take for its own as escapes; of strings it does not. */
function valueText(value: unknown): string {
  const text = JSON.stringify(value)
  if (typeof value === 'string') return text
  return text.replace(/[<>&]/g, mark => `\\u00${mark.charCodeAt(0).toString(16)}`)
}

/** What is wrong, without the field: `Invalid value: "x": must be …`. */
export function mistakeText({ mistake, value, detail }: FieldError): string {
  // Some say what is wrong without the value: it is left out, where null is shown.
  const shown = withoutValue.includes(mistake) || value === undefined ? '' : `: ${valueText(value)}`
  return `${words[mistake]}${shown}${detail ? `: ${detail}` : ''}`
}

/** An object that does not fit its kind: every mistake as a cause. */
export function invalid(about: { group: string; kind: string }, name: string, errors: readonly FieldError[]): ApiError {
  const causes = errors.map(error => ({ reason: error.mistake, message: mistakeText(error), field: error.field }))
  const lines = [...new Set(errors.map(error => `${error.field}: ${mistakeText(error)}`))]
  const kind = about.group === '' ? about.kind : `${about.kind}.${about.group}`
  const list = lines.length === 1 ? lines[0] : `[${lines.join(', ')}]`
  return new ApiError(422, 'Invalid', `${kind} "${name}" is invalid${list ? `: ${list}` : ''}`, {
    ...(name ? { name } : {}),
    ...(about.group ? { group: about.group } : {}),
    ...(about.kind ? { kind: about.kind } : {}),
    causes,
  })
}
