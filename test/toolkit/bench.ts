/**
 * An operator of Widgets in a world of virtual time, and what a test asks about it.
 */
import { afterEach, beforeEach, expect } from 'vitest'
import { type Kind, type Ref, resourceOf, type Snapshot } from '../../controller/kube/kind.ts'
import { ConfigMap } from '../../controller/kube/kinds.ts'
import {
  type AdvancedOptions,
  addTo,
  advancedReconciler,
  type BasicOptions,
  basicReconciler,
  type Condition,
  type MutableOptions,
  mutable,
  type StepHooks,
  stepper,
} from '../../controller/toolkit/index.ts'
import type { Widget } from '../fixtures/widget.ts'
import { type Operator, World } from '../fixtures/world.ts'

type Map = typeof ConfigMap extends { shape?: infer T } ? NonNullable<T> : never

/** A world for each test, in which nothing may be left when it ends. */
export function bench() {
  const at = { world: undefined as unknown as World }
  beforeEach(() => {
    at.world = new World()
  })
  afterEach(async () => {
    await at.world.end()
    expect(at.world.clock.pending, 'timers that are left when all has stopped').toBe(0)
  })

  const ref = { name: 'a', namespace: 'default' }
  const find = <T extends object>(kind: Kind<T>, { name }: Pick<Ref, 'name'> = ref) =>
    at.world.server.list(resourceOf(kind)).find(({ metadata }) => metadata.name === name) as Snapshot<T> | undefined
  const widget = (name = 'a') => find(at.world.widgets, { name })
  const conditions = (name = 'a'): Record<string, Condition> =>
    Object.fromEntries(
      ((widget(name)?.status as { conditions?: Condition[] } | undefined)?.conditions ?? []).map(one => [
        one.type,
        one,
      ]),
    )

  /** A ConfigMap with the Widget's value. */
  function settings(more: Partial<MutableOptions<Widget, Map>> = {}) {
    return mutable(ConfigMap, at.world.widgets, {
      mutateWithInitialData: () => ({ data: { mode: 'fast' } }),
      mutateWithCR(map, cr) {
        map.data.value = cr.spec.value
      },
      ...more,
    })
  }

  function operate(hooks: StepHooks<Widget> = {}, options: AdvancedOptions<Widget> = {}): Operator {
    const reconciler = advancedReconciler(at.world.widgets, {
      resources: [settings()],
      engine: stepper(hooks),
      ...options,
    })
    return at.world.start(manager => addTo(manager, reconciler), { name: 'widgets' })
  }

  function operateBasic(options: BasicOptions<Widget> = {}): Operator {
    const reconciler = basicReconciler(at.world.widgets, { resources: [settings()], ...options })
    return at.world.start(manager => addTo(manager, reconciler), { name: 'widgets' })
  }

  return {
    at,
    ref,
    find,
    widget,
    conditions,
    settings,
    operate,
    operateBasic,
    map: (name = 'a') => find(ConfigMap, { name }),
    isReady: (name = 'a') => conditions(name).Ready?.status === 'True',
    /** Long enough for anything that is still to happen. */
    quiet: () => at.world.clock.advance(30_000),
    /** What was told through Events: their reasons. */
    events: () => at.world.server.list('events.events.k8s.io') as unknown as { reason: string; note: string }[],
  }
}
