/**
 * Pods: what they begin with, what of them may change, how they go.
 */
import type { Obj, Strategy } from '../../types.ts'
import { validatePodChange } from '../validation/pod-change.ts'
import { validatePodSpec } from '../validation/pod-spec.ts'
import { list } from './lists.ts'
import { defaultPodSpec } from './podspec.ts'

export const pod: Strategy = {
  hasGeneration: true,
  default: object => {
    defaultPodSpec(object.spec)
    if (object.spec) object.spec.enableServiceLinks ??= true
    const { status } = object
    if (status?.podIP) status.podIPs ??= [{ ip: status.podIP }]
    else if (status?.podIPs?.[0]) status.podIP = status.podIPs[0].ip
    if (status?.hostIP) status.hostIPs ??= [{ ip: status.hostIP }]
  },
  prepareForCreate: object => {
    if (object.spec?.terminationGracePeriodSeconds < 0) object.spec.terminationGracePeriodSeconds = 1
    object.status = { phase: 'Pending', qosClass: qosClass(object) }
  },
  prepareForUpdate: (object, old, subresource) => {
    if (subresource === undefined) object.status = structuredClone(old.status)
    else if (subresource === 'status') {
      object.status = { ...object.status, qosClass: old.status?.qosClass }
    }
  },
  validate: (object, old) => [...validatePodSpec(object.spec, 'spec'), ...(old ? validatePodChange(object, old) : [])],
  fields: {
    'spec.nodeName': object => object.spec?.nodeName ?? '',
    'spec.restartPolicy': object => object.spec?.restartPolicy ?? '',
    'spec.schedulerName': object => object.spec?.schedulerName ?? '',
    'spec.serviceAccountName': object => object.spec?.serviceAccountName ?? '',
    'spec.hostNetwork': object => String(object.spec?.hostNetwork ?? false),
    'status.phase': object => object.status?.phase ?? '',
    'status.podIP': object => object.status?.podIP ?? '',
    'status.nominatedNodeName': object => object.status?.nominatedNodeName ?? '',
  },
  gracePeriod: (object, asked) => {
    const period = Math.max(0, asked ?? object.spec?.terminationGracePeriodSeconds ?? 30)
    // Nothing runs that could need the time.
    const isOver = object.status?.phase === 'Failed' || object.status?.phase === 'Succeeded'
    return !object.spec?.nodeName || isOver ? 0 : period
  },
}

function qosClass(object: Obj): string {
  const containers = [...list(object.spec?.containers), ...list(object.spec?.initContainers)]
  const given = containers.flatMap(({ resources = {} }) => [
    ...Object.keys(resources.requests ?? {}),
    ...Object.keys(resources.limits ?? {}),
  ])
  if (!given.some(name => name === 'cpu' || name === 'memory')) return 'BestEffort'
  const guaranteed = containers.every(({ resources = {} }) =>
    ['cpu', 'memory'].every(
      name =>
        resources.limits?.[name] && (resources.requests?.[name] ?? resources.limits[name]) === resources.limits[name],
    ),
  )
  return guaranteed ? 'Guaranteed' : 'Burstable'
}
