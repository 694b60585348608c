/**
 * The application as one more registered resource: the wished state of its lifecycle maps to Create, Update or Delete.
 *
 * It is a StatefulApp, kept as the custom resource wishes it; Shipmate's own controller carries it out through the sidecars, and its status says how far it is.
 * Guarantee: a wish that the lifecycle does not know is refused here, with the nearest that it does.
 */
import { type Graph, graphOf, type Verb } from '../../shared/lifecycle/graph.ts'
import type { LifecycleSpec } from '../../shared/lifecycle/model.ts'
import { shown, suggestion } from '../../shared/nearest.ts'
import { defineKind, type Kind, type Snapshot } from '../kube/kind.ts'
import { TerminalError } from '../runtime/index.ts'
import { mutable, type ResourceObject } from './resource.ts'

/** What is wished of an app, as `spec.desired` of a StatefulApp. */
export interface Wish {
  readonly state: string
  readonly action?: string | undefined
  readonly params?: Readonly<Record<string, unknown>> | undefined
  /** Another word makes it another wish: the same action once more. */
  readonly request?: string | undefined
}

/** A StatefulApp, as far as the toolkit writes and reads it. */
export interface StatefulAppShape {
  spec: {
    lifecycle: string
    workload: { kind: string; name: string }
    desired?: Wish
    onEnd?: 'ScaleToZero' | 'Orphan' | 'Delete' | 'DeleteWithVolumes'
  }
  status?: {
    state?: string
    waitingFor?: string
    observedGeneration?: number
    conditions?: { type: string; status: string; reason: string; message: string }[]
  }
}

export const StatefulApp: Kind<StatefulAppShape> = defineKind({
  group: 'shipmate.dev',
  version: 'v1alpha1',
  kind: 'StatefulApp',
})

export interface AppResourceOptions<C extends object> {
  /** The name of the app. Default: that of the custom resource. */
  readonly name?: string | ((cr: Snapshot<C>) => string) | undefined
  /** The name of the Lifecycle on the cluster. */
  readonly lifecycle: string
  /** The lifecycle itself, where the operator has it: then wishes are checked before they are written. */
  readonly graph?: LifecycleSpec | undefined
  /** What is wished: a state, or a state with its action. Undefined: the app is only observed. */
  readonly desired: (cr: Snapshot<C>) => string | Wish | undefined
  /** Whose pods they are. */
  readonly workload: (cr: Snapshot<C>) => { readonly kind: string; readonly name: string }
  readonly onEnd?: StatefulAppShape['spec']['onEnd']
}

export interface AppResource<C extends object> extends ResourceObject<C, StatefulAppShape> {
  /** What the wished state asks of the app as a resource; undefined if nothing is wished. */
  verb(cr: Snapshot<C>): Verb | undefined
}

export function appResource<C extends object>(of: Kind<C>, options: AppResourceOptions<C>): AppResource<C> {
  const { lifecycle, graph: spec, desired, workload, onEnd } = options
  const graph = spec && graphOf(spec)
  const wishOf = (cr: Snapshot<C>): Wish | undefined => {
    const given = desired(cr)
    const wish = typeof given === 'string' ? { state: given } : given
    if (wish && graph) check(graph, wish, lifecycle)
    return wish
  }
  const declared = mutable(StatefulApp, of, {
    name: options.name,
    mutateWithInitialData: cr => ({ spec: { lifecycle, workload: workload(cr), ...(onEnd && { onEnd }) } }),
    mutateWithCR(app, cr) {
      const wish = wishOf(cr)
      if (wish) app.spec.desired = wish
    },
  })
  return {
    ...declared,
    verb(cr) {
      const wish = wishOf(cr)
      return wish && (graph?.node(wish.state)?.verb ?? 'Update')
    },
  }
}

function check(graph: Graph, { state, action }: Wish, lifecycle: string): void {
  const node = graph.node(state)
  const states = graph.nodes.map(({ name }) => name)
  if (!node)
    throw new TerminalError(`${shown(state)} is no state of lifecycle ${lifecycle}${suggestion(state, states)}`)
  if (action !== undefined && !node.actions.includes(action))
    throw new TerminalError(
      `${shown(action)} is no action of state ${state} in lifecycle ${lifecycle}${suggestion(action, node.actions)}`,
    )
}
