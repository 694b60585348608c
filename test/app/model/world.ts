/**
 * The world around the decisions, as plain data: what the API server has, what the pods have, what really happened, and how far two controllers have come.
 *
 * Guarantees: two worlds that nobody could tell apart have the same key. Times are `old` or `recent`: between the two more has passed than anything waits for.
 */
import type { App, Op } from '../../../controller/app/view.ts'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import type { PodState, Run } from '../../../shared/protocol/schemas.ts'
import type { Verdict } from '../../../shared/run.ts'
import type { RunRecord } from '../../../sidecar/journal/records.ts'

export const old = Date.parse('2026-01-01T00:00:00Z')
export const recent = Date.parse('2026-01-02T00:00:00Z')

/** A pod, its sidecar and its journal. */
export interface Pod {
  readonly name: string
  readonly uid: string
  /** Deleted, and every container seen terminated. */
  readonly isEnded: boolean
  readonly isUp: boolean
  /** Since when it is, or is not, up. */
  readonly since: number
  /** Whether the processes of its runs died when it went down. */
  readonly isEmptied: boolean
  readonly journalId: string
  readonly fence: number
  readonly runs: readonly RunRecord[]
}

/** What really was begun, and what became of it. */
export interface Execution {
  readonly id: string
  readonly op: string
  readonly pod: string
  readonly uid: string
  readonly action: string
  readonly attempt: number
  readonly is: 'alive' | 'happened' | 'failed'
}

/** A reconciliation under way. */
export interface Controller {
  readonly now: number
  /** Undefined: it has read all but the app. */
  readonly app: App | undefined
  readonly ops: readonly Op[]
  readonly pods: readonly Pod[]
  readonly replicas: number
  readonly kept: number | undefined
  readonly states: readonly (readonly [uid: string, PodState])[]
  readonly refusals: readonly (readonly [id: string, { code: string; isOfAnnul: boolean }])[]
  readonly verdicts: readonly (readonly [id: string, Verdict])[]
  /** Runs as they were answered, by the pod's uid. */
  readonly answers: readonly (readonly [uid: string, Run])[]
  readonly asked: readonly string[]
  readonly isEndDone: boolean | undefined
  readonly done: readonly string[]
}

export interface World {
  readonly app: App
  readonly ops: readonly Op[]
  readonly replicas: number
  readonly kept: number | undefined
  readonly pods: readonly Pod[]
  /** Gone from the API server, but not from their nodes. */
  readonly zombies: readonly Pod[]
  readonly executions: readonly Execution[]
  readonly controllers: readonly Controller[]
  /** Faults that may still come. */
  readonly faults: number
  /** Cancellations that may still come. */
  readonly cancels: number
  /** What people still wish, one after the other. */
  readonly wishes: readonly (App['spec']['desired'] | null)[]
  /** Uids that were given. */
  readonly uids: number
  /** Every Operation that was ever made for a wish: its name, and which wish it was. */
  readonly made: readonly { readonly name: string; readonly wish: number; readonly isFor: string }[]
  /** How many wishes there were. */
  readonly wished: number
}

export interface Bounds {
  readonly spec: LifecycleSpec
  readonly replicas: number
  readonly controllers: number
  readonly faults: number
  /** Which of them can come. */
  readonly sorts: readonly string[]
  readonly cancels: number
  readonly wishes: readonly (App['spec']['desired'] | null)[]
  /** Whether runs may also fail. */
  readonly canFail: boolean
  readonly features: readonly string[]
}

const ids = new Map<string, number>()
const known = new WeakMap<object, number>()

/** The same number for what looks the same. */
export function idOf(value: object): number {
  const before = known.get(value)
  if (before !== undefined) return before
  const text = JSON.stringify(value)
  let id = ids.get(text)
  if (id === undefined) {
    id = ids.size
    ids.set(text, id)
  }
  known.set(value, id)
  return id
}

export function keyOf(world: World): string {
  const { app, ops, pods, zombies, executions, controllers, made, wishes } = world
  const all = (many: readonly object[]) => many.map(idOf).join(',')
  // Controllers are alike: which of the two has come how far does not matter.
  const both = controllers.map(idOf).sort((a, b) => a - b)
  const rest = [world.replicas, world.kept, world.faults, world.cancels, wishes.length, world.uids, world.wished]
  return [idOf(app), all(ops), all(pods), all(zombies), idOf(executions), both.join(','), idOf(made), ...rest].join('|')
}

const stamps: readonly (readonly [string, string])[] = [
  [String(recent), String(old)],
  [new Date(recent).toISOString(), new Date(old).toISOString()],
  [new Date(recent).toISOString().replace('.000', ''), new Date(old).toISOString().replace('.000', '')],
]

/** So much later that all that was recent is old. */
export function later<T>(value: T): T {
  let text = JSON.stringify(value)
  for (const [from, to] of stamps) text = text.replaceAll(from, to)
  return JSON.parse(text)
}
