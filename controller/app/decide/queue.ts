/**
 * Which Operation of an app is carried out next. Pure.
 *
 * Guarantees: one at a time; the app's wish comes first, then priority, age and name; who waits for a state is passed over and holds nobody;
 * what was made for a wish is begun for that wish alone.
 */
import { scheduleFinalizer } from '../schedule/child.ts'
import type { App, LifecycleView, Op, View } from '../view.ts'
import { endingOf } from './wish.ts'

/** Marks an Operation that carries out a wish of the app with this uid. */
export const wishLabel = 'shipmate.dev/wish-of'

export interface QueueOptions {
  /** The name of the Operation of the app's wish. */
  readonly wished: string | undefined
  /** What is observed. */
  readonly state: string
  /** The action that comes next on the way to what is wished. */
  readonly asked: string | undefined
  /** Whether the app is on its way to a Delete state: then its wish alone is carried out. */
  readonly isEnding: boolean
}

export interface Queue {
  /** The one to begin now. */
  readonly next: Op | undefined
  /** The others that could be begun or wait, in order, and what for. */
  readonly waiting: readonly { readonly op: Op; readonly for: string }[]
}

export function queueOf({ app, operations, lifecycle, workload }: View, options: QueueOptions): Queue {
  const open = operations.filter(op => endingOf(op.status) === undefined).toSorted(byTurn(options.wished))
  const waiting: { op: Op; for: string }[] = []
  let next: Op | undefined
  for (const op of open) {
    const isOfOther = isOfWish(op, app) && op.metadata.name !== options.wished
    const held = isOfOther
      ? 'its wish, which is another one now'
      : heldBy(op, options, lifecycle, workload?.isRollingOut ?? false)
    if (held !== undefined) waiting.push({ op, for: held })
    else if (next) waiting.push({ op, for: `its turn, after ${next.metadata.name}` })
    else next = op
  }
  return { next, waiting }
}

/** Whether it was made for a wish of the app, now or before. */
export function isOfWish({ metadata }: Op, app: App): boolean {
  return metadata.labels?.[wishLabel] === app.metadata.uid
}

function byTurn(wished: string | undefined): (a: Op, b: Op) => number {
  const isWished = (op: Op) => (op.metadata.name === wished ? 0 : 1)
  return (a, b) =>
    isWished(a) - isWished(b) ||
    (b.spec.priority ?? 0) - (a.spec.priority ?? 0) ||
    String(a.metadata.creationTimestamp).localeCompare(String(b.metadata.creationTimestamp)) ||
    a.metadata.name.localeCompare(b.metadata.name)
}

/** What keeps an Operation from being begun; undefined if nothing does. */
function heldBy(
  op: Op,
  { wished, state, isEnding, asked }: QueueOptions,
  lifecycle: LifecycleView | undefined,
  isRollingOut: boolean,
): string | undefined {
  // Who is cancelled needs no turn: it is ended where it stands.
  if (isCancelled(op)) return undefined
  if (op.metadata.finalizers?.includes(scheduleFinalizer)) return 'its schedule to have noted it'
  if (op.spec.suspend) return 'suspend to be taken away'
  const isWish = op.metadata.name === wished
  if (isWish && asked !== op.spec.action) return `${op.spec.action} to be what comes next`
  if (isEnding && !isWish) return 'the app to be started again'
  const action = lifecycle?.spec.actions?.find(({ name }) => name === op.spec.action)
  const transient = lifecycle?.graph.transientOf(op.spec.action)
  if (transient && !isWish && !lifecycle?.graph.node(state)?.next.includes(transient.name))
    return `a state from which ${transient.name} follows; it is ${state}`
  if (isRollingOut && !action?.duringRollout) return 'the rollout of the workload to be done'
  return undefined
}

export function isCancelled(op: Op): boolean {
  return op.spec.cancel === true || op.metadata.deletionTimestamp !== undefined
}
