/**
 * What is shown of each operator of examples/: what it needs of this machine, and what is asked of it, with how one sees that it has happened.
 */
import type { Live } from '../../controller/kube/kind.ts'

/** A custom resource, as far as it is read here. */
export type Resource = Live<{
  readonly spec: Readonly<Record<string, unknown>>
  readonly status?: Readonly<Record<string, unknown>> & {
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message: string }[]
  }
}>

export interface Act {
  /** A merge patch of the custom resource. Without one it is the sample that is applied. */
  readonly patch?: object
  /** What has happened, in a few words; undefined until it has. */
  readonly shows: (resource: Resource) => string | undefined
}

export interface Play {
  readonly about: string
  /** Its resource, for kubectl. */
  readonly resource: string
  /** Programs that its pods run. */
  readonly programs: readonly string[]
  /** What is not here, though it runs without. */
  readonly without?: string
  readonly nodes?: number
  /** Whether Shipmate's controller is part of it. */
  readonly hasLifecycle?: boolean
  readonly acts: readonly Act[]
}

const condition = ({ status }: Resource, type: string) => status?.conditions?.find(one => one.type === type)
const isTrue = (resource: Resource, type: string) => condition(resource, type)?.status === 'True'
const serves = (resource: Resource) => {
  const { size, nodes = [] } = (resource.status ?? {}) as { size?: number; nodes?: string[] }
  return isTrue(resource, 'Ready') && size === resource.spec['size'] ? `${size} serve: ${nodes.join(', ')}` : undefined
}
const open = (resource: Resource) =>
  isTrue(resource, 'Ready') && resource.status?.['size'] === resource.spec['size']
    ? `${resource.spec['size']} shells are open`
    : undefined
const completed = (resource: Resource) =>
  isTrue(resource, 'Completed') ? condition(resource, 'Completed')?.message : undefined

/** By the name of their folder. */
export const plays: Readonly<Record<string, Play>> = {
  memcached: {
    about: 'a Deployment of memcached servers for each Memcached',
    resource: 'mc',
    programs: ['memcached'],
    acts: [{ shows: serves }, { patch: { spec: { size: 3 } }, shows: serves }],
  },
  'memcached-lifecycle': {
    about: 'memcached servers with a life: a sidecar beside each',
    resource: 'mc',
    programs: ['memcached', 'bash'],
    hasLifecycle: true,
    acts: [
      // Its probe asks 127.0.0.1, which all pods share here.
      { patch: { spec: { size: 1 } }, shows: serves },
      {
        patch: { spec: { desired: { state: 'Servicing', action: 'flush', request: 'monday' } } },
        shows: resource => (isTrue(resource, 'Ready') ? 'every server was flushed, once' : undefined),
      },
    ],
  },
  myownshell: {
    about: 'a number of shells for each MyOwnShell',
    resource: 'mos',
    programs: ['sleep'],
    acts: [{ shows: open }, { patch: { spec: { size: 1 } }, shows: open }],
  },
  goop: {
    about: 'a command, in a number of Jobs or once on every node',
    resource: 'goop',
    programs: ['sh', 'hostname'],
    nodes: 3,
    acts: [
      { shows: completed },
      {
        patch: { spec: { mode: 'Nodes', cmd: 'uname -r' } },
        shows: resource => (resource.status?.['done'] === '3/3' ? completed(resource) : undefined),
      },
    ],
  },
  ptemplate: {
    about: 'a kernel module that another operator loads, and pods that use its devices',
    resource: 'ptemplate',
    programs: [],
    without: 'KMM and its kernel module are not here, so nothing is loaded: it shows how the operator does without',
    acts: [
      {
        shows: resource =>
          isTrue(resource, 'Ready') ? `ModuleLoaded: ${condition(resource, 'ModuleLoaded')?.message}` : undefined,
      },
    ],
  },
}
