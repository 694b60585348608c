/**
 * Whose an object is: what the toolkit takes for its own, and what it leaves alone.
 */
import { describe, expect, it } from 'vitest'
import { type Kind, resourceOf } from '../../controller/kube/kind.ts'
import { ConfigMap } from '../../controller/kube/kinds.ts'
import { addTo, advancedReconciler, mutable } from '../../controller/toolkit/index.ts'
import { type Widget, widgetKind } from '../fixtures/widget.ts'
import { bench } from './bench.ts'

const { at, ref, find, widget, map, conditions, settings, operate, operateBasic, isReady, quiet } = bench()
const isStalled = (name = 'a') => conditions(name).Stalled?.status === 'True'
const strip = (name: string) =>
  at.world.client.patch(ConfigMap, ref, { merge: { metadata: { annotations: { [name]: null } } } })

describe('an object that is not ours', () => {
  it('is left alone though it carries the hash of another operator', async () => {
    const annotations = { 'shipmate.dev/hash': 'x', 'shipmate.dev/maker': 'gadgets/Gadget.example.com/default/g' }
    await at.world.client.create(ConfigMap, { metadata: { ...ref, annotations }, data: { value: 'theirs' } })
    operate({}, { resources: [settings({ adopt: true })] })
    await at.world.widget('a')
    await at.world.until('a Stalled Widget', isStalled)
    expect(conditions().Stalled?.message).toContain('was made for Gadget.example.com default/g')
    expect(map()?.data).toEqual({ value: 'theirs' })
  })

  it('is left alone though it carries a hash, and nothing else', async () => {
    const annotations = { 'shipmate.dev/hash': 'x' }
    await at.world.client.create(ConfigMap, { metadata: { ...ref, annotations }, data: { value: 'theirs' } })
    operate({}, { resources: [settings({ owner: false })] })
    await at.world.widget('a')
    await at.world.until('a Stalled Widget', isStalled)
    expect(map()?.data).toEqual({ value: 'theirs' })
  })

  it('is left alone where it is made at the very moment in which ours would be', async () => {
    const operator = operate({}, { resources: [settings({ mutateWithCR() {} })] })
    operator.meddle = async (request, next) => {
      const isMaking = request.target.resource === 'configmaps' && request.method === 'PATCH'
      if (isMaking && !map()) await at.world.client.create(ConfigMap, { metadata: ref, data: { theirs: 'x' } })
      return next(request)
    }
    await at.world.widget('a')
    await at.world.until('a Stalled Widget', isStalled)
    expect(map()?.data).toEqual({ theirs: 'x' })
  })

  it('is an error of a basic reconciler too', async () => {
    await at.world.client.create(ConfigMap, { metadata: ref, data: { value: 'theirs' } })
    operateBasic()
    await at.world.widget('a')
    await at.world.until('a Stalled Widget', isStalled)
    expect(conditions().Stalled?.message).toContain('was there before')
  })
})

it('of two custom resources that name one child, the second is told that it is not its own', async () => {
  const operator = operate({}, { resources: [settings({ name: 'shared', owner: false })] })
  await at.world.widget('a', 'one')
  await at.world.until('a ready Widget', isReady)
  await at.world.widget('b', 'two')
  await at.world.until('a Stalled Widget', () => isStalled('b'))
  await quiet()
  expect(map('shared')?.data?.value).toBe('one')
  expect(operator.writes.filter(write => write.includes('configmaps'))).toHaveLength(1)
})

describe('a child of ours stays ours', () => {
  it.each(['shipmate.dev/hash', 'shipmate.dev/maker'])('when somebody takes off %s', async annotation => {
    operate({}, { resources: [settings({ owner: false })] })
    await at.world.widget('a')
    await at.world.until('a ready Widget', isReady)
    await strip(annotation)
    await at.world.until('that it is back', () => map()?.metadata.annotations?.[annotation] !== undefined)
    await quiet()
    expect(isReady()).toBe(true)
  })

  it('when its custom resource is deleted and made anew, and it was left without an owner', async () => {
    operate({}, { resources: [settings({ owner: false })] })
    await at.world.widget('a', 'one')
    await at.world.until('a ready Widget', isReady)
    await at.world.client.delete(at.world.widgets, ref)
    await at.world.widget('a', 'two')
    await at.world.until('the new value', () => map()?.data?.value === 'two')
  })
})

it('what an earlier custom resource of the same name has left is waited for until it goes', async () => {
  operate()
  await at.world.widget('a', 'one')
  await at.world.until('a ready Widget', isReady)
  await at.world.client.delete(at.world.widgets, ref)
  await at.world.widget('a', 'two')
  await at.world.until('that it waits', () => conditions().Ready?.reason === 'Leaving')
  expect(conditions().Stalled).toBeUndefined()
  await at.world.client.delete(ConfigMap, ref)
  await at.world.until('a new one', () => map()?.data?.value === 'two')
  await at.world.until('a ready Widget', isReady)
})

describe('with getHashableRef', () => {
  const chosen = { getHashableRef: () => ['data' as const] }

  it('a finalizer that is declared later is put on', async () => {
    const first = operate({}, { resources: [settings(chosen)] })
    await at.world.widget('a')
    await at.world.until('a ready Widget', isReady)
    await first.stop()
    operate({}, { resources: [settings({ ...chosen, finalizer() {} })] })
    await at.world.until('the finalizer', () => map()?.metadata.finalizers?.[0] === 'test.example.com/child')
  })

  it('an owner that is no longer wished goes', async () => {
    const first = operate({}, { resources: [settings(chosen)] })
    await at.world.widget('a')
    await at.world.until('a ready Widget', isReady)
    await first.stop()
    operate({}, { resources: [settings({ ...chosen, owner: false })] })
    await at.world.until('no owner', () => (map()?.metadata.ownerReferences ?? []).length === 0)
  })
})

it('a `ready` that throws is told, and tried again', async () => {
  let isBroken = true
  const child = settings({
    ready() {
      if (isBroken) throw new Error('no such field')
      return true
    },
  })
  operate({}, { resources: [child] })
  await at.world.widget('a')
  await at.world.until('that it is told', () => conditions().Ready?.message.includes('no such field') ?? false)
  expect(conditions().ReconciliationSuccess?.status).toBe('False')
  isBroken = false
  await at.world.until('a ready Widget', isReady)
})

it('kinds of one name in two groups are told apart', async () => {
  const [one, two] = ['one', 'two'].map(
    (group): Kind<Widget> => ({ ...widgetKind(`${group}.example.com`), kind: 'Gadget', plural: 'gadgets' }),
  ) as [Kind<Widget>, Kind<Widget>]
  at.world.server.serve(one)
  at.world.server.serve(two)
  const child = (kind: Kind<Widget>) =>
    mutable(kind, at.world.widgets, { mutateWithInitialData: cr => ({ spec: cr.spec }), ready: () => true })
  operate(
    {
      ObjectsGetter({ cr, register }) {
        register(child(one))
        if (cr.spec.value === 'both') register(child(two))
      },
    },
    { resources: [], owns: [one, two] },
  )
  await at.world.widget('a', 'both')
  await at.world.until('a ready Widget', isReady)
  expect(at.world.server.list(resourceOf(one))).toHaveLength(1)
  expect(find(two)).toBeDefined()
  await at.world.change(ref, 'one')
  await at.world.until('that the second is pruned', () => find(two) === undefined)
  expect(find(one)).toBeDefined()
})

it('a child whose successor could not be made is not pruned', async () => {
  const operator = operate({}, { resources: [settings({ name: cr => cr.spec.value })] })
  await at.world.widget('a', 'old')
  await at.world.until('a ready Widget', isReady)
  operator.meddle = (request, next) => {
    if (request.target.name === 'new' && request.method === 'PATCH') throw new Error('refused')
    return next(request)
  }
  await at.world.change(ref, 'new')
  await at.world.until('that it is told', () => conditions().ReconciliationSuccess?.status === 'False')
  expect(map('old')).toBeDefined()
  operator.meddle = (request, next) => next(request)
  await at.world.until('the new one alone', () => map('new') !== undefined && map('old') === undefined)
})

describe('two operators of one kind', () => {
  const named = (name: string) =>
    advancedReconciler(at.world.widgets, { name, resources: [settings({ name: cr => `${cr.metadata.name}-${name}` })] })

  it('leave the children of each other alone', async () => {
    const operator = at.world.start(
      manager => {
        addTo(manager, named('one'))
        addTo(manager, named('two'))
      },
      { name: 'widgets' },
    )
    await at.world.widget('a')
    await at.world.until('both', () => map('a-one') !== undefined && map('a-two') !== undefined)
    await quiet()
    expect(operator.writes.filter(write => write.startsWith('delete'))).toEqual([])
    expect(widget()).toBeDefined()
  })

  it('need a name each', () => {
    at.world.start(manager => {
      addTo(manager, named('one'))
      expect(() => addTo(manager, named('one'))).toThrow('two operators of Widget with the name one')
    })
  })

  it('need a finalizer each, if they have one', () => {
    const held = (name: string, finalizer?: string) =>
      advancedReconciler(at.world.widgets, { name, finalizer, resources: [settings({ name, finalizer() {} })] })
    at.world.start(manager => {
      addTo(manager, held('one'))
      expect(() => addTo(manager, held('two'))).toThrow('with the finalizer test.example.com/finalizer')
      addTo(manager, held('two', 'test.example.com/two'))
    })
  })
})
