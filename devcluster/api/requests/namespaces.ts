/**
 * Nothing new in a namespace that is not there, or is going.
 */
import { forbidden, notFound } from '../problems.ts'
import type { Asked } from '../types.ts'
import type { Context } from './context.ts'

/** Namespaces that cannot be deleted. */
export const lasting = ['default', 'kube-system', 'kube-public']

export function checkNamespace({ store }: Context, { type, namespace }: Asked, name: string): void {
  if (namespace === undefined || !type.namespaced) return
  const found = store.get('/namespaces', undefined, namespace)
  if (!found) throw notFound({ group: '', resource: 'namespaces' }, namespace)
  if (!found.metadata.deletionTimestamp) return
  const error = forbidden(
    type,
    name,
    `unable to create new content in namespace ${namespace} because it is being terminated`,
  )
  error.status.details = {
    ...error.status.details,
    causes: [
      {
        reason: 'NamespaceTerminating',
        message: `namespace ${namespace} is being terminated`,
        field: 'metadata.namespace',
      },
    ],
  }
  throw error
}
