/**
 * Whether what is written into a StatefulApp can be carried out. Pure.
 *
 * Guarantees: who changes nothing of what is wished is not held up, whatever has become of the lifecycle since.
 */
import { shown, suggestion } from '../../../shared/nearest.ts'
import { isSame } from '../../app/decide/app.ts'
import { wishProblem } from '../../app/decide/wish.ts'
import type { App, LifecycleView, Wish } from '../../app/view.ts'
import { defaultGrace, preStopOf, stopSeconds } from '../inject/grace.ts'
import { refused, taken, type Verdict } from './verdict.ts'

export interface AppFacts {
  readonly app: App
  /** As it was, if it was there. */
  readonly old?: App | undefined
  /** The one that the app names; undefined if there is none. */
  readonly lifecycle: LifecycleView | undefined
  /** The names of all in the namespace. */
  readonly lifecycles: readonly string[]
}

export function reviewApp({ app, old, lifecycle, lifecycles }: AppFacts): Verdict {
  const { spec } = app
  if (old && isSame(spec, old.spec)) return taken
  const isAsked = (field: 'lifecycle' | 'desired' | 'template') =>
    spec[field] !== undefined && !isSame(spec[field], old?.spec[field])
  if (!lifecycle) {
    if (!isAsked('lifecycle') && !isAsked('desired')) return taken
    return refused(
      `spec.lifecycle: there is no Lifecycle ${shown(spec.lifecycle)} in namespace ${app.metadata.namespace}${suggestion(spec.lifecycle, lifecycles)}`,
    )
  }
  const warnings = [...lifecycle.problems.map(problem => `lifecycle ${spec.lifecycle}: ${problem}`)]
  if (isAsked('template') || isAsked('lifecycle')) warnings.push(...graceWarnings(app, lifecycle))
  const { desired } = spec
  const isWished = desired !== undefined && (isAsked('desired') || isAsked('lifecycle'))
  const problem = isWished
    ? (wishProblem(desired, lifecycle, spec.lifecycle) ?? pathProblem(app, desired, lifecycle))
    : undefined
  return { problems: problem === undefined ? [] : [problem], warnings }
}

/** No way leads to the wished state from where the app is; or, where that is not known, from where it begins. */
function pathProblem({ spec, status }: App, { state }: Wish, { graph }: LifecycleView): string | undefined {
  const from = graph.node(status?.state ?? '') ?? graph.nodes[0]
  if (!from || graph.path(from.name, state)) return undefined
  const others = graph.nodes.filter(({ name }) => graph.path(from.name, name)).map(({ name }) => name)
  return (
    `spec.desired.state: no path leads from ${from.name} to ${state} in lifecycle ${spec.lifecycle}: ` +
    `it goes through no Delete state, and through no state whose action would have to be guessed (from ${from.name} one can wish: ${others.join(', ')})`
  )
}

/** A stop that the pod's end cuts off. */
function graceWarnings({ spec }: App, { spec: lifecycle }: LifecycleView): string[] {
  const pod = (spec.template?.spec as { template?: { spec?: { terminationGracePeriodSeconds?: number } } })?.template
    ?.spec
  const stop = preStopOf(lifecycle)
  if (!pod || !stop) return []
  const seconds = stopSeconds(lifecycle)
  const grace = pod.terminationGracePeriodSeconds ?? defaultGrace
  if (grace >= seconds) return []
  return [
    `spec.template.spec.template.spec.terminationGracePeriodSeconds: ${grace}, but ${stop.name}, which runs when a pod ends, may take ${seconds} s with all that is cancelled for it: the rest would be cut off`,
  ]
}
