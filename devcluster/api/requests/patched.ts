/**
 * A patch as a function of what is stored: decoded once, applied as often as others write in between.
 */
import { timeOf } from '../../../shared/clock.ts'
import { apply } from '../patch/apply.ts'
import { goText } from '../patch/go-text.ts'
import { jsonPatch } from '../patch/json.ts'
import { mergePatch } from '../patch/merge.ts'
import { strategicMerge } from '../patch/strategic.ts'
import { ApiError, badRequest, invalid, unsupportedMediaType } from '../problems.ts'
import { findDuplicates } from '../schema/duplicates.ts'
import { findUnknown } from '../schema/unknown.ts'
import type { Asked, Obj } from '../types.ts'
import { checkName } from './change.ts'
import type { Context } from './context.ts'
import { bodyText, checked, type Decoded, type Wanted, wantedOf } from './decode.ts'
import { mismatch } from './mismatch.ts'
import type { WriteOptions } from './write-options.ts'

export type PatchKind = 'json' | 'merge' | 'strategic' | 'apply'

const kinds: Readonly<Record<string, PatchKind>> = {
  'application/json-patch+json': 'json',
  'application/merge-patch+json': 'merge',
  'application/strategic-merge-patch+json': 'strategic',
  'application/apply-patch+yaml': 'apply',
}

export function patchKind({ request, type }: Asked): PatchKind {
  const given = (request.headers['content-type'] ?? '').split(';')[0]?.trim() ?? ''
  const kind = kinds[given]
  if (!kind) throw new ApiError(415, 'UnsupportedMediaType', '415: Unsupported Media Type', {})
  if (kind === 'strategic' && type.custom !== undefined) {
    throw unsupportedMediaType(Object.keys(kinds).filter(name => kinds[name] !== 'strategic'))
  }
  return kind
}

export async function patched(
  context: Context,
  asked: Asked,
  kind: PatchKind,
  options: WriteOptions,
  wanted: Wanted = wantedOf(asked),
): Promise<(live: Obj | undefined) => Decoded> {
  if (kind === 'apply') return applied(context, asked, options, wanted)
  const text = bodyText(asked.request)
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch (error) {
    const why = /end of JSON|Unterminated|Expected/.test((error as Error).message)
      ? 'unexpected end of JSON input'
      : (error as Error).message
    throw badRequest(`error decoding patch: ${why}`)
  }
  const duplicates = options.fieldValidation === 'Ignore' || kind === 'json' ? [] : findDuplicates(text)
  return live => {
    const document = live as Obj
    const result =
      kind === 'json'
        ? jsonPatch(document, body)
        : kind === 'merge'
          ? mergePatch(document, body)
          : strategicMerge(document, body, wanted.schema)
    if (options.fieldValidation === 'Strict') strict(kind, body, result, duplicates, wanted)
    const why = wanted.isCustom ? undefined : mismatch(wanted.schema, result, wanted.kind)
    if (why) throw unfit(kind, body, result, why)
    return checked(result, wanted, options.fieldValidation, context.resources, () => duplicates)
  }
}

/** Refuses what a strict caller does not want, in the words for patches. */
function strict(kind: PatchKind, body: unknown, result: Obj, duplicates: readonly string[], { schema }: Wanted): void {
  const told = [
    ...duplicates.map(path => `duplicate field "${path}"`),
    ...findUnknown(schema, result).map(path => `unknown field "${path}"`),
  ]
  if (told.length === 0) return
  throw unfit(kind, body, result, `strict decoding error: ${told.join(', ')}`)
}

/** What a patch makes is no such object. */
function unfit(kind: PatchKind, body: unknown, result: Obj, detail: string): ApiError {
  const value = kind === 'strategic' ? goText(body) : JSON.stringify(result)
  return invalid({ group: '', kind: '' }, '', [{ mistake: 'FieldValueInvalid', field: 'patch', value, detail }])
}

async function applied(
  context: Context,
  asked: Asked,
  options: WriteOptions,
  wanted: Wanted,
): Promise<(live: Obj | undefined) => Decoded> {
  const text = bodyText(asked.request)
  let body: Obj
  try {
    body = text.trimStart().startsWith('{') ? JSON.parse(text) : (await import('yaml')).parse(text)
  } catch (error) {
    throw badRequest(`error decoding YAML: ${(error as Error).message}`)
  }
  if (body === null || typeof body !== 'object' || Array.isArray(body))
    throw badRequest('error decoding YAML: not an object')
  const { name = '' } = asked
  return live => {
    const object = apply({
      live,
      applied: body,
      manager: options.manager,
      force: options.force,
      schema: wanted.schema,
      apiVersion: wanted.apiVersion,
      kind: wanted.kind,
      subresource: asked.subresource,
      now: timeOf(context.clock.now()),
      hasStatus: asked.version.status,
    })
    if (!live) {
      object.metadata = { ...object.metadata, name: body.metadata?.name }
      checkName(object, name)
    }
    return { object, warnings: [] }
  }
}
