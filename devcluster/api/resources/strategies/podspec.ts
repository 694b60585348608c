/**
 * What a server adds to a pod's spec, in a pod or in a template.
 */
import { canonicalQuantity } from '../../../quantity.ts'
import { volumeSources } from '../validation/volumes.ts'
import { list } from './lists.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a client sent.
type Any = any

export function defaultPodSpec(spec: Any): void {
  if (!spec || typeof spec !== 'object') return
  for (const volume of list(spec.volumes)) defaultVolume(volume)
  for (const container of list(spec.initContainers)) defaultContainer(container)
  for (const container of list(spec.containers)) defaultContainer(container)
  for (const container of list(spec.ephemeralContainers)) defaultContainer(container)
  spec.restartPolicy ??= 'Always'
  spec.terminationGracePeriodSeconds ??= 30
  spec.dnsPolicy ??= 'ClusterFirst'
  spec.securityContext ??= {}
  spec.schedulerName ??= 'default-scheduler'
  if (spec.serviceAccountName) spec.serviceAccount ??= spec.serviceAccountName
  else if (spec.serviceAccount) spec.serviceAccountName = spec.serviceAccount
  if (spec.hostNetwork)
    for (const { ports } of list(spec.containers)) for (const port of list(ports)) port.hostPort ??= port.containerPort
}

function defaultContainer(container: Any): void {
  container.terminationMessagePath ??= '/dev/termination-log'
  container.terminationMessagePolicy ??= 'File'
  container.imagePullPolicy ??= pullPolicy(String(container.image ?? ''))
  for (const port of list(container.ports)) port.protocol ??= 'TCP'
  for (const { valueFrom } of list(container.env)) defaultFieldRef(valueFrom?.fieldRef)
  for (const { valueFrom } of list(container.env)) {
    if (valueFrom?.resourceFieldRef)
      valueFrom.resourceFieldRef.divisor = canonicalQuantity(valueFrom.resourceFieldRef.divisor ?? '0')
  }
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) defaultProbe(probe)
  for (const hook of [container.lifecycle?.postStart, container.lifecycle?.preStop]) defaultHttp(hook?.httpGet)
  const { limits, requests } = container.resources ?? {}
  if (limits) {
    for (const name of Object.keys(limits)) {
      if (requests?.[name] === undefined && isNative(name)) {
        container.resources.requests ??= {}
        container.resources.requests[name] = limits[name]
      }
    }
  }
}

/** A limit is a request too: in a pod. A template keeps what its author wrote. */
export function withoutRequestsFromLimits(spec: Any, given: Any): void {
  for (const key of ['containers', 'initContainers']) {
    for (const [at, container] of list(spec?.[key]).entries()) {
      const requests = given?.[key]?.[at]?.resources?.requests
      if (!container.resources?.requests) continue
      if (requests) container.resources.requests = { ...requests }
      else delete container.resources.requests
    }
  }
}

function isNative(name: string): boolean {
  return !name.includes('/') || name.startsWith('kubernetes.io/')
}

function defaultProbe(probe: Any): void {
  if (!probe) return
  probe.timeoutSeconds ||= 1
  probe.periodSeconds ||= 10
  probe.successThreshold ||= 1
  probe.failureThreshold ||= 3
  defaultHttp(probe.httpGet)
  if (probe.grpc) probe.grpc.service ??= ''
}

function defaultHttp(http: Any): void {
  if (!http) return
  http.path ||= '/'
  http.scheme ||= 'HTTP'
}

function defaultFieldRef(ref: Any): void {
  if (ref) ref.apiVersion ||= 'v1'
}

function defaultVolume(volume: Any): void {
  if (!volumeSources.some(source => volume[source])) volume.emptyDir = {}
  for (const source of [volume.secret, volume.configMap, volume.downwardAPI, volume.projected]) {
    if (source) source.defaultMode ??= 420
  }
  if (volume.hostPath) volume.hostPath.type ??= ''
  for (const item of list(volume.downwardAPI?.items)) defaultFieldRef(item.fieldRef)
  for (const { downwardAPI, serviceAccountToken } of list(volume.projected?.sources)) {
    for (const item of list(downwardAPI?.items)) defaultFieldRef(item.fieldRef)
    if (serviceAccountToken) serviceAccountToken.expirationSeconds ??= 3600
  }
  if (volume.ephemeral?.volumeClaimTemplate?.spec) volume.ephemeral.volumeClaimTemplate.spec.volumeMode ??= 'Filesystem'
}

function pullPolicy(image: string): string {
  // What is no image has no tag, either.
  if (image.includes('@') || !/^[a-zA-Z0-9][-a-zA-Z0-9._:]*(\/[a-z0-9][-a-z0-9._]*)*(:[\w.-]+)?$/.test(image))
    return 'IfNotPresent'
  const tag = /:([^:/]+)$/.exec(image)?.[1] ?? 'latest'
  return tag === 'latest' ? 'Always' : 'IfNotPresent'
}
