/**
 * A pod's status as a kubelet writes it, from what its containers are. Pure.
 */
import { timeOf } from '../../shared/clock.ts'
import { type CrashBackoff, crashDelay } from './backoff.ts'
import type { ContainerState, Ended, Life } from './plan.ts'
import { type OldStatus, type Pod, type PodStatus, restarts } from './spec.ts'

type ContainerStatus = NonNullable<PodStatus['containerStatuses']>[number]
type Phase = 'Pending' | 'Running' | 'Succeeded' | 'Failed'

export interface PodFacts {
  /** Undefined until it has one. */
  readonly ip: string | undefined
  readonly hostIp: string
  readonly startedAt: number
  readonly now: number
  readonly backoff: CrashBackoff
  /** Its folders are there, and its containers may be made. */
  readonly isPrepared: boolean
  /** None of its containers runs, or ever will. */
  readonly hasEnded: boolean
  /** Why the node ended it, or refused it. */
  readonly failure?: { readonly reason: string; readonly message: string } | undefined
}

/** @param before the status as it was last written: its conditions' times are kept, and conditions of others */
export function statusOf(
  pod: Pod,
  states: readonly ContainerState[],
  facts: PodFacts,
  before: OldStatus | undefined = pod.status,
): PodStatus {
  const { ip, hostIp, failure } = facts
  const inits = states.filter(({ role }) => role !== 'main')
  const mains = states.filter(({ role }) => role === 'main')
  const phase = phaseOf(pod, states, facts)
  return {
    ...(pod.metadata.generation !== undefined && { observedGeneration: pod.metadata.generation }),
    phase,
    ...(failure && { reason: failure.reason, message: failure.message }),
    conditions: conditionsOf(pod, states, phase, facts, before),
    hostIP: hostIp,
    hostIPs: [{ ip: hostIp }],
    ...(ip !== undefined && { podIP: ip, podIPs: [{ ip }] }),
    startTime: timeOf(facts.startedAt),
    ...(pod.status?.qosClass && { qosClass: pod.status.qosClass }),
    ...(inits.length > 0 && { initContainerStatuses: inits.map(state => containerStatus(pod, state, facts)) }),
    containerStatuses: mains.map(state => containerStatus(pod, state, facts)),
  }
}

/** Whether init containers are done and sidecars have been up. */
function isInitialized(states: readonly ContainerState[]): boolean {
  return states.every(({ role, life, hasStarted }) => {
    if (role === 'main') return true
    return role === 'native' ? hasStarted : life.is === 'ended' && life.code === 0
  })
}

export function phaseOf(pod: Pod, states: readonly ContainerState[], facts: PodFacts): Phase {
  if (facts.failure) return 'Failed'
  const mains = states.filter(({ role }) => role === 'main')
  if (facts.hasEnded) {
    const isGood = isInitialized(states) && mains.every(({ life }) => life.is === 'ended' && life.code === 0)
    return isGood ? 'Succeeded' : 'Failed'
  }
  const failed = states.some(
    ({ role, life }) => role === 'init' && life.is === 'ended' && life.code !== 0 && !restarts(pod, role, life.code),
  )
  if (failed) return 'Failed'
  if (!isInitialized(states)) return 'Pending'
  // One that has never run is still to come, and the pod with it.
  return mains.some(({ life, last }) => life.is === 'waiting' && !last) ? 'Pending' : 'Running'
}

type Condition = NonNullable<PodStatus['conditions']>[number]
const ours = ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled']

function conditionsOf(
  pod: Pod,
  states: readonly ContainerState[],
  phase: Phase,
  { now, isPrepared, hasEnded }: PodFacts,
  before: OldStatus | undefined,
): Condition[] {
  const old = new Map(before?.conditions?.map(one => [one.type, one]))
  // What others have written since, such as readiness gates, is newer in the object.
  for (const one of pod.status?.conditions ?? []) if (!ours.includes(one.type)) old.set(one.type, one)
  const condition = (type: string, isTrue: boolean, reason?: string, message?: string): Condition => {
    const status = isTrue ? 'True' : 'False'
    const since = old.get(type)
    const lastTransitionTime = (since?.status === status && since.lastTransitionTime) || timeOf(now)
    return { type, status, lastTransitionTime, ...(reason && { reason }), ...(message && { message }) }
  }
  const names = (filter: (state: ContainerState) => boolean) =>
    `[${states
      .filter(filter)
      .map(({ spec }) => spec.name)
      .join(' ')}]`
  const initialized = () => {
    if (phase === 'Succeeded') return condition('Initialized', true, 'PodCompleted')
    if (isInitialized(states)) return condition('Initialized', true)
    const incomplete = names(one => one.role !== 'main' && !isInitialized([one]))
    return condition(
      'Initialized',
      false,
      'ContainersNotInitialized',
      `containers with incomplete status: ${incomplete}`,
    )
  }
  const containersReady = (type: string) => {
    if (phase === 'Succeeded') return condition(type, false, 'PodCompleted')
    if (phase === 'Failed') return condition(type, false, 'PodFailed')
    const isReady = (one: ContainerState) => one.role === 'init' || (one.life.is === 'running' && one.life.isReady)
    if (states.every(isReady)) return condition(type, true)
    const unready = names(one => !isReady(one))
    return condition(type, false, 'ContainersNotReady', `containers with unready status: ${unready}`)
  }
  const ready = () => {
    const found = containersReady('Ready')
    const gates = (pod.spec?.readinessGates ?? []).map(({ conditionType }) => conditionType)
    const unmet = gates.filter(type => old.get(type)?.status !== 'True')
    if (found.status !== 'True' || unmet.length === 0) return found
    const [first] = unmet
    const message = old.has(first ?? '')
      ? `the status of pod readiness gate "${first}" is not "True", but ${old.get(first ?? '')?.status}`
      : `corresponding condition of pod readiness gate "${first}" does not exist.`
    return condition('Ready', false, 'ReadinessGatesNotReady', message)
  }
  return [
    condition('PodReadyToStartContainers', isPrepared && !hasEnded),
    initialized(),
    ready(),
    containersReady('ContainersReady'),
    condition('PodScheduled', true),
  ]
}

function containerStatus(pod: Pod, state: ContainerState, { backoff, hasEnded }: PodFacts): ContainerStatus {
  const { spec, role, life, last, restarts: restartCount } = state
  const isWaiting = life.is === 'ended' && !hasEnded && restarts(pod, role, life.code)
  // One that starts again at once, or now, is shown as ended all the same: it is for a moment only.
  const backedOff = isWaiting && crashDelay(state.crashes, backoff) > 0
  const before = backedOff ? life : last
  const id = life.is === 'waiting' ? last?.id : life.id
  const isStarted = life.is === 'running' && life.isStarted
  return {
    name: spec.name,
    image: spec.image ?? '',
    imageID: life.is === 'waiting' ? '' : (spec.image ?? ''),
    ready: role === 'init' ? life.is === 'ended' && life.code === 0 : life.is === 'running' && life.isReady,
    started: role === 'init' ? life.is === 'running' : isStarted,
    restartCount,
    state: backedOff ? { waiting: crashLoop(pod, state, backoff) } : stateOf(life),
    lastState: before ? terminated(before) : {},
    ...(id !== undefined && { containerID: containerId(id) }),
  }
}

function crashLoop(pod: Pod, { spec, crashes }: ContainerState, backoff: CrashBackoff) {
  const { name, namespace, uid } = pod.metadata
  return {
    reason: 'CrashLoopBackOff',
    message: crashMessage(crashes, backoff, spec.name, `${name}_${namespace}(${uid})`),
  }
}

/** @param pod `NAME_NAMESPACE(UID)` */
function crashMessage(crashes: number, backoff: CrashBackoff, container: string, pod: string): string {
  return `back-off ${goDuration(crashDelay(crashes, backoff))} restarting failed container=${container} pod=${pod}`
}

/** `1m20s`, as Go writes it. */
function goDuration(ms: number): string {
  if (ms < 1000) return `${ms}ms`
  const minutes = Math.floor(ms / 60_000)
  const seconds = (ms % 60_000) / 1000
  return minutes > 0 ? `${minutes}m${seconds}s` : `${seconds}s`
}

function stateOf(life: Life): NonNullable<ContainerStatus['state']> {
  if (life.is === 'running') return { running: { startedAt: timeOf(life.startedAt) } }
  if (life.is === 'ended') return terminated(life)
  return { waiting: { reason: life.reason, ...(life.message && { message: life.message }) } }
}

const containerId = (id: string) => `shipmate://${id}`

function terminated({ id, code, signal, reason, message, startedAt, finishedAt }: Ended) {
  return {
    terminated: {
      containerID: containerId(id),
      exitCode: code,
      ...(signal !== undefined && { signal }),
      reason,
      ...(message && { message }),
      startedAt: timeOf(startedAt),
      finishedAt: timeOf(finishedAt),
    },
  }
}
