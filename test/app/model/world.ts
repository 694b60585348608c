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
  /** Whether its wrapper has seen the end; not if that died with it. */
  readonly isSeen: boolean
}

export interface Rest {
  readonly now: number
  readonly ops: readonly Op[]
  readonly pods: readonly Pod[]
  readonly replicas: number
  readonly kept: number | undefined
}

/** A reconciliation under way. */
export interface Controller {
  /** Undefined: it has not read it yet. */
  readonly app: App | undefined
  /** Everything else, as it was when it looked; undefined: it has to look. */
  readonly rest: Rest | undefined
  readonly states: readonly (readonly [uid: string, PodState])[]
  readonly refusals: readonly (readonly [id: string, { code: string; isOfAnnul: boolean }])[]
  readonly verdicts: readonly (readonly [id: string, Verdict])[]
  /** Runs as they were answered, by the pod's uid. */
  readonly answers: readonly (readonly [uid: string, Run])[]
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
  /** How often a long time may still pass. */
  readonly ages: number
  /** Uids that were given. */
  readonly uids: number
  /** Every Operation that was ever made for a wish: and which wish it was. */
  readonly made: readonly { readonly name: string; readonly uid: string; readonly wish: number }[]
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
  /** How often a long time may pass. */
  readonly ages: number
  /** Whether what is read of everything else may be older than the app. */
  readonly canLag: boolean
}

const ids = new Map<string, number>()
const known = new WeakMap<object, number>()

/** The same number for what looks the same. */
export function idOf(value: object, textOf: () => string = () => JSON.stringify(value)): number {
  const before = known.get(value)
  if (before !== undefined) return before
  const text = textOf()
  let id = ids.get(text)
  if (id === undefined) {
    id = ids.size
    ids.set(text, id)
  }
  known.set(value, id)
  return id
}

const all = (many: readonly object[]) => many.map(one => idOf(one)).join(',')

export function controllerId(controller: Controller): number {
  const { app, rest, ...facts } = controller
  return idOf(controller, () => {
    const seen = rest ? [all(rest.ops), all(rest.pods), rest.now, rest.replicas, rest.kept] : []
    return [app ? idOf(app) : '', ...seen, JSON.stringify(facts)].join('|')
  })
}

export function keyOf(world: World): string {
  const { app, ops, pods, zombies, executions, controllers, made, wishes } = world
  // Controllers are alike: which of the two has come how far does not matter.
  const both = controllers.map(controllerId).sort((a, b) => a - b)
  const rest = [world.replicas, world.kept, world.faults, world.cancels, world.ages, wishes.length, world.uids]
  return [idOf(app), all(ops), all(pods), all(zombies), idOf(executions), both.join(','), idOf(made), ...rest].join('|')
}

const stamps: readonly (readonly [string, string])[] = [
  [String(recent), String(old)],
  [new Date(recent).toISOString(), new Date(old).toISOString()],
  [new Date(recent).toISOString().replace('.000', ''), new Date(old).toISOString().replace('.000', '')],
]

/** So much later that all that was recent is old. */
export function later(world: World): World {
  return {
    ...world,
    app: aged(world.app),
    ops: world.ops.map(aged),
    pods: world.pods.map(aged),
    zombies: world.zombies.map(aged),
    controllers: world.controllers.map(aged),
  }
}

const older = new WeakMap<object, object>()

function aged<T extends object>(value: T): T {
  let made = older.get(value)
  if (!made) {
    const text = JSON.stringify(value)
    const after = stamps.reduce((so, [from, to]) => so.replaceAll(from, to), text)
    made = after === text ? value : (JSON.parse(after) as object)
    older.set(value, made)
  }
  return made as T
}

/** The world with another reconciliation in the place of this one, or none. */
export function replaced(world: World, controller: Controller, by: Controller | undefined): World {
  return { ...world, controllers: world.controllers.flatMap(one => (one !== controller ? [one] : (by ?? []))) }
}

export function withPod(world: World, pod: Pod): World {
  const change = (one: Pod) => (one.uid === pod.uid ? pod : one)
  return { ...world, pods: world.pods.map(change), zombies: world.zombies.map(change) }
}

/** Those that are alive and meant, ended without having happened. */
export function killed({ executions }: World, isMeant: (one: Execution) => boolean): World['executions'] {
  return executions.map(one => (one.is === 'alive' && isMeant(one) ? { ...one, is: 'failed' } : one))
}
