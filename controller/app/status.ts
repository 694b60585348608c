/**
 * The status of an app, in words for people and tools: what state it is in, what is waited for, conditions. Pure.
 *
 * Guarantees: the same view gives the same words; Ready is True only when the wished state is held, nothing is in progress, every sidecar can be asked and the app's own
 * workload is as its template asks; a state that is only observed is ready as soon as it is known.
 */

import { timeOf } from '../../shared/clock.ts'
import { unknownState } from '../../shared/lifecycle/observe.ts'
import { appendToPath } from '../../shared/lifecycle/path.ts'
import type { Wanted } from '../toolkit/conditions.ts'
import type { AppDecision } from './decide/app.ts'
import type { ObservedPod } from './decide/observe.ts'
import { sentenceOf } from './decide/waiting.ts'
import { conditionsVia } from './via/conditions.ts'
import type { AppStatus, OpStatus, View, Wish } from './view.ts'

export type Shown = Pick<
  AppStatus,
  'state' | 'reason' | 'since' | 'desired' | 'action' | 'pods' | 'path' | 'waitingFor'
>

export function shownOf(view: View, { observed, wish, current, status, next, waiting, stalled }: AppDecision): Shown {
  const isLeaving = next?.is === 'end' && next.goal.name !== observed.state
  const { state: before, since, path = '' } = view.app.status ?? {}
  const { state, reason } = observed
  const words = waiting && sentenceOf(waiting)
  return {
    state,
    reason,
    since: before === state && since !== undefined ? since : timeOf(view.now),
    desired: wish && desiredText(wish),
    action: status.operation && actionText(status.operation.action, current?.status),
    pods: observed.pods.map(one => podText(one, view)),
    // A state that is not known is no station; nor is what is left to be seen between the stop and the end.
    path: state === unknownState || before === state || isLeaving ? path || undefined : appendToPath(path, state),
    waitingFor: words ?? (stalled ? 'a person, see the condition Stalled' : isBeingMade(view) ? made(view) : undefined),
  } as Shown
}

function desiredText({ state, action }: Wish): string {
  return action === undefined ? state : `${state} (${action})`
}

/** `backup 41 %`: of several runs, the least. */
function actionText(action: string, status: OpStatus | undefined): string {
  const percents = (status?.runs ?? []).flatMap(({ phase, progress }) =>
    phase === 'Running' ? (progress?.percent ?? []) : [],
  )
  return percents.length === 0 ? action : `${action} ${Math.floor(Math.min(...percents))} %`
}

function podText(
  { name, uid, state, reason, role, bootId }: ObservedPod,
  { pods }: View,
): NonNullable<AppStatus['pods']>[number] {
  const run = pods.find(pod => pod.uid === uid)?.agent?.state?.run
  return {
    name,
    uid,
    state,
    reason,
    ...(role !== undefined && { role }),
    ...(bootId !== undefined && { bootId }),
    // That it is accepted is true for a moment only: no write is made of it.
    ...(run && { run: { id: run.id, action: run.action, phase: run.phase === 'Accepted' ? 'Running' : run.phase } }),
  }
}

/** Whether all that is wished is so. */
export function isThere({ wish, next, status, observed, stalled }: AppDecision): boolean {
  if (stalled || status.operation || observed.state === unknownState) return false
  return !wish || next?.is === 'there'
}

/** Whether the app's own workload is not yet what its template asks for. */
export function isBeingMade({ app, workload }: View): boolean {
  if (!app.spec.template || !app.spec.desired || !workload || workload.replicas === 0) return false
  return workload.isOutdated || workload.isRollingOut
}

function made({ workload }: View): string {
  return `${workload?.kind} ${workload?.name} to be as its template asks`
}

/** The app's own conditions; those of kstatus follow from `waitFor` and `stall`. */
export function conditionsOf(view: View, decision: AppDecision): Wanted[] {
  const { via } = view.app.spec
  if (via) return [atDesired(decision), ...conditionsVia(via, view.pods)]
  return [atDesired(decision), reachable(view, decision), ...promises(view)]
}

function atDesired({ wish, next, observed }: AppDecision): Wanted {
  const reason = reasonOf(observed.state)
  const type = 'AtDesiredState'
  if (!wish) return { type, status: 'Unknown', reason, message: 'Nothing is wished: it is only observed.' }
  const isHeld = next?.is === 'there' && observed.state === next.goal.name
  return {
    type,
    status: isHeld ? 'True' : 'False',
    reason,
    message: isHeld
      ? `It is ${observed.state}, as wished.`
      : observed.state === wish.state
        ? `${observed.state} is in progress, as wished.`
        : `It is ${observed.state}; ${wish.state} is wished.`,
  }
}

/** One word, as conditions want it. */
function reasonOf(state: string): string {
  return state.replace(/[^A-Za-z0-9_]/g, '_')
}

const silent = ['NoSidecar', 'NotConnected', 'Unreachable']

function reachable({ pods }: View, { observed }: AppDecision): Wanted {
  const type = 'SidecarsReachable'
  const lost = observed.pods.filter(({ reason, state }) => state === unknownState && silent.includes(reason))
  const [first] = lost
  if (observed.pods.length === 0) return { type, status: 'Unknown', reason: 'NoPods', message: 'It has no pods.' }
  if (!first) return { type, status: 'True', reason: 'Connected', message: `All ${observed.pods.length} can be asked.` }
  const names = lost.map(({ name }) => name).join(', ')
  const error = pods.find(({ uid }) => uid === first.uid)?.agent?.error
  const message =
    first.reason === 'NoSidecar'
      ? `There is no sidecar in ${names}.`
      : `The sidecar cannot be reached in ${names}${error === undefined ? '' : ` (${error})`}.`
  return { type, status: 'False', reason: first.reason, message }
}

/** What the sidecars are too old for. */
function promises({ pods }: View): Wanted[] {
  const type = 'ExactlyOnce'
  const lacking = pods.flatMap(({ name, agent }) => {
    if (!agent?.isReachable) return []
    const missing = needed.filter(feature => !agent.features.includes(feature))
    return missing.length > 0 ? [`${name} lacks ${missing.join(', ')}`] : []
  })
  if (lacking.length === 0)
    return [{ type, status: 'True', reason: 'Promised', message: 'An action runs once per wish, target and attempt.' }]
  return [
    {
      type,
      status: 'False',
      reason: 'OldSidecar',
      message: `${lacking.join('; ')}: replace these pods to have the newer sidecar.`,
    },
  ]
}

/** What the promise rests on. */
const needed = ['adopt', 'annul', 'fence', 'verify']
