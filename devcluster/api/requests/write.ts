/**
 * Create and update, in the order of docs/devcluster.md; patches end here too.
 */
import { randomUUID } from 'node:crypto'
import { timeOf } from '../../../shared/clock.ts'
import { deepEqual } from '../patch/compare.ts'
import { keepTimes, updateManaged } from '../patch/managed.ts'
import { ApiError, alreadyExists, badRequest, conflict, type FieldError, invalid, modified } from '../problems.ts'
import { nativeForm } from '../resources/native.ts'
import { applyDefaults } from '../schema/defaults.ts'
import { validateMeta, validateMetaUpdate } from '../schema/meta.ts'
import { rulesBlocked, validateRules } from '../schema/rules.ts'
import { checkScale } from '../schema/scale.ts'
import { validate } from '../schema/validate.ts'
import { Stale } from '../store/store.ts'
import type { Asked, Obj } from '../types.ts'
import { apiVersion } from './answer.ts'
import { type Context, shelfOf } from './context.ts'
import { kept, shown } from './convert.ts'
import { generated, nameRule } from './names.ts'
import { checkNamespace } from './namespaces.ts'
import { isOver } from './over.ts'
import type { WriteOptions } from './write-options.ts'

/** An object as the caller wants it, with managedFields already where a patch made them. */
export interface Wish {
  readonly object: Obj
  readonly isManaged: boolean
}

const attempts = 8

/** Answers the object as it is stored, in the version of the request. */
export async function createObject(context: Context, asked: Asked, wish: Wish, options: WriteOptions): Promise<Obj> {
  const base = wish.object.metadata.generateName
  const isGenerated = !wish.object.metadata.name && typeof base === 'string' && base !== ''
  for (let attempt = 1; ; attempt++) {
    const metadata = { ...wish.object.metadata, ...(isGenerated ? { name: generated(base) } : {}) }
    try {
      return await createOnce(context, asked, { ...wish, object: { ...wish.object, metadata } }, options, isGenerated)
    } catch (error) {
      const isTaken = error instanceof ApiError && error.status.reason === 'AlreadyExists'
      if (!isGenerated || !isTaken || attempt === attempts) throw error
    }
  }
}

async function createOnce(
  context: Context,
  asked: Asked,
  { object: given, isManaged }: Wish,
  options: WriteOptions,
  isGenerated: boolean,
): Promise<Obj> {
  const { type, version, namespace } = asked
  const now = timeOf(context.clock.now())
  checkPlace(given, asked)
  if (given.metadata.resourceVersion) throw unexplained('resourceVersion should not be set on objects to be created')
  let object = defaulted(given, asked, isManaged)
  object.metadata = { ...object.metadata, ...(type.namespaced && namespace ? { namespace } : {}) }
  if (!isManaged) object = managed(asked, undefined, object, options.manager, now)
  checkNamespace(context, asked, object.metadata.name ?? '')
  if (context.hooks.mutate) {
    // What admission adds is nobody's.
    const changed = await context.hooks.mutate(object, undefined, asked)
    if (changed !== object) object = defaulted(changed, asked)
  }
  prepareNew(object, asked, now)
  object = settled(object, asked)
  refuseInvalid(asked, object, checkNew(object, asked, isGenerated))
  await context.hooks.admit?.(object, undefined, asked)
  const shelf = shelfOf(type)
  const there = context.store.get(shelf, object.metadata.namespace, object.metadata.name)
  if (there) throw taken(asked, there)
  type.strategy.settle?.(object)
  const toKeep = await kept(object, asked, context.hooks)
  if (options.dryRun) return unstored(object)
  try {
    const stored = context.store.write(shelf, toKeep, undefined)
    return version.version === type.storage && shelf === `${type.group}/${type.resource}`
      ? stored
      : shown(stored, asked, context.hooks)
  } catch (error) {
    if (error instanceof Stale) throw alreadyExists(type, object.metadata.name)
    throw error
  }
}

/** What is not kept has no version. */
function unstored(object: Obj): Obj {
  const { resourceVersion: _, ...metadata } = object.metadata
  return { ...object, metadata: metadata as Obj['metadata'] }
}

function taken({ type }: Asked, there: Obj): ApiError {
  const error = alreadyExists(type, there.metadata.name)
  if (there.metadata.deletionTimestamp) error.status.message = `object is being deleted: ${error.status.message}`
  return error
}

/** An error without a reason, as the server answers what it did not foresee. */
function unexplained(message: string): ApiError {
  const error = new ApiError(500, '', message)
  delete error.status.reason
  return error
}

function checkPlace({ metadata }: Obj, { type, namespace }: Asked): void {
  if (type.namespaced && metadata.namespace && metadata.namespace !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  }
}

/** A copy with all defaults, in the form that the kind is kept in. */
function defaulted(object: Obj, { type, version }: Asked, isApplied = false): Obj {
  const { schema } = version
  const isCustom = type.custom !== undefined
  // Of a built-in kind what says nothing is gone before anything is filled in.
  const filled = applyDefaults(schema, isCustom ? object : nativeForm(schema, object), isApplied)
  type.strategy.default?.(filled)
  return isCustom ? filled : nativeForm(schema, filled)
}

/** As it is once it is kept. Definitions are kept in the form they are sent in. */
function settled(object: Obj, { type, version }: Asked): Obj {
  if (type.custom !== undefined) {
    for (const name of ['labels', 'annotations', 'finalizers', 'ownerReferences'] as const) {
      const value = object.metadata[name]
      if (value && Object.keys(value).length === 0) delete object.metadata[name]
    }
    return object
  }
  return nativeForm(version.schema, object, type.group !== 'apiextensions.k8s.io')
}

function managed(asked: Asked, live: Obj | undefined, next: Obj, manager: string, now: string): Obj {
  return updateManaged({
    live,
    next,
    manager,
    schema: asked.version.schema,
    apiVersion: apiVersion(asked),
    subresource: asked.subresource,
    now,
    hasStatus: asked.version.status,
  })
}

function prepareNew(object: Obj, { type, version }: Asked, now: string): void {
  const { deletionTimestamp: _1, deletionGracePeriodSeconds: _2, generation: _3, ...meta } = object.metadata
  object.metadata = { ...meta, uid: randomUUID(), creationTimestamp: now }
  if (type.strategy.hasGeneration) object.metadata.generation = 1
  if (!type.namespaced) delete object.metadata.namespace
  if (type.custom !== undefined && version.status) delete object.status
  type.strategy.prepareForCreate?.(object)
}

/** Kinds of which metadata is looked at when there is nothing else to tell. */
const metaLast = new Set(['policy/poddisruptionbudgets'])

function checkNew(object: Obj, asked: Asked, isGenerated: boolean): FieldError[] {
  const { type } = asked
  const meta = validateMeta(object.metadata, {
    namespaced: type.namespaced,
    generated: isGenerated,
    nameRule: nameRule(type),
  })
  const own = checkKind(object, undefined, asked, meta)
  return metaLast.has(`${type.group}/${type.resource}`) && own.length > 0 ? own : [...meta, ...own]
}

/** @param meta what is wrong with its metadata */
function checkKind(
  object: Obj,
  old: Obj | undefined,
  { type, version, subresource }: Asked,
  meta: readonly FieldError[],
): FieldError[] {
  const { strategy } = type
  const isStatus = old !== undefined && subresource === 'status' && strategy.validateStatus !== undefined
  const own = (isStatus ? strategy.validateStatus?.(object, old) : strategy.validate?.(object, old)) ?? []
  if (type.custom === undefined) return own
  const errors = validate(version.schema, object, old ? { old } : {})
  const blocked = rulesBlocked(version.schema, [...meta, ...errors])
  const rules = blocked ? [blocked] : validateRules(version.schema, object, old)
  return [...own, ...errors, ...(version.scale ? checkScale(object, version.scale) : []), ...rules]
}

function refuseInvalid({ type }: Asked, object: Obj, errors: FieldError[]): void {
  if (errors.length > 0) throw invalid(type, object.metadata.name ?? '', errors)
}

/** Kinds whose update must say which version it replaces, besides custom ones. */
const conditional = new Set([
  'policy/poddisruptionbudgets',
  'coordination.k8s.io/leases',
  'apiextensions.k8s.io/customresourcedefinitions',
  'admissionregistration.k8s.io/mutatingwebhookconfigurations',
  'admissionregistration.k8s.io/validatingwebhookconfigurations',
  'admissionregistration.k8s.io/validatingadmissionpolicies',
  'admissionregistration.k8s.io/validatingadmissionpolicybindings',
  'apiregistration.k8s.io/apiservices',
  'storage.k8s.io/csinodes',
])

/**
 * Puts what the caller wishes in the place of `stored`. `live` is `stored` in the version of the request. Throws Stale where somebody else wrote.
 * Answers the object in the version of the request.
 */
export async function updateObject(
  context: Context,
  asked: Asked,
  stored: Obj,
  live: Obj,
  wish: Wish,
  options: WriteOptions,
): Promise<Obj> {
  const { type, subresource } = asked
  const now = timeOf(context.clock.now())
  checkPlace(wish.object, asked)
  checkVersion(wish.object, live, asked)
  let next = limited(defaulted(wish.object, asked, wish.isManaged), live, asked)
  if (!wish.isManaged) next = managed(asked, live, next, options.manager, now)
  if (context.hooks.mutate) {
    const changed = await context.hooks.mutate(next, live, asked)
    if (changed !== next) next = limited(defaulted(changed, asked), live, asked)
  }
  const given = next.metadata
  next.metadata = { ...next.metadata, ...fixed(live) }
  if (!live.metadata.generation) delete next.metadata.generation
  type.strategy.prepareForUpdate?.(next, live, subresource)
  next = settled(next, asked)
  if (type.strategy.hasGeneration && subresource !== 'status' && isChanged(next, live, asked)) {
    next.metadata.generation = (live.metadata.generation ?? 0) + 1
  }
  const immutable = given.uid && given.uid !== live.metadata.uid ? { ...next.metadata, uid: given.uid } : next.metadata
  const rules = { namespaced: type.namespaced, generated: false, nameRule: () => [] }
  const meta = [...validateMeta(next.metadata, rules), ...validateMetaUpdate(immutable, live.metadata)]
  refuseInvalid(asked, live, [...meta, ...checkKind(next, live, asked, meta)])
  type.strategy.settle?.(next)
  next = keepTimes(live, next)
  await context.hooks.admit?.(next, live, asked)
  if (isOver(next, type)) return removeAfterUpdate(context, asked, stored, next, options)
  if (deepEqual(next, live)) {
    if (context.store.get(shelfOf(type), stored.metadata.namespace, stored.metadata.name) !== stored) throw new Stale()
    return live
  }
  const toKeep = await kept(next, asked, context.hooks)
  if (options.dryRun) return next
  return shown(context.store.write(shelfOf(type), toKeep, stored), asked, context.hooks)
}

/** Its last finalizer is gone, and so is it. */
function removeAfterUpdate(context: Context, { type }: Asked, stored: Obj, next: Obj, options: WriteOptions): Obj {
  if (!options.dryRun) context.store.remove(shelfOf(type), stored)
  return next
}

function checkVersion({ metadata }: Obj, live: Obj, { type, name = '' }: Asked): void {
  const { resourceVersion } = metadata
  if (!resourceVersion || resourceVersion === '0') {
    if (type.custom === undefined && !conditional.has(`${type.group}/${type.resource}`)) return
    throw invalid({ group: type.group, kind: type.resource }, name, [
      {
        mistake: 'FieldValueInvalid',
        field: 'metadata.resourceVersion',
        value: 0,
        detail: 'must be specified for an update',
      },
    ])
  }
  if (!/^\d+$/.test(String(resourceVersion))) {
    throw unexplained(`strconv.ParseUint: parsing ${JSON.stringify(resourceVersion)}: invalid syntax`)
  }
  if (resourceVersion !== live.metadata.resourceVersion) throw conflict(type, name, modified)
}

/** What the request names is another one that had the same name. */
export function wrongUid(type: Asked['type'], { metadata }: Obj, uid: string): ApiError {
  const place = metadata.namespace ? `${metadata.namespace}/${metadata.name}` : metadata.name
  const key = `/registry/${type.group && type.custom !== undefined ? `${type.group}/` : ''}${type.resource}/${place}`
  return conflict(
    type,
    metadata.name,
    `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadata.uid}`,
  )
}

/** What a write may touch: the object without its status, or its status alone. */
function limited(next: Obj, live: Obj, { type, version, subresource }: Asked): Obj {
  const isCustom = type.custom !== undefined
  if (subresource === 'status') {
    const { status: _, ...rest } = live
    const metadata = isCustom
      ? { ...live.metadata, ...pick(next.metadata, 'managedFields', 'resourceVersion', 'uid') }
      : next.metadata
    return { ...rest, metadata, ...(next.status === undefined ? {} : { status: next.status }) } as Obj
  }
  if (!isCustom || !version.status || subresource !== undefined) return next
  const { status: _, ...rest } = next
  return { ...rest, ...(live.status === undefined ? {} : { status: live.status }) } as Obj
}

function pick<T extends object>(object: T, ...names: (keyof T)[]): Partial<T> {
  return Object.fromEntries(
    names.filter(name => object[name] !== undefined).map(name => [name, object[name]]),
  ) as Partial<T>
}

/** What nobody changes but the server. */
function fixed({ metadata }: Obj): Partial<Obj['metadata']> {
  return pick(
    metadata,
    'name',
    'namespace',
    'uid',
    'creationTimestamp',
    'resourceVersion',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
    'generation',
  )
}

/** Whether anything but metadata and status differs; a status that is no subresource counts. */
function isChanged(next: Obj, live: Obj, { type, version }: Asked): boolean {
  const own = ({ metadata: _, ...rest }: Obj) => {
    if (!version.status && type.custom !== undefined) return rest
    const { status: _status, ...spec } = rest
    return spec
  }
  return !deepEqual(own(next), own(live))
}
