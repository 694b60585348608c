/**
 * The rules of `metadata`: names, labels, annotations, finalizers, owners; and what of it never changes.
 */
import type { FieldError } from '../problems.ts'
import { dns1123Label, labelValue, qualifiedName } from './names.ts'
import { equal, isObject } from './values.ts'

export { dns1123Label, dns1123Subdomain, pathSegment, qualifiedName } from './names.ts'

export interface MetaRules {
  readonly namespaced: boolean
  /** The name was made from generateName: that is checked, too. */
  readonly generated: boolean
  nameRule(name: string): string[]
}

const invalid = (field: string, value: unknown, detail: string): FieldError => ({
  mistake: 'FieldValueInvalid',
  field,
  value,
  detail,
})

const annotationBytes = 256 * 1024
const standardFinalizers = ['kubernetes', 'orphan', 'foregroundDeletion']

export function validateMeta(metadata: unknown, { namespaced, generated, nameRule }: MetaRules): FieldError[] {
  const meta = (isObject(metadata) ? metadata : {}) as Record<string, unknown>
  const name = typeof meta.name === 'string' ? meta.name : ''
  const generateName = typeof meta.generateName === 'string' ? meta.generateName : ''
  const namespace = typeof meta.namespace === 'string' ? meta.namespace : ''
  const errors: FieldError[] = []
  if (generateName !== '' || generated) {
    // A prefix may end as no name does.
    const wrong = nameRule(generateName.replace(/-$/, 'a'))
    errors.push(...wrong.map(detail => invalid('metadata.generateName', generateName, detail)))
  }
  if (name === '') {
    errors.push({ mistake: 'FieldValueRequired', field: 'metadata.name', detail: 'name or generateName is required' })
  } else errors.push(...nameRule(name).map(detail => invalid('metadata.name', name, detail)))
  if (namespaced) {
    if (namespace === '') errors.push({ mistake: 'FieldValueRequired', field: 'metadata.namespace' })
    else errors.push(...dns1123Label(namespace).map(detail => invalid('metadata.namespace', namespace, detail)))
  } else if (namespace !== '') {
    errors.push({ mistake: 'FieldValueForbidden', field: 'metadata.namespace', detail: 'not allowed on this type' })
  }
  errors.push(...checkLabels(meta.labels), ...checkAnnotations(meta.annotations))
  errors.push(...checkOwners(meta.ownerReferences), ...checkFinalizers(meta.finalizers))
  return errors
}

/** Labels of metadata; those of selectors and templates follow the same rules at their own field. */
function checkLabels(labels: unknown, field = 'metadata.labels'): FieldError[] {
  if (!isObject(labels)) return []
  return Object.entries(labels).flatMap(([key, value]) => [
    ...qualifiedName(key).map(detail => invalid(field, key, detail)),
    ...labelValue(typeof value === 'string' ? value : '').map(detail => invalid(field, value, detail)),
  ])
}

function checkAnnotations(annotations: unknown): FieldError[] {
  if (!isObject(annotations)) return []
  const field = 'metadata.annotations'
  const entries = Object.entries(annotations)
  const errors = entries.flatMap(([key]) => qualifiedName(key.toLowerCase()).map(detail => invalid(field, key, detail)))
  const size = entries.reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(String(value ?? '')),
    0,
  )
  if (size > annotationBytes) {
    errors.push({ mistake: 'FieldValueTooLong', field, detail: `may not be more than ${annotationBytes} bytes` })
  }
  return errors
}

function checkOwners(owners: unknown): FieldError[] {
  if (!Array.isArray(owners)) return []
  const errors: FieldError[] = []
  const field = 'metadata.ownerReferences'
  let controller: string | undefined
  for (const owner of owners.filter(isObject)) {
    const { apiVersion = '', kind = '', name = '', uid = '' } = owner
    const parts = String(apiVersion).split('/')
    const version = parts.length > 2 ? '' : (parts.at(-1) ?? '')
    if (version === '') errors.push(invalid(`${field}.apiVersion`, apiVersion, 'version must not be empty'))
    if (kind === '') errors.push(invalid(`${field}.kind`, kind, 'must not be empty'))
    if (name === '') errors.push(invalid(`${field}.name`, name, 'must not be empty'))
    if (uid === '') errors.push(invalid(`${field}.uid`, uid, 'must not be empty'))
    const group = parts.length === 2 ? parts[0] : ''
    if (kind === 'Event' && version === 'v1' && (group === '' || group === 'events.k8s.io')) {
      errors.push(invalid(field, owner, `${group}/${version}, Kind=${kind} is disallowed from being an owner`))
    }
    if (owner.controller !== true) continue
    const one = `${kind}/${name}`
    if (controller !== undefined) {
      const found = `Found "true" in references for ${controller} and ${one}`
      errors.push(invalid(field, owners, `Only one reference can have Controller set to true. ${found}`))
    } else controller = one
  }
  return errors
}

function checkFinalizers(finalizers: unknown): FieldError[] {
  if (!Array.isArray(finalizers)) return []
  const field = 'metadata.finalizers'
  const errors = finalizers.flatMap(name => qualifiedName(String(name)).map(detail => invalid(field, name, detail)))
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    errors.push(invalid(field, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'))
  }
  return errors
}

/** What a server warns of: finalizers of nobody in particular. */
export function finalizerWarnings(metadata: unknown): string[] {
  const finalizers = isObject(metadata) && Array.isArray(metadata.finalizers) ? metadata.finalizers : []
  return finalizers
    .filter(name => typeof name === 'string' && !name.includes('/') && !standardFinalizers.includes(name))
    .map(
      name =>
        `metadata.finalizers: ${JSON.stringify(name)}: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers`,
    )
}

const immutable = ['name', 'namespace', 'uid', 'creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds']

/** What of metadata an update may not change. */
export function validateMetaUpdate(next: unknown, old: unknown): FieldError[] {
  const after = (isObject(next) ? next : {}) as Record<string, unknown>
  const before = (isObject(old) ? old : {}) as Record<string, unknown>
  const errors: FieldError[] = []
  if (before.deletionTimestamp && Array.isArray(after.finalizers)) {
    const had = Array.isArray(before.finalizers) ? before.finalizers : []
    const added = after.finalizers.filter(name => !had.includes(name)).sort()
    if (added.length > 0) {
      const list = added.map(name => JSON.stringify(name)).join(', ')
      const detail = `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list}}`
      errors.push({ mistake: 'FieldValueForbidden', field: 'metadata.finalizers', detail })
    }
  }
  if (Number(after.generation ?? 0) < Number(before.generation ?? 0)) {
    errors.push(invalid('metadata.generation', after.generation ?? 0, 'must not be decremented'))
  }
  for (const key of immutable) {
    if (!equal(after[key] ?? null, before[key] ?? null)) {
      errors.push(invalid(`metadata.${key}`, after[key] ?? null, 'field is immutable'))
    }
  }
  return errors
}
