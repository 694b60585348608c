/**
 * Deletion: at once, or marked and left to whoever holds the object by a finalizer or ends what it stands for.
 */
import { timeOf } from '../../../shared/clock.ts'
import { ApiError, conflict, forbidden, notFound } from '../problems.ts'
import { itemText, textOf } from '../store/text.ts'
import type { ApiResponse, Asked, Obj } from '../types.ts'
import { formOf, listText, respond, statusAnswer, textIn } from './answer.ts'
import { retried } from './change.ts'
import { type Context, shelfOf } from './context.ts'
import { shown, shownAll } from './convert.ts'
import { type DeleteOptions, deleteOptions } from './delete-options.ts'
import { lasting } from './namespaces.ts'
import { isNamespace, isOver } from './over.ts'
import { deprecation, stored as storedOf } from './read.ts'
import { matcherOf } from './selectors.ts'

/** Kinds whose deletion is answered with what was there. */
const answered = new Set([
  '/persistentvolumeclaims',
  '/persistentvolumes',
  '/podtemplates',
  '/resourcequotas',
  '/serviceaccounts',
  '/services',
])

export async function remove(context: Context, asked: Asked): Promise<ApiResponse> {
  const form = formOf(asked.request.headers.accept, context.hooks.table !== undefined)
  const options = await deleteOptions(asked.request)
  const told = [...deprecation(asked), ...orphaning(asked, options)]
  let done: Awaited<ReturnType<typeof deleteObject>>
  try {
    done = await deleteObject(context, asked, options)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return statusAnswer(error.status, error.status.code, told)
  }
  const { object, isGone } = done
  const { type, name = '' } = asked
  if (isGone && !type.strategy.gracePeriod && !answered.has(`${type.group}/${type.resource}`)) {
    const details = {
      name,
      ...(type.group ? { group: type.group } : {}),
      kind: type.resource,
      uid: object.metadata.uid,
    }
    const success = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details } as const
    return statusAnswer(success, 200, told)
  }
  const seen = await shown(object, asked, context.hooks)
  return respond(200, textIn(form, seen, asked, context.hooks), form, told)
}

/** Of a kind whose dependents stay, unless one says otherwise. */
function orphaning({ type }: Asked, { propagation }: DeleteOptions): string[] {
  if (propagation !== undefined || type.strategy.defaultPropagation !== 'Orphan') return []
  return [
    'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning',
  ]
}

export async function removeAll(context: Context, asked: Asked): Promise<ApiResponse> {
  const form = formOf(asked.request.headers.accept, context.hooks.table !== undefined)
  const options = await deleteOptions(asked.request)
  const matches = matcherOf(asked.request.query, asked.type)
  const { items, revision } = context.store.page(shelfOf(asked.type), { namespace: asked.namespace, matches })
  const gone: Obj[] = []
  for (const { metadata } of items) {
    try {
      gone.push((await deleteObject(context, { ...asked, name: metadata.name }, options)).object)
    } catch (error) {
      if (!isNotFound(error)) throw error
    }
  }
  const seen = await shownAll(gone, asked, context.hooks)
  const texts = () => seen.map(asked.type.custom === undefined ? itemText : textOf)
  return respond(200, listText(form, seen, texts, { resourceVersion: String(revision) }, asked, context.hooks), form)
}

const isNotFound = (error: unknown) => (error as { status?: { code?: number } }).status?.code === 404

/** Answers what is left of it, or what it was. */
export async function deleteObject(
  context: Context,
  asked: Asked,
  options: DeleteOptions,
): Promise<{ object: Obj; isGone: boolean }> {
  const { type, name = '' } = asked
  return retried(asked, true, async () => {
    const stored = storedOf(context, asked)
    checkPreconditions(asked, stored, options)
    if (isNamespace(type) && lasting.includes(name)) {
      throw forbidden(type, name, 'this namespace may not be deleted')
    }
    if (context.hooks.admit) {
      await context.hooks.admit(undefined, await shown(stored, asked, context.hooks), asked)
      if (context.store.get(shelfOf(type), stored.metadata.namespace, name) === undefined) throw notFound(type, name)
    }
    return carryOut(context, asked, stored, options)
  })
}

function checkPreconditions({ type, name = '' }: Asked, { metadata }: Obj, { preconditions }: DeleteOptions): void {
  const about = { group: type.group, resource: type.kind }
  const { uid, resourceVersion } = preconditions
  if (uid !== undefined && uid !== metadata.uid) {
    throw conflict(
      about,
      name,
      `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
    )
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    throw conflict(
      about,
      name,
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
    )
  }
}

function carryOut(
  { store, clock }: Context,
  { type }: Asked,
  stored: Obj,
  options: DeleteOptions,
): { object: Obj; isGone: boolean } {
  const shelf = shelfOf(type)
  const marked = markDeleted(stored, type, options, clock.now())
  const isGone = isOver(marked, type)
  const isChanged = marked !== stored
  if (options.dryRun) return { object: isGone && !type.strategy.gracePeriod ? stored : marked, isGone }
  if (!isGone) return { object: isChanged ? store.write(shelf, marked, stored) : stored, isGone }
  if (!type.strategy.gracePeriod) {
    return { object: store.remove(shelf, stored), isGone }
  }
  // What somebody may be ending is told its end before it is gone.
  const last = isChanged ? store.write(shelf, marked, stored) : stored
  return { object: store.remove(shelf, last), isGone }
}

/** The object with its deletion written in; the same one where that changes nothing. Pure. */
function markDeleted(object: Obj, type: Asked['type'], options: DeleteOptions, now: number): Obj {
  const { metadata } = object
  const { finalizer } = type.strategy
  const own = finalizer && !metadata.deletionTimestamp ? [finalizer] : []
  const known = metadata.finalizers ?? []
  const finalizers = finalizersOf([...known, ...own.filter(one => !known.includes(one))], options, type)
  const sameFinalizers = finalizers.join() === known.join()
  const { finalizers: _, ...rest } = metadata
  const held = { ...rest, ...(finalizers.length > 0 ? { finalizers } : {}) }
  if (isNamespace(type)) {
    if (metadata.deletionTimestamp && sameFinalizers) return object
    const deletionTimestamp = metadata.deletionTimestamp ?? timeOf(now)
    return { ...object, metadata: { ...held, deletionTimestamp }, status: { ...object.status, phase: 'Terminating' } }
  }
  const { gracePeriod } = type.strategy
  const grace = gracePeriod ? gracePeriod(object, options.gracePeriodSeconds) : 0
  const { deletionTimestamp, deletionGracePeriodSeconds: before = 0 } = metadata
  if (deletionTimestamp) {
    const isShorter = (options.gracePeriodSeconds !== undefined || grace === 0) && grace < before
    if (!isShorter) return sameFinalizers ? object : { ...object, metadata: held }
    const since = Date.parse(deletionTimestamp) - before * 1000
    return {
      ...object,
      metadata: { ...held, deletionTimestamp: timeOf(since + grace * 1000), deletionGracePeriodSeconds: grace },
    }
  }
  return {
    ...object,
    metadata: {
      ...held,
      ...(metadata.generation ? { generation: metadata.generation + 1 } : {}),
      deletionTimestamp: timeOf(now + grace * 1000),
      deletionGracePeriodSeconds: grace,
    },
  }
}

function finalizersOf(now: readonly string[], { propagation }: DeleteOptions, type: Asked['type']): string[] {
  const hasOwn = now.includes('orphan') || now.includes('foregroundDeletion')
  const policy = propagation ?? (hasOwn ? undefined : type.strategy.defaultPropagation)
  if (policy === undefined) return [...now]
  const others = now.filter(name => name !== 'orphan' && name !== 'foregroundDeletion')
  if (policy === 'Orphan') return [...others, 'orphan']
  return policy === 'Foreground' ? [...others, 'foregroundDeletion'] : others
}
