/**
 * A write as the functions of ownership need it: who writes what to which kind, and the object with and without its managedFields.
 */
import type { Schema } from '../schema/schema.ts'
import type { Json, ManagedFieldsEntry, Obj } from '../types.ts'
import { covers, difference, emptySet, type FieldSet, isEmpty, setOf } from './fieldset.ts'
import { type Managers, writeManagers } from './managers.ts'
import type { Rules, Typed } from './ownership.ts'
import { resetFields } from './reset.ts'
import { rootType } from './typed.ts'

export interface Write {
  /** What is stored; undefined where there is nothing. */
  readonly live: Obj | undefined
  /** Who writes, as `fieldManager` or the user agent says. */
  readonly manager: string
  readonly schema: Schema
  /** The version that the request is in; `live` is in it too. */
  readonly apiVersion: string
  readonly subresource?: string | undefined
  /** Of an entry that changes. */
  readonly now: string
  /** Whether the kind has `/status`, so that a write of the object leaves status alone. Default: true. */
  readonly hasStatus?: boolean | undefined
  /** The kind in another version; undefined where there is no such version. Default: every version is alike. */
  readonly version?: ((apiVersion: string) => Version | undefined) | undefined
}

interface Version {
  readonly schema: Schema
  convert(object: Obj): Obj
}

const strip = setOf(
  ['f:apiVersion'],
  ['f:kind'],
  ['f:metadata'],
  ...[
    'name',
    'namespace',
    'creationTimestamp',
    'selfLink',
    'uid',
    'clusterName',
    'generation',
    'managedFields',
    'resourceVersion',
  ].map(name => ['f:metadata', `f:${name}`]),
)

/** The managers, the given one without the fields that are nobody's: the object's name, its version and the like. */
export function stripMeta(managers: Managers, self: string, before?: FieldSet): Managers {
  const managed = managers.get(self)
  if (!managed) return managers
  const set = difference(managed.set, strip)
  const out = new Map(managers)
  if (isEmpty(set)) out.delete(self)
  // The same set as before is that one, with all that is known of it.
  else out.set(self, { ...managed, set: before && covers(before, set) && covers(set, before) ? before : set })
  return out
}

export function rulesOf({ schema, apiVersion, subresource, hasStatus = true, version }: Write, kind: string): Rules {
  const custom = schema['x-name'] === undefined
  return {
    convert(typed: Typed, to: string): Typed | undefined {
      if (typed.apiVersion === to) return typed
      if (!version) return { ...typed, value: { ...(typed.value as object), apiVersion: to } as Json, apiVersion: to }
      const target = version(to)
      if (!target) return undefined
      const value = target.convert(typed.value as unknown as Obj) as unknown as Json
      return { value, apiVersion: to, type: rootType(target.schema) }
    },
    // Of a custom kind, a write of the object knows what it leaves alone in its own version only.
    reset: of =>
      of === apiVersion || (groupOf(of) === groupOf(apiVersion) && (!custom || subresource === 'status'))
        ? resetFields(of, kind, subresource, { hasStatus, custom })
        : emptySet,
  }
}

export const groupOf = (apiVersion: string) =>
  apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''

export const typedOf = ({ schema, apiVersion }: Write, object: Obj): Typed => ({
  value: bare(object) as unknown as Json,
  apiVersion,
  type: rootType(schema),
})

const bared = new WeakMap<Obj, Obj>()

function bare(object: Obj): Obj {
  if (object.metadata?.managedFields === undefined) return object
  let out = bared.get(object)
  if (!out) {
    const { managedFields: _, ...metadata } = object.metadata
    out = { ...object, metadata }
    bared.set(object, out)
  }
  return out
}

export function withManagers(object: Obj, managers: Managers): Obj {
  return withEntries(object, writeManagers(managers))
}

export function withEntries(object: Obj, entries: ManagedFieldsEntry[] | undefined): Obj {
  const { metadata, ...rest } = bare(object)
  return { ...rest, metadata: entries ? { ...metadata, managedFields: entries } : metadata } as Obj
}
