/**
 * Kinds that may be absent, finalizers that wait, and metrics of an operator's own.
 */
import { Counter, Gauge } from 'prom-client'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Forbidden } from '../../controller/kube/errors.ts'
import { type Kind, resourceOf, type Snapshot } from '../../controller/kube/kind.ts'
import { ConfigMap } from '../../controller/kube/kinds.ts'
import {
  type AdvancedOptions,
  addTo,
  advancedReconciler,
  type Condition,
  mutable,
  type StepHooks,
  stepper,
} from '../../controller/toolkit/index.ts'
import { type Widget, widgetKind } from '../fixtures/widget.ts'
import { type Operator, World } from '../fixtures/world.ts'

let world: World
beforeEach(() => {
  world = new World()
})
afterEach(() => world.end())

const Gadget: Kind<Widget> = { ...widgetKind('gadgets.example.com'), kind: 'Gadget', plural: 'gadgets' }
const ref = { name: 'a', namespace: 'default' }
const find = <T extends object>(kind: Kind<T>) =>
  world.server.list(resourceOf(kind)).find(({ metadata }) => metadata.name === 'a') as Snapshot<T> | undefined
const condition = (type: string): Condition | undefined =>
  (find(world.widgets)?.status as { conditions?: Condition[] } | undefined)?.conditions?.find(one => one.type === type)
const isReady = () => condition('Ready')?.status === 'True'
const quiet = () => world.clock.advance(30_000)

function operate(hooks: StepHooks<Widget>, options: AdvancedOptions<Widget>): Operator {
  const reconciler = advancedReconciler(world.widgets, { engine: stepper(hooks), ...options })
  return world.start(manager => addTo(manager, reconciler), { name: 'widgets' })
}

describe('a child of a kind that may be absent', () => {
  const gadget = () =>
    mutable(Gadget, world.widgets, {
      optional: true,
      mutateWithInitialData: cr => ({ spec: { value: cr.spec.value } }),
    })
  const settings = () => mutable(ConfigMap, world.widgets, { mutateWithInitialData: () => ({ data: { a: 'b' } }) })

  function start() {
    const [optional, usual] = [gadget(), settings()]
    return operate(
      {
        ObjectsGetter({ register }) {
          register(optional)
          register(usual, { after: optional })
        },
        SuccessManager({ client, status }) {
          status.observedValue = client.isServed(Gadget) ? 'served' : 'absent'
        },
      },
      { resources: [optional, usual] },
    )
  }

  it('is left out while it is, without a request; made when it comes; left out again when it goes', async () => {
    const operator = start()
    await world.widget('a', 'one')
    await world.until('a ready Widget', isReady)
    expect(find(ConfigMap), 'what comes after it').toBeDefined()
    expect(find(world.widgets)?.status?.observedValue).toBe('absent')
    await quiet()
    const asked = operator.requests.filter(({ target, stream }) => target.resource === 'gadgets' && !stream)
    expect(asked.filter(({ method }) => method !== 'GET')).toEqual([])
    expect(operator.writes).toEqual(['patch configmaps a', 'patch widgets/status a'])
    for (let round = 0; round < 2; round++) {
      world.server.serve(Gadget)
      await world.until('the Gadget, though nothing else happened', () => find(Gadget)?.spec.value === 'one')
      await world.until('that it is told', () => find(world.widgets)?.status?.observedValue === 'served')
      world.server.unserve(Gadget)
      await world.until('that its absence is told', () => find(world.widgets)?.status?.observedValue === 'absent')
      expect(isReady()).toBe(true)
    }
    await quiet()
    expect(operator.complaints.filter(({ msg }) => msg.startsWith('failed'))).toEqual([])
  })

  it('that is served and may not be read is named, and the rest goes on', async () => {
    const operator = start()
    let isServed = false
    let isRefused = true
    operator.meddle = (request, next) => {
      const isRead = request.target.resource === 'gadgets' && request.method === 'GET'
      if (isRead && isRefused && isServed) throw new Forbidden(403, request.target, { message: 'cannot list' })
      return next(request)
    }
    await world.widget('a', 'one')
    await world.until('a ready Widget', isReady)
    isServed = true
    world.server.serve(Gadget)
    await quiet()
    await world.change(ref, 'two')
    await world.until('that it is told', () => condition('Ready')?.reason === 'KindUnread')
    expect(condition('Ready')?.message).toContain('Gadget a')
    isRefused = false
    await world.until('the Gadget', () => find(Gadget)?.spec.value === 'two', 600_000)
    await world.until('a ready Widget', isReady)
  })

  it('is put back like any other once it is there', async () => {
    world.server.serve(Gadget)
    start()
    await world.widget('a', 'one')
    await world.until('the Gadget', () => find(Gadget) !== undefined)
    await world.client.patch(Gadget, ref, { merge: { spec: { value: 'theirs' } } })
    await world.until('our value', () => find(Gadget)?.spec.value === 'one')
  })

  it('is required if another of its kind is', () => {
    const required = mutable(Gadget, world.widgets, { name: 'b', mutateWithInitialData: () => ({}) })
    expect(advancedReconciler(world.widgets, { resources: [gadget(), required] }).optionalKinds).toEqual([])
    expect(advancedReconciler(world.widgets, { resources: [gadget()], owns: [Gadget] }).optionalKinds).toEqual([])
    expect(advancedReconciler(world.widgets, { resources: [gadget()] }).optionalKinds).toEqual([Gadget])
  })
})

describe('a finalizer that waits', () => {
  const held = () => mutable(ConfigMap, world.widgets, { mutateWithInitialData: () => ({ data: {} }) })
  const waiting: StepHooks<Widget> = {
    async CRFinalizer({ cr, client, condition, waitFor }) {
      const left = client.owned(ConfigMap, cr)
      for (const child of left) if (!child.metadata.deletionTimestamp) await client.delete(ConfigMap, child)
      const isOver = client.owned(ConfigMap, cr).length === 0
      if (!isOver) waitFor('Emptying', 'its settings are going')
      condition({ type: 'Emptied', status: isOver ? 'True' : 'False', reason: 'Looked', message: '' })
    },
  }
  const hold = () =>
    world.client.patch(ConfigMap, ref, { merge: { metadata: { finalizers: ['theirs.example.com/hold'] } } })
  const release = () => world.client.patch(ConfigMap, ref, { merge: { metadata: { finalizers: null } } })

  it('keeps the custom resource, says why, and goes on when something changes', async () => {
    const operator = operate(waiting, { resources: [held()] })
    await world.widget('a')
    await world.until('a ready Widget', isReady)
    await hold()
    await world.client.delete(world.widgets, ref)
    await world.until('that it is told', () => condition('Deleting')?.reason === 'Emptying')
    expect(condition('Deleting')?.message).toBe('its settings are going')
    expect(condition('Emptied')?.status).toBe('False')
    const written = operator.writes.length
    await quiet()
    expect(operator.writes.slice(written), 'what it writes while it waits').toEqual([])
    await release()
    await world.until('that it is gone', () => find(world.widgets) === undefined)
    expect(operator.writes.slice(written), 'the last condition, then the finalizer').toEqual([
      'patch widgets/status a',
      'patch widgets a',
    ])
  })

  it('lets go after its deadline, and says so', async () => {
    const operator = operate(waiting, { resources: [held()], finalizationDeadline: 60_000 })
    await world.widget('a')
    await world.until('a ready Widget', isReady)
    await hold()
    await world.client.delete(world.widgets, ref)
    await world.until('that it waits', () => condition('Deleting') !== undefined)
    await world.until('that it is gone', () => find(world.widgets) === undefined, 70_000)
    await quiet()
    expect(operator.lines.some(({ msg }) => msg === 'let go, though it could not be finalized')).toBe(true)
  })
})

it("an operator's own metrics are served with the others, and may forget what is gone", async () => {
  const visits = new Counter({ name: 'widget_visits_total', help: 'Visits.', registers: [] })
  const sizes = new Gauge({ name: 'widget_size', help: 'Sizes.', labelNames: ['name'], registers: [] })
  const operator = operate(
    {
      SuccessManager({ cr }) {
        visits.inc()
        sizes.set({ name: cr.metadata.name }, cr.spec.value.length)
      },
    },
    { metrics: [visits, sizes], gone: ({ name }) => sizes.remove({ name }) },
  )
  await world.widget('a', 'four')
  await world.until('a ready Widget', isReady)
  expect(await operator.metric('widget_visits_total')).toBeGreaterThanOrEqual(1)
  expect(await operator.metric('widget_size{name="a"}')).toBe(4)
  await world.client.delete(world.widgets, ref)
  await quiet()
  expect(await operator.metric('widget_size{name="a"}')).toBeUndefined()
})
