/**
 * A lifecycle made ready for use: its graph, its guards and its actions' parameters, each compiled once. Pure.
 */
import { type CompiledParams, compileParams } from '../params/schema.ts'
import { type Graph, graphOf } from './graph.ts'
import { compileGuard, type Guard } from './guard.ts'
import type { Action, LifecycleSpec } from './model.ts'

export interface CompiledAction {
  /** As declared, nothing filled in. */
  readonly action: Action
  readonly params: CompiledParams
  /** The transient state that lists it; undefined if a run of it changes no state. */
  readonly state: string | undefined
}

export interface CompiledLifecycle {
  readonly spec: LifecycleSpec
  readonly graph: Graph
  /** The states that have a `when`, in their order. */
  readonly guards: readonly { readonly state: string; readonly guard: Guard }[]
  /** The probes that any guard needs. */
  readonly guardProbes: readonly string[]
  readonly actions: ReadonlyMap<string, CompiledAction>
}

/**
 * @param spec without errors, by `validateLifecycle`
 * @throws ExpressionError if it has
 */
export function compileLifecycle(spec: LifecycleSpec): CompiledLifecycle {
  const graph = graphOf(spec)
  const probes = (spec.probes ?? []).map(probe => probe.name)
  const guards = (spec.states ?? []).flatMap(({ name, when }) =>
    when === undefined ? [] : [{ state: name, guard: compileGuard(when, probes) }],
  )
  const actions = (spec.actions ?? []).map((action): [string, CompiledAction] => [
    action.name,
    { action, params: compileParams(action.params), state: graph.transientOf(action.name)?.name },
  ])
  return {
    spec,
    graph,
    guards,
    guardProbes: [...new Set(guards.flatMap(({ guard }) => guard.probes))],
    actions: new Map(actions),
  }
}
