/**
 * Which of the application's volumes the sidecar has, and where. Pure.
 */
import { shown, suggestion } from '../../../shared/nearest.ts'
import { annotationNames, type WishedVolume } from './annotations.ts'
import { mountPaths } from './places.ts'
import type { Container, Mount, PodSpec } from './template.ts'

/** The server mounts these by itself. */
const tokens = '/var/run/secrets/kubernetes.io/'
/** The variables that the sidecar has, too. */
const variables = /\$\((?!POD_NAME\)|POD_NAMESPACE\)|POD_UID\))/

export interface MountsAsked {
  /** The application's, without what injection adds. */
  readonly spec: PodSpec
  readonly wished: readonly WishedVolume[] | undefined
  /** The container whose image the sidecar uses: what it mounts is the default. */
  readonly like: Container | undefined
  /** Volumes that the pod will have by its StatefulSet's claim templates. */
  readonly claims: readonly string[]
}

/** @param problems gets a sentence for each that cannot be */
export function appMounts({ spec, wished, like, claims }: MountsAsked, problems: string[]): Mount[] {
  const own = (like?.volumeMounts ?? []).filter(({ mountPath }) => !mountPath.startsWith(tokens))
  const mounts = wished ? wished.flatMap(one => wishedMounts(one, { spec, like, claims }, problems)) : own.map(copyOf)
  const { agent, ...others } = mountPaths
  const taken = [...Object.values(others), ...(like ? [agent] : [])]
  for (const { name, mountPath, subPathExpr } of mounts) {
    const inside = taken.find(path => overlap(path, mountPath))
    if (inside)
      problems.push(
        `volume ${name} is mounted at ${mountPath}, where the sidecar has its own ${inside}: name the volumes that it needs in annotation ${annotationNames.volumes}`,
      )
    if (subPathExpr && variables.test(subPathExpr))
      problems.push(
        `volume ${name} is mounted by subPathExpr ${shown(subPathExpr)}, and the sidecar has no such variable: name the volumes that it needs in annotation ${annotationNames.volumes}`,
      )
  }
  const twice = mounts.find(({ mountPath }, at) => mounts.findIndex(one => one.mountPath === mountPath) !== at)
  if (twice) problems.push(`annotation ${annotationNames.volumes} has two volumes at ${twice.mountPath}`)
  return mounts
}

function wishedMounts(
  { name, path, readOnly }: WishedVolume,
  { spec, like, claims }: Pick<MountsAsked, 'spec' | 'like' | 'claims'>,
  problems: string[],
): Mount[] {
  const containers = [...(like ? [like] : []), ...spec.containers, ...(spec.initContainers ?? [])]
  const mounted = containers.map(one => one.volumeMounts?.filter(mount => mount.name === name) ?? [])
  const known = new Set([
    ...(spec.volumes ?? []).map(volume => volume.name),
    ...claims,
    ...containers.flatMap(one => one.volumeMounts?.map(mount => mount.name) ?? []),
  ])
  if (!known.has(name)) {
    problems.push(`annotation ${annotationNames.volumes}: there is no volume ${shown(name)}${suggestion(name, known)}`)
    return []
  }
  if (path !== undefined) return [{ name, mountPath: path, ...(readOnly && { readOnly }) }]
  const first = mounted.find(mounts => mounts.length > 0)
  if (first) return first.map(copyOf)
  problems.push(`annotation ${annotationNames.volumes}: no container mounts ${name}: say where, as ${name}=/PATH`)
  return []
}

/** Without what a container without privileges may not have. */
function copyOf({ mountPropagation, ...mount }: Mount): Mount {
  return { ...mount, ...(mountPropagation === 'HostToContainer' && { mountPropagation }) }
}

function overlap(one: string, other: string): boolean {
  const [a, b] = [one, other].map(path => `${path.replace(/\/+$/, '')}/`) as [string, string]
  return a.startsWith(b) || b.startsWith(a)
}
