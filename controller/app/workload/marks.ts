/**
 * What Shipmate writes on workloads, pods and what belongs to them, to find it again. Pure.
 */
import type { App, WorkloadView } from '../view.ts'

/** On a workload: which app has it. `NAMESPACE/NAME UID`. */
export const claimAnnotation = 'shipmate.dev/claimed-by'
/** On a workload that was scaled to zero by us: the number to scale back up to. */
export const replicasAnnotation = 'shipmate.dev/replicas'
/** On what was made for an app: the app's uid. */
export const appUidLabel = 'shipmate.dev/app-uid'
/** On everything that Shipmate makes: what is watched of kinds of which there are many. */
export const madeLabels = { 'app.kubernetes.io/managed-by': 'shipmate' } as const
/** On pods of an app's own workload, as a label to select them by and as an annotation: the app's name. */
export const appMark = 'shipmate.dev/app'
/** On pods that are to have a sidecar: their Lifecycle. */
export const lifecycleLabel = 'shipmate.dev/lifecycle'
/** On pods: where the agent listens. */
export const portAnnotation = 'shipmate.dev/api-port'
/** On claims for volumes that are to go once their StatefulSet is gone: the uid of the app that says so. */
export const endingLabel = 'shipmate.dev/ends-with'
/** The agent's container. */
export const sidecarName = 'shipmate-sidecar'

export type Claim = NonNullable<WorkloadView['claimedBy']>

export function claimText({ metadata }: App): string {
  return `${metadata.namespace}/${metadata.name} ${metadata.uid}`
}

/** Undefined where it is none, or none that can be read: that holds nobody off. */
export function parseClaim(text: string | undefined): Claim | undefined {
  const [, namespace, name, uid] = /^([^/\s]+)\/([^/\s]+) (\S+)$/.exec(text ?? '') ?? []
  return namespace && name && uid ? { namespace, name, uid } : undefined
}

/** The number in the annotation, if it is one to scale up to. */
export function parseReplicas(text: string | undefined): number | undefined {
  const number = /^\d{1,9}$/.test(text ?? '') ? Number(text) : 0
  return number > 0 ? number : undefined
}
