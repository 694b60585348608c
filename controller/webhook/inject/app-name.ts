/**
 * Whose pod it is: the app's name, where no annotation says it. Pure.
 */
import type { Metadata } from './template.ts'

/** The name of the pod's StatefulSet, Deployment, DaemonSet or whatever controls it; of a pod by itself, its own. Undefined where there is no name yet. */
export function appOf({ name, labels, ownerReferences }: Metadata): string | undefined {
  const owner = ownerReferences?.find(({ controller }) => controller)
  if (!owner) return name || undefined
  const hash = labels?.['pod-template-hash']
  const suffix = `-${hash}`
  // A Deployment names its ReplicaSets after itself and the hash of their template.
  const isDeployments = owner.kind === 'ReplicaSet' && hash && owner.name.endsWith(suffix)
  return isDeployments ? owner.name.slice(0, -suffix.length) : owner.name
}

const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/

/** Why it cannot be the name of an app, if so. */
export function appNameProblem(app: string): string | undefined {
  if (label.test(app) && app.length <= 40) return undefined
  return `"${app}" cannot be the name of an app: up to 40 lower case letters, digits and -`
}
