/**
 * The application as one more registered resource: the wished state of its lifecycle maps to Create, Update or Delete.
 *
 * It is a StatefulApp, kept as the custom resource wishes it; Shipmate's own controller carries it out through the sidecars, and its status says how far it is.
 * Guarantees: a wish that the lifecycle does not know is refused here, with the nearest that it does; the app's state, and what it waits for, stand in the custom
 * resource (condition `AppState`); a custom resource that is being deleted stays until the app has come to its end, and is gone.
 */
import type { Desired } from '../../shared/kinds/app.ts'
import { group, version } from '../../shared/kinds/group.ts'
import type { lifecycleStatus } from '../../shared/kinds/lifecycle.ts'
import { type Graph, graphOf, type Verb } from '../../shared/lifecycle/graph.ts'
import type { LifecycleSpec, lifecycleSpec } from '../../shared/lifecycle/model.ts'
import { shown, suggestion } from '../../shared/nearest.ts'
import { NotFound } from '../kube/errors.ts'
import { defineKind, type Frozen, type Kind, type Snapshot } from '../kube/kind.ts'
import { TerminalError } from '../runtime/index.ts'
import { appCondition, appReadiness, appViewOf, endingOf, StatefulApp, type StatefulAppShape } from './appstate.ts'
import type { AppLifecycle } from './crd/wish.ts'
import type { ResourceShape } from './definition.ts'
import { refOf } from './expected.ts'
import { mutable, type ResourceObject } from './resource.ts'

/** What is wished of an app, as `spec.desired` of a StatefulApp. */
export type Wish = Readonly<Desired>

export type LifecycleShape = ResourceShape<typeof lifecycleSpec, typeof lifecycleStatus>

export const Lifecycle: Kind<LifecycleShape> = defineKind({ group, version, kind: 'Lifecycle' })

type AppSpec = StatefulAppShape['spec']
type Workload = { readonly apiVersion?: string | undefined; readonly kind: string; readonly name: string }

export interface AppResourceOptions<C extends object> {
  /** The name of the app, a DNS label of at most 40 characters. Default: that of the custom resource. */
  readonly name?: string | ((cr: Snapshot<C>) => string) | undefined
  /** The Lifecycle: the name of one on the cluster, or one that is registered too, made with `lifecycleResource`. */
  readonly lifecycle: string | ResourceObject<C, LifecycleShape>
  /** The lifecycle itself, where the operator has it: then wishes are checked before they are written. Default: that of the custom resource's definition. */
  readonly graph?: LifecycleSpec | undefined
  /** What is wished: a state, or a state with its action. Undefined: the app is only observed. Default: `spec.desired` of a kind that was defined with a lifecycle. */
  readonly desired?: ((cr: Snapshot<C>) => string | Frozen<Desired> | undefined) | undefined
  /** Whose pods they are: a workload that this operator, or somebody else, makes. Either this or `template`. */
  readonly workload?: ((cr: Snapshot<C>) => Workload) | undefined
  /** A StatefulSet with its Service and ConfigMaps, made and kept by Shipmate. */
  readonly template?: ((cr: Snapshot<C>) => NonNullable<AppSpec['template']>) | undefined
  /** What becomes of the workload at the end. Default: as a StatefulApp has it. */
  readonly onEnd?: AppSpec['onEnd']
  /** How long the app may take to come to its end when the custom resource is deleted. Default 10m, as a StatefulApp has it. */
  readonly endingDeadline?: string | undefined
  /** More of a StatefulApp's spec: `paused`, `quorum`. */
  readonly more?: ((cr: Snapshot<C>) => Partial<Pick<AppSpec, 'paused' | 'quorum' | 'via'>>) | undefined
}

export interface AppResource<C extends object> extends ResourceObject<C, StatefulAppShape> {
  /** What the wished state asks of the app as a resource; undefined if nothing is wished. */
  verb(cr: Snapshot<C>): Verb | undefined
}

/** @param of the custom resource's kind */
export function appResource<C extends object>(
  of: Kind<C> & { readonly lifecycle?: AppLifecycle | undefined },
  options: AppResourceOptions<C>,
): AppResource<C> {
  const { graph: spec = of.lifecycle?.spec, workload, template, onEnd, endingDeadline: deadline, more } = options
  const { desired = (cr: Snapshot<C>) => (cr as { spec?: { desired?: Frozen<Desired> } }).spec?.desired } = options
  const graph = spec && graphOf(spec)
  const lifecycleOf = (cr: Snapshot<C>) =>
    typeof options.lifecycle === 'string' ? options.lifecycle : refOf(options.lifecycle, cr).name
  const wishOf = (cr: Snapshot<C>): Frozen<Desired> | undefined => {
    const given = desired(cr)
    const wish = typeof given === 'string' ? { state: given } : given
    if (wish && graph) check(graph, wish, lifecycleOf(cr))
    return wish
  }
  const declared: ResourceObject<C, StatefulAppShape> = mutable(StatefulApp, of, {
    name: options.name,
    mutateWithInitialData: cr => ({
      spec: {
        ...more?.(cr),
        lifecycle: lifecycleOf(cr),
        ...(workload && { workload: { ...workload(cr) } }),
        ...(template && { template: template(cr) }),
        ...(onEnd && { onEnd }),
      },
    }),
    mutateWithCR(app, cr) {
      const wish = wishOf(cr)
      // One that nobody wishes anything of is only observed, and left as it is.
      if (wish) app.spec.desired = structuredClone(wish) as Desired
      const deletion = { ...(wish && { policy: 'WalkToEnd' }), ...(deadline && { deadline }) }
      if (Object.keys(deletion).length > 0) app.spec.deletion = deletion as AppSpec['deletion']
    },
    ready: appReadiness,
    reflect: (app, cr) => ({
      conditions: [appCondition(app)],
      ...('lifecycle' in of && of.lifecycle && { status: { app: appViewOf(app, refOf(declared, cr).name) } }),
    }),
    async finalizer({ object, client, heldBy, condition, waitFor }) {
      condition(appCondition(object))
      const { name, deletionTimestamp } = object.metadata
      if (deletionTimestamp === undefined) {
        await client.delete(StatefulApp, object).catch((error: unknown) => {
          if (!(error instanceof NotFound)) throw error
        })
        // Whether anybody holds it is known when it comes back.
        waitFor('AppEnding', `StatefulApp ${name}: it is being brought to its end`)
      } else if (heldBy.length > 0) waitFor('AppEnding', endingOf(object))
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

export interface LifecycleResourceOptions<C extends object> {
  /** Its name. Default: that of the custom resource, so that each has one of its own. */
  readonly name?: string | ((cr: Snapshot<C>) => string) | undefined
  /** The lifecycle. Default: that of the custom resource's definition. */
  readonly spec?: LifecycleSpec | ((cr: Snapshot<C>) => LifecycleSpec) | undefined
}

/** The Lifecycle of an app, kept beside it, for those who do not apply one by hand. Register it before the app. */
export function lifecycleResource<C extends object>(
  of: Kind<C> & { readonly lifecycle?: AppLifecycle | undefined },
  { name, spec = of.lifecycle?.spec }: LifecycleResourceOptions<C> = {},
): ResourceObject<C, LifecycleShape> {
  return mutable(Lifecycle, of, {
    name,
    mutateWithInitialData(cr) {
      const given = typeof spec === 'function' ? spec(cr) : spec
      if (!given) throw new TerminalError(`the Lifecycle of ${cr.kind} ${cr.metadata.name} has no \`spec\``)
      return { spec: given }
    },
    // Whether it is right is told by the app that uses it.
    ready: () => true,
  })
}

function check(graph: Graph, { state, action }: Frozen<Desired>, lifecycle: string): void {
  const node = graph.node(state)
  const states = graph.nodes.map(({ name }) => name)
  if (!node)
    throw new TerminalError(`${shown(state)} is no state of lifecycle ${lifecycle}${suggestion(state, states)}`)
  if (action !== undefined && !node.actions.includes(action))
    throw new TerminalError(
      `${shown(action)} is no action of state ${state} in lifecycle ${lifecycle}${suggestion(action, node.actions)}`,
    )
}
