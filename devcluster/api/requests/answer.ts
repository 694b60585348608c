/**
 * Answers in the form that the caller accepts: JSON or YAML; the object, its metadata alone, or a Table.
 */
import { ApiError, type Status } from '../problems.ts'
import { textOf } from '../store/text.ts'
import type { ApiResponse, Asked, Json, Meta, Obj } from '../types.ts'
import type { Hooks, ListMeta } from './context.ts'

export interface Form {
  readonly yaml: boolean
  readonly as: 'Object' | 'PartialObjectMetadata' | 'Table'
  /** The version of meta.k8s.io that it is wanted in. */
  readonly version: string
}

const plain: Form = { yaml: false, as: 'Object', version: 'v1' }
const representations = ['json', 'yaml', 'vnd.kubernetes.protobuf'].map(name => `application/${name}`)

/** What the caller accepts first of what there is. Throws 406. */
export function formOf(accept: string | undefined, canTable: boolean): Form {
  if (accept === undefined || accept === '' || accept === '*/*' || accept === 'application/json') return plain
  for (const clause of accept.split(',')) {
    const [type = '', ...parameters] = clause.split(';').map(part => part.trim())
    const isYaml = type === 'application/yaml'
    if (!isYaml && type !== 'application/json' && type !== '*/*' && type !== 'application/*') continue
    const given = Object.fromEntries(parameters.map(part => part.split('=', 2)))
    const form = { yaml: isYaml, version: given.v ?? 'v1' }
    if (given.as === undefined) return { ...form, as: 'Object' }
    if (given.g !== 'meta.k8s.io' || !/^v1(beta1)?$/.test(form.version)) continue
    if (given.as === 'Table' && canTable) return { ...form, as: 'Table' }
    if (/^PartialObjectMetadata(List)?$/.test(given.as)) return { ...form, as: 'PartialObjectMetadata' }
  }
  const available = [
    ...representations,
    ...representations.filter(name => !name.endsWith('yaml')).map(n => `${n};stream=watch`),
  ]
  throw new ApiError(
    406,
    'NotAcceptable',
    `406: Not Acceptable\n\nAvailable representations: ${available.join(', ')}`,
    {},
  )
}

/** The object in its form. */
export function textIn(form: Form, object: Obj, asked: Asked, hooks: Hooks, withColumns = true): string {
  if (form.as === 'PartialObjectMetadata') return JSON.stringify(partial(object, form.version, asked))
  if (form.as === 'Table' && hooks.table) {
    const { resourceVersion } = object.metadata
    return JSON.stringify(hooks.table([object], asked, resourceVersion ? { resourceVersion } : {}, withColumns))
  }
  return textOf(object)
}

/** As it is shown without the rest of the object. */
export const metadataOf = ({ metadata }: Obj, { type }: Asked): Meta =>
  type.strategy.metadataAlone?.(metadata) ?? metadata

export function partial(object: Obj, version: string, asked: Asked): Json {
  const metadata = metadataOf(object, asked)
  return { kind: 'PartialObjectMetadata', apiVersion: `meta.k8s.io/${version}`, metadata } as unknown as Json
}

/** A list in its form. `texts` are the items as they are in a plain list. */
export function listText(
  form: Form,
  objects: readonly Obj[],
  texts: () => string[],
  metadata: ListMeta,
  asked: Asked,
  hooks: Hooks,
): string {
  if (form.as === 'Table' && hooks.table) return JSON.stringify(hooks.table(objects, asked, metadata, true))
  const head =
    form.as === 'PartialObjectMetadata'
      ? { kind: 'PartialObjectMetadataList', apiVersion: `meta.k8s.io/${form.version}`, metadata }
      : { kind: asked.type.listKind, apiVersion: apiVersion(asked), metadata: wholeMeta(metadata, asked) }
  const items =
    form.as === 'PartialObjectMetadata'
      ? objects.map(object => JSON.stringify(partial(object, form.version, asked)))
      : texts()
  return `${JSON.stringify(head).slice(0, -1)},"items":[${items.join(',')}]}`
}

/** A list of custom resources says that there is no more. */
const wholeMeta = (metadata: ListMeta, { type }: Asked): ListMeta =>
  type.custom === undefined ? metadata : { continue: '', ...metadata }

export const apiVersion = ({ type, version }: Asked) =>
  type.group === '' ? version.version : `${type.group}/${version.version}`

export async function respond(
  status: number,
  text: string,
  form: Form,
  warnings: readonly string[] = [],
): Promise<ApiResponse> {
  const warning = warnings.length > 0 ? { warning: warnings.map(warningHeader) } : {}
  if (!form.yaml) return { status, headers: { ...jsonHeaders, ...warning }, body: text }
  const { stringify } = await import('yaml')
  return {
    status,
    headers: { ...jsonHeaders, 'content-type': 'application/yaml', ...warning },
    body: stringify(JSON.parse(text)),
  }
}

const jsonHeaders = { 'content-type': 'application/json', 'cache-control': 'no-cache, private' }

/** `299 - "…"`. */
const warningHeader = (text: string) => `299 - "${text.replace(/[\\"]/g, '\\$&').replace(/[\r\n]+/g, ' ')}"`

export function statusAnswer(
  status: Omit<Status, 'code'> & { code?: number },
  code = status.code ?? 200,
  warnings: readonly string[] = [],
): ApiResponse {
  const retry = status.details?.retryAfterSeconds
  return {
    status: code,
    headers: {
      ...jsonHeaders,
      ...(retry ? { 'retry-after': String(retry) } : {}),
      ...(warnings.length > 0 ? { warning: warnings.map(warningHeader) } : {}),
    },
    body: JSON.stringify(status),
  }
}

/** With what was told on the way, behind what the answer says itself. */
export function withWarnings(response: ApiResponse, texts: readonly string[]): ApiResponse {
  if (texts.length === 0) return response
  const { warning = [], ...headers } = response.headers
  return { ...response, headers: { ...headers, warning: [...[warning].flat(), ...texts.map(warningHeader)] } }
}

export function plainAnswer(status: number, body: string): ApiResponse {
  return {
    status,
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      'cache-control': 'no-cache, private',
      'x-content-type-options': 'nosniff',
    },
    body,
  }
}
