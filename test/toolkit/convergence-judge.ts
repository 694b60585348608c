/**
 * What has to hold in a random schedule: of every write, at the moment of that write; and of all that is there, in the end.
 *
 * It knows what people have done and what the custom resources have said, and nothing of what the operator thinks.
 */
import { keyOf, type Live, type Ref, resourceOf, type Snapshot } from '../../controller/kube/kind.ts'
import type { Condition } from '../../controller/toolkit/index.ts'
import { equal, isMap } from '../fixtures/field-owners.ts'
import type { Deed, ModelServer } from '../fixtures/model-server.ts'
import type { Widget } from '../fixtures/widget.ts'
import {
  type AnyKind,
  childFinalizer,
  finalizer,
  type Scenario,
  type Seen,
  type Sort,
  type Wish,
} from './convergence-scenario.ts'

type Child = Live & Record<string, unknown>

export interface Judge {
  /** Every value that a custom resource has had, by its uid. */
  readonly said: Map<string, { readonly name: string; readonly values: string[] }>
  /** Objects that are somebody else's, by their uids, as they made them. */
  readonly foreign: Map<string, { readonly kind: AnyKind; readonly ref: Ref; readonly object: Live }>
  /** What is wrong with a write of the operator; undefined if nothing is. */
  faultOf(deed: Deed): string | undefined
  /** What is not as wished; undefined if all is. */
  difference(): string | undefined
  /** What is left once every custom resource has gone, and should not be; undefined if all is well. */
  leftover(): string | undefined
  find(kind: AnyKind, ref: Ref): Child | undefined
  crs(): Snapshot<Widget>[]
}

export function createJudge(server: ModelServer, scenario: Scenario, seen: Seen): Judge {
  const { kind, isBasic, sorts, wishes } = scenario
  const said: Judge['said'] = new Map()
  const foreign: Judge['foreign'] = new Map()
  const kinds = [...new Set(sorts.map(one => one.kind))]

  const list = (of: AnyKind) => server.list(resourceOf(of)) as Child[]
  const find = (of: AnyKind, ref: Ref) => list(of).find(({ metadata }) => keyOf(metadata) === keyOf(ref))
  const crs = () => list(kind) as unknown as Snapshot<Widget>[]

  /** For which custom resource a child was made, and as which sort; undefined where it is nobody's. */
  function childOf(
    deed: Deed,
    { metadata }: Live,
  ): { uid: string; name: string; sort: Sort; values: string[] } | undefined {
    for (const sort of sorts) {
      if (sort.kind.plural !== deed.target.resource || sort.kind.group !== deed.target.group) continue
      for (const [uid, { name, values }] of [...said].reverse()) {
        const isPlace = values.some(value =>
          Array.from({ length: sort.many(value) }, (_, i) => keyOf(sort.place(name, value, i))).includes(
            keyOf(metadata),
          ),
        )
        const controller = controllerOf(metadata)
        if (isPlace && (!controller || controller === uid)) return { uid, name, sort, values }
      }
    }
    return undefined
  }

  function faultOfDeletion(deed: Deed, before: Live): string | undefined {
    const what = `${deed.target.resource} ${deed.target.name}`
    if (isBasic) return `the Basic reconciler deleted ${what}`
    const child = childOf(deed, before)
    if (!child) return `${what} was deleted, which is nobody's child`
    const { sort, name, values } = child
    const { fixed } = sort
    const isOther = (value: string) => fixed && sort.content(value)[fixed] !== (before as Child)[fixed]
    if (values.some(isOther)) return undefined
    const isWished = (value: string) =>
      wishes(name, value).some(({ sort: of, ref }) => of === sort && keyOf(ref) === keyOf(before.metadata))
    if (!sort.isOwned) return `${what} was deleted, which has no owner`
    return values.every(isWished) ? `${what} was deleted, which was always wished` : undefined
  }

  function faultOf(deed: Deed): string | undefined {
    const { target, before, after } = deed
    const what = `${target.resource} ${target.name}`
    if (before && foreign.has(before.metadata.uid)) return `${what} is somebody else's, and was written: ${target.verb}`
    if (target.resource === kind.plural) {
      const isLetGo = has(before, finalizer) && !has(after, finalizer)
      return isLetGo && !seen.finalized.has(before?.metadata.uid ?? '')
        ? `${what} was let go, and not finalized`
        : undefined
    }
    if (!kinds.some(({ plural, group }) => plural === target.resource && group === target.group)) return undefined
    if (before && target.verb === 'delete') return faultOfDeletion(deed, before)
    if (before && after && !equal(partsOf(before), partsOf(after)) && (isBasic || childOf(deed, before)?.sort.isOnce))
      return `${what} was there, and to be left as it is; it was written`
    if (before && has(before, childFinalizer) && !has(after, childFinalizer))
      return seen.released.has(before.metadata.uid) ? undefined : `${what} was let go before its hook had succeeded`
    if (after && !before) {
      const child = childOf(deed, after)
      if (!child) return `${what} was made, which nobody wishes`
      const cr = crs().find(({ metadata }) => metadata.uid === child.uid)
      const isHeld = !cr || cr.metadata.deletionTimestamp || cr.metadata.finalizers?.includes(finalizer)
      if (child.sort.hasHook && !isHeld) return `${what} was made with a hook, and ${child.name} is not held`
    }
    return undefined
  }

  function faultOfChild({ metadata }: Snapshot<Widget>, { sort, ref, content }: Wish): string | undefined {
    const what = `the ${sort.title} of ${metadata.name}, ${sort.kind.kind} ${keyOf(ref)},`
    const child = find(sort.kind, ref)
    if (!child) return `${what} is not there`
    if (child.metadata.deletionTimestamp) return `${what} is being deleted`
    if (isBasic || sort.isOnce) return undefined
    if (!carries(content, child)) return `${what} is not ${JSON.stringify(content)} but ${JSON.stringify(child)}`
    if (child.metadata.labels?.['app'] !== 'widget' && !scenario.chooses) return `${what} has lost its label`
    if (has(child, childFinalizer) !== sort.hasHook) return `${what} has the finalizers ${child.metadata.finalizers}`
    if (controllerOf(child.metadata) !== (sort.isOwned ? metadata.uid : undefined))
      return `${what} is owned by ${controllerOf(child.metadata)}`
    return undefined
  }

  function faultOfCr(cr: Snapshot<Widget>): string | undefined {
    const { name, uid, deletionTimestamp } = cr.metadata
    const { value } = cr.spec
    if (deletionTimestamp) return `${name} is still being deleted`
    const all = wishes(name, value)
    const blocked = all.filter(({ sort, ref }) => foreign.has(find(sort.kind, ref)?.metadata.uid ?? ''))
    const isBlocked = blocked.length > 0
    const waits = blocked.some(({ sort }) => sort.title === 'settings') ? 'once' : ''
    const able =
      isBlocked && scenario.stopOnError ? [] : all.filter(one => !blocked.includes(one) && one.sort.title !== waits)
    for (const wish of able) {
      const fault = faultOfChild(cr, wish)
      if (fault) return fault
    }
    const { observedValue, conditions = [] } = (cr.status ?? {}) as { observedValue?: string; conditions?: Condition[] }
    const is = (type: string) => conditions.find(one => one.type === type)
    if (isBlocked)
      return is('Stalled')?.status === 'True'
        ? undefined
        : `${name} does not say that ${keyOf(blocked[0]?.ref as Ref)} is somebody else's: ${JSON.stringify(conditions)}`
    if (!isBasic)
      for (const of of kinds)
        for (const { metadata } of list(of))
          if (
            controllerOf(metadata) === uid &&
            !all.some(({ sort, ref }) => sort.kind === of && keyOf(ref) === keyOf(metadata))
          )
            return `${of.kind} ${keyOf(metadata)} is left of what ${name} wished once`
    if (observedValue !== value) return `the status of ${name} says ${observedValue}, not ${value}`
    return is('Ready')?.status === 'True' ? undefined : `${name} is not Ready: ${is('Ready')?.message}`
  }

  /** What is held though nobody is there to let it go. */
  function held(): string | undefined {
    const there = crs()
    for (const of of kinds)
      for (const child of list(of)) {
        if (!has(child, childFinalizer) || foreign.has(child.metadata.uid)) continue
        const controller = controllerOf(child.metadata)
        const isCaredFor = there.some(({ metadata }) =>
          controller
            ? controller === metadata.uid
            : child.metadata.annotations?.['shipmate.dev/maker']?.endsWith(`/${metadata.name}`),
        )
        if (!isCaredFor) return `${of.kind} ${keyOf(child.metadata)} is held for a custom resource that is gone`
      }
    return undefined
  }

  function harmed(): string | undefined {
    for (const { kind: of, ref, object } of foreign.values())
      if (!equal(find(of, ref), object))
        return `${of.kind} ${keyOf(ref)}, which is somebody else's, is not as they made it`
    return undefined
  }

  return {
    ...{ said, foreign, faultOf, find, crs },
    difference() {
      for (const cr of crs()) {
        const fault = faultOfCr(cr)
        if (fault) return fault
      }
      return held() ?? harmed()
    },
    leftover() {
      const [cr] = crs()
      if (cr) return `${cr.metadata.name} does not go: ${JSON.stringify(cr.status)}`
      for (const of of kinds)
        for (const { metadata } of list(of))
          if (controllerOf(metadata) && !foreign.has(metadata.uid)) return `${of.kind} ${keyOf(metadata)} does not go`
      return held() ?? harmed()
    },
  }
}

/** What a person sees of an object. */
function partsOf({ metadata, ...body }: Live): object {
  const { labels, annotations, ownerReferences } = metadata
  return { ...body, labels, annotations, ownerReferences }
}

function controllerOf(metadata: Live['metadata']): string | undefined {
  return metadata.ownerReferences?.find(one => one.controller)?.uid
}

function has(object: Live | undefined, one: string): boolean {
  // A declaration's own id may follow.
  return (
    object?.metadata.finalizers?.some(
      given => given === one || given.startsWith(`${one}-`) || given.startsWith(`${one}.`),
    ) ?? false
  )
}

function carries(wished: unknown, live: unknown): boolean {
  if (!isMap(wished)) return equal(wished, live)
  return isMap(live) && Object.entries(wished).every(([name, part]) => carries(part, live[name]))
}
