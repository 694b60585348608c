/**
 * Server-side apply: what is applied is merged into what is there, fields that its manager applied before and nobody else has are removed, and a field
 * that somebody else manages with another value is a conflict.
 */
import { ApiError, badRequest } from '../problems.ts'
import type { Obj } from '../types.ts'
import { findMismatch } from './conform.ts'
import { pathText } from './elements.ts'
import { has } from './fieldset.ts'
import { goText } from './go-text.ts'
import { allowedConflicts, withLastApplied } from './last-applied.ts'
import { track } from './managed.ts'
import { type Identity, identityOf, type Managers, readManagers } from './managers.ts'
import { afterApply, type Conflict, Conflicts, type Typed } from './ownership.ts'
import { groupOf, rulesOf, stripMeta, typedOf, type Write, withManagers } from './write.ts'
import { withoutNulls, zeroObject } from './zero.ts'

export interface Apply extends Write {
  /** The body of the request, as it was sent: no defaults, nothing dropped. */
  readonly applied: Obj
  readonly force: boolean
  /** The kind that is asked for, where `live` does not tell. */
  readonly kind?: string | undefined
}

/** The object as it is after the apply, without defaults for what was added. */
export function apply(write: Apply): Obj {
  const { live, applied, apiVersion, schema, force } = write
  const kind = write.kind ?? live?.kind ?? applied.kind
  if (applied.apiVersion !== apiVersion || applied.kind !== kind) {
    throw badRequest(`invalid object type: ${kindText(applied)}`)
  }
  if (Array.isArray(applied.metadata?.managedFields)) throw badRequest('metadata.managedFields must be nil')
  const current = live ?? zeroObject(schema, apiVersion, kind)
  const { config, before } = conforming(write, current)
  let managers: Managers
  try {
    managers = readManagers(live?.metadata.managedFields)
  } catch (error) {
    throw unexpected(`failed to decode managed fields: ${(error as Error).message}`)
  }
  if (managers.size === 0) {
    const first = track(
      { ...write, manager: 'before-first-apply' },
      zeroObject(schema, apiVersion, kind),
      current,
      managers,
    )
    managers = first ?? managers
  }
  const merged = merge(write, before, config, managers, force)
  if (write.manager !== 'kubectl') return merged
  return withLastApplied(merged, applied)
}

/** Both sides as values of their type; what is applied may name nothing twice. */
function conforming(write: Apply, current: Obj): { config: Typed; before: Typed } {
  const config = typedOf(write, write.applied)
  const before = typedOf(write, current)
  const wrong = findMismatch(config.type, config.value, 'refused')
  if (wrong) throw unexpected(`failed to create typed patch object (${objectText(write.applied)}): ${wrong}`)
  const off = findMismatch(before.type, before.value, 'allowed')
  if (off) throw unexpected(`failed to create typed live object (${objectText(current)}): ${off}`)
  return { config, before }
}

function merge(write: Apply, before: Typed, config: Typed, managers: Managers, force: boolean): Obj {
  const { apiVersion, subresource, now, schema, applied } = write
  const self = identityOf({ manager: write.manager || 'unknown', operation: 'Apply', apiVersion, subresource })
  try {
    const { value, managers: after } = afterApply(rulesOf(write, applied.kind), before, config, managers, self, force)
    const mine = after.get(self)
    if (value !== undefined && mine) after.set(self, { ...mine, time: now })
    const object = (value ?? before.value) as unknown as Obj
    // A custom object keeps a null, to be found where it may not be.
    const decoded = schema['x-name'] === undefined ? object : withoutNulls(schema, object)
    return withManagers(decoded, stripMeta(after, self, managers.get(self)?.set))
  } catch (error) {
    if (!(error instanceof Conflicts)) throw error
    const allowed = write.manager === 'kubectl' ? allowedConflicts(before) : undefined
    if (!allowed) throw conflictError(error.list)
    const left = error.list.filter(({ path }) => !has(allowed, path))
    if (left.length > 0) throw conflictError(left)
    return merge(write, before, config, managers, true)
  }
}

function conflictError(conflicts: readonly Conflict[]): ApiError {
  const causes = conflicts.map(({ manager, path }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${managerText(manager)}`,
    field: pathText(path),
  }))
  return new ApiError(409, 'Conflict', conflictText(conflicts), { causes })
}

function conflictText(conflicts: readonly Conflict[]): string {
  const [only] = conflicts
  if (conflicts.length === 1 && only) {
    return `Apply failed with 1 conflict: conflict with ${managerText(only.manager)}: ${pathText(only.path)}`
  }
  const managers = [...new Set(conflicts.map(({ manager }) => manager))].sort()
  const lines = managers.flatMap(manager => [
    `conflicts with ${managerText(manager)}:`,
    ...conflicts.filter(conflict => conflict.manager === manager).map(({ path }) => `- ${pathText(path)}`),
  ])
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join('\n')}`
}

function managerText(id: string): string {
  const { manager = '', subresource, operation, apiVersion } = JSON.parse(id) as Identity
  const name = `${JSON.stringify(manager)}${subresource ? ` with subresource ${JSON.stringify(subresource)}` : ''}`
  return operation === 'Update' ? `${name} using ${apiVersion}` : name
}

/** What the server did not foresee is its own fault, in its own words. */
const unexpected = (message: string) => new ApiError(500, '', message)

const kindText = ({ apiVersion = '', kind = '' }: Obj) =>
  `${groupOf(apiVersion)}/${apiVersion.slice(apiVersion.indexOf('/') + 1)}, Kind=${kind}`

const objectText = (object: Obj) =>
  `${goText(object.metadata?.namespace ?? '')}/${goText(object.metadata?.name ?? '')}; ${kindText(object)}`
