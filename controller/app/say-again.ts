/**
 * Says again what an app's status says, so that nothing is written: for when more will be known in a moment.
 */
import type { Context } from '../toolkit/context.ts'
import type { StatefulApp } from './kinds.ts'
import type { App, PodView } from './view.ts'

/** Answers false, and says nothing, where the status does not tell of the spec as it is now, or tells of a failure. */
export function sayAgain({
  cr,
  isDeleting,
  stall,
  waitFor,
}: Pick<Context<StatefulApp>, 'cr' | 'isDeleting' | 'stall' | 'waitFor'>): boolean {
  const { metadata, status } = cr as App
  if (isDeleting || status?.observedGeneration !== metadata.generation) return false
  const find = (type: string) => status?.conditions?.find(one => one.type === type)
  const [ready, stalled] = [find('Ready'), find('Stalled')]
  if (stalled) {
    stall(stalled.reason, stalled.message)
    return true
  }
  if (ready?.status === 'True') return true
  if (ready?.status !== 'False' || find('ReconciliationSuccess')?.status !== 'True') return false
  waitFor(ready.reason, ready.message)
  return true
}

/**
 * Whether the status tells of these pods and of no others, while this process has not yet tried to reach one of them: as after a takeover, when ten thousand wait
 * for their turn. Whether it can be reached is known soon; till then it is not told that it cannot.
 *
 * @param isFollowed those that are being connected to
 */
export function isUntried({ status }: App, pods: readonly PodView[], isFollowed: (uid: string) => boolean): boolean {
  const told = new Set(status?.pods?.map(({ uid }) => uid))
  const there = pods.filter(({ isTerminating }) => !isTerminating)
  if (there.length !== told.size || !there.every(({ uid }) => told.has(uid))) return false
  return there.some(({ uid, agent }) => agent === undefined && isFollowed(uid))
}
