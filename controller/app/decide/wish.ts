/**
 * What is wished of an app, and the memory of it. Pure.
 *
 * Guarantees: another hash is a new wish, A, B, A is three; no name of an Operation is used twice; what a wish came to stands until the wish changes.
 */
import { hashOf } from '../../../shared/canonical.ts'
import type { Graph, Node } from '../../../shared/lifecycle/graph.ts'
import { shown, suggestion } from '../../../shared/nearest.ts'
import { compileParams } from '../../../shared/params/schema.ts'
import type { App, LifecycleView, OpStatus, View, Wish, WishStatus } from '../view.ts'

/** How an operation, or a wish, ended. */
export type Ending = NonNullable<WishStatus['outcome']>

/** Who being deleted still walks to its end. */
export const skipAnnotation = 'shipmate.dev/skip-lifecycle'

export type DeletionPolicy = 'Orphan' | 'WalkToEnd'

export function deletionPolicy({ spec }: App): DeletionPolicy {
  return spec.deletion?.policy ?? (spec.workload || !spec.desired ? 'Orphan' : 'WalkToEnd')
}

/** What is wished now: of an app that is being deleted, its end. Undefined: it is only observed. */
export function wishOf({ app, lifecycle }: Pick<View, 'app' | 'lifecycle'>): Wish | undefined {
  const { deletionTimestamp } = app.metadata
  if (deletionTimestamp === undefined) return app.spec.desired
  const end = lifecycle?.graph.nodes.find(({ kind }) => kind === 'delete')
  if (!end || deletionPolicy(app) === 'Orphan') return undefined
  return { state: end.name, request: String(deletionTimestamp), preempt: app.spec.desired?.preempt ?? false }
}

/** What tells one wish from another. */
export function wishHash({ state, action, params, paramsFrom, request }: Wish): string {
  return hashOf({ state, action, params, paramsFrom, request })
}

/** The memory, with the wish in it: as it was if it is the same one. */
export function remember(before: WishStatus | undefined, wish: Wish, now: string): WishStatus {
  const hash = wishHash(wish)
  if (before?.hash === hash) return before
  return { hash, serial: (before?.serial ?? 0) + 1, state: wish.state, passed: [], at: now }
}

/** The name of the Operation that carries out the wish as it stands. */
export function operationName(app: App, { hash, serial }: WishStatus): string {
  return `${app.metadata.name}-${serial}-${hash.slice(0, 8)}`
}

/** The serial in the name of an Operation of a wish; undefined if it is no such name. */
export function serialOf(app: App, name: string): number | undefined {
  const prefix = `${app.metadata.name}-`
  const [, serial] = name.startsWith(prefix) ? (/^(\d+)-[0-9a-f]{8}$/.exec(name.slice(prefix.length)) ?? []) : []
  return serial === undefined ? undefined : Number(serial)
}

/**
 * The memory after the wish's operation ended.
 *
 * @param observed the state that is observed now, beside the operation's own
 */
export function settleWish(
  wish: WishStatus,
  {
    ending,
    transient,
    observed,
    now,
  }: {
    readonly ending: Ending
    readonly transient: string | undefined
    readonly observed: string
    readonly now: string
  },
): WishStatus {
  const operation = wish.operation && { ...wish.operation, outcome: ending }
  if (ending !== 'Succeeded') return { ...wish, operation, outcome: ending, at: now }
  if (transient === undefined) return { ...wish, operation, at: now }
  const passed = [...(wish.passed ?? []), transient]
  const passedFrom = wish.passedFrom ?? observed
  return { ...wish, operation, passed, passedFrom, at: now, ...(wish.state === transient && { outcome: ending }) }
}

/** The memory once another observed state has been reached than the one from which transient states were entered. */
export function arrive(wish: WishStatus, graph: Graph, state: string): WishStatus {
  if ((wish.passed ?? []).length === 0 || wish.passedFrom === state) return wish
  if (graph.node(state)?.kind !== 'observed' || isBeforeEnd(wish, graph)) return wish
  const { passedFrom: _, ...rest } = wish
  return { ...rest, passed: [] }
}

/** Whether all that is left of a wish for a Delete state is `onEnd`. */
export function isBeforeEnd({ state, passed = [] }: WishStatus, graph: Graph): boolean {
  const last = passed.at(-1)
  if (last === undefined || graph.node(state)?.kind !== 'delete') return false
  return graph.node(last)?.next.includes(state) ?? false
}

/** The state to be held: of a transient wish that has come to something, the first that follows it. */
export function goalOf(wish: WishStatus, graph: Graph): Node | undefined {
  const node = graph.node(wish.state)
  if (node?.kind !== 'transient' || wish.outcome === undefined) return node
  return graph.node(node.next[0] ?? '')
}

/** The action that a wish asks of its transient state. */
export function actionOf(wish: Wish, node: Node): string | undefined {
  return wish.action ?? (node.actions.length === 1 ? node.actions[0] : undefined)
}

/** Why the lifecycle cannot carry the wish out, in a sentence; undefined if it can. */
export function wishProblem(wish: Wish, { graph, spec }: LifecycleView, lifecycle: string): string | undefined {
  const of = `in lifecycle ${lifecycle}`
  const node = graph.node(wish.state)
  const states = graph.nodes.map(({ name }) => name)
  if (!node) return `spec.desired.state: ${shown(wish.state)} is no state ${of}${suggestion(wish.state, states)}`
  if (wish.action === undefined) {
    if (node.kind !== 'transient') return undefined
    if (node.actions.length > 1)
      return `spec.desired.action: ${node.name} has several actions; name one: ${node.actions.join(', ')}`
  } else if (!node.actions.includes(wish.action)) {
    const known = suggestion(wish.action, node.actions)
    return `spec.desired.action: ${shown(wish.action)} is no action of state ${node.name} ${of}${known}`
  }
  const action = spec.actions?.find(({ name }) => name === actionOf(wish, node))
  if (!action) return undefined
  return paramsProblem(action.params, wish, 'spec.desired')
}

/** What is wrong with the parameters of a wish or an Operation; secrets come by `paramsFrom` and are checked when they are read. */
export function paramsProblem(
  declared: Parameters<typeof compileParams>[0],
  { params = {}, paramsFrom = [] }: Pick<Wish, 'params' | 'paramsFrom'>,
  where: string,
): string | undefined {
  const compiled = compileParams(declared)
  const given = params as Record<string, unknown>
  for (const name of compiled.secrets)
    if (Object.hasOwn(given, name)) return `${where}.params.${name} is secret: give it by paramsFrom, out of a Secret`
  for (const { name } of paramsFrom)
    if (!compiled.names.includes(name))
      return `${where}.paramsFrom: ${shown(name)} is no parameter${suggestion(name, compiled.names)}`
  const later = new Set(paramsFrom.map(({ name }) => name))
  const now = Object.fromEntries(Object.entries(declared ?? {}).filter(([name]) => !later.has(name)))
  const { problems } = compileParams(now).check(given)
  return problems?.map(problem => `${where}.${problem}`).join('; ')
}

/** Whether an operation has ended, and how. An Unknown one has not. */
export function endingOf(status: OpStatus | undefined): Ending | undefined {
  const phase = status?.phase
  if (status?.finishedAt === undefined) return undefined
  return phase as Ending
}
