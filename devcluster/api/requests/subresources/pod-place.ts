/**
 * Where a pod runs, and which of its containers is meant.
 */
import { badRequest, notFound } from '../../problems.ts'
import type { Asked, Obj, PodPlace, PodRuntime } from '../../types.ts'
import type { Context } from '../context.ts'
import { stored } from '../read.ts'

const defaultContainer = 'kubectl.kubernetes.io/default-container'

/** Throws 400 where there is no such container, or none is named and there are several. */
export function containerOf(pod: Obj, asked: string | null): string {
  const { name, annotations } = pod.metadata
  const names = (list: { name: string }[] = []) => list.map(one => one.name)
  const main = names(pod.spec?.containers)
  const others = [...names(pod.spec?.initContainers), ...names(pod.spec?.ephemeralContainers)]
  if (asked) {
    if (main.includes(asked) || others.includes(asked)) return asked
    throw badRequest(`container ${asked} is not valid for pod ${name}`)
  }
  const usual = annotations?.[defaultContainer]
  if (usual !== undefined && main.includes(usual)) return usual
  if (main.length === 1 && main[0]) return main[0]
  const init = names(pod.spec?.initContainers)
  const or = init.length > 0 ? ` or one of the init containers: [${init.join(' ')}]` : ''
  throw badRequest(`a container name must be specified for pod ${name}, choose one of: [${main.join(' ')}]${or}`)
}

export interface Running {
  readonly pod: Obj
  readonly place: PodPlace
  readonly runtime: PodRuntime
}

/** @param check is asked of the pod before its node is looked for */
export function running(context: Context, asked: Asked, check?: (pod: Obj) => void): Running {
  const pod = stored(context, asked)
  check?.(pod)
  const { namespace = '', name, uid } = pod.metadata
  const node = pod.spec?.nodeName
  if (!node) throw badRequest(`pod ${name} does not have a host assigned`)
  const runtime = context.runtimes.get(node)
  if (!runtime) throw notFound({ group: '', resource: 'pods' }, node)
  return { pod, place: { namespace, name, uid }, runtime }
}
