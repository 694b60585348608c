/**
 * managedFields of an object as its scale has them, and back: of an object only its replicas are in its scale.
 */
import type { ManagedFieldsEntry } from '../types.ts'
import { difference, has, isEmpty, setOf } from './fieldset.ts'
import { type Managers, readManagers, writeManagers } from './managers.ts'

const scaleVersion = 'autoscaling/v1'
const replicas = ['f:spec', 'f:replicas']

/** Where replicas are in each version of the kind: `.spec.replicas`; undefined for a version without a scale. */
export type ReplicasPaths = Readonly<Record<string, string | undefined>>

const stepsOf = (path: string | undefined) =>
  path
    ?.split('.')
    .filter(name => name !== '')
    .map(name => `f:${name}`)

/** The entries of the scale. */
export function toScaleManaged(
  entries: readonly ManagedFieldsEntry[] | undefined,
  paths: ReplicasPaths,
): ManagedFieldsEntry[] | undefined {
  const out: Managers = new Map()
  for (const [id, managed] of readManagers(entries)) {
    const path = stepsOf(paths[managed.apiVersion])
    if (path && has(managed.set, path)) out.set(id, { ...managed, set: setOf(replicas), apiVersion: scaleVersion })
  }
  return writeManagers(out)
}

/**
 * The object's entries after its scale came to have `scaled`, by a request in `apiVersion`. As on a real server an entry of an update, which is known by
 * its version, is another one in the scale: it comes back beside the one that it was, and without a time.
 */
export function fromScaleManaged(
  entries: readonly ManagedFieldsEntry[] | undefined,
  scaled: readonly ManagedFieldsEntry[] | undefined,
  apiVersion: string,
  paths: ReplicasPaths,
): ManagedFieldsEntry[] | undefined {
  const parent = readManagers(entries)
  const scale = readManagers(scaled)
  const out: Managers = new Map()
  for (const [id, managed] of parent) {
    if (!Object.hasOwn(paths, managed.apiVersion)) continue
    const path = stepsOf(paths[managed.apiVersion])
    if (!path || !has(managed.set, path)) out.set(id, managed)
    else if (scale.delete(id)) out.set(id, managed)
    else {
      const set = difference(managed.set, setOf(path))
      if (!isEmpty(set)) out.set(id, { ...managed, set })
    }
  }
  const path = stepsOf(paths[apiVersion])
  for (const [id, managed] of scale) {
    if (path && has(managed.set, replicas)) {
      out.set(id, { ...managed, set: setOf(path), apiVersion, time: parent.get(id)?.time })
    }
  }
  return writeManagers(out)
}
