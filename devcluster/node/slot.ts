/**
 * A container's place in its pod over all its starts: what it is now, what it was, its logs.
 */

import { type CrashBackoff, nextCrashes } from './backoff.ts'
import type { Container, Exit } from './container.ts'
import type { Log } from './log.ts'
import type { ContainerState, Ended, Life } from './plan.ts'
import { type Planned, type Pod, restarts } from './spec.ts'

export interface Slot extends Planned {
  life: Life
  last: Ended | undefined
  restarts: number
  crashes: number
  hasStarted: boolean
  container: Container | undefined
  env: Readonly<Record<string, string>>
  log: Log | undefined
  previousLog: Log | undefined
  /** How often it was started here. */
  starts: number
  /** Aborted when the container ends, or is to. */
  over: AbortController | undefined
  /** Where words are rewritten to, if they are. */
  root: { readonly path: string; readonly targets: readonly string[] } | undefined
  /** It is being made. */
  isBusy: boolean
  /** It cannot be made as things are: not before something changes. */
  isBlocked: boolean
  /** It is on its way to its end. */
  ending: Promise<void> | undefined
}

/** @param waiting the reason of one that is yet to come */
export function createSlot(pod: Pod, { spec, role }: Planned, waiting: string, now: number): Slot {
  const before = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])]
  const old = before.find(({ name }) => name === spec.name)
  const slot: Slot = {
    ...{ spec, role, life: { is: 'waiting', reason: waiting }, last: undefined, restarts: old?.restartCount ?? 0 },
    ...{ crashes: 0, hasStarted: false, container: undefined, env: {}, log: undefined, previousLog: undefined },
    ...{ isBusy: false, isBlocked: false, ending: undefined, starts: 0, over: undefined, root: undefined },
  }
  const { running, terminated } = old?.state ?? {}
  if (running || old?.state?.waiting?.reason === 'CrashLoopBackOff') {
    // It ran before, on a node that has died since.
    slot.last = lost(old?.containerID, Date.parse(running?.startedAt ?? '') || now, now)
    if (restarts(pod, role, slot.last.code)) slot.restarts++
    else slot.life = { is: 'ended', ...slot.last }
  } else if (terminated && role === 'main') {
    const { exitCode: code, reason = 'Error', startedAt = '', finishedAt = '' } = terminated
    const times = { startedAt: Date.parse(startedAt) || now, finishedAt: Date.parse(finishedAt) || now }
    const ended: Ended = { id: bare(terminated.containerID), code, reason, ...times }
    if (restarts(pod, role, code)) {
      slot.last = ended
      slot.restarts++
    } else slot.life = { is: 'ended', ...ended }
  }
  return slot
}

const bare = (id: string | undefined) => id?.replace(/^.*:\/\//, '') ?? ''

/** Nobody saw it end. */
export function lost(id: string | undefined, startedAt: number, finishedAt: number): Ended {
  const message = 'The container could not be located when the pod was terminated'
  return { id: bare(id), code: 137, reason: 'ContainerStatusUnknown', message, startedAt, finishedAt }
}

export function ended(
  slot: Slot,
  container: Container,
  exit: Exit,
  message: string,
  now: number,
  backoff: CrashBackoff,
): void {
  const reason = exit.failure === undefined ? (exit.code === 0 ? 'Completed' : 'Error') : 'StartError'
  const { id, startedAt } = container
  const signal = exit.code > 128 && exit.failure === undefined ? exit.code - 128 : undefined
  const text = exit.failure ?? message
  slot.crashes = nextCrashes(slot.crashes, now - startedAt, backoff)
  slot.container = undefined
  slot.life = { is: 'ended', id, code: exit.code, signal, reason, message: text, startedAt, finishedAt: now }
}

export function stateOf({ spec, role, life, last, restarts: count, crashes, hasStarted }: Slot): ContainerState {
  return { spec, role, life, last, restarts: count, crashes, hasStarted }
}
