/**
 * An object on the cluster that is an operator's. Pure.
 */
import { type Applied, apiVersionOf, type Kind } from '../controller/kube/kind.ts'
import type { Project } from './project.ts'

/** An object to be, and the kind as which it is applied. */
export interface Manifest {
  readonly kind: Kind
  readonly object: Applied & { readonly metadata: { readonly name: string; readonly namespace?: string | undefined } }
}

export type Place = Pick<Project, 'name' | 'namespace'>

/** By which an object is known to be an operator's own. */
export function ownLabels({ name }: Place): Record<string, string> {
  return { 'app.kubernetes.io/name': name, 'app.kubernetes.io/managed-by': 'shipmate' }
}

export function manifest(kind: Kind, object: object): Manifest {
  return { kind, object: { apiVersion: apiVersionOf(kind), kind: kind.kind, ...object } as Manifest['object'] }
}
