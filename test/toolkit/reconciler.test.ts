/**
 * What the reconcilers promise, in a world of virtual time and a server that is a model. Each of OKT's bugs has a test here that would find it.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Forbidden, NotFound } from '../../controller/kube/errors.ts'
import { type Kind, type Ref, resourceOf, type Snapshot } from '../../controller/kube/kind.ts'
import { ConfigMap, Secret } from '../../controller/kube/kinds.ts'
import type { Request } from '../../controller/kube/transport.ts'
import {
  type AdvancedOptions,
  addTo,
  advancedReconciler,
  basicReconciler,
  type Condition,
  freeStyle,
  type MutableOptions,
  mutable,
  resource,
  type StepHooks,
  stepper,
} from '../../controller/toolkit/index.ts'
import type { Widget } from '../fixtures/widget.ts'
import { type Operator, World } from '../fixtures/world.ts'

type Map = typeof ConfigMap extends { shape?: infer T } ? NonNullable<T> : never

let world: World
beforeEach(() => {
  world = new World()
})
afterEach(async () => {
  await world.end()
  expect(world.clock.pending, 'timers that are left when all has stopped').toBe(0)
})

/** A ConfigMap with the Widget's value. */
function settings(more: Partial<MutableOptions<Widget, Map>> = {}) {
  return mutable(ConfigMap, world.widgets, {
    mutateWithInitialData: () => ({ metadata: { labels: { app: 'widget' } }, data: { mode: 'fast' } }),
    mutateWithCR(map, cr) {
      map.data.value = cr.spec.value
    },
    ...more,
  })
}

function operate(hooks: StepHooks<Widget> = {}, options: AdvancedOptions<Widget> = {}): Operator {
  const reconciler = advancedReconciler(world.widgets, { resources: [settings()], engine: stepper(hooks), ...options })
  return world.start(manager => addTo(manager, reconciler), { name: 'widgets' })
}

const ref = { name: 'a', namespace: 'default' }
const find = <T extends object>(kind: Kind<T>, { name }: Ref) =>
  world.server.list(resourceOf(kind)).find(({ metadata }) => metadata.name === name) as Snapshot<T> | undefined
const map = () => find(ConfigMap, ref)
const widget = () => find(world.widgets, ref)
const conditions = (): Record<string, Condition> =>
  Object.fromEntries(
    ((widget()?.status as { conditions?: Condition[] } | undefined)?.conditions ?? []).map(one => [one.type, one]),
  )
const isReady = () => conditions().Ready?.status === 'True'
const path = (operator: Operator) =>
  operator.lines.filter(({ msg }) => msg === 'went through its steps').map(line => line.path as string)
/** Long enough for anything that is still to happen. */
const quiet = () => world.clock.advance(30_000)

describe('an advanced reconciler', () => {
  it('creates what is missing, says so in the status, and then does nothing', async () => {
    const operator = operate()
    await world.widget('a', 'one')
    await world.until('a ready Widget', isReady)
    expect(map()).toMatchObject({ data: { mode: 'fast', value: 'one' }, metadata: { labels: { app: 'widget' } } })
    expect(map()?.metadata.ownerReferences).toMatchObject([{ kind: 'Widget', name: 'a', controller: true }])
    expect(conditions().ReconciliationSuccess).toMatchObject({ status: 'True', reason: 'Succeeded' })
    await quiet()
    expect(operator.writes).toEqual(['patch configmaps a', 'patch widgets/status a'])
    expect(path(operator)[0]).toBe('>CRChecker>ObjectsGetter>Mutator>Updater>SuccessManager>End')
    expect(operator.needless).toEqual([])
  })

  it('follows the custom resource, and takes away what is no longer wished', async () => {
    operate(
      {},
      {
        resources: [
          settings({
            mutateWithCR(object, cr) {
              object.data[cr.spec.value] = 'x'
            },
          }),
        ],
      },
    )
    await world.widget('a', 'one')
    await world.until('a ready Widget', isReady)
    await world.change(ref, 'two')
    await world.until('the other value', () => map()?.data?.two === 'x')
    expect(map()?.data).toEqual({ mode: 'fast', two: 'x' })
  })

  it('puts back what somebody else has changed or deleted', async () => {
    operate()
    await world.widget('a', 'one')
    await world.until('a ready Widget', isReady)
    await world.client.patch(ConfigMap, ref, { merge: { data: { value: 'theirs', more: 'theirs' } } })
    await world.until('our value', () => map()?.data?.value === 'one')
    expect(map()?.data?.more, 'what is beside ours is left alone').toBe('theirs')
    await world.client.delete(ConfigMap, ref)
    await world.until('a new one', () => map()?.data?.value === 'one')
  })

  it('writes nothing after a restart', async () => {
    const first = operate()
    await world.widget('a', 'one')
    await world.until('a ready Widget', isReady)
    await first.stop()
    const second = operate()
    await quiet()
    expect(second.writes).toEqual([])
  })

  it('does not take over what somebody else has made, and says so', async () => {
    operate()
    await world.client.create(ConfigMap, { metadata: ref, data: { value: 'theirs' } })
    await world.widget('a', 'one')
    await world.until('a Stalled Widget', () => conditions().Stalled?.status === 'True')
    expect(conditions().Stalled?.message).toContain('adopt: true')
    expect(map()?.data).toEqual({ value: 'theirs' })
  })

  it('does if it is told to', async () => {
    operate({}, { resources: [settings({ adopt: true })] })
    await world.client.create(ConfigMap, { metadata: ref, data: { value: 'theirs' } })
    await world.widget('a', 'one')
    await world.until('a ready Widget', isReady)
    expect(map()?.data?.value).toBe('one')
  })

  it('leaves alone what another owner controls, also if it is told to adopt', async () => {
    operate({}, { resources: [settings({ adopt: true })] })
    const other = await world.client.create(ConfigMap, { metadata: { name: 'owner', namespace: 'default' } })
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: other.metadata.uid, controller: true }
    await world.client.create(ConfigMap, { metadata: { ...ref, ownerReferences: [owner] }, data: { value: 'theirs' } })
    await world.widget('a', 'one')
    await world.until('a Stalled Widget', () => conditions().Stalled?.status === 'True')
    expect(conditions().Stalled?.message).toContain('belongs to ConfigMap owner')
    expect(map()?.data).toEqual({ value: 'theirs' })
  })

  it('counts only the parts that getHashableRef chooses', async () => {
    const operator = operate(
      {},
      {
        resources: [
          settings({
            mutateWithCR(object, cr) {
              object.metadata.annotations.note = cr.spec.value
            },
            getHashableRef: () => ['data', 'labels'],
          }),
        ],
      },
    )
    await world.widget('a', 'one')
    await world.until('a ready Widget', isReady)
    await world.change(ref, 'two')
    await quiet()
    expect(map()?.metadata.annotations?.note, 'an annotation does not count').toBe('one')
    await world.client.patch(ConfigMap, ref, { merge: { data: { mode: 'slow' } } })
    await world.until('data put back', () => map()?.data?.mode === 'fast')
    expect(map()?.metadata.annotations?.note, 'what is written is all of it').toBe('two')
    expect(operator.needless).toEqual([])
  })

  it('prunes what nothing asks for any more, and nothing else', async () => {
    const names = (cr: Snapshot<Widget>) => cr.spec.value.split(',')
    const one = (name: string) =>
      mutable(ConfigMap, world.widgets, { name, mutateWithInitialData: () => ({ data: { name } }) })
    operate(
      {
        ObjectsGetter({ cr, register }) {
          for (const name of names(cr)) register(one(name))
        },
      },
      { resources: [], owns: [ConfigMap] },
    )
    const { uid } = (await world.client.create(world.widgets, { metadata: ref, spec: { value: 'x,y,z' } })).metadata
    await world.until('three', () => ['x', 'y', 'z'].every(name => find(ConfigMap, { ...ref, name })))
    const owner = { apiVersion: 'test.example.com/v1', kind: 'Widget', name: 'a', uid, controller: true }
    await world.client.create(ConfigMap, {
      metadata: { name: 'by-hand', namespace: 'default', ownerReferences: [owner] },
    })
    await world.change(ref, 'y')
    await world.until('one', () => !find(ConfigMap, { ...ref, name: 'x' }))
    await quiet()
    const left = ['x', 'y', 'z', 'by-hand'].filter(name => find(ConfigMap, { ...ref, name }))
    expect(left).toEqual(['y', 'by-hand'])
  })

  it('creates no more at once than it may, and in the end all (OKT bug 4)', async () => {
    const many = Array.from({ length: 5 }, (_, i) =>
      resource(ConfigMap, world.widgets, { name: `n${i}`, mutateWithInitialData: () => ({}) }),
    )
    const counts: number[] = []
    const operator = operate(
      { SuccessManager: ({ results }) => void counts.push(results.counters().Created ?? 0) },
      { resources: many, maxCreation: 2 },
    )
    await world.widget('a')
    await world.until('all five', () => many.every((_, i) => find(ConfigMap, { ...ref, name: `n${i}` })))
    await quiet()
    expect(Math.max(...counts)).toBe(2)
    expect(operator.writes.filter(write => write.includes('configmaps'))).toHaveLength(5)
  })

  it('waits with a child until what it depends on is ready', async () => {
    let isOpen = false
    const first = settings({ ready: () => isOpen })
    const second = mutable(Secret, world.widgets, { mutateWithInitialData: () => ({ data: {} }) })
    operate(
      {
        ObjectsGetter({ register }) {
          const entry = register(first)
          register(second, { after: entry })
        },
      },
      { resources: [first, second] },
    )
    await world.widget('a')
    await world.until('the first', () => map() !== undefined)
    await quiet()
    expect(find(Secret, ref)).toBeUndefined()
    expect(conditions().Ready).toMatchObject({ status: 'False', reason: 'NotReady' })
    expect(conditions().Reconciling?.status).toBe('True')
    isOpen = true
    await world.change(ref, 'again')
    await world.until('the second', () => find(Secret, ref) !== undefined)
    await world.until('a ready Widget', isReady)
  })

  it('waits with a change, too, until what it depends on is ready', async () => {
    const first = settings({ ready: (_, cr) => cr.spec.value !== 'slow' })
    const second = settings({ name: 'second' })
    operate(
      {
        ObjectsGetter({ register }) {
          register(second, { after: register(first) })
        },
      },
      { resources: [first, second] },
    )
    const value = () => find(ConfigMap, { ...ref, name: 'second' })?.data?.value
    await world.widget('a', 'one')
    await world.until('a ready Widget', isReady)
    await world.change(ref, 'slow')
    await world.until('the first', () => map()?.data?.value === 'slow')
    await quiet()
    expect(value()).toBe('one')
    await world.change(ref, 'three')
    await world.until('both', () => value() === 'three')
  })
})

describe('an error', () => {
  const refusing = (operator: Operator, times: number) => {
    let left = times
    operator.meddle = (request, next) => {
      if (request.target.resource === 'configmaps' && request.method === 'PATCH' && left-- > 0) throw forbidden(request)
      return next(request)
    }
  }
  const forbidden = ({ target }: Request) => new Forbidden(403, target, { message: 'quota exceeded' })

  it('leads to ErrorManager, into the conditions, and to a retry at growing intervals (OKT bugs 3 and 5)', async () => {
    const second = mutable(Secret, world.widgets, { mutateWithInitialData: () => ({ data: {} }) })
    const operator = operate({}, { resources: [settings(), second], throttle: { jitter: 0 } })
    refusing(operator, 4)
    const times: number[] = []
    const { meddle } = operator
    operator.meddle = (request, next) => {
      if (request.target.resource === 'configmaps' && request.method === 'PATCH') times.push(world.clock.monotonic())
      return meddle(request, next)
    }
    await world.widget('a')
    await world.until('a failing Widget', () => conditions().ReconciliationSuccess?.status === 'False')
    expect(find(Secret, ref), 'another child is not held up').toBeDefined()
    expect(conditions().Ready?.message, 'a later success does not hide it').toContain('quota exceeded')
    expect(path(operator)[0]).toBe('>CRChecker>ObjectsGetter>Mutator>Updater>ErrorManager>End')
    await world.until('a ready Widget', isReady)
    // News of what was written at the first attempt lead to another one at once.
    const waits = times.slice(1).map((at, i) => Math.round((at - (times[i] ?? 0)) / 1000))
    expect(waits.filter(seconds => seconds > 0)).toEqual([1, 2, 4])
  })

  it('of a hook is that of its step', async () => {
    const operator = operate({
      SuccessManager() {
        throw new Error('cannot count the pods')
      },
    })
    await world.widget('a')
    await world.until('a failing Widget', () => conditions().Ready?.reason === 'Failed')
    expect(conditions().Ready?.message).toBe('SuccessManager: cannot count the pods')
    expect(path(operator)[0]).toBe('>CRChecker>ObjectsGetter>Mutator>Updater>SuccessManager>ErrorManager>End')
  })

  it('stops the others if it is told to', async () => {
    const second = mutable(Secret, world.widgets, { mutateWithInitialData: () => ({ data: {} }) })
    const operator = operate({}, { resources: [settings(), second], stopOnError: true })
    refusing(operator, 1000)
    await world.widget('a')
    await world.until('a failing Widget', () => conditions().ReconciliationSuccess?.status === 'False')
    expect(find(Secret, ref)).toBeUndefined()
  })
})

it('giving up is no error: it is told, and nothing is written', async () => {
  const operator = operate({
    CRChecker({ cr, giveUp }) {
      if (cr.spec.value === 'frozen') giveUp('frozen by its owner')
    },
  })
  await world.widget('a', 'frozen')
  await world.until('that it was given up', () => conditions().Ready?.reason === 'GivenUp')
  expect(conditions().Ready).toMatchObject({ status: 'Unknown', message: 'frozen by its owner' })
  expect(path(operator)[0]).toBe('>CRChecker>GiveupManager>End')
  await quiet()
  expect(map()).toBeUndefined()
  await world.change(ref, 'free')
  await world.until('a ready Widget', isReady)
})

describe('the status', () => {
  it('is written once for each reconciliation, with what the hooks have put into it', async () => {
    const operator = operate({
      SuccessManager({ status, cr, condition }) {
        status.observedValue = cr.spec.value
        condition({ type: 'Counted', status: 'True', reason: 'Done', message: 'counted' })
      },
    })
    await world.widget('a', 'one')
    await world.until('a ready Widget', isReady)
    expect(widget()?.status).toMatchObject({ observedValue: 'one', observedGeneration: 1 })
    expect(conditions().Counted).toMatchObject({ status: 'True', observedGeneration: 1 })
    await quiet()
    expect(operator.writes.filter(write => write.includes('status'))).toHaveLength(1)
  })

  it('loses what a hook takes out of it', async () => {
    operate({
      SuccessManager({ status, cr }) {
        if (cr.spec.value === 'one') status.observedValue = 'one'
        else delete status.observedValue
      },
    })
    await world.widget('a', 'one')
    await world.until('the value', () => widget()?.status?.observedValue === 'one')
    await world.change(ref, 'two')
    await world.until('none', () => widget()?.status?.observedValue === undefined)
  })
})

describe('finalization', () => {
  it('holds the custom resource until it succeeded, and only then lets it go (OKT bug 1)', async () => {
    let attempts = 0
    const operator = operate({
      CRFinalizer() {
        if (++attempts < 3) throw new Error('the bucket is not empty')
      },
    })
    await world.widget('a')
    await world.until('a ready Widget', isReady)
    expect(widget()?.metadata.finalizers).toEqual(['test.example.com/finalizer'])
    await world.client.delete(world.widgets, ref)
    await world.until('that it is told', () => conditions().Deleting?.reason === 'FinalizationFailed')
    expect(conditions().Deleting?.message).toContain('the bucket is not empty')
    await world.until('that it is gone', () => widget() === undefined)
    expect(attempts).toBe(3)
    expect(path(operator)).toContain('>CRChecker>CRFinalizer>End')
  })

  it('creates nothing while the custom resource is being deleted (OKT bug 2)', async () => {
    const operator = operate()
    await world.widget('a', 'one', { finalizers: ['theirs.example.com/hold'] })
    await world.until('a ready Widget', isReady)
    await world.client.delete(world.widgets, ref)
    await world.client.delete(ConfigMap, ref)
    await quiet()
    expect(map()).toBeUndefined()
    expect(widget()?.metadata.finalizers).toEqual(['theirs.example.com/hold'])
    expect(path(operator).at(-1)).toBe('>CRChecker>End')
  })

  it('puts no finalizer on what it has nothing to do for, nor on what it gave up', async () => {
    operate({ CRChecker: ({ giveUp }) => giveUp('no'), CRFinalizer() {} })
    await world.widget('a')
    await world.until('that it was given up', () => conditions().Ready?.reason === 'GivenUp')
    expect(widget()?.metadata.finalizers).toBeUndefined()
  })

  it('gives up after its deadline, and says so', async () => {
    const operator = operate(
      {
        CRFinalizer() {
          throw new Error('never')
        },
      },
      { finalizationDeadline: 60_000 },
    )
    await world.widget('a')
    await world.until('a ready Widget', isReady)
    await world.client.delete(world.widgets, ref)
    await world.until('that it is gone', () => widget() === undefined, 300_000)
    await quiet()
    expect(operator.lines.some(({ msg }) => msg === 'let go, though it could not be finalized')).toBe(true)
  })

  it('of a child runs when the child is deleted, and it is made anew', async () => {
    const released: string[] = []
    operate(
      {},
      {
        resources: [
          settings({
            finalizer: ({ object }) => void released.push(object.metadata.uid),
          }),
        ],
      },
    )
    await world.widget('a')
    await world.until('a ready Widget', isReady)
    const uid = map()?.metadata.uid
    expect(map()?.metadata.finalizers).toEqual(['test.example.com/child'])
    await world.client.delete(ConfigMap, ref)
    await world.until('another one', () => map() !== undefined && map()?.metadata.uid !== uid)
    expect(released).toEqual([uid])
  })

  it('of children runs when the custom resource is deleted, and none is left held', async () => {
    const released: string[] = []
    operate({}, { resources: [settings({ finalizer: ({ object }) => void released.push(object.metadata.name) })] })
    await world.widget('a')
    await world.until('a ready Widget', isReady)
    await world.client.delete(world.widgets, ref)
    await world.until('that it is gone', () => widget() === undefined)
    expect(released).toEqual(['a'])
    expect(map()?.metadata.finalizers ?? []).toEqual([])
  })

  it('is no failure where the cache shows a moment longer what was let go already', async () => {
    const operator = operate({}, { resources: [settings({ finalizer() {} })] })
    await world.widget('a')
    await world.until('a ready Widget', isReady)
    operator.meddle = async (request, next) => {
      const response = await next(request)
      const { target, method } = request
      const kind = target.resource === 'widgets' ? world.widgets : ConfigMap
      if (method === 'PATCH' && !find<object>(kind, ref))
        throw new NotFound('NotFound', 'never', 404, target, { message: 'it is gone' })
      return response
    }
    await world.client.delete(ConfigMap, ref)
    await world.until('another one', () => map() !== undefined && map()?.metadata.deletionTimestamp === undefined)
    await world.client.delete(world.widgets, ref)
    await world.until('that it is gone', () => widget() === undefined)
    await quiet()
    expect(operator.complaints).toEqual([])
  })

  it('names a child that somebody else holds', async () => {
    operate()
    await world.widget('a')
    await world.until('a ready Widget', isReady)
    await world.client.patch(ConfigMap, ref, { merge: { metadata: { finalizers: ['theirs.example.com/hold'] } } })
    await world.client.delete(ConfigMap, ref)
    await world.until('that it is told', () => conditions().Ready?.reason === 'ChildHeld')
    expect(conditions().Ready?.message).toContain(
      'ConfigMap a is being deleted, and held by the finalizer theirs.example.com/hold',
    )
  })
})

describe('a child without an owner reference', () => {
  const free = (more: Partial<MutableOptions<Widget, Map>> = {}) =>
    settings({ name: cr => `${cr.metadata.name}-free`, owner: false, ...more })
  const freeRef = { ...ref, name: 'a-free' }

  it('is put back as any other when somebody changes or deletes it', async () => {
    const operator = operate({}, { resources: [free()] })
    await world.widget('a', 'one')
    await world.until('a ready Widget', isReady)
    expect(find(ConfigMap, freeRef)?.metadata.ownerReferences).toBeUndefined()
    await world.client.patch(ConfigMap, freeRef, { merge: { data: { value: 'theirs' } } })
    await world.until('our value', () => find(ConfigMap, freeRef)?.data?.value === 'one')
    await world.client.delete(ConfigMap, freeRef)
    await world.until('a new one', () => find(ConfigMap, freeRef)?.data?.value === 'one')
    expect(operator.needless).toEqual([])
  })

  it('goes in CRFinalizer, and its own finalizer runs', async () => {
    const released: string[] = []
    const child = free({ finalizer: ({ object }) => void released.push(object.metadata.name) })
    operate({ CRFinalizer: ({ register, deleteResource }) => deleteResource(register(child)) }, { resources: [child] })
    await world.widget('a')
    await world.until('a ready Widget', isReady)
    await world.client.delete(world.widgets, ref)
    await world.until('that both are gone', () => widget() === undefined && find(ConfigMap, freeRef) === undefined)
    expect(released).toEqual(['a-free'])
  })

  it('is named when somebody else holds it', async () => {
    operate({}, { resources: [free()] })
    await world.widget('a')
    await world.until('a ready Widget', isReady)
    await world.client.patch(ConfigMap, freeRef, { merge: { metadata: { finalizers: ['theirs.example.com/hold'] } } })
    await world.client.delete(ConfigMap, freeRef)
    await world.until('that it is told', () => conditions().Ready?.reason === 'ChildHeld')
    expect(conditions().Ready?.message).toContain('ConfigMap a-free is being deleted, and held by the finalizer')
  })
})

describe('a basic reconciler', () => {
  it('creates what is missing, and leaves alone what is there', async () => {
    const reconciler = basicReconciler(world.widgets, { resources: [settings()] })
    const operator = world.start(manager => addTo(manager, reconciler), { name: 'widgets' })
    await world.widget('a', 'one')
    await world.until('a ready Widget', isReady)
    await world.change(ref, 'two')
    await quiet()
    expect(map()?.data?.value).toBe('one')
    expect(operator.writes.filter(write => write.includes('configmaps'))).toHaveLength(1)
    expect(path(operator)[0]).toBe('>FreeStyle>End')
  })
})

it('FreeStyle does what its hook does', async () => {
  const one = () => settings()
  operate(
    {},
    {
      resources: [],
      owns: [ConfigMap],
      engine: freeStyle(async ({ register, createOrUpdateAllResources, live }) => {
        const child = one()
        register(child)
        await createOrUpdateAllResources()
        expect(live(child)?.data?.value).toBe('one')
      }),
    },
  )
  await world.widget('a', 'one')
  await world.until('a ready Widget', isReady)
})

it('what is registered and not declared is a mistake that is told', async () => {
  const other = mutable(Secret, world.widgets, { mutateWithInitialData: () => ({ data: {} }) })
  operate({ ObjectsGetter: ({ register }) => void register(other) })
  await world.widget('a')
  await world.until('a Stalled Widget', () => conditions().Stalled?.status === 'True')
  expect(conditions().Stalled?.message).toContain('`resources` or `owns`')
})

it('many reconciliations at once share nothing (OKT bug 12)', async () => {
  const seen = new Set<string>()
  operate(
    {
      async SuccessManager({ cr, registry, status }) {
        const { name } = cr.metadata
        await Promise.resolve()
        const [entry] = registry.all()
        if (entry?.ref.name !== name) seen.add(`${name} saw ${entry?.ref.name}`)
        status.observedValue = cr.spec.value
      },
    },
    { concurrency: 20 },
  )
  for (let i = 0; i < 12; i++) await world.widget(`w${i}`, `v${i}`)
  const all = () =>
    Array.from({ length: 12 }, (_, i) => find(world.widgets, { ...ref, name: `w${i}` }) as Snapshot<Widget>)
  await world.until('all', () => all().every((one, i) => one.status?.observedValue === `v${i}`))
  expect([...seen]).toEqual([])
})

it('a Secret may be given as text, and is written once', async () => {
  const secret = mutable(Secret, world.widgets, {
    mutateWithInitialData: cr => ({ stringData: { word: cr.spec.value } }),
  })
  const operator = operate({}, { resources: [secret] })
  await world.widget('a', 'one')
  await world.until('a ready Widget', isReady)
  expect(find(Secret, ref)).toMatchObject({ data: { word: btoa('one') } })
  expect(find(Secret, ref)).not.toHaveProperty('stringData')
  await quiet()
  expect(operator.writes).toEqual(['patch secrets a', 'patch widgets/status a'])
})
