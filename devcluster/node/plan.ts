/**
 * What is to be done next in a pod, from what its containers are. Pure.
 *
 * Guarantees: init containers run one after the other, native sidecars stay up from their turn on, the others start when all of these are
 * done; what has ended starts again as the restart policy says and not before its time; when the others are done for good, sidecars end.
 */
import { type CrashBackoff, crashDelay } from './backoff.ts'
import { type ContainerSpec, type Pod, type Role, restarts } from './spec.ts'

/** How a container ended. */
export interface Ended {
  readonly id: string
  readonly code: number
  readonly signal?: number | undefined
  readonly reason: string
  readonly message?: string | undefined
  /** Milliseconds since the epoch, both. */
  readonly startedAt: number
  readonly finishedAt: number
}

export type Life =
  | { readonly is: 'waiting'; readonly reason: string; readonly message?: string | undefined }
  | {
      readonly is: 'running'
      readonly id: string
      readonly startedAt: number
      /** Its postStart hook and its startup probe have passed. */
      readonly isStarted: boolean
      readonly isReady: boolean
    }
  | ({ readonly is: 'ended' } & Ended)

export interface ContainerState {
  readonly spec: ContainerSpec
  readonly role: Role
  readonly life: Life
  /** How the one before ended. */
  readonly last: Ended | undefined
  readonly restarts: number
  /** Ends in a row, for the backoff. */
  readonly crashes: number
  /** It was started fully at least once: of a native sidecar, that the next may start. */
  readonly hasStarted: boolean
}

export type Plan =
  /** Start these; look again at `at` (milliseconds since the epoch) at the latest, if there is one. */
  | { readonly is: 'go on'; readonly start: readonly string[]; readonly at: number | undefined }
  /** All is done, or nothing can be done any more: the sidecars end, and the pod has. */
  | { readonly is: 'finish' }
  /** It had its time (activeDeadlineSeconds). */
  | { readonly is: 'expire' }

export interface Deadline {
  readonly startedAt: number
  readonly now: number
  readonly backoff: CrashBackoff
}

export function planOf(pod: Pod, states: readonly ContainerState[], { startedAt, now, backoff }: Deadline): Plan {
  const seconds = pod.spec?.activeDeadlineSeconds
  const expiry = seconds === undefined ? undefined : startedAt + seconds * 1000
  if (expiry !== undefined && now >= expiry) return { is: 'expire' }
  const start: string[] = []
  let at = expiry
  /** Starts it if it may start now, and remembers when it may if not. */
  const begin = (state: ContainerState) => {
    const { life } = state
    if (life.is === 'running') return
    const due = life.is === 'ended' ? life.finishedAt + crashDelay(state.crashes, backoff) : now
    if (due <= now) start.push(state.spec.name)
    else at = Math.min(at ?? due, due)
  }

  const inits = states.filter(({ role }) => role !== 'main')
  const mains = states.filter(({ role }) => role === 'main')
  for (const state of inits) {
    const { life, role } = state
    if (role === 'native') {
      begin(state)
      if (!state.hasStarted) return { is: 'go on', start, at }
    } else {
      if (life.is === 'ended' && life.code === 0) continue
      if (life.is === 'ended' && !restarts(pod, role, life.code)) return { is: 'finish' }
      begin(state)
      return { is: 'go on', start, at }
    }
  }
  const isDone = ({ life, role }: ContainerState) => life.is === 'ended' && !restarts(pod, role, life.code)
  if (mains.every(isDone)) return { is: 'finish' }
  for (const state of mains) if (!isDone(state)) begin(state)
  return { is: 'go on', start, at }
}
