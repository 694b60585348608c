/**
 * Workloads: Deployment, ReplicaSet, StatefulSet, DaemonSet, ControllerRevision.
 */
import type { Obj, Strategy } from '../../types.ts'
import {
  validateDaemonSet,
  validateDeployment,
  validateReplicaSet,
  validateStatefulSet,
  validateStatus,
} from '../validation/workloads.ts'
import { list } from './lists.ts'
import { defaultPodSpec, withoutRequestsFromLimits } from './podspec.ts'
import { same, unchangedStatus } from './status.ts'

function defaultTemplate(object: Obj): void {
  const given = structuredClone(object.spec?.template?.spec)
  defaultPodSpec(object.spec?.template?.spec)
  withoutRequestsFromLimits(object.spec?.template?.spec, given)
}

const deployment: Strategy = {
  ...unchangedStatus,
  prepareForUpdate: (object, old, subresource) => {
    unchangedStatus.prepareForUpdate(object, old, subresource)
    if (subresource === 'status') {
      const { labels: _, ...metadata } = object.metadata
      const { labels } = old.metadata
      object.metadata = { ...metadata, ...(labels ? { labels } : {}) }
      return
    }
    // Annotations count as well: those of its pods once came from there.
    if (same(object.metadata.annotations, old.metadata.annotations)) return
    object.metadata.generation = (old.metadata.generation ?? 0) + 1
  },
  hasGeneration: true,
  default: object => {
    const { spec } = object
    if (!spec) return
    spec.replicas ??= 1
    spec.strategy ??= {}
    spec.strategy.type ??= 'RollingUpdate'
    if (spec.strategy.type === 'RollingUpdate') {
      spec.strategy.rollingUpdate ??= {}
      spec.strategy.rollingUpdate.maxUnavailable ??= '25%'
      spec.strategy.rollingUpdate.maxSurge ??= '25%'
    }
    spec.revisionHistoryLimit ??= 10
    spec.progressDeadlineSeconds ??= 600
    defaultTemplate(object)
  },
  validate: validateDeployment,
  validateStatus: validateStatus('updatedReplicas', 'readyReplicas', 'availableReplicas'),
}

const replicaSet: Strategy = {
  ...unchangedStatus,
  hasGeneration: true,
  default: object => {
    if (!object.spec) return
    object.spec.replicas ??= 1
    defaultTemplate(object)
  },
  validate: validateReplicaSet,
  validateStatus: validateStatus('fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'),
}

const statefulSet: Strategy = {
  ...unchangedStatus,
  hasGeneration: true,
  default: object => {
    const { spec } = object
    if (!spec) return
    spec.podManagementPolicy ||= 'OrderedReady'
    spec.updateStrategy ??= {}
    if (!spec.updateStrategy.type) {
      spec.updateStrategy.type = 'RollingUpdate'
      spec.updateStrategy.rollingUpdate ??= {}
    }
    if (spec.updateStrategy.type === 'RollingUpdate' && spec.updateStrategy.rollingUpdate) {
      spec.updateStrategy.rollingUpdate.partition ??= 0
    }
    spec.persistentVolumeClaimRetentionPolicy ??= {}
    spec.persistentVolumeClaimRetentionPolicy.whenDeleted ||= 'Retain'
    spec.persistentVolumeClaimRetentionPolicy.whenScaled ||= 'Retain'
    spec.replicas ??= 1
    spec.revisionHistoryLimit ??= 10
    defaultTemplate(object)
    for (const claim of list(spec.volumeClaimTemplates)) {
      claim.apiVersion ??= 'v1'
      claim.kind ??= 'PersistentVolumeClaim'
      claim.spec ??= {}
      claim.spec.volumeMode ??= 'Filesystem'
      claim.status = { ...claim.status, phase: claim.status?.phase ?? 'Pending' }
    }
  },
  validate: validateStatefulSet,
  validateStatus: validateStatus('readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'),
}

const templateGeneration = 'deprecated.daemonset.template.generation'

const daemonSet: Strategy = {
  ...unchangedStatus,
  hasGeneration: true,
  default: object => {
    const { spec } = object
    if (!spec) return
    spec.updateStrategy ??= {}
    spec.updateStrategy.type ||= 'RollingUpdate'
    if (spec.updateStrategy.type === 'RollingUpdate') {
      spec.updateStrategy.rollingUpdate ??= {}
      spec.updateStrategy.rollingUpdate.maxUnavailable ??= 1
      spec.updateStrategy.rollingUpdate.maxSurge ??= 0
    }
    spec.revisionHistoryLimit ??= 10
    // Whoever writes says it too, as far as managedFields go.
    object.metadata.annotations = { ...object.metadata.annotations }
    object.metadata.annotations[templateGeneration] ??= '0'
    defaultTemplate(object)
  },
  prepareForCreate: object => {
    object.status = {}
    object.metadata.annotations = { ...object.metadata.annotations, [templateGeneration]: '1' }
  },
  prepareForUpdate: (object, old, subresource) => {
    unchangedStatus.prepareForUpdate(object, old, subresource)
    const key = templateGeneration
    const last = Number(old.metadata.annotations?.[key] ?? 0)
    const next = subresource || same(object.spec.template, old.spec.template) ? last : last + 1
    object.metadata.annotations = { ...object.metadata.annotations, [key]: String(next) }
  },
  // What is an annotation to clients is a field inside a real server.
  metadataAlone: ({ annotations, ...metadata }) => {
    const { [templateGeneration]: _, ...rest } = annotations ?? {}
    return { ...metadata, ...(Object.keys(rest).length > 0 ? { annotations: rest } : {}) }
  },
  validate: validateDaemonSet,
}

export const apps: Record<string, Strategy> = {
  'apps/deployments': deployment,
  'apps/replicasets': replicaSet,
  'apps/statefulsets': statefulSet,
  'apps/daemonsets': daemonSet,
}
