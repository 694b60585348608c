/**
 * Kubernetes' own kinds, by their names. For one that is not here: `defineKind`.
 */
import type {
  EventsV1Event,
  V1ClusterRole,
  V1ClusterRoleBinding,
  V1ConfigMap,
  V1ControllerRevision,
  V1CronJob,
  V1CustomResourceDefinition,
  V1DaemonSet,
  V1Deployment,
  V1EndpointSlice,
  V1Ingress,
  V1Job,
  V1Lease,
  V1LimitRange,
  V1MutatingWebhookConfiguration,
  V1Namespace,
  V1NetworkPolicy,
  V1Node,
  V1PersistentVolume,
  V1PersistentVolumeClaim,
  V1Pod,
  V1PodDisruptionBudget,
  V1PodTemplate,
  V1PriorityClass,
  V1ReplicaSet,
  V1ResourceQuota,
  V1Role,
  V1RoleBinding,
  V1Secret,
  V1Service,
  V1ServiceAccount,
  V1StatefulSet,
  V1StorageClass,
  V1SubjectAccessReview,
  V1TokenReview,
  V1ValidatingWebhookConfiguration,
  V2HorizontalPodAutoscaler,
} from '@kubernetes/client-node'
import { defineKind } from './kind.ts'

export const ConfigMap = defineKind<V1ConfigMap>({ group: '', version: 'v1', kind: 'ConfigMap' })
export const Namespace = defineKind<V1Namespace>({ group: '', version: 'v1', kind: 'Namespace', namespaced: false })
export const Node = defineKind<V1Node>({ group: '', version: 'v1', kind: 'Node', namespaced: false })
export const PersistentVolume = defineKind<V1PersistentVolume>({
  group: '',
  version: 'v1',
  kind: 'PersistentVolume',
  namespaced: false,
})
export const PersistentVolumeClaim = defineKind<V1PersistentVolumeClaim>({
  group: '',
  version: 'v1',
  kind: 'PersistentVolumeClaim',
})
export const Pod = defineKind<V1Pod>({ group: '', version: 'v1', kind: 'Pod' })
export const PodTemplate = defineKind<V1PodTemplate>({ group: '', version: 'v1', kind: 'PodTemplate' })
export const ResourceQuota = defineKind<V1ResourceQuota>({ group: '', version: 'v1', kind: 'ResourceQuota' })
export const LimitRange = defineKind<V1LimitRange>({ group: '', version: 'v1', kind: 'LimitRange' })
export const Secret = defineKind<V1Secret>({ group: '', version: 'v1', kind: 'Secret' })
export const Service = defineKind<V1Service>({ group: '', version: 'v1', kind: 'Service' })
export const ServiceAccount = defineKind<V1ServiceAccount>({ group: '', version: 'v1', kind: 'ServiceAccount' })
export const Event = defineKind<EventsV1Event>({ group: 'events.k8s.io', version: 'v1', kind: 'Event' })
export const ControllerRevision = defineKind<V1ControllerRevision>({
  group: 'apps',
  version: 'v1',
  kind: 'ControllerRevision',
})
export const DaemonSet = defineKind<V1DaemonSet>({ group: 'apps', version: 'v1', kind: 'DaemonSet' })
export const Deployment = defineKind<V1Deployment>({ group: 'apps', version: 'v1', kind: 'Deployment' })
export const ReplicaSet = defineKind<V1ReplicaSet>({ group: 'apps', version: 'v1', kind: 'ReplicaSet' })
export const StatefulSet = defineKind<V1StatefulSet>({ group: 'apps', version: 'v1', kind: 'StatefulSet' })
export const CronJob = defineKind<V1CronJob>({ group: 'batch', version: 'v1', kind: 'CronJob' })
export const Job = defineKind<V1Job>({ group: 'batch', version: 'v1', kind: 'Job' })
export const HorizontalPodAutoscaler = defineKind<V2HorizontalPodAutoscaler>({
  group: 'autoscaling',
  version: 'v2',
  kind: 'HorizontalPodAutoscaler',
})
export const Lease = defineKind<V1Lease>({ group: 'coordination.k8s.io', version: 'v1', kind: 'Lease' })
export const EndpointSlice = defineKind<V1EndpointSlice>({
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
})
export const Ingress = defineKind<V1Ingress>({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'Ingress',
  plural: 'ingresses',
})
export const NetworkPolicy = defineKind<V1NetworkPolicy>({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
})
export const PodDisruptionBudget = defineKind<V1PodDisruptionBudget>({
  group: 'policy',
  version: 'v1',
  kind: 'PodDisruptionBudget',
})
export const ClusterRole = defineKind<V1ClusterRole>({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'ClusterRole',
  namespaced: false,
})
export const ClusterRoleBinding = defineKind<V1ClusterRoleBinding>({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'ClusterRoleBinding',
  namespaced: false,
})
export const Role = defineKind<V1Role>({ group: 'rbac.authorization.k8s.io', version: 'v1', kind: 'Role' })
export const RoleBinding = defineKind<V1RoleBinding>({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'RoleBinding',
})
export const PriorityClass = defineKind<V1PriorityClass>({
  group: 'scheduling.k8s.io',
  version: 'v1',
  kind: 'PriorityClass',
  plural: 'priorityclasses',
  namespaced: false,
})
export const StorageClass = defineKind<V1StorageClass>({
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'StorageClass',
  plural: 'storageclasses',
  namespaced: false,
})
export const CustomResourceDefinition = defineKind<V1CustomResourceDefinition>({
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  namespaced: false,
})
export const MutatingWebhookConfiguration = defineKind<V1MutatingWebhookConfiguration>({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'MutatingWebhookConfiguration',
  namespaced: false,
})
export const ValidatingWebhookConfiguration = defineKind<V1ValidatingWebhookConfiguration>({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingWebhookConfiguration',
  namespaced: false,
})
export const SubjectAccessReview = defineKind<V1SubjectAccessReview>({
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SubjectAccessReview',
  namespaced: false,
})
export const TokenReview = defineKind<V1TokenReview>({
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'TokenReview',
  namespaced: false,
})
