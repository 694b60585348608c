/**
 * The hash of chosen parts of an object, and these parts themselves. Pure.
 *
 * Guarantees: SHA-256 of canonical JSON (RFC 8785), so that equal parts have equal hashes in every process. Neither the order of the parts chosen nor that of
 * keys matters; metadata and data that are empty count as absent. The annotations of the toolkit's own, the status, and what only the server writes never count.
 */
import { canonicalJson, hashOf } from '../../shared/canonical.ts'
import { ShipmateError } from '../../shared/errors.ts'
import { shown } from '../../shared/nearest.ts'

/** Where an object's hash is kept. */
export const hashAnnotation = 'shipmate.dev/hash'

/** Where is kept for whom an object was made. */
export const makerAnnotation = 'shipmate.dev/maker'

/** A part of an object that can count. */
export type HashablePart =
  | 'labels'
  | 'annotations'
  /** What a writer may give: name, namespace, labels, annotations, finalizers and owner references (the last two in any order). */
  | 'metadata'
  | 'spec'
  /** `data`, `binaryData` and `stringData`. */
  | 'data'
  /** Every field, with metadata as above. */
  | 'all'
  /** One label, by its name. */
  | { readonly label: string }
  /** One annotation, by its name. */
  | { readonly annotation: string }
  /** Something that is not in the object. */
  | { readonly userData: unknown }

/** The chosen parts: of the object, each in its place; and what else counts. */
export interface ChosenParts {
  readonly object: Readonly<Record<string, unknown>>
  readonly userData?: readonly unknown[]
}

/** The hex SHA-256 of exactly these parts. */
export function hashOfParts(object: object, parts: readonly HashablePart[]): string {
  return hashOf(partsOf(object, parts))
}

/** These parts of an object, and nothing else of it. */
export function partsOf(object: object, parts: readonly HashablePart[]): ChosenParts {
  const chosen: Record<string, unknown> = {}
  const metadata: Record<string, unknown> = {}
  const userData = new Map<string, unknown>()
  const given = metadataOf(object)
  for (const part of parts) {
    if (typeof part === 'string') {
      const choose = (Object.hasOwn(byName, part) && byName[part]) || refuse(part)
      const { metadata: ofMetadata, ...fields } = choose(object as Fields, given)
      Object.assign(chosen, fields)
      Object.assign(metadata, ofMetadata)
    } else if ('label' in part) metadata['labels'] = withOne(metadata['labels'], given.labels, part.label)
    else if ('annotation' in part)
      metadata['annotations'] = withOne(metadata['annotations'], given.annotations, part.annotation)
    else if ('userData' in part) userData.set(canonicalJson(part.userData ?? null), part.userData ?? null)
    else refuse(part)
  }
  return {
    object: defined({ ...chosen, metadata: present(defined(metadata)) }),
    ...(userData.size > 0 && { userData: [...userData.keys()].sort().map(key => userData.get(key)) }),
  }
}

type Fields = Readonly<Record<string, unknown>>
type Texts = Readonly<Record<string, string>>

const byName: Record<string, (object: Fields, given: ReturnType<typeof metadataOf>) => Record<string, unknown>> = {
  labels: (_object, { labels }) => ({ metadata: { labels } }),
  annotations: (_object, { annotations }) => ({ metadata: { annotations } }),
  metadata: (_object, metadata) => ({ metadata }),
  spec: ({ spec }) => ({ spec }),
  data: ({ data, binaryData, stringData }) => ({
    data: present(data),
    binaryData: present(binaryData),
    stringData: present(stringData),
  }),
  all: ({ status: _status, metadata: _metadata, ...fields }, metadata) => ({
    ...fields,
    ...byName['data']?.(fields, metadata),
    metadata,
  }),
}

function metadataOf(object: object) {
  const { metadata = {} } = object as { metadata?: Fields }
  const { name, namespace, labels, annotations, finalizers, ownerReferences } = metadata
  const { [hashAnnotation]: _hash, [makerAnnotation]: _maker, ...others } = (annotations ?? {}) as Texts
  return {
    name,
    namespace,
    labels: present(labels) as Texts | undefined,
    annotations: present(others) as Texts | undefined,
    finalizers: inOrder(finalizers),
    ownerReferences: inOrder(ownerReferences),
  }
}

/** Undefined for what has no members. */
function present<T>(value: T): T | undefined {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0 ? value : undefined
}

function defined(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

function inOrder(list: unknown): unknown {
  if (!Array.isArray(list) || list.length === 0) return undefined
  const byText = new Map(list.map(item => [canonicalJson(item), item as unknown]))
  return [...byText.keys()].sort().map(text => byText.get(text))
}

function withOne(chosen: unknown, given: Texts | undefined, name: string): unknown {
  const isGiven = given !== undefined && Object.hasOwn(given, name)
  return isGiven ? { ...(chosen as Texts | undefined), [name]: given[name] } : chosen
}

function refuse(part: unknown): never {
  const known = [...Object.keys(byName), '{ label }', '{ annotation }', '{ userData }'].join(', ')
  throw new ShipmateError(
    'Misuse',
    `${shown(part)} is no part of an object that can be hashed; there are ${known}`,
    'never',
  )
}
