/**
 * Who manages which fields: `metadata.managedFields` taken apart by manager, and put together again in the server's order.
 */
import type { ManagedFieldsEntry } from '../types.ts'
import { goJson } from './elements.ts'
import { type FieldSet, fromFieldsV1, toFieldsV1, union } from './fieldset.ts'

export interface Managed {
  readonly set: FieldSet
  readonly apiVersion: string
  readonly applied: boolean
  readonly time?: string | undefined
}

/** By what identifies an entry: all of it but its fields and time, and for Apply its version. */
export type Managers = Map<string, Managed>

export interface Identity {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  readonly subresource?: string | undefined
}

export function identityOf({ manager, operation, apiVersion, subresource }: Identity): string {
  return goJson({
    ...(manager ? { manager } : {}),
    operation,
    ...(operation === 'Update' ? { apiVersion } : {}),
    ...(subresource ? { subresource } : {}),
  })
}

/** Throws where an entry cannot be read. */
export function readManagers(entries: readonly ManagedFieldsEntry[] | undefined): Managers {
  const managers: Managers = new Map()
  for (const [i, { manager = '', operation, apiVersion, fieldsType, fieldsV1, subresource, time }] of (
    entries ?? []
  ).entries()) {
    if (operation !== 'Apply' && operation !== 'Update') throw new Error('operation must be `Apply` or `Update`')
    if (!apiVersion) throw new Error('apiVersion must not be empty')
    if (!fieldsType) throw new Error(`missing fieldsType in managed fields entry ${i}`)
    if (fieldsType !== 'FieldsV1') throw new Error(`invalid fieldsType "${fieldsType}" in managed fields entry ${i}`)
    managers.set(identityOf({ manager, operation, apiVersion, subresource }), {
      set: fromFieldsV1(fieldsV1),
      apiVersion,
      applied: operation === 'Apply',
      time,
    })
  }
  return managers
}

/** The entries in the server's order, or undefined where there are none. */
export function writeManagers(managers: Managers): ManagedFieldsEntry[] | undefined {
  if (managers.size === 0) return undefined
  const entries = [...managers].map(([id, { set, apiVersion, applied, time }]): ManagedFieldsEntry => {
    const { manager, operation, subresource } = JSON.parse(id) as Identity
    return {
      ...(manager ? { manager } : {}),
      operation: applied ? 'Apply' : operation,
      apiVersion,
      ...(time ? { time } : {}),
      fieldsType: 'FieldsV1',
      fieldsV1: toFieldsV1(set),
      ...(subresource ? { subresource } : {}),
    }
  })
  return entries.sort(
    (p, q) =>
      inOrder(p.operation, q.operation) ||
      secondsOf(p.time) - secondsOf(q.time) ||
      inOrder(p.manager, q.manager) ||
      inOrder(p.apiVersion, q.apiVersion) ||
      inOrder(p.subresource, q.subresource),
  )
}

const inOrder = (a = '', b = '') => (a === b ? 0 : a < b ? -1 : 1)
const secondsOf = (time: string | undefined) => (time ? Math.floor(Date.parse(time) / 1000) : 0)

const mostUpdaters = 10

/** Merges the oldest entries of updates, by version, until there are no more than ten. */
export function capped(managers: Managers): Managers {
  const updaters = [...managers].filter(([, { applied }]) => !applied).map(([id]) => id)
  if (updaters.length <= mostUpdaters) return managers
  const out = new Map(managers)
  updaters.sort((a, b) => secondsOf(managers.get(a)?.time) - secondsOf(managers.get(b)?.time) || inOrder(a, b))
  let count = updaters.length
  const first = new Map<string, string>()
  for (const id of updaters) {
    if (count <= mostUpdaters) break
    const entry = out.get(id) as Managed
    const { apiVersion } = entry
    const earlier = first.get(apiVersion)
    if (earlier === undefined) {
      first.set(apiVersion, id)
      continue
    }
    const bucket = identityOf({ manager: 'ancient-changes', operation: 'Update', apiVersion })
    if (!out.has(bucket)) {
      out.set(bucket, out.get(earlier) as Managed)
      out.delete(earlier)
    }
    out.set(bucket, { ...entry, set: union(entry.set, (out.get(bucket) as Managed).set) })
    out.delete(id)
    count--
  }
  return out
}
