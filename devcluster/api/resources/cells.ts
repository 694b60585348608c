/**
 * The cells of built-in kinds' tables, by column. A column that is not here is looked for as a field of metadata.
 */
import type { Json, Obj } from '../types.ts'
import { age } from './age.ts'
import { podCells } from './pod-cells.ts'
import { list } from './strategies/lists.ts'
import { selectorText } from './strategies/selector.ts'

type Cell = (object: Obj) => Json
type Cells = Readonly<Record<string, Cell>>

const none = '<none>'
const common: Cells = {
  Name: object => object.metadata.name,
  Age: object => age(object.metadata.creationTimestamp),
  'Created At': object => object.metadata.creationTimestamp,
}

/** Of the template of a workload. */
function containers(of: (object: Obj) => unknown): Cells {
  const all = (object: Obj) => list((of(object) as { containers?: unknown } | undefined)?.containers)
  return {
    Containers: object =>
      all(object)
        .map(({ name }) => name)
        .join(','),
    Images: object =>
      all(object)
        .map(({ image }) => image)
        .join(','),
    Selector: object => (object.spec.selector ? selectorText(object.spec.selector) : none),
  }
}

const template = containers(object => object.spec?.template?.spec)

const cells: Record<string, Cells> = {
  '/pods': podCells,
  '/configmaps': { Data: object => count(object.data) + count(object.binaryData) },
  '/secrets': { Type: object => object.type, Data: object => count(object.data) },
  '/serviceaccounts': {},
  '/namespaces': { Status: object => object.status?.phase ?? '' },
  '/nodes': {
    Status: nodeStatus,
    Roles: object => roles(object) || none,
    Version: object => object.status?.nodeInfo?.kubeletVersion ?? '',
    'Internal-IP': object => address(object, 'InternalIP'),
    'External-IP': object => address(object, 'ExternalIP'),
    'OS-Image': object => object.status?.nodeInfo?.osImage || '<unknown>',
    'Kernel-Version': object => object.status?.nodeInfo?.kernelVersion || '<unknown>',
    'Container-Runtime': object => object.status?.nodeInfo?.containerRuntimeVersion || '<unknown>',
  },
  '/services': {
    Type: object => object.spec.type,
    'Cluster-IP': object => object.spec.clusterIP || none,
    'External-IP': object => object.spec.externalName ?? (object.spec.type === 'LoadBalancer' ? '<pending>' : none),
    'Port(s)': object =>
      list(object.spec.ports)
        .map(({ port, nodePort, protocol }) => `${port}${nodePort ? `:${nodePort}` : ''}/${protocol}`)
        .join(',') || none,
    Selector: object => selectorText({ matchLabels: object.spec.selector ?? {} }) || none,
  },
  '/endpoints': {
    Endpoints: object =>
      list(object.subsets)
        .flatMap(({ addresses, ports }) =>
          list(addresses).flatMap(({ ip }) => list(ports).map(({ port }) => `${ip}:${port}`)),
        )
        .join(',') || none,
  },
  '/events': {
    'Last Seen': object =>
      age(
        object.series?.lastObservedTime ??
          object.lastTimestamp ??
          object.eventTime ??
          object.metadata.creationTimestamp,
      ),
    Type: object => object.type ?? '',
    Reason: object => object.reason ?? '',
    Object: object => `${String(object.involvedObject?.kind ?? '').toLowerCase()}/${object.involvedObject?.name ?? ''}`,
    Subobject: object => object.involvedObject?.fieldPath ?? '',
    Source: object =>
      [object.source?.component || object.reportingComponent, object.source?.host].filter(Boolean).join(', '),
    Message: object => String(object.message ?? '').trim(),
    'First Seen': object => age(object.firstTimestamp ?? object.eventTime ?? object.metadata.creationTimestamp),
    Count: object => object.series?.count ?? object.count ?? 1,
  },
  '/persistentvolumeclaims': {
    Status: object => (object.metadata.deletionTimestamp ? 'Terminating' : object.status?.phase),
    Volume: object => object.spec.volumeName ?? '',
    // Of a claim that has a volume.
    Capacity: ({ spec, status }) => (spec?.volumeName ? (status?.capacity?.storage ?? '') : ''),
    'Access Modes': ({ spec, status }) => (spec?.volumeName ? modes(status?.accessModes) : ''),
    StorageClass: object => object.spec.storageClassName ?? '',
    VolumeAttributesClass: object => object.spec.volumeAttributesClassName ?? '<unset>',
    VolumeMode: object => object.spec.volumeMode ?? '<unset>',
  },
  '/persistentvolumes': {
    Capacity: object => object.spec.capacity?.storage ?? '',
    'Access Modes': object => modes(object.spec.accessModes),
    'Reclaim Policy': object => object.spec.persistentVolumeReclaimPolicy ?? '',
    Status: object => (object.metadata.deletionTimestamp ? 'Terminating' : object.status?.phase),
    Claim: object => (object.spec.claimRef ? `${object.spec.claimRef.namespace}/${object.spec.claimRef.name}` : ''),
    StorageClass: object => object.spec.storageClassName ?? '',
    VolumeAttributesClass: object => object.spec.volumeAttributesClassName ?? '<unset>',
    Reason: object => object.status?.reason ?? '',
    VolumeMode: object => object.spec.volumeMode ?? '<unset>',
  },
  '/podtemplates': {
    ...containers(object => object.template?.spec),
    'Pod Labels': object => selectorText({ matchLabels: object.template?.metadata?.labels ?? {} }) || none,
  },
  '/resourcequotas': {
    Request: object => used(object, name => !name.startsWith('limits')),
    Limit: object => used(object, name => name.startsWith('limits')),
  },
  'admissionregistration.k8s.io/mutatingwebhookconfigurations': { Webhooks: object => list(object.webhooks).length },
  'admissionregistration.k8s.io/validatingwebhookconfigurations': { Webhooks: object => list(object.webhooks).length },
  'apps/controllerrevisions': { Controller: owner, Revision: object => object.revision },
  'apps/daemonsets': {
    ...template,
    Desired: object => object.status?.desiredNumberScheduled ?? 0,
    Current: object => object.status?.currentNumberScheduled ?? 0,
    Ready: object => object.status?.numberReady ?? 0,
    'Up-to-date': object => object.status?.updatedNumberScheduled ?? 0,
    Available: object => object.status?.numberAvailable ?? 0,
    'Node Selector': object => selectorText({ matchLabels: object.spec.template?.spec?.nodeSelector ?? {} }) || none,
  },
  'apps/deployments': {
    ...template,
    Ready: object => `${object.status?.readyReplicas ?? 0}/${object.spec.replicas ?? 1}`,
    'Up-to-date': object => object.status?.updatedReplicas ?? 0,
    Available: object => object.status?.availableReplicas ?? 0,
  },
  'apps/replicasets': {
    ...template,
    Desired: object => object.spec.replicas ?? 1,
    Current: object => object.status?.replicas ?? 0,
    Ready: object => object.status?.readyReplicas ?? 0,
  },
  'apps/statefulsets': {
    ...template,
    Ready: object => `${object.status?.readyReplicas ?? 0}/${object.spec.replicas ?? 1}`,
  },
  'autoscaling/horizontalpodautoscalers': {
    Reference: object => `${object.spec.scaleTargetRef?.kind}/${object.spec.scaleTargetRef?.name}`,
    Targets: () => '<unknown>',
    MinPods: object => String(object.spec.minReplicas ?? '<unset>'),
    MaxPods: object => object.spec.maxReplicas,
    Replicas: object => object.status?.currentReplicas ?? 0,
  },
  'batch/cronjobs': {
    ...containers(object => object.spec?.jobTemplate?.spec?.template?.spec),
    Schedule: object => object.spec.schedule,
    Timezone: object => object.spec.timeZone ?? none,
    Suspend: object => (object.spec.suspend ? 'True' : 'False'),
    Active: object => list(object.status?.active).length,
    'Last Schedule': object => (object.status?.lastScheduleTime ? age(object.status.lastScheduleTime) : none),
    Selector: object =>
      object.spec.jobTemplate?.spec?.selector ? selectorText(object.spec.jobTemplate.spec.selector) : none,
  },
  'batch/jobs': {
    ...template,
    Status: jobStatus,
    Completions: object =>
      `${object.status?.succeeded ?? 0}/${object.spec.completions ?? (object.spec.parallelism > 1 ? `1 of ${object.spec.parallelism}` : 1)}`,
    Duration: object => (object.status?.startTime ? age(object.status.startTime, object.status.completionTime) : ''),
  },
  'coordination.k8s.io/leases': { Holder: object => object.spec?.holderIdentity ?? '' },
  'discovery.k8s.io/endpointslices': {
    AddressType: object => object.addressType,
    Ports: object => shortened(list(object.ports).map(({ port }) => String(port ?? '*'))) || '<unset>',
    Endpoints: object => shortened(list(object.endpoints).flatMap(({ addresses }) => addresses ?? [])) || '<unset>',
  },
  'networking.k8s.io/ingressclasses': {
    Controller: object => object.spec?.controller ?? '',
    Parameters: object =>
      object.spec?.parameters ? `${object.spec.parameters.kind}/${object.spec.parameters.name}` : none,
  },
  'networking.k8s.io/ingresses': {
    Class: object => object.spec?.ingressClassName ?? none,
    Hosts: object =>
      list(object.spec?.rules)
        .map(({ host }) => host ?? '*')
        .join(',') || '*',
    Address: object =>
      list(object.status?.loadBalancer?.ingress)
        .map(({ ip, hostname }) => ip ?? hostname)
        .join(','),
    Ports: object => (object.spec?.tls?.length ? '80, 443' : '80'),
  },
  'networking.k8s.io/networkpolicies': { 'Pod-Selector': object => selectorText(object.spec?.podSelector) || none },
  'policy/poddisruptionbudgets': {
    'Min Available': object => String(object.spec.minAvailable ?? 'N/A'),
    'Max Unavailable': object => String(object.spec.maxUnavailable ?? 'N/A'),
    'Allowed Disruptions': object => object.status?.disruptionsAllowed ?? 0,
  },
  'rbac.authorization.k8s.io/rolebindings': bindingCells(),
  'rbac.authorization.k8s.io/clusterrolebindings': bindingCells(),
  'scheduling.k8s.io/priorityclasses': {
    Value: object => object.value ?? 0,
    'Global-Default': object => object.globalDefault ?? false,
    PreemptionPolicy: object => object.preemptionPolicy ?? '',
  },
  'storage.k8s.io/storageclasses': {
    Provisioner: object => object.provisioner,
    ReclaimPolicy: object => object.reclaimPolicy ?? 'Delete',
    VolumeBindingMode: object => object.volumeBindingMode ?? '<unset>',
    AllowVolumeExpansion: object => object.allowVolumeExpansion ?? false,
  },
}
cells['events.k8s.io/events'] = {
  ...cells['/events'],
  Object: object => `${String(object.regarding?.kind ?? '').toLowerCase()}/${object.regarding?.name ?? ''}`,
  Message: object => String(object.note ?? '').trim(),
  Source: object => object.reportingController ?? '',
}

export function cellOf(group: string, resource: string, column: string): Cell {
  return cells[`${group}/${resource}`]?.[column] ?? common[column] ?? (() => '')
}

function bindingCells(): Cells {
  const subjects = (kind: string) => (object: Obj) =>
    list(object.subjects)
      .filter(subject => subject.kind === kind)
      .map(({ namespace, name }) => (kind === 'ServiceAccount' ? `${namespace ?? ''}/${name}` : name))
      .join(', ')
  return {
    Role: object => `${object.roleRef?.kind}/${object.roleRef?.name}`,
    Users: subjects('User'),
    Groups: subjects('Group'),
    ServiceAccounts: subjects('ServiceAccount'),
  }
}

function count(data: object | undefined): number {
  return Object.keys(data ?? {}).length
}

function used(object: Obj, isWanted: (name: string) => boolean): string {
  const hard = Object.entries((object.status?.hard ?? {}) as Record<string, string>).filter(([name]) => isWanted(name))
  return hard.map(([name, value]) => `${name}: ${object.status?.used?.[name] ?? 0}/${value}`).join(', ')
}

function modes(all: string[] | undefined): string {
  const short: Record<string, string> = {
    ReadWriteOnce: 'RWO',
    ReadOnlyMany: 'ROX',
    ReadWriteMany: 'RWX',
    ReadWriteOncePod: 'RWOP',
  }
  return (all ?? []).map(mode => short[mode] ?? mode).join(',')
}

function owner(object: Obj): string {
  const controller = object.metadata.ownerReferences?.find(reference => reference.controller)
  if (!controller) return none
  const group = controller.apiVersion.split('/')[0]
  return `${controller.kind.toLowerCase()}${controller.apiVersion.includes('/') ? `.${group}` : ''}/${controller.name}`
}

function nodeStatus(object: Obj): string {
  const ready = list(object.status?.conditions).find(({ type }) => type === 'Ready')
  const first = ready ? (ready.status === 'True' ? 'Ready' : 'NotReady') : 'Unknown'
  return object.spec?.unschedulable ? `${first},SchedulingDisabled` : first
}

function roles(object: Obj): string {
  const prefix = 'node-role.kubernetes.io/'
  return Object.keys(object.metadata.labels ?? {})
    .filter(label => label.startsWith(prefix))
    .map(label => label.slice(prefix.length))
    .sort()
    .join(',')
}

function address(object: Obj, type: string): string {
  return list(object.status?.addresses).find(one => one.type === type)?.address ?? none
}

function jobStatus(object: Obj): string {
  const has = (type: string) =>
    list(object.status?.conditions).some(condition => condition.type === type && condition.status === 'True')
  if (has('Complete')) return 'Complete'
  if (has('Failed')) return 'Failed'
  if (object.metadata.deletionTimestamp) return 'Terminating'
  if (has('Suspended')) return 'Suspended'
  if (has('FailureTarget')) return 'FailureTarget'
  if (has('SuccessCriteriaMet')) return 'SuccessCriteriaMet'
  return 'Running'
}

/** At most three, and how many more. */
function shortened(all: string[]): string {
  return all.length > 3 ? `${all.slice(0, 3).join(',')} + ${all.length - 3} more...` : all.join(',')
}
