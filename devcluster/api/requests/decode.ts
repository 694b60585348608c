/**
 * The body of a request as an object of the kind that is asked for: what is no such object is refused in the server's words, fields that nobody
 * knows are dropped, told or refused.
 */
import { type ApiError, badRequest, unsupportedMediaType } from '../problems.ts'
import type { Resources } from '../resources/resources.ts'
import { hasForbiddenNull } from '../schema/defaults.ts'
import { findDuplicates } from '../schema/duplicates.ts'
import { prune } from '../schema/prune.ts'
import type { Schema } from '../schema/schema.ts'
import { findUnknown } from '../schema/unknown.ts'
import type { ApiRequest, Asked, Obj } from '../types.ts'
import { apiVersion } from './answer.ts'
import { mismatch } from './mismatch.ts'
import type { WriteOptions } from './write-options.ts'

const protobuf = 'application/vnd.kubernetes.protobuf'
const accepted = ['application/json', 'application/yaml', protobuf]

export interface Wanted {
  readonly kind: string
  readonly apiVersion: string
  readonly schema: Schema
  readonly isCustom: boolean
  readonly isUpdate?: boolean
}

export const wantedOf = (asked: Asked): Wanted => ({
  kind: asked.type.kind,
  apiVersion: apiVersion(asked),
  schema: asked.version.schema,
  isCustom: asked.type.custom !== undefined,
  isUpdate: asked.verb === 'update',
})

export const bodyText = (request: ApiRequest) =>
  Buffer.from(request.body.buffer, request.body.byteOffset, request.body.byteLength).toString()

export const isProtobuf = (request: ApiRequest) => typeOf(request) === protobuf

const typeOf = ({ headers }: ApiRequest) => (headers['content-type'] ?? accepted[0])?.split(';')[0]?.trim() ?? ''

/** What the body says, whatever that is, with its text in JSON. */
export async function parseBody(request: ApiRequest, kind: string): Promise<{ value: unknown; text: string }> {
  const type = typeOf(request)
  if (isProtobuf(request)) {
    const { fromProtobuf } = await import('./protobuf/body.ts')
    return { value: fromProtobuf(request.body, kind), text: '{}' }
  }
  const text = bodyText(request)
  if (type === 'application/json' || type === '') return { value: parseJson(text, kind), text }
  if (type !== 'application/yaml') throw unsupportedMediaType(accepted)
  const { parse } = await import('yaml')
  try {
    const value: unknown = parse(text, { uniqueKeys: false })
    return { value, text: JSON.stringify(value) }
  } catch (error) {
    throw badRequest(`the object provided is unrecognized (must be of type ${kind}): ${(error as Error).message}`)
  }
}

function parseJson(text: string, kind: string): unknown {
  const refuse = (why: string, shown: string) =>
    badRequest(
      `the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; json parse error: ${why} (${shown})`,
    )
  if (text.trim() === '') throw refuse('unexpected end of JSON input', '<empty>')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    const why = /end of JSON|Unterminated|double-quoted|Expected/.test((error as Error).message)
      ? 'unexpected end of JSON input'
      : (error as Error).message
    throw refuse(why, text.length > 1024 ? `${text.slice(0, 1024)} ...` : text)
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    const what = Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value
    throw refuse(
      `json: cannot unmarshal ${what} into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`,
      Buffer.from(text).toString('hex').slice(0, 1024),
    )
  }
  return value
}

export interface Decoded {
  readonly object: Obj
  readonly warnings: readonly string[]
}

export async function decode(
  request: ApiRequest,
  wanted: Wanted,
  options: WriteOptions,
  resources: Resources,
): Promise<Decoded> {
  const isMessage = isProtobuf(request)
  if (isMessage && wanted.isCustom) throw unsupportedMediaType(accepted.filter(type => type !== protobuf))
  const { value, text } = await parseBody(request, wanted.kind)
  // Fields that a message's type does not know are passed over, whatever is asked for.
  const validation = isMessage ? 'Ignore' : options.fieldValidation
  return checked(value as Obj, wanted, validation, resources, () => findDuplicates(text))
}

/** The value as an object of the kind. */
export function checked(
  value: Obj,
  wanted: Wanted,
  validation: WriteOptions['fieldValidation'],
  resources: Resources,
  duplicates: () => string[] = () => [],
): Decoded {
  const given = { kind: value.kind || wanted.kind, apiVersion: value.apiVersion || wanted.apiVersion }
  checkKind(given, wanted, resources)
  const told =
    validation === 'Ignore'
      ? []
      : [
          ...findUnknown(wanted.schema, value).map(path => `unknown field "${path}"`),
          ...duplicates().map(path => `duplicate field "${path}"`),
        ]
  if (told.length > 0 && validation === 'Strict') {
    const version = wanted.apiVersion.split('/').at(-1)
    throw badRequest(
      wanted.isCustom && !wanted.isUpdate && !hasForbiddenNull(wanted.schema, value)
        ? `strict decoding error: ${told.join(', ')}`
        : `${wanted.kind} in version "${version}" cannot be handled as a ${wanted.kind}: strict decoding error: ${told.join(', ')}`,
    )
  }
  const { apiVersion: _a, kind: _k, metadata, ...rest } = prune(wanted.schema, value) as Partial<Obj>
  const object = { kind: given.kind, apiVersion: given.apiVersion, metadata: { ...metadata }, ...rest } as Obj
  if (!wanted.isCustom) {
    const why = mismatch(wanted.schema, object, wanted.kind)
    if (why) throw cannotHandle(wanted, given, why)
  } else checkMeta(wanted, object)
  return { object, warnings: told }
}

function checkKind(given: { kind: string; apiVersion: string }, wanted: Wanted, resources: Resources): void {
  if (given.kind === wanted.kind && given.apiVersion === wanted.apiVersion) return
  if (wanted.isCustom) {
    const [expected, got] = [wanted, given].map(one => `${one.apiVersion}, Kind=${one.kind}`)
    throw badRequest(
      given.kind === wanted.kind
        ? `the API version in the data (${given.apiVersion}) does not match the expected API version (${wanted.apiVersion})`
        : `the object provided is unrecognized (must be of type ${wanted.kind}): ${got} is not ${expected}`,
    )
  }
  const [version = '', group = ''] = given.apiVersion.split('/').reverse()
  const known = resources.byKind(group, given.kind)
  if (known?.kind === wanted.kind && group === wanted.apiVersion.split('/').at(-2)) {
    throw badRequest(
      `the API version in the data (${given.apiVersion}) does not match the expected API version (${wanted.apiVersion})`,
    )
  }
  throw cannotHandle(
    wanted,
    given,
    known
      ? `converting (${version}.${given.kind}) to (${groupName(wanted.apiVersion)}.${wanted.kind}): unknown conversion`
      : `no kind "${given.kind}" is registered for version "${given.apiVersion}" in scheme "pkg/runtime/scheme.go:111"`,
  )
}

const groupName = (apiVersion: string) => (apiVersion.includes('/') ? (apiVersion.split(/[./]/)[0] ?? '') : 'core')

function cannotHandle(wanted: Wanted, given: { kind: string; apiVersion: string }, why: string): ApiError {
  const version = given.apiVersion.split('/').at(-1)
  return badRequest(`${given.kind} in version "${version}" cannot be handled as a ${wanted.kind}: ${why}`)
}

/** Metadata of a custom resource is decoded as that of any other. */
function checkMeta(wanted: Wanted, object: Obj): void {
  const schema = wanted.schema.properties?.metadata
  const why = schema && mismatch({ type: 'object', properties: { metadata: schema } }, object, wanted.kind)
  if (why) throw badRequest(why)
}
