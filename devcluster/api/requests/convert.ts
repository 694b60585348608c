/**
 * Objects between the version they are kept in and the one that is asked for.
 */
import type { Asked, Obj, ResourceType } from '../types.ts'
import { apiVersionOf, type Hooks } from './context.ts'
import { toCoreEvent, toNewEvent } from './events.ts'

const isNewEvent = ({ group, resource }: ResourceType) => group === 'events.k8s.io' && resource === 'events'

/** As the request wants to see it. */
export async function shown(object: Obj, { type, version }: Asked, hooks: Hooks): Promise<Obj> {
  const [out] = await shownAll([object], { type, version }, hooks)
  return out as Obj
}

export async function shownAll(
  objects: readonly Obj[],
  { type, version }: Pick<Asked, 'type' | 'version'>,
  hooks: Hooks,
): Promise<readonly Obj[]> {
  if (isNewEvent(type)) return objects.map(toNewEvent)
  return inVersion(objects, type, version.version, hooks)
}

/** As it is kept. */
export async function kept(object: Obj, { type }: Asked, hooks: Hooks): Promise<Obj> {
  if (isNewEvent(type)) return toCoreEvent(object)
  const [out] = await inVersion([object], type, type.storage, hooks)
  return out as Obj
}

/** Whether what is kept is what is shown: nothing has to be made anew. */
export const isShownAsKept = ({ type, version }: Pick<Asked, 'type' | 'version'>) =>
  version.version === type.storage && !isNewEvent(type)

const converted = new WeakMap<Obj, Map<string, Obj>>()

async function inVersion(
  objects: readonly Obj[],
  type: ResourceType,
  version: string,
  hooks: Hooks,
): Promise<readonly Obj[]> {
  const apiVersion = apiVersionOf(type.group, version)
  if (objects.every(object => object.apiVersion === apiVersion)) return objects
  if (hooks.convert) return hooks.convert(objects, type, version)
  return objects.map(object => {
    if (object.apiVersion === apiVersion) return object
    let known = converted.get(object)
    if (!known) {
      known = new Map()
      converted.set(object, known)
    }
    const other = known.get(apiVersion) ?? { ...object, apiVersion }
    known.set(apiVersion, other)
    return other
  })
}
