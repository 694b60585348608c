/**
 * Events of the core group and of events.k8s.io are the same objects under two sets of names. Pure.
 */
import type { Obj } from '../types.ts'

/** Core name, name in events.k8s.io. */
const names: readonly (readonly [string, string])[] = [
  ['involvedObject', 'regarding'],
  ['message', 'note'],
  ['source', 'deprecatedSource'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'],
  ['lastTimestamp', 'deprecatedLastTimestamp'],
  ['count', 'deprecatedCount'],
  ['reportingComponent', 'reportingController'],
]
const toNew = new Map(names)
const toCore = new Map(names.map(([core, other]) => [other, core]))
const seen = new WeakMap<Obj, Obj>()

export function toNewEvent(event: Obj): Obj {
  let made = seen.get(event)
  if (!made) {
    made = renamed(event, toNew, 'events.k8s.io/v1')
    seen.set(event, made)
  }
  return made
}

export const toCoreEvent = (event: Obj): Obj => renamed(event, toCore, 'v1')

function renamed(
  { kind, metadata, apiVersion: _, ...fields }: Obj,
  to: ReadonlyMap<string, string>,
  apiVersion: string,
): Obj {
  const entries = Object.entries(fields).map(([name, value]) => [to.get(name) ?? name, value])
  return { kind, apiVersion, metadata, ...Object.fromEntries(entries) }
}
