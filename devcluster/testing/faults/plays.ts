/**
 * What goes wrong, one fault for each run: the operator dies at a request, sees an older state, misses what happened, or finds its custom resources changed
 * under its hands. Each run has to come to the same as the undisturbed one, and to leave nothing.
 */
import { Conflict, Invalid, NotFound } from '../../../controller/kube/errors.ts'
import type { Kind, Ref } from '../../../controller/kube/kind.ts'
import type { Weather } from '../line.ts'
import { operatorsOf } from '../operator.ts'
import { differences, type Picture } from './judge.ts'
import { revisionOf, type Stage, type StageOptions, setStage } from './stage.ts'
import { patchOf, type Schema, type Variant, variantsOf } from './variants.ts'

/** What the undisturbed run was. */
export interface Reference {
  readonly picture: Picture
  /** What was asked, in order; those of the first part until all was at rest. */
  readonly asked: readonly string[]
  readonly applying: number
  /** What was written until all was at rest, and until it was gone. */
  readonly writes: readonly string[]
  /** Events that the operator heard of until all was at rest. */
  readonly events: number
  readonly variants: readonly (Variant & { readonly kind: Kind; readonly ref: Ref })[]
}

export interface Fault {
  readonly name: FaultName
  /** By which one run is asked for again. */
  readonly id: string
  /** What is wrong in the end. */
  play(random: () => number): Promise<string[]>
}

export const faultNames = ['crash', 'stale', 'gaps', 'mutations'] as const
export type FaultName = (typeof faultNames)[number]

/** The undisturbed run, and what is wrong already in that. */
export async function refer(
  options: StageOptions,
  random: () => number,
): Promise<{ reference: Reference; wrong: string[] }> {
  const stage = await setStage(options, {}, random)
  try {
    await stage.apply()
    const picture = stage.picture()
    const [applying, events] = [stage.host.ledger.requests, stage.host.ledger.events]
    const variants = await variantsIn(stage, options)
    await stage.delete()
    const asked = stage.asked().map(({ text }) => text)
    const wrong = stage.left()
    const writes = stage.writes.map(({ text }) => text)
    await stage.apply()
    const again = differences(stage.picture(), picture).map(text => `applied once more: ${text}`)
    const idle = (await stage.idleWrites()).map(text => `it writes though nothing has changed: ${text}`)
    const from = stage.asked().length
    await stage.host.restart()
    await stage.settled()
    const restarted = stage
      .asked()
      .slice(from)
      .flatMap(({ isWrite, isAside, text }) => (isWrite && !isAside ? [`it writes when it is restarted: ${text}`] : []))
    return {
      reference: { picture, asked, applying, writes, events, variants },
      wrong: [...wrong, ...again, ...idle, ...restarted],
    }
  } finally {
    await stage.stop()
  }
}

async function variantsIn({ host }: Stage, { operator }: StageOptions): Promise<Reference['variants'][number][]> {
  const crds = operatorsOf(operator).flatMap(one => [...(one.crds?.() ?? [])]) as Definition[]
  return host.applied.flatMap(({ kind, object }) => {
    const crd = crds.find(({ spec }) => spec.group === kind.group && spec.names.plural === kind.plural)
    const schema = crd?.spec.versions.find(({ name }) => name === kind.version)?.schema?.openAPIV3Schema?.properties?.[
      'spec'
    ]
    const { name = '', namespace = 'default' } = object.metadata ?? {}
    const ref = kind.namespaced ? { name, namespace } : { name }
    return variantsOf((object as { spec?: unknown }).spec, schema).map(variant => ({ ...variant, kind, ref }))
  })
}

interface Definition {
  readonly spec: {
    readonly group: string
    readonly names: { readonly plural: string }
    readonly versions: readonly { readonly name: string; readonly schema?: { readonly openAPIV3Schema?: Schema } }[]
  }
}

/** Every fault that the undisturbed run gives room for. */
export function faultsOf(options: StageOptions, reference: Reference): Fault[] {
  return [
    ...crashes(options, reference),
    ...staleReads(options, reference),
    ...gaps(options, reference),
    ...mutations(options, reference),
  ]
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

function crashes(options: StageOptions, reference: Reference): Fault[] {
  const around = (when: 'before' | 'after', at: number): Fault => ({
    name: 'crash',
    id: `crash ${when} request ${at}${named(reference.asked[at - 1])}`,
    async play(random) {
      const weather: Weather = { [when === 'before' ? 'diesBefore' : 'diesAfter']: (number: number) => number === at }
      return onStage(options, weather, random, async stage => {
        await stage.apply()
        const wrong = differences(stage.picture(), reference.picture)
        const isOver = stage.host.ledger.requests >= at
        return [...wrong, ...(isOver ? await idle(stage) : []), ...(await end(stage))]
      })
    },
  })
  return numbers(reference.asked.length).flatMap(at => [around('before', at), around('after', at)])
}

const named = (text: string | undefined) => (text ? ` (${text})` : '')

/** A restarted operator sees what was there after one of its earlier writes; later what is there now. */
function staleReads(options: StageOptions, reference: Reference): Fault[] {
  const seen = (life: 'the same' | 'an earlier', at: number): Fault => ({
    name: 'stale',
    id: `stale reads as of write ${at}${named(reference.writes[at - 1])} in ${life} life`,
    async play(random) {
      const weather: Weather = {}
      return onStage(options, weather, random, async stage => {
        await stage.apply()
        if (life === 'an earlier') {
          await stage.delete()
          await stage.apply()
        }
        const revision = stage.writes[at - 1]?.revision ?? revisionOf(stage.host)
        const held = Promise.withResolvers<void>()
        weather.held = held.promise
        weather.instead = request => (request.target.verb === 'list' ? asOf(request, revision) : request)
        await stage.host.restart()
        await stage.host.settled(60_000)
        // From now on it sees what is there.
        weather.instead = request => request
        weather.held = undefined
        held.resolve()
        await stage.settled()
        return [...differences(stage.picture(), reference.picture), ...(await idle(stage)), ...(await end(stage))]
      })
    },
  })
  return [
    ...numbers(reference.writes.length).map(at => seen('the same', at)),
    ...numbers(reference.writes.length).map(at => seen('an earlier', at)),
  ]
}

function asOf<R extends { readonly path: string }>(request: R, revision: number): R {
  const [path = '', query = ''] = request.path.split('?')
  const wish = new URLSearchParams(query)
  if (wish.has('continue')) return request
  wish.set('resourceVersion', String(revision))
  wish.set('resourceVersionMatch', 'Exact')
  return { ...request, path: `${path}?${wish}` }
}

/** Milliseconds of fast time for which nothing is heard: longer than it takes to come to rest without that; and at most. */
const usualGap = 30_000
const longestGap = 300_000

/** What happens is not heard of; then all is listed anew. */
function gaps(options: StageOptions, reference: Reference): Fault[] {
  const gap = (id: string, first: number, meanwhile?: (stage: Stage) => Promise<unknown>): Fault => ({
    name: 'gaps',
    id,
    async play(random) {
      const expired = Promise.withResolvers<void>()
      let from = first
      let stage: Stage | undefined
      let state: 'coming' | 'here' | 'over' = 'coming'
      const finish = () => {
        state = 'over'
        weather.expired = undefined
        expired.resolve()
      }
      // A scenario that waits for the operator would wait in vain for one that hears nothing.
      const begin = () => {
        state = 'here'
        stage?.host.after(meanwhile ? longestGap : usualGap, finish)
      }
      const weather: Weather = {
        expired: expired.promise,
        isDeaf(number) {
          if (state === 'coming' && number >= from) begin()
          return state === 'here'
        },
      }
      return onStage(options, weather, random, async made => {
        stage = made
        if (state === 'here') begin()
        await made.apply()
        if (meanwhile) {
          from = 0
          begin()
          await meanwhile(made)
        }
        finish()
        await made.settled()
        // What its finalizer held could not be made again before.
        if (meanwhile) await made.apply()
        return [...differences(made.picture(), reference.picture), ...(await idle(made)), ...(await end(made))]
      })
    },
  })
  const never = Number.POSITIVE_INFINITY
  return [
    ...numbers(reference.events).map(at => gap(`gap from event ${at} on`, at)),
    gap('gap while it is deleted and made again', never, async stage => {
      await stage.deleteNow()
      await stage.host.settled(60_000)
      await stage.play().catch(unlessHeld)
      await stage.host.settled(60_000)
    }),
    ...reference.variants.map(variant =>
      gap(`gap while ${variant.path.join('.')} is changed and changed back`, never, stage =>
        toggle(stage, variant, () => stage.host.settled(60_000)),
      ),
    ),
  ]
}

/** Custom resources are changed and changed back, and deleted in the middle of it. */
function mutations(options: StageOptions, reference: Reference): Fault[] {
  const changed = (variant: Reference['variants'][number]): Fault => ({
    name: 'mutations',
    id: `${variant.kind.kind} ${variant.ref.name}: ${variant.path.join('.')} changed and changed back`,
    async play(random) {
      return onStage(options, {}, random, async stage => {
        await stage.apply()
        await toggle(stage, variant, () => stage.settled())
        await stage.settled()
        const slowly = differences(stage.picture(), reference.picture)
        await toggle(stage, variant, async () => undefined)
        await stage.settled()
        const fast = differences(stage.picture(), reference.picture).map(text => `at once: ${text}`)
        return [...slowly, ...fast, ...(await idle(stage)), ...(await end(stage))]
      })
    },
  })
  const deleted = (at: number): Fault => ({
    name: 'mutations',
    id: `deleted at request ${at}${named(reference.asked[at - 1])}, then made again`,
    async play(random) {
      let stage: Stage | undefined
      const weather: Weather = { onAnswer: async number => (number === at ? stage?.deleteNow() : undefined) }
      return onStage(options, weather, random, async made => {
        stage = made
        await made.apply().catch(unlessGone)
        await made.delete()
        const left = made.left()
        await made.apply()
        return [...left, ...differences(made.picture(), reference.picture), ...(await end(made))]
      })
    },
  })
  return [...reference.variants.map(changed), ...numbers(reference.applying).map(deleted)]
}

async function toggle(
  { host }: Stage,
  { kind, ref, path, values, was }: Reference['variants'][number],
  between: () => Promise<unknown>,
): Promise<void> {
  for (const value of values) {
    try {
      await host.client.patch(kind, ref, { merge: patchOf(path, value) })
    } catch (error) {
      if (error instanceof Invalid) continue
      throw error
    }
    await between()
    // What cannot be changed back is no toggle.
    await host.client.patch(kind, ref, { merge: patchOf(path, was) })
    return
  }
}

async function onStage(
  options: StageOptions,
  weather: Weather,
  random: () => number,
  play: (stage: Stage) => Promise<string[]>,
): Promise<string[]> {
  const stage = await setStage(options, weather, random)
  try {
    return await play(stage)
  } catch (error) {
    const said = stage.host.troubles().map(text => `the operator says: ${text}`)
    return [error instanceof Error ? error.message : String(error), ...said]
  } finally {
    await stage.stop()
  }
}

async function idle(stage: Stage): Promise<string[]> {
  return (await stage.idleWrites()).map(text => `it writes though nothing has changed: ${text}`)
}

async function end(stage: Stage): Promise<string[]> {
  await stage.delete()
  return stage.left()
}

function unlessGone(error: unknown): void {
  if (!(error instanceof NotFound || error instanceof Conflict)) throw error
}

/** What is being deleted cannot be changed in every way. */
function unlessHeld(error: unknown): void {
  if (!(error instanceof Conflict || error instanceof Invalid)) throw error
}
