/**
 * What becomes of a custom resource and its children when something is deleted, whatever the hooks and other people do.
 */
import { beforeEach, describe, expect, it } from 'vitest'
import { ConfigMap } from '../../controller/kube/kinds.ts'
import { advancedReconciler, freeStyle, type StepHooks } from '../../controller/toolkit/index.ts'
import type { Widget } from '../fixtures/widget.ts'
import { bench } from './bench.ts'

const { at, ref, widget, map, conditions, settings, operate, operateBasic, isReady, quiet, events } = bench()

describe('finalization', () => {
  it('that is given up is waited for: the finalizer stays', async () => {
    let isOpen = false
    operate({
      CRFinalizer({ giveUp }) {
        if (!isOpen) giveUp('frozen by its owner', { requeueAfter: 20_000 })
      },
    })
    await at.world.widget('a')
    await at.world.until('a ready Widget', isReady)
    await at.world.client.delete(at.world.widgets, ref)
    await at.world.until('that it is told', () => conditions().Deleting?.reason === 'GivenUp')
    expect(conditions().Deleting?.message).toBe('frozen by its owner')
    await quiet()
    expect(widget()?.metadata.finalizers).toEqual(['test.example.com/finalizer'])
    isOpen = true
    await at.world.until('that it is gone', () => widget() === undefined)
  })

  it('leaves alone what is not ours, and is not held up by it', async () => {
    await at.world.client.create(ConfigMap, { metadata: ref, data: { value: 'theirs' } })
    const child = settings()
    operate({ CRFinalizer: ({ register, deleteResource }) => deleteResource(register(child)) }, { resources: [child] })
    await at.world.widget('a')
    await at.world.until('a Stalled Widget', () => conditions().Stalled?.status === 'True')
    await at.world.client.delete(at.world.widgets, ref)
    await at.world.until('that it is gone', () => widget() === undefined)
    expect(map()?.data).toEqual({ value: 'theirs' })
  })

  it('ends when its deadline has passed, and not when the next attempt is due', async () => {
    operate(
      {
        CRFinalizer() {
          throw new Error('never')
        },
      },
      { finalizationDeadline: 70_000, throttle: { first: 50_000, jitter: 0 } },
    )
    await at.world.widget('a')
    await at.world.until('a ready Widget', isReady)
    const began = at.world.clock.monotonic()
    await at.world.client.delete(at.world.widgets, ref)
    await at.world.until('that it is gone', () => widget() === undefined, 300_000)
    expect(at.world.clock.monotonic() - began).toBeLessThan(75_000)
  })

  it('is not held up by a name that cannot be worked out', async () => {
    const child = settings({
      name: cr => {
        if (cr.spec.value === 'broken') throw new Error('no such name')
        return cr.metadata.name
      },
      owner: false,
      finalizer() {},
    })
    operate({}, { resources: [child] })
    await at.world.widget('a', 'one')
    await at.world.until('a ready Widget', isReady)
    await at.world.change(ref, 'broken')
    await at.world.until('that it is told', () => conditions().Ready?.status === 'False')
    await at.world.client.delete(at.world.widgets, ref)
    await at.world.until('that it is gone', () => widget() === undefined)
  })
})

describe('a child with a finalizer of its own is not left held', () => {
  const childFinalizer = 'test.example.com/child'
  const isFree = (name = 'a') => !(map(name)?.metadata.finalizers ?? []).includes(childFinalizer)

  it('when the deadline of the custom resource passes', async () => {
    const child = settings({
      finalizer() {
        throw new Error('never')
      },
    })
    operate({}, { resources: [child], finalizationDeadline: 20_000 })
    await at.world.widget('a')
    await at.world.until('a ready Widget', isReady)
    await at.world.client.delete(at.world.widgets, ref)
    await at.world.until('that it is gone', () => widget() === undefined)
    expect(isFree()).toBe(true)
  })

  it('when it is deleted under a basic reconciler, and it is made anew', async () => {
    const released: string[] = []
    operateBasic({ resources: [settings({ finalizer: ({ object }) => void released.push(object.metadata.uid) })] })
    await at.world.widget('a')
    await at.world.until('a ready Widget', isReady)
    const uid = map()?.metadata.uid
    await at.world.client.delete(ConfigMap, ref)
    await at.world.until('another one', () => map() !== undefined && map()?.metadata.uid !== uid)
    expect(released).toEqual([uid])
  })

  it('when it was declared while the operator ran: the custom resource is held, and it is let go with an Event', async () => {
    operate(
      { ObjectsGetter: ({ register }) => void register(settings({ name: 'x', finalizer() {} })) },
      { resources: [], owns: [ConfigMap] },
    )
    await at.world.widget('a')
    await at.world.until('a ready Widget', isReady)
    expect(widget()?.metadata.finalizers).toEqual(['test.example.com/finalizer'])
    await at.world.client.delete(at.world.widgets, ref)
    await at.world.until('that it is gone', () => widget() === undefined)
    expect(isFree('x')).toBe(true)
    await quiet()
    expect(events().map(({ reason }) => reason)).toContain('ReleasedUnasked')
  })

  it('when it was declared while the operator ran, and CRFinalizer registers it: then its hook runs', async () => {
    const released: string[] = []
    const child = settings({ name: 'x', finalizer: ({ object }) => void released.push(object.metadata.name) })
    const register: StepHooks<Widget>['ObjectsGetter'] = context => void context.register(child)
    operate({ ObjectsGetter: register, CRFinalizer: register }, { resources: [], owns: [ConfigMap] })
    await at.world.widget('a')
    await at.world.until('a ready Widget', isReady)
    await at.world.client.delete(at.world.widgets, ref)
    await at.world.until('that it is gone', () => widget() === undefined)
    expect(released).toEqual(['x'])
    expect(isFree('x')).toBe(true)
  })

  it('when a FreeStyle hook makes it: the custom resource is held before it is made', async () => {
    operate(
      {},
      {
        resources: [],
        owns: [ConfigMap],
        engine: freeStyle(async ({ register, createOrUpdateAllResources }) => {
          register(settings({ finalizer() {} }))
          await createOrUpdateAllResources()
        }),
      },
    )
    await at.world.widget('a')
    await at.world.until('a ready Widget', isReady)
    await at.world.client.delete(at.world.widgets, ref)
    await at.world.until('that it is gone', () => widget() === undefined)
    expect(isFree()).toBe(true)
  })

  it('when its hook is no longer declared', async () => {
    const first = operate({ CRFinalizer() {} }, { resources: [settings({ finalizer() {} })] })
    await at.world.widget('a')
    await at.world.until('a ready Widget', isReady)
    await first.stop()
    await at.world.client.delete(at.world.widgets, ref)
    operate({ CRFinalizer() {} })
    await at.world.until('that it is gone', () => widget() === undefined)
    expect(isFree()).toBe(true)
  })

  it('without being named, where nothing declares its hook any more', async () => {
    const one = (id: string) => settings({ id, name: cr => `${cr.spec.value}-${id}`, finalizer() {} })
    const first = operate({}, { resources: [one('x'), one('y')] })
    await at.world.widget('a', 'old')
    await at.world.until('a ready Widget', isReady)
    await first.stop()
    await at.world.client.delete(ConfigMap, { ...ref, name: 'old-y' })
    operate({}, { resources: [one('x')] })
    await at.world.until('that it is told', () => conditions().Ready?.reason === 'ChildHeld')
    expect(conditions().Ready?.message).toBe(
      `ConfigMap old-y is being deleted, and held by the finalizer ${childFinalizer}.y; ` +
        'nothing declares its hook: it takes a ConfigMap with a finalizer and the id y in `resources`',
    )
    await at.world.client.delete(at.world.widgets, ref)
    await at.world.until('that it is gone', () => widget() === undefined)
    expect(['old-x', 'old-y'].filter(name => map(name)?.metadata.finalizers?.length)).toEqual([])
  })
})

describe('of two declarations of one kind, each with a hook', () => {
  const released: string[] = []
  const one = (id: string, more: Parameters<typeof settings>[0] = {}) =>
    settings({
      ...{ id, name: cr => `${cr.spec.value}-${id}` },
      finalizer: ({ object }) => void released.push(`${id} of ${object.metadata.name}`),
      ...more,
    })
  beforeEach(() => void released.splice(0))

  it('that of its own runs, though its name is another by now', async () => {
    operate({}, { resources: [one('x'), one('y')] })
    await at.world.widget('a', 'old')
    await at.world.until('a ready Widget', isReady)
    await at.world.change(ref, 'new')
    await at.world.until('that the old ones are gone', () => !map('old-x') && !map('old-y'))
    expect(released.sort()).toEqual(['x of old-x', 'y of old-y'])
    await at.world.until('a ready Widget', isReady)
  })

  it('that of its own runs, without an owner, though its name is another by now', async () => {
    operate({}, { resources: [one('x', { owner: false }), one('y', { owner: false })] })
    await at.world.widget('a', 'old')
    await at.world.until('a ready Widget', isReady)
    await at.world.change(ref, 'new')
    await at.world.until('the new ones', () => map('new-x') !== undefined && map('new-y') !== undefined)
    await at.world.until('a ready Widget', isReady)
    await at.world.client.delete(at.world.widgets, ref)
    await at.world.until('that it is gone', () => widget() === undefined)
    expect(released.sort()).toEqual(['x of new-x', 'x of old-x', 'y of new-y', 'y of old-y'])
  })

  it('a child without an owner that was declared while the operator ran is found, and runs the hook of its id', async () => {
    operate(
      {
        ObjectsGetter({ cr, register }) {
          for (const name of ['1', '2']) register(one('y', { owner: false, name: `${cr.metadata.name}-${name}` }))
        },
      },
      { resources: [one('x'), one('y', { owner: false })] },
    )
    await at.world.widget('a')
    await at.world.until('a ready Widget', isReady)
    await at.world.client.delete(at.world.widgets, ref)
    await at.world.until('that it is gone', () => widget() === undefined)
    expect(released.sort()).toEqual(['y of a-1', 'y of a-2'])
  })

  it('an id is asked for, and has to be one that a finalizer can have', () => {
    const reconciler = (...ids: (string | undefined)[]) =>
      advancedReconciler(at.world.widgets, { resources: ids.map(id => settings({ id, finalizer() {} })) })
    expect(() => reconciler(undefined, undefined)).toThrow('say another `id` in each')
    expect(() => reconciler('x', 'x')).toThrow('have a finalizer and the id x')
    expect(() => reconciler('no/such')).toThrow('lower-case letters, digits and -')
    expect(reconciler('x', undefined).mayHold).toBe(true)
  })
})

it('CRFinalizer can delete all children with what they own, and waits until they are gone', async () => {
  const theirs = 'theirs.example.com/hold'
  const operator = operate(
    { CRFinalizer: ({ deleteAllResources }) => deleteAllResources({ propagation: 'Foreground' }) },
    { resources: [settings(), settings({ name: 'b' })] },
  )
  await at.world.widget('a')
  await at.world.until('a ready Widget', isReady)
  // As a Deployment is held by its pods, on a server that has a garbage collector.
  await at.world.client.patch(ConfigMap, ref, { merge: { metadata: { finalizers: [theirs] } } })
  await at.world.client.delete(at.world.widgets, ref)
  await at.world.until('that it waits', () => conditions().Deleting?.reason === 'ChildrenGoing')
  expect(conditions().Deleting?.message).toBe('ConfigMap a: being deleted')
  expect(map('b')).toBeUndefined()
  const asked = operator.requests
    .filter(({ method }) => method === 'DELETE')
    .map(({ body }) => JSON.parse(body ?? '{}'))
  expect(asked).toMatchObject([{ propagationPolicy: 'Foreground' }, { propagationPolicy: 'Foreground' }])
  await at.world.client.patch(ConfigMap, ref, { merge: { metadata: { finalizers: null } } })
  await at.world.until('that it is gone', () => widget() === undefined)
})
