/**
 * The requests that write: POST, PUT and PATCH of an object or its status.
 */
import { ApiError, badRequest, conflict, modified, notFound } from '../problems.ts'
import { Stale } from '../store/store.ts'
import type { ApiResponse, Asked, Obj } from '../types.ts'
import { formOf, respond, statusAnswer, textIn } from './answer.ts'
import { type Context, shelfOf } from './context.ts'
import { shown } from './convert.ts'
import { decode, wantedOf } from './decode.ts'
import { patched, patchKind } from './patched.ts'
import { deprecation } from './read.ts'
import { createObject, updateObject, wrongUid } from './write.ts'
import { writeOptions } from './write-options.ts'

/** Kinds that a PUT makes where there is nothing. */
const createdByUpdate = new Set([
  '/endpoints',
  '/events',
  '/limitranges',
  '/services',
  'coordination.k8s.io/leases',
  'events.k8s.io/events',
  'rbac.authorization.k8s.io/clusterrolebindings',
  'rbac.authorization.k8s.io/clusterroles',
  'rbac.authorization.k8s.io/rolebindings',
  'rbac.authorization.k8s.io/roles',
])

/** By its status, too, if it has one. */
const mayMake = ({ type, subresource }: Asked) =>
  createdByUpdate.has(`${type.group}/${type.resource}`) && (subresource === undefined || subresource === 'status')

/** How often a write is tried again that names no version, when others write too. */
const attempts = 5

export async function create(context: Context, asked: Asked): Promise<ApiResponse> {
  const form = formOf(asked.request.headers.accept, context.hooks.table !== undefined)
  const options = writeOptions(asked.request, 'CreateOptions')
  const { object, warnings } = await decode(asked.request, wantedOf(asked), options, context.resources)
  const told = [...deprecation(asked), ...warnings]
  return telling(told, async () => {
    const made = await createObject(context, asked, { object, isManaged: false }, options)
    return respond(201, textIn(form, made, asked, context.hooks), form, told)
  })
}

export async function update(context: Context, asked: Asked): Promise<ApiResponse> {
  const { type, namespace, name = '' } = asked
  const form = formOf(asked.request.headers.accept, context.hooks.table !== undefined)
  const options = writeOptions(asked.request, 'UpdateOptions')
  const { object, warnings } = await decode(asked.request, wantedOf(asked), options, context.resources)
  checkName(object, name)
  const told = [...deprecation(asked), ...warnings]
  const answer = async (status: number, made: Obj) =>
    respond(status, textIn(form, made, asked, context.hooks), form, told)
  const run = async () => {
    const stored = context.store.get(shelfOf(type), namespace, name)
    if (!stored) {
      if (!mayMake(asked)) throw notFound(type, name)
      const { uid } = object.metadata
      if (uid)
        throw wrongUid(type, { ...object, metadata: { ...object.metadata, namespace: namespace ?? '', uid: '' } }, uid)
      const wish = { object: unversioned(object), isManaged: false }
      const made = await createObject(context, asked, wish, options)
      // A version that was given is not asked about; a dry run gives it back.
      const { resourceVersion } = object.metadata
      const isBack = options.dryRun && resourceVersion
      return answer(201, isBack ? { ...made, metadata: { ...made.metadata, resourceVersion } } : made)
    }
    const live = await shown(stored, asked, context.hooks)
    if (object.metadata.uid && object.metadata.uid !== live.metadata.uid)
      throw wrongUid(type, live, object.metadata.uid)
    return answer(200, await updateObject(context, asked, stored, live, { object, isManaged: false }, options))
  }
  return telling(told, () => retried(asked, object.metadata.resourceVersion === undefined, run))
}

export async function patch(context: Context, asked: Asked): Promise<ApiResponse> {
  const { type, namespace, name = '' } = asked
  const form = formOf(asked.request.headers.accept, context.hooks.table !== undefined)
  const kind = patchKind(asked)
  const options = writeOptions(asked.request, 'PatchOptions', kind === 'apply')
  const change = await patched(context, asked, kind, options)
  return retried(asked, true, async () => {
    const stored = context.store.get(shelfOf(type), namespace, name)
    const live = stored && (await shown(stored, asked, context.hooks))
    const isNew = kind === 'apply' && (asked.subresource === undefined || mayMake(asked))
    if (!live && !isNew) throw notFound(type, name)
    const { object, warnings } = change(live)
    checkName(object, name)
    const wish = { object, isManaged: kind === 'apply' }
    const told = [...deprecation(asked), ...warnings]
    return telling(told, async () => {
      const made =
        stored && live
          ? await updateObject(context, asked, stored, live, wish, options)
          : await createObject(context, asked, { ...wish, object: unversioned(object) }, options)
      return respond(live ? 200 : 201, textIn(form, made, asked, context.hooks), form, told)
    })
  })
}

/** What is to be told is told with a refusal too. */
async function telling(warnings: readonly string[], run: () => Promise<ApiResponse>): Promise<ApiResponse> {
  try {
    return await run()
  } catch (error) {
    if (warnings.length === 0 || !(error instanceof ApiError)) throw error
    return statusAnswer(error.status, error.status.code, warnings)
  }
}

export function checkName({ metadata }: Obj, name: string): void {
  if (!metadata.name) {
    throw badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`)
  }
  if (metadata.name !== name) {
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`)
  }
}

/** Once more where somebody else wrote in between, unless the caller insists on a version. */
export async function retried<T>({ type, name = '' }: Asked, mayRetry: boolean, run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run()
    } catch (error) {
      if (!(error instanceof Stale)) throw error
      if (!mayRetry || attempt === attempts) throw conflict(type, name, modified)
    }
  }
}

/** An apply that names a version makes an object that is not there all the same: clients rely on that to make, and never to change. */
function unversioned(object: Obj): Obj {
  return { ...object, metadata: { ...object.metadata, resourceVersion: '' } }
}
