/**
 * The pod templates in a file's objects: where they stand, and what their object says of them. Pure.
 */
import type { Facts } from '../../controller/webhook/inject/inject.ts'
import type { PodTemplate } from '../../controller/webhook/inject/template.ts'

export type Path = readonly (string | number)[]
export type Values = Readonly<Record<string, unknown>>

export interface Workload extends Pick<Facts, 'app' | 'claims'> {
  /** `KIND NAME`, for a person. */
  readonly title: string
  /** Of the template, from the document's root. */
  readonly path: Path
  readonly template: PodTemplate
  readonly namespace: string | undefined
  /** The lifecycle that its object names beside the template. */
  readonly lifecycle: string | undefined
}

export interface Found {
  readonly workloads: readonly Workload[]
  /** Lifecycles, each with its spec as written. */
  readonly lifecycles: readonly {
    readonly namespace: string | undefined
    readonly name: string
    readonly spec: unknown
  }[]
}

/** Where the pod template is in an object of a kind. */
const templates: Readonly<Record<string, Path>> = {
  StatefulSet: ['spec', 'template'],
  Deployment: ['spec', 'template'],
  DaemonSet: ['spec', 'template'],
  ReplicaSet: ['spec', 'template'],
  Pod: [],
  // A StatefulSet of the app's own.
  StatefulApp: ['spec', 'template', 'spec', 'template'],
}

const groups = /^(v1|apps\/|shipmate\.dev\/)/

/** @param value a document, which may be a List */
export function findIn(value: unknown, path: Path = []): Found {
  if (!isValues(value)) return { workloads: [], lifecycles: [] }
  const { kind, apiVersion, items } = value
  if (Array.isArray(items) && String(kind).endsWith('List')) {
    const all = items.map((item, at) => findIn(item, [...path, 'items', at]))
    return { workloads: all.flatMap(one => one.workloads), lifecycles: all.flatMap(one => one.lifecycles) }
  }
  const { name, namespace } = (isValues(value['metadata']) ? value['metadata'] : {}) as Record<
    string,
    string | undefined
  >
  if (kind === 'Lifecycle')
    return { workloads: [], lifecycles: [{ namespace, name: String(name), spec: value['spec'] }] }
  const inside = groups.test(String(apiVersion)) ? templates[String(kind)] : undefined
  const template = inside && at(value, inside)
  if (!inside || template === undefined) return { workloads: [], lifecycles: [] }
  const hasSidecars = kind === 'StatefulApp' && at(value, ['spec', 'via']) === undefined
  const claims = at(value, [...inside.slice(0, -1), 'volumeClaimTemplates'])
  const workload: Workload = {
    title: `${kind} ${name}`,
    path: [...path, ...inside],
    template: template as PodTemplate,
    namespace,
    // A pod by itself says by its owner whose it is.
    app: kind === 'Pod' ? undefined : name,
    claims: Array.isArray(claims) ? claims.map(claim => String(at(claim, ['metadata', 'name']))) : [],
    lifecycle: hasSidecars ? (at(value, ['spec', 'lifecycle']) as string | undefined) : undefined,
  }
  return { workloads: [workload], lifecycles: [] }
}

function at(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((part, key) => (part as Values | undefined | null)?.[key as string], value)
}

/** With another value at a path. */
export function replaced(value: unknown, path: Path, next: unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return next
  if (Array.isArray(value)) return value.with(Number(key), replaced(value[Number(key)], rest, next))
  return { ...(value as Values), [key]: replaced((value as Values)[String(key)], rest, next) }
}

function isValues(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
