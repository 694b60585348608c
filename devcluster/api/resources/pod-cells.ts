/**
 * A pod in a table: how many containers are ready, what it is doing in a word, how often it restarted.
 */
import type { Json, Obj } from '../types.ts'
import { age } from './age.ts'
import { list } from './strategies/lists.ts'

// biome-ignore lint/suspicious/noExplicitAny: the status of a container, as a node wrote it.
type Any = any

const none = '<none>'

export const podCells: Readonly<Record<string, (object: Obj) => Json>> = {
  Ready: object => {
    const { ready, total } = counted(object)
    return `${ready}/${total}`
  },
  Status: object => reasonOf(object),
  Restarts: object => {
    const { restarts, last } = counted(object)
    return restarts > 0 && last ? `${restarts} (${age(last)} ago)` : String(restarts)
  },
  IP: object => object.status?.podIP ?? none,
  Node: object => object.spec?.nodeName ?? none,
  'Nominated Node': object => object.status?.nominatedNodeName ?? none,
  'Readiness Gates': object => {
    const gates = list(object.spec?.readinessGates)
    if (gates.length === 0) return none
    const isTrue = (type: string) =>
      list(object.status?.conditions).some(one => one.type === type && one.status === 'True')
    return `${gates.filter(({ conditionType }) => isTrue(conditionType)).length}/${gates.length}`
  },
}

function isSidecar(object: Obj, name: string): boolean {
  return list(object.spec?.initContainers).some(one => one.name === name && one.restartPolicy === 'Always')
}

/** Sidecars count among the containers. */
function counted(object: Obj): { ready: number; total: number; restarts: number; last: string | undefined } {
  const sidecars = list(object.status?.initContainerStatuses).filter(({ name }) => isSidecar(object, name))
  const statuses = [...list(object.status?.containerStatuses), ...sidecars]
  const declared = list(object.spec?.initContainers).filter(one => one.restartPolicy === 'Always').length
  const times = statuses.map(({ lastState }) => lastState?.terminated?.finishedAt).filter(Boolean)
  return {
    ready: statuses.filter(({ ready, state }) => ready && state?.running).length,
    total: list(object.spec?.containers).length + declared,
    restarts: statuses.reduce((sum, { restartCount }) => sum + (restartCount ?? 0), 0),
    last: times.sort().at(-1),
  }
}

function reasonOf(object: Obj): string {
  const { status = {}, metadata } = object
  let reason: string = status.reason || status.phase || 'Unknown'
  const gate = list(status.conditions).find(
    ({ type, reason: why }) => type === 'PodScheduled' && why === 'SchedulingGated',
  )
  if (gate) reason = 'SchedulingGated'
  const initializing = initReason(object)
  if (initializing) reason = initializing
  else reason = runningReason(object, reason)
  if (metadata.deletionTimestamp && status.reason === 'NodeLost') return 'Unknown'
  if (metadata.deletionTimestamp && status.phase !== 'Failed' && status.phase !== 'Succeeded') return 'Terminating'
  return reason
}

function initReason(object: Obj): string | undefined {
  const statuses = list(object.status?.initContainerStatuses)
  for (const [at, container] of statuses.entries()) {
    const { state = {} } = container
    if (state.terminated?.exitCode === 0) continue
    if (isSidecar(object, container.name) && container.started) continue
    if (state.terminated) return `Init:${ended(state.terminated)}`
    if (state.waiting?.reason && state.waiting.reason !== 'PodInitializing') return `Init:${state.waiting.reason}`
    return `Init:${at}/${list(object.spec?.initContainers).length}`
  }
  return undefined
}

function runningReason(object: Obj, phase: string): string {
  let reason = phase
  let isRunning = false
  for (const { state = {}, ready } of list(object.status?.containerStatuses).reverse()) {
    if (state.waiting?.reason) reason = state.waiting.reason
    else if (state.terminated) reason = ended(state.terminated)
    else if (ready && state.running) isRunning = true
  }
  if (reason !== 'Completed' || !isRunning) return reason
  const isReady = list(object.status?.conditions).some(({ type, status }) => type === 'Ready' && status === 'True')
  return isReady ? 'Running' : 'NotReady'
}

function ended(terminated: Any): string {
  if (terminated.reason) return terminated.reason
  return terminated.signal ? `Signal:${terminated.signal}` : `ExitCode:${terminated.exitCode}`
}
