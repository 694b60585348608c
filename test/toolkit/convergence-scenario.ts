/**
 * What an operator of a random schedule looks after: drawn from a seed, with what is to come of it.
 *
 * Children of every sort are drawn: with an owner and without, in the custom resource's namespace, in another and in none, kept and made once, with fields that
 * cannot be changed, with a name that follows from the wish, with hooks; under the Basic reconciler and the Advanced.
 */
import { defineKind, type Kind, keyOf, type Ref, type Snapshot } from '../../controller/kube/kind.ts'
import { ConfigMap, PriorityClass, ResourceQuota, Secret, Service } from '../../controller/kube/kinds.ts'
import {
  type AnyResource,
  advancedReconciler,
  type BasicContext,
  basicReconciler,
  mutable,
  type Reconciler,
  resource,
  stepper,
} from '../../controller/toolkit/index.ts'
import type { Widget } from '../fixtures/widget.ts'

// biome-ignore lint/suspicious/noExplicitAny: children are of many kinds, and looked at as plain data.
export type AnyKind = Kind<any>

const group = 'test.example.com'
export const finalizer = `${group}/finalizer`
export const childFinalizer = `${group}/child`

/** The random source of a schedule, and what it has come to. */
export interface Draw {
  /** A whole number from 0. */
  below(limit: number): number
  chance(probability: number): boolean
}

/** What hooks have seen: uids. */
export interface Seen {
  readonly finalized: Set<string>
  readonly released: Set<string>
  /** Whether a hook is to fail now. */
  fails(): boolean
}

/** A sort of child, as it was drawn. */
export interface Sort {
  readonly title: string
  readonly kind: AnyKind
  readonly isOwned: boolean
  readonly hasHook: boolean
  /** Made once, and then left alone. */
  readonly isOnce: boolean
  /** The field that cannot be changed. */
  readonly fixed: 'type' | 'value' | undefined
  /** Where it is, for a wish. */
  place(name: string, value: string, i: number): Ref
  /** How many there are. */
  many(value: string): number
  /** What has to be in it. */
  content(value: string): Record<string, unknown>
}

/** A child that a custom resource wishes. */
export interface Wish {
  readonly sort: Sort
  readonly ref: Ref
  readonly content: Record<string, unknown>
}

export interface Scenario {
  readonly kind: Kind<Widget>
  readonly isBasic: boolean
  readonly stopOnError: boolean
  /** Only some parts of the settings count. */
  readonly chooses: boolean
  readonly sorts: readonly Sort[]
  readonly reconciler: Reconciler<Widget>
  /** The children that a custom resource of that name wishes. */
  wishes(name: string, value: string): Wish[]
  /** All that is drawn, for a message. */
  readonly text: string
}

const base = { isOwned: true, hasHook: false, isOnce: false, fixed: undefined, many: () => 1 }

/** @param namespace where custom resources are, if they are in one */
export function drawScenario({ below, chance }: Draw, seen: Seen, namespace: string): Scenario {
  const isWide = chance(0.3)
  const kind = defineKind<Widget>({ group, version: 'v1', kind: isWide ? 'Fleet' : 'Widget', namespaced: !isWide })
  const isBasic = chance(0.25)
  const stopOnError = chance(0.3)

  /** The parts that any sort can have. What is in another namespace, or in none, cannot be owned from within one. */
  function drawn(of: AnyKind) {
    const isElsewhere = of.namespaced && chance(0.2)
    const cannotOwn = !isWide && (isElsewhere || !of.namespaced)
    const where = of.namespaced ? { namespace: isElsewhere ? 'elsewhere' : namespace } : {}
    return { kind: of, where, isOwned: !cannotOwn && chance(0.7), hasHook: chance(0.4) }
  }
  function sort(
    of: AnyKind,
    title: string,
    name: (name: string, value: string, i: number) => string,
    more: Pick<Sort, 'content'> & Partial<Sort>,
  ): Sort {
    const { where, ...rest } = drawn(of)
    return { ...base, title, ...rest, place: (...of) => ({ name: name(...of), ...where }), ...more }
  }
  const parity = (value: string) => Number(value) % 2
  const sorts: Sort[] = [
    sort(ConfigMap, 'settings', name => name, { content: value => ({ data: { mode: 'fast', value } }) }),
    sort(Secret, 'once', name => name, { isOnce: true, content: value => ({ data: { value: btoa(value) } }) }),
    sort(Secret, 'fixed', name => `${name}-fixed`, {
      fixed: 'type',
      content: value => ({ type: `example.com/${parity(value)}`, data: { value: btoa(value) } }),
    }),
    sort(PriorityClass, 'wide', name => name, {
      fixed: 'value',
      content: value => ({ value: parity(value), description: `for ${value}` }),
    }),
    sort(ResourceQuota, 'renamed', (name, value) => `${name}-${Number(value) % 3}`, {
      content: value => ({ spec: { hard: { pods: value } } }),
    }),
    sort(Service, 'others', (name, _value, i) => `${name}-${i}`, {
      many: value => Number(value) % 4,
      content: () => ({ spec: { type: 'ClusterIP' } }),
      // Declared while it runs: whoever forgets one knows its hook no more, and without an owner it stays.
      ...{ isOwned: true, hasHook: false, place: (name, _value, i) => ({ name: `${name}-${i}`, namespace }) },
    }),
  ].filter((_, i) => i < 2 || chance(0.6))
  const recreate = chance(0.5) ? true : 'Orphan'
  const chooses = chance(0.3)

  function declare(of: Sort, ref?: Ref): AnyResource<Widget> {
    const { isOwned, hasHook, fixed } = of
    const place = (cr: Snapshot<Widget>) => ref ?? of.place(cr.metadata.name, cr.spec.value, 0)
    const options = {
      name: (cr: Snapshot<Widget>) => place(cr).name,
      ...(of.kind.namespaced && { namespace: (cr: Snapshot<Widget>) => place(cr).namespace ?? '' }),
      ...(!isOwned && { owner: false }),
      ...(hasHook && {
        id: of.title,
        finalizer({ object }: { object: { metadata: { uid: string } } }) {
          if (seen.fails()) throw new Error('the hook fails')
          seen.released.add(object.metadata.uid)
        },
      }),
    }
    if (of.isOnce)
      return resource(of.kind, kind, { ...options, mutateWithInitialData: cr => of.content(cr.spec.value) })
    return mutable(of.kind, kind, {
      ...options,
      mutateWithInitialData: () => ({ metadata: { labels: { app: 'widget' } } }),
      mutateWithCR: (object, cr) => void Object.assign(object, of.content(cr.spec.value)),
      ...(fixed && { recreate }),
      ...(chooses && of.title === 'settings' && { getHashableRef: () => ['data' as const] }),
    })
  }
  const known = new Map(sorts.filter(({ title }) => title !== 'others').map(one => [one, declare(one)]))
  const others = sorts.filter(({ title }) => title === 'others')
  const declareOther = (of: Sort, ref: Ref) => declare(of, ref)

  const wishes: Scenario['wishes'] = (name, value) =>
    sorts.flatMap(of =>
      Array.from({ length: of.many(value) }, (_, i) => ({
        sort: of,
        ref: of.place(name, value, i),
        content: of.content(value),
      })),
    )
  /** The second comes after the first. */
  function register({ cr, register }: BasicContext<Widget>): void {
    const [settings, once, ...rest] = known.values()
    const map = register(settings as AnyResource<Widget>)
    register(once as AnyResource<Widget>, { after: map })
    for (const one of rest) register(one)
    for (const of of others)
      for (let i = 0; i < of.many(cr.spec.value); i++)
        register(declareOther(of, of.place(cr.metadata.name, cr.spec.value, i)))
  }
  const finalize = ({ cr }: BasicContext<Widget>) => void seen.finalized.add(cr.metadata.uid)
  const options = {
    resources: [...known.values()],
    owns: [Service],
    maxCreation: below(4),
    stopOnError,
    concurrency: 1 + below(4),
  }
  const reconciler = isBasic
    ? basicReconciler(kind, {
        ...options,
        async reconcile(context) {
          register(context)
          await context.createAllResources()
          context.status.observedValue = context.cr.spec.value
        },
        finalize,
      })
    : advancedReconciler(kind, {
        ...options,
        engine: stepper({
          ObjectsGetter: register,
          CRFinalizer: finalize,
          SuccessManager({ status, cr }) {
            status.observedValue = cr.spec.value
          },
        }),
      })
  const texts = sorts.map(
    ({ title, isOwned, hasHook, place }) =>
      `${title}${isOwned ? '' : ' unowned'}${hasHook ? ' hooked' : ''} at ${keyOf(place('CR', '0', 0))}`,
  )
  const text = `${isBasic ? 'Basic' : 'Advanced'} ${kind.kind}${stopOnError ? ', stops on errors' : ''}; ${texts.join('; ')}`
  return { kind, isBasic, stopOnError, chooses, sorts, reconciler, wishes, text }
}
