/**
 * What a pod's spec means to who runs it: its containers in their order, its ports, how it restarts. Pure.
 */
import type { V1Pod } from '@kubernetes/client-node'
import type { Frozen, Snapshot, Wire } from '../../controller/kube/kind.ts'

export type Pod = Snapshot<V1Pod>
export type PodSpec = NonNullable<Pod['spec']>
export type ContainerSpec = PodSpec['containers'][number]
export type Volume = NonNullable<PodSpec['volumes']>[number]
export type Probe = NonNullable<ContainerSpec['readinessProbe']>
export type Hook = NonNullable<NonNullable<ContainerSpec['lifecycle']>['preStop']>
export type PodStatus = Wire<NonNullable<V1Pod['status']>>
export type OldStatus = Frozen<PodStatus>

/** `init` ends before the next one starts, `native` is an init container that goes on beside the others. */
export type Role = 'init' | 'native' | 'main'

export interface Planned {
  readonly spec: ContainerSpec
  readonly role: Role
}

/** In the order in which they start. */
export function containersOf({ spec }: Pod): Planned[] {
  const inits = (spec?.initContainers ?? []).map(
    (one): Planned => ({ spec: one, role: one.restartPolicy === 'Always' ? 'native' : 'init' }),
  )
  return [...inits, ...(spec?.containers ?? []).map((one): Planned => ({ spec: one, role: 'main' }))]
}

/** Whether a container that ended so starts again. */
export function restarts(pod: Pod, role: Role, code: number): boolean {
  if (role === 'native') return true
  const policy = pod.spec?.restartPolicy ?? 'Always'
  // An init container that succeeded is done, whatever the policy.
  if (role === 'init') return code !== 0 && policy !== 'Never'
  return policy === 'Always' || (policy === 'OnFailure' && code !== 0)
}

/** Every port that a container of the pod declares. */
export function portsOf(pod: Pod): number[] {
  return [...new Set(containersOf(pod).flatMap(({ spec }) => (spec.ports ?? []).map(port => port.containerPort)))]
}

/** A port by its number or its name; undefined where no such name is declared. */
export function portNamed(spec: ContainerSpec, port: unknown): number | undefined {
  const number = typeof port === 'number' ? port : /^\d+$/.test(String(port)) ? Number(port) : undefined
  return number ?? spec.ports?.find(({ name }) => name === port)?.containerPort
}
