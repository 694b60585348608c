/**
 * Whether an Operation has come to its end. Pure.
 *
 * Guarantee: an Unknown one has not; nor has one whose outcome is not stored with its app yet, which is as long as the app's finalizer is on it.
 */
import type { Snapshot } from '../../kube/kind.ts'
import { operationFinalizer } from '../decide/app.ts'
import type { Operation } from '../kinds.ts'

const terminal: readonly unknown[] = ['Succeeded', 'Failed', 'Cancelled', 'TimedOut']

/** Nothing more will come of it. */
export function hasEnded({ status }: Pick<Snapshot<Operation>, 'status'>): boolean {
  return terminal.includes(status?.phase)
}

/** When it was finished, in milliseconds since 1970; undefined while it is not. */
export function finishedAt({ status, metadata }: Snapshot<Operation>): number | undefined {
  if (!terminal.includes(status?.phase) || status?.finishedAt === undefined) return undefined
  return metadata.finalizers?.includes(operationFinalizer) ? undefined : Date.parse(status.finishedAt)
}
