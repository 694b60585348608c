/**
 * Whose an object is, as far as the object itself tells. Pure.
 *
 * Guarantees: an object that another owner controls, or that was made for another custom resource, is never ours; one that nobody marks is ours only if we have
 * applied it, or are told to adopt it. A custom resource that was deleted and made anew gets back what its namesake left without an owner.
 */
import type { Kind, Snapshot } from '../kube/kind.ts'
import { hashAnnotation, makerAnnotation } from './hash.ts'

/** For whom an object was made. */
export interface Maker {
  /** The operator, by its name. */
  readonly operator: string
  /** Names that the operator had before. */
  readonly formerNames: readonly string[]
  /** The custom resource's kind, as `Widget.example.com`. */
  readonly kind: string
  readonly namespace: string | undefined
  readonly name: string
}

export type Ownership =
  | { readonly is: 'ours' }
  /** It belongs to an earlier custom resource of the same name, and will go. */
  | { readonly is: 'left'; readonly note: string }
  | { readonly is: 'foreign'; readonly note: string }

export function makerOf(
  { group, kind }: Kind,
  { metadata }: Snapshot,
  operator: string,
  formerNames: readonly string[] = [],
): Maker {
  return { operator, formerNames, kind: `${kind}.${group}`, namespace: metadata.namespace, name: metadata.name }
}

/** As the annotation has it. */
export function makerText({ operator, kind, namespace = '', name }: Maker): string {
  return [operator, kind, namespace, name].join('/')
}

/** What an object says about who made it; undefined where it says nothing that can be read. */
export function madeBy({ metadata }: Snapshot): Maker | undefined {
  const [name, namespace, kind, ...operator] = (metadata.annotations?.[makerAnnotation] ?? '').split('/').reverse()
  if (!name || namespace === undefined || !kind || operator.length === 0) return undefined
  return { operator: operator.reverse().join('/'), formerNames: [], kind, namespace: namespace || undefined, name }
}

/** Whether the toolkit has made it by that operator, under whatever name; who says nothing of an operator is taken for ours. */
export function isMadeBy(child: Snapshot, { operator, formerNames }: Maker): boolean {
  const by = madeBy(child)
  if (!by) return child.metadata.annotations?.[hashAnnotation] !== undefined
  return by.operator === operator || formerNames.includes(by.operator)
}

/** The index by which children are found that were made for a custom resource, whoever their owner is. */
export const makerIndex = 'maker'

/** For which custom resource it was made, by any operator. */
export function madeFor({ kind, namespace = '', name }: Pick<Maker, 'kind' | 'namespace' | 'name'>): string {
  return [kind, namespace, name].join('/')
}

export function controllerOf({ metadata }: Snapshot) {
  return metadata.ownerReferences?.find(reference => reference.controller)
}

export interface Asker {
  readonly cr: Snapshot
  readonly maker: Maker
  /** The names under which it applies, and has applied. */
  readonly managers: readonly string[]
  readonly adopt: boolean
}

/** @param index as it is called in messages */
export function ownershipOf(index: string, peer: Snapshot, { cr, maker, managers, adopt }: Asker): Ownership {
  const controller = controllerOf(peer)
  if (controller) {
    if (controller.uid === cr.metadata.uid) return { is: 'ours' }
    const isNamesake =
      controller.kind === cr.kind &&
      groupOf(controller.apiVersion) === groupOf(cr.apiVersion) &&
      controller.name === cr.metadata.name
    return isNamesake
      ? { is: 'left', note: `${index} belongs to an earlier ${cr.kind} ${controller.name}, and has to go first` }
      : { is: 'foreign', note: `${index} belongs to ${controller.kind} ${controller.name}; it is left alone` }
  }
  const other = madeBy(peer)
  if (other) {
    const isSame = other.kind === maker.kind && other.namespace === maker.namespace && other.name === maker.name
    if (isSame) return { is: 'ours' }
    const where = other.namespace ? `${other.namespace}/` : ''
    return { is: 'foreign', note: `${index} was made for ${other.kind} ${where}${other.name}; it is left alone` }
  }
  if (adopt || isAppliedBy(peer, managers)) return { is: 'ours' }
  return {
    is: 'foreign',
    note: `${index} was there before, and nobody's of ours; delete it, or take it over by \`adopt: true\` in its declaration`,
  }
}

function isAppliedBy({ metadata }: Snapshot, managers: readonly string[]): boolean {
  return (
    metadata.managedFields?.some(
      ({ manager = '', operation }) => operation === 'Apply' && managers.includes(manager),
    ) ?? false
  )
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''
}
