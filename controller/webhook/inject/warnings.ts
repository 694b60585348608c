/**
 * What a person should know about a pod that a sidecar was added to. Pure.
 */
import type { Action, LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import { type Asked, annotationNames } from './annotations.ts'
import { preStopOf } from './grace.ts'
import { hasOwnHook } from './hooks.ts'
import { isGuaranteed } from './resources.ts'
import { saysUser } from './security.ts'
import type { Container, PodSpec } from './template.ts'

export interface Injected {
  readonly asked: Asked
  readonly lifecycle: LifecycleSpec | undefined
  /** Without the sidecar. */
  readonly before: PodSpec
  readonly after: PodSpec
  readonly like: Container | undefined
  readonly isNative: boolean
}

export function warningsOf(injected: Injected): string[] {
  return [
    ...hookWarnings(injected),
    ...graceWarnings(injected),
    ...processWarnings(injected),
    ...userWarnings(injected),
    ...toolWarnings(injected),
    ...placeWarnings(injected),
  ]
}

function hookWarnings({ before }: Injected): string[] {
  return before.containers
    .filter(hasOwnHook)
    .map(
      ({ name }) =>
        `container ${name} keeps its own preStop hook: it is told to end without waiting for the lifecycle's preStop action`,
    )
}

function graceWarnings({ lifecycle, asked }: Injected): string[] {
  if (!lifecycle)
    return [
      `lifecycle ${asked.lifecycle} is not known here: whether the grace period is long enough for its preStop action is not checked`,
    ]
  const action = preStopOf(lifecycle)
  return action && action.timeout === undefined
    ? [
        `action ${action.name}, which runs when the pod ends, has no timeout: the grace period is that long for the default of 1h`,
      ]
    : []
}

function processWarnings({ lifecycle, after }: Injected): string[] {
  if (after.shareProcessNamespace || after.hostPID) return []
  const needs = lifecycle && processUse(lifecycle)
  return needs
    ? [
        `${needs} needs the application's processes: annotate the pod template with ${annotationNames.shareProcessNamespace}: "true"`,
      ]
    : []
}

/** The first part of a lifecycle that needs a shared process namespace. */
function processUse({ probes = [], actions = [] }: LifecycleSpec): string | undefined {
  const probe = probes.find(one => one.process)
  if (probe) return `probe ${probe.name}`
  const action = actions.find(
    ({ signal, steps, reload }) => signal || reload?.signal || steps?.some(step => step.signal),
  )
  return action && `action ${action.name}`
}

function userWarnings({ asked, before, like }: Injected): string[] {
  if (!like || asked.runAsUser !== undefined || saysUser(before, like)) return []
  return [
    `the sidecar runs as the user that the image of ${like.name} names, without any capability: if ${like.name} begins as root and becomes somebody else, annotate the pod template with ${annotationNames.runAsUser}, that user's number`,
  ]
}

function toolWarnings({ asked, lifecycle, like }: Injected): string[] {
  const used = !like && asked.image === undefined && lifecycle ? programUse(lifecycle) : undefined
  return used
    ? [
        `${used} in the sidecar's own image: where it needs the application's tools, annotate the pod template with ${annotationNames.imageOf}, the container whose image it is to use`,
      ]
    : []
}

function programUse({ probes = [], actions = [] }: LifecycleSpec): string | undefined {
  const probe = probes.find(one => one.exec)
  if (probe) return `probe ${probe.name} runs ${probe.exec?.command[0]}`
  for (const action of actions) {
    const command = commandOf(action)
    if (command) return `action ${action.name} runs ${command}`
  }
  return undefined
}

function commandOf({ exec, reload, steps = [] }: Action): string | undefined {
  return [exec, reload?.exec, ...steps.map(step => step.exec)].find(one => one)?.command[0]
}

function placeWarnings({ before, after, isNative }: Injected): string[] {
  const found: string[] = []
  if (isGuaranteed(before) && !isGuaranteed(after))
    found.push(
      `the pod is no longer of the class Guaranteed, as its sidecar has no limits: to keep it, give the same cpu and memory in ${annotationNames.requests} and ${annotationNames.limits}; actions then have no more than that`,
    )
  if (before.hostNetwork)
    found.push('the pod uses the network of its node: the sidecar takes ports 7443 and 7080 there')
  if (!isNative)
    found.push('the sidecar is a plain container: it ends at the same time as the application, not after it')
  return found
}
