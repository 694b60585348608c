/**
 * What looking after workloads needs to be allowed. A kind other than Kubernetes' own needs a rule besides: get and patch of it and of its scale subresource, and delete for
 * `onEnd: Delete`; the refusal names it.
 */
import type { PolicyRule } from '../../toolkit/rbac.ts'

const reading = ['get', 'list', 'watch']
const keeping = [...reading, 'create', 'patch', 'delete']

export const workloadRules: readonly PolicyRule[] = [
  { apiGroups: [''], resources: ['pods', 'nodes'], verbs: reading },
  { apiGroups: [''], resources: ['services', 'configmaps'], verbs: keeping },
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['get', 'list', 'patch', 'delete'] },
  { apiGroups: ['apps'], resources: ['statefulsets'], verbs: keeping },
  { apiGroups: ['apps'], resources: ['deployments', 'daemonsets'], verbs: [...reading, 'patch', 'delete'] },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: keeping },
  // Where the server enforces it, owning something that blocks its owner's deletion needs this.
  { apiGroups: ['shipmate.dev'], resources: ['statefulapps/finalizers'], verbs: ['update'] },
]
