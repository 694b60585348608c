/**
 * What a pod has of a sidecar already: one that injection put there, which is replaced, or one that somebody wrote, which is left alone. Pure.
 */
import { portAnnotation } from '../../app/workload/marks.ts'
import { injectedAnnotation } from './annotations.ts'
import { installerName, sidecarName, volumeNames } from './places.ts'
import type { Container, PodSpec, PodTemplate, Volume } from './template.ts'

/** The version that injected it, if one did. */
export function injectedBy({ metadata }: PodTemplate): string | undefined {
  return metadata?.annotations?.[injectedAnnotation]
}

/** The sentence by which a sidecar is recognized that somebody wrote by hand. */
export function handwritten(pod: PodTemplate): string | undefined {
  if (injectedBy(pod) !== undefined) return undefined
  const own = allContainers(pod.spec).find(
    ({ name, env }) => name === sidecarName || env?.some(variable => variable.name === 'SHIPMATE_LIFECYCLE'),
  )
  if (own) return `container ${own.name} is a sidecar already`
  const says = pod.metadata?.annotations?.[portAnnotation] !== undefined
  return says ? `annotation ${portAnnotation} says where its sidecar listens` : undefined
}

export function allContainers(spec: PodSpec | undefined): Container[] {
  return [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])]
}

/** A list without what injection adds, and at which place of it that was. */
export interface Stripped<T> {
  readonly rest: readonly T[]
  /** Undefined: nothing was there. */
  readonly at: number | undefined
}

export function withoutContainers(containers: readonly Container[] | undefined): Stripped<Container> {
  return without(containers ?? [], [sidecarName, installerName])
}

export function withoutVolumes(volumes: readonly Volume[] | undefined): Stripped<Volume> {
  return without(volumes ?? [], Object.values(volumeNames))
}

function without<T extends { readonly name: string }>(list: readonly T[], names: readonly string[]): Stripped<T> {
  const first = list.findIndex(({ name }) => names.includes(name))
  return { rest: list.filter(({ name }) => !names.includes(name)), at: first < 0 ? undefined : first }
}

/** Whether `one` is a later version than `other`. What cannot be read is earlier than anything. */
export function isLater(one: string, other: string): boolean {
  const [a, b] = [one, other].map(text => /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})/.exec(text)?.slice(1).map(Number))
  if (!a || !b) return false
  const differing = a.findIndex((number, place) => number !== b[place])
  return differing >= 0 && (a[differing] ?? 0) > (b[differing] ?? 0)
}
