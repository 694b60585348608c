/**
 * What a controller promises, in a world of virtual time and a server that is a model.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Conflict, errorOfStatus, TooManyRequests } from '../../controller/kube/errors.ts'
import { defineKind, type Kind, keyOf, type Ref } from '../../controller/kube/kind.ts'
import { ConfigMap, Namespace, Secret } from '../../controller/kube/kinds.ts'
import type { Context, Controller, ControllerOptions, Reconcile, Trigger } from '../../controller/runtime/controller.ts'
import { TerminalError } from '../../controller/runtime/outcome.ts'
import { byOthers, generationChanged } from '../../controller/runtime/predicates.ts'
import { type Widget, widgetKind } from '../fixtures/widget.ts'
import { type Operator, World, widgetWork } from '../fixtures/world.ts'

let world: World

beforeEach(() => {
  world = new World()
})
afterEach(async () => {
  await world.end()
  expect(world.clock.pending, 'timers that are left when all has stopped').toBe(0)
  expect(world.server.watches, 'watches that are left when all has stopped').toBe(0)
})

/** A reconciliation, as it was asked for. */
interface Visit {
  key: string
  reasons: readonly string[]
  attempt: number
  at: number
}

/** A controller of Widgets that notes each visit; `work` is what it does besides. */
function visiting(
  work: Reconcile<Widget> = () => undefined,
  options: ControllerOptions = {},
  more?: (controller: Controller<Widget>) => void,
) {
  const visits: Visit[] = []
  let controller: Controller<Widget> | undefined
  const operator = world.start(manager => {
    controller = manager.controller(world.widgets, options).reconcile(context => {
      visits.push({
        key: keyOf(context.object.metadata),
        reasons: context.reasons,
        attempt: context.attempt,
        at: world.clock.monotonic(),
      })
      return work(context)
    })
    more?.(controller)
  })
  return { visits, operator, controller: controller as Controller<Widget> }
}

const reasonsOf = (visits: readonly Visit[]) => visits.flatMap(visit => visit.reasons)

describe('a controller is woken', () => {
  it('by what exists when it starts, those first that are to be first', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    for (const name of names) await world.widget(name)
    const { visits } = visiting(undefined, { concurrency: 1, first: ({ metadata }) => 'df'.includes(metadata.name) })
    await world.until('all are visited', () => visits.length === names.length)
    expect(visits.map(({ key }) => key.replace('default/', '')).join('')).toBe('dfabce')
  })

  it('by what exists when it starts, what comes and what changes, and says which', async () => {
    const old = await world.widget('old')
    const { visits } = visiting()
    await world.until('the one that exists is visited', () => visits.length === 1)
    expect(visits[0]).toMatchObject({ key: 'default/old', reasons: ['Widget default/old exists'], attempt: 1 })
    await world.widget('new')
    await world.until('the new one is visited', () => visits.length === 2)
    expect(visits[1]).toMatchObject({ key: 'default/new', reasons: ['Widget default/new added'] })
    await world.change(old, 'y')
    await world.until('the changed one is visited', () => visits.length === 3)
    expect(visits[2]).toMatchObject({ key: 'default/old', reasons: ['Widget default/old changed'] })
    await world.clock.advance(3_600_000)
    expect(visits, 'visits when nothing happens').toHaveLength(3)
  })

  it('by what it owns, once for each change', async () => {
    const ref = await world.widget('a')
    const operator = world.start(widgetWork(world.widgets))
    await world.until('all is as wished', () => operator.writes.length === 2)
    await world.clock.advance(1000)
    operator.reconciled.length = 0
    await world.client.patch(ConfigMap, ref, { merge: { data: { value: 'damaged' } } })
    await world.until('the child is repaired', () => operator.writes.length === 3)
    await world.clock.advance(1000)
    expect(operator.reconciled, 'visits: for the damage, and for our own repair').toHaveLength(2)
    operator.reconciled.length = 0
    await world.client.patch(ConfigMap, ref, { merge: { data: { theirs: 'yes' } } })
    await world.clock.advance(1000)
    expect(operator.reconciled, 'visits for one change that needs no repair').toHaveLength(1)
    await world.client.delete(ConfigMap, ref)
    await world.until('the child is made again', () => operator.writes.length === 4)
    await world.clock.advance(1000)
    expect(operator.writes).toHaveLength(4)
  })

  it('by what it owns, not by what another kind of the same name owns', async () => {
    await world.widget('a')
    const { visits } = visiting(
      () => undefined,
      {},
      controller => controller.owns(ConfigMap),
    )
    await world.until('the first visit', () => visits.length === 1)
    const owner = { name: 'a', uid: 'u', controller: true }
    const maps = [
      { apiVersion: 'other.example.com/v1', kind: 'Widget', ...owner },
      { apiVersion: 'test.example.com/v1', kind: 'Gadget', ...owner },
      { apiVersion: 'test.example.com/v1', kind: 'Widget', ...owner, controller: false },
    ]
    for (const [i, reference] of maps.entries()) {
      await world.client.create(ConfigMap, { metadata: { name: `map-${i}`, ownerReferences: [reference] } })
    }
    await world.clock.advance(1000)
    expect(visits).toHaveLength(1)
    const other = { apiVersion: 'test.example.com/v2', kind: 'Widget', ...owner }
    await world.client.create(ConfigMap, { metadata: { name: 'mine', ownerReferences: [other] } })
    await world.until('a visit for what another version of its kind owns', () => visits.length === 2)
  })

  it('by what it owned before, when that passes to another owner', async () => {
    const a = await world.client.create(world.widgets, { metadata: { name: 'a' }, spec: { value: 'x' } })
    const b = await world.client.create(world.widgets, { metadata: { name: 'b' }, spec: { value: 'x' } })
    const owner = ({ metadata: { name, uid } }: typeof a) => ({
      apiVersion: 'test.example.com/v1',
      kind: 'Widget',
      name,
      uid,
      controller: true,
    })
    await world.client.create(ConfigMap, { metadata: { name: 'child', ownerReferences: [owner(a)] } })
    const { visits } = visiting(
      () => undefined,
      {},
      controller => controller.owns(ConfigMap),
    )
    await world.until('the first visits', () => visits.length >= 2)
    visits.length = 0
    await world.client.patch(ConfigMap, { name: 'child' }, { merge: { metadata: { ownerReferences: [owner(b)] } } })
    await world.until('visits of both', () => visits.length >= 2)
    expect(visits.map(visit => visit.key).sort()).toEqual(['default/a', 'default/b'])
  })

  it('by what is mapped to it, before and after a change', async () => {
    for (const name of ['a', 'b']) await world.widget(name)
    await world.client.create(Secret, { metadata: { name: 's', labels: { for: 'a' } } })
    const { visits } = visiting(
      () => undefined,
      {},
      controller =>
        controller.watches(Secret, secret => [{ name: secret.metadata.labels?.['for'] ?? '', namespace: 'default' }]),
    )
    await world.until('the first visits', () => visits.length === 2)
    expect(reasonsOf(visits)).toContain('Secret default/s exists')
    visits.length = 0
    await world.client.patch(Secret, { name: 's' }, { merge: { metadata: { labels: { for: 'b' } } } })
    await world.until('visits of both', () => visits.length === 2)
    expect(visits.map(visit => visit.key).sort()).toEqual(['default/a', 'default/b'])
    expect(reasonsOf(visits)).toEqual(['Secret default/s changed', 'Secret default/s changed'])
    visits.length = 0
    await world.client.delete(Secret, { name: 's' })
    await world.until('a visit of the one that it was mapped to', () => visits.length === 1)
    expect(visits[0]).toMatchObject({ key: 'default/b', reasons: ['Secret default/s removed'] })
  })

  it('by others of its own kind that are mapped to it, before and after a change', async () => {
    for (const name of ['a', 'b', 'c']) await world.widget(name, 'none')
    const { visits } = visiting(
      () => undefined,
      {},
      controller =>
        controller.watches(world.widgets, other =>
          other.spec.value === 'none' ? [] : [{ name: other.spec.value, namespace: 'default' }],
        ),
    )
    await world.until('the first visits', () => visits.length === 3)
    await world.change({ name: 'c' }, 'a')
    await world.until('visits of it and of a', () => visits.length === 5)
    visits.length = 0
    await world.change({ name: 'c' }, 'b')
    await world.until('visits of it, of a and of b', () => visits.length === 3)
    expect(visits.map(visit => visit.key).sort()).toEqual(['default/a', 'default/b', 'default/c'])
  })

  it('through a mapping that names no namespace: in its own', async () => {
    await world.widget('a')
    const { visits, controller } = visiting(
      () => undefined,
      {},
      own => own.watches(Namespace, namespace => [{ name: namespace.metadata.name }]),
    )
    await world.until('the first visit', () => visits.length === 1)
    await world.client.create(Namespace, { metadata: { name: 'a' } })
    await world.until('a visit', () => visits.length === 2)
    expect(visits[1]).toMatchObject({ key: 'default/a', reasons: ['Namespace a added'] })
    controller.trigger({ name: 'a' }, 'because')
    await world.until('another visit', () => visits.length === 3)
  })

  it('for a kind without namespaces whatever namespace is named', async () => {
    const planets = defineKind<Widget>({ group: 'test.example.com', version: 'v1', kind: 'Planet', namespaced: false })
    world.server.serve(planets)
    await world.client.create(planets, { metadata: { name: 'mars' }, spec: { value: 'red' } })
    const visits: string[] = []
    world.start(manager =>
      manager
        .controller(planets)
        .watches(Secret, secret => [{ name: secret.metadata.name, namespace: secret.metadata.namespace }])
        .reconcile(({ object }) => void visits.push(object.metadata.name)),
    )
    await world.until('the first visit', () => visits.length === 1)
    await world.client.create(Secret, { metadata: { name: 'mars' } })
    await world.until('a visit for the secret', () => visits.length === 2)
  })

  it('not by changes that its predicates leave out, but by what exists', async () => {
    const ref = await world.widget('a')
    const { visits } = visiting(
      () => undefined,
      { when: generationChanged },
      controller => controller.owns(ConfigMap, { when: byOthers }),
    )
    await world.until('the first visit', () => visits.length === 1)
    await world.client.patch(world.widgets, ref, { merge: { metadata: { labels: { a: 'b' } } } })
    await world.clock.advance(1000)
    expect(visits).toHaveLength(1)
    await world.change(ref, 'y')
    await world.until('a visit for a new wish', () => visits.length === 2)
  })

  it('not by its own writes, if a predicate says so and the answer is faster than the watch', async () => {
    world.server.lag = () => 10
    const ref = await world.widget('a')
    let times = 0
    const work = async ({ object, client }: Context<Widget>) => {
      await client.apply(ConfigMap, { metadata: { name: 'a' }, data: { times: String(times++) } }, { owner: object })
    }
    const { visits } = visiting(work, {}, controller => controller.owns(ConfigMap, { when: byOthers }))
    await world.clock.advance(1000)
    expect(visits).toHaveLength(1)
    await world.client.patch(ConfigMap, ref, { merge: { data: { other: 'x' } } })
    await world.until('a visit for what somebody else wrote', () => visits.length === 2)
  })

  it('by a mapping and a predicate that throw: the rest goes on, and the log says so', async () => {
    for (const name of ['a', 'b']) await world.widget(name)
    const { visits, operator } = visiting(
      () => undefined,
      {
        when: () => {
          throw new Error('a bad predicate')
        },
      },
      controller =>
        controller.watches(Secret, secret => {
          if (secret.metadata.labels?.['bad']) throw new Error('a bad mapping')
          return [{ name: secret.metadata.name, namespace: 'default' }]
        }),
    )
    await world.until('the first visits', () => visits.length === 2)
    visits.length = 0
    await world.change({ name: 'a' }, 'y')
    await world.until('a visit, since nobody knows that it is not wanted', () => visits.length === 1)
    await world.client.create(Secret, { metadata: { name: 'b' } })
    await world.until('a visit', () => visits.length === 2)
    await world.client.patch(Secret, { name: 'b' }, { merge: { metadata: { labels: { bad: 'yes' } } } })
    await world.until('a visit for what it was mapped to before', () => visits.length === 3)
    const messages = operator.complaints.map(line => line.msg)
    expect(messages).toContain('the predicate for Widget threw: a bad predicate')
    expect(messages).toContain('the mapping of Secret threw: a bad mapping')
  })

  it('by trigger, with its reason, after a delay if one is wished', async () => {
    const ref = await world.widget('a')
    const { visits, controller } = visiting()
    await world.until('the first visit', () => visits.length === 1)
    controller.trigger(ref, 'because I say so')
    controller.trigger(ref, 'and once more', { after: 5000 })
    await world.clock.advance(1)
    expect(visits.slice(1)).toMatchObject([{ reasons: ['because I say so'] }])
    const { at } = visits[1] as Visit
    await world.until('the delayed visit', () => visits.length === 3)
    expect(visits[2]).toMatchObject({ reasons: ['and once more'], at: at + 5000 })
  })

  it('not by trigger before it works, nor after: that leaves nothing behind', async () => {
    const ref = await world.widget('a')
    const { visits, controller, operator } = visiting(
      () => undefined,
      {},
      own => own.trigger(ref, 'too early', { after: 1000 }),
    )
    expect(await operator.metric('workqueue_depth{name="widget",controller="widget",priority=""}')).toBe(0)
    await world.clock.advance(5000)
    expect(reasonsOf(visits)).toEqual(['Widget default/a exists'])
    await operator.stop()
    controller.trigger(ref, 'too late', { after: 1000 })
    expect(world.clock.pending).toBe(0)
  })

  it('by everything again, when resync says so, behind fresh changes', async () => {
    for (const name of ['a', 'b', 'c']) await world.widget(name)
    const { visits } = visiting(() => undefined, { resync: 60_000 })
    await world.until('the first visits', () => visits.length === 3)
    await world.clock.advance(60_000)
    expect(reasonsOf(visits.slice(3))).toEqual(['resync', 'resync', 'resync'])
    await world.clock.advance(120_000)
    expect(visits).toHaveLength(12)
  })

  it('first by fresh changes, when it starts with many', async () => {
    for (let i = 0; i < 50; i++) await world.widget(`old-${i}`)
    let visited = 0
    const { visits } = visiting(
      async () => {
        if (visited++ === 0) await world.widget('new')
        await new Promise<void>(resolve => world.clock.after(10, resolve))
      },
      { concurrency: 1 },
    )
    await world.until('all are visited', () => visits.length === 51)
    expect(
      visits.findIndex(visit => visit.key === 'default/new'),
      'the place of the new one',
    ).toBeLessThan(5)
  })
})

describe('a source', () => {
  /** An async iterable that says what is pushed into it. */
  class Source implements AsyncIterable<Trigger> {
    readonly #waiting: Trigger[] = []
    #wake: (() => void) | undefined
    returned = 0

    push(trigger: Trigger): void {
      this.#waiting.push(trigger)
      this.#wake?.()
    }

    [Symbol.asyncIterator](): AsyncIterator<Trigger> {
      return {
        next: async () => {
          while (this.#waiting.length === 0) await new Promise<void>(resolve => (this.#wake = resolve))
          return { done: false, value: this.#waiting.shift() as Trigger }
        },
        return: async () => {
          this.returned++
          return { done: true, value: undefined }
        },
      }
    }
  }

  it('wakes an object as a watch does, and is closed when the work ends', async () => {
    const ref = await world.widget('a')
    const source = new Source()
    const { visits, operator } = visiting(
      () => undefined,
      {},
      controller => controller.from(source),
    )
    await world.until('the first visit', () => visits.length === 1)
    source.push({ ref, reason: 'the tape says so' })
    await world.until('a visit', () => visits.length === 2)
    expect(visits[1]?.reasons).toEqual(['the tape says so'])
    source.push({ ref, reason: 'later', after: 500, priority: 3 })
    await world.clock.advance(499)
    expect(visits).toHaveLength(2)
    await world.clock.advance(1)
    expect(visits).toHaveLength(3)
    await operator.stop()
    expect(source.returned).toBe(1)
  })

  it('that ends by itself ends quietly', async () => {
    const ref = await world.widget('a')
    async function* once(): AsyncGenerator<Trigger> {
      yield { ref, reason: 'once' }
    }
    const { visits, operator } = visiting(
      () => undefined,
      {},
      controller => controller.from(once()),
    )
    await world.clock.advance(1000)
    expect(reasonsOf(visits)).toContain('once')
    expect(operator.complaints).toEqual([])
  })

  const throwing: [string, () => AsyncIterable<Trigger>][] = [
    [
      'rejects',
      async function* () {
        throw new Error('a bad source')
        // biome-ignore lint/correctness/noUnreachable: it is a generator of something.
        yield { ref: { name: 'a' }, reason: 'x' }
      },
    ],
    [
      'throws when it is asked for its iterator',
      () => ({
        [Symbol.asyncIterator]: () => {
          throw new Error('a bad source')
        },
      }),
    ],
    [
      'throws when it is asked for the next',
      () => ({
        [Symbol.asyncIterator]: () => ({
          next: () => {
            throw new Error('a bad source')
          },
          return: () => {
            throw new Error('a bad end')
          },
        }),
      }),
    ],
    [
      'yields what is no wake-up',
      async function* () {
        yield 'nonsense' as unknown as Trigger
      },
    ],
  ]

  it.each(throwing)('that %s is said in the log, and disturbs nobody', async (_how, source) => {
    const ref = await world.widget('a')
    const { visits, operator } = visiting(
      () => undefined,
      {},
      controller => controller.from(source()),
    )
    await world.until('the first visit', () => visits.length === 1)
    await world.change(ref, 'y')
    await world.until('work goes on', () => visits.length === 2)
    expect(operator.complaints.map(line => line.msg)).toEqual([
      expect.stringMatching(/^a source of wake-ups ended with an error: /),
    ])
    await operator.stop()
    expect(operator.ended).toEqual({})
  })

  it('that never says anything, and never returns, does not hold up a stop', async () => {
    const deaf: AsyncIterable<Trigger> = {
      [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}), return: () => new Promise(() => {}) }),
    }
    const { operator } = visiting(
      () => undefined,
      {},
      controller => controller.from(deaf),
    )
    await world.clock.advance(1000)
    const asked = world.clock.monotonic()
    await operator.stop()
    expect(world.clock.monotonic() - asked, 'virtual milliseconds that the stop took').toBeLessThan(100)
  })

  it('may say a great many things without anything being kept of them', async () => {
    setFlagsFromString('--expose-gc')
    const gc = runInNewContext('gc') as () => void
    const ref = await world.widget('a')
    const heap: number[] = []
    async function* endless(): AsyncGenerator<Trigger> {
      for (let i = 0; i <= 200_000; i++) {
        if (i % 100_000 === 0) {
          gc()
          heap.push(process.memoryUsage().heapUsed / 1048576)
        }
        yield { ref, reason: `reason ${i}` }
      }
    }
    // Held all the while: so nothing but the reading happens.
    const { visits } = visiting(
      () => new Promise<void>(resolve => world.clock.after(1000, resolve)),
      {},
      own => own.from(endless()),
    )
    await world.until('all is said', () => heap.length === 3)
    expect((heap[2] as number) - (heap[1] as number), 'MiB kept of 100,000 wake-ups').toBeLessThan(4)
    await world.until('a visit for all of it', () => visits.length === 2)
    expect(visits[1]?.reasons).toHaveLength(17)
  })
})

describe('a reconcile function', () => {
  it('sees at once what it wrote the last time, however late the watches are', async () => {
    world.server.lag = () => 5000
    const ref = await world.widget('a')
    const seen: (string | undefined)[] = []
    const { visits, controller } = visiting(
      async ({ object, client }) => {
        seen.push(object.status?.observedValue)
        const map = await client.find(ConfigMap, object.metadata)
        seen.push(map?.data?.['n'])
        await client.apply(
          ConfigMap,
          { metadata: { name: 'a' }, data: { n: String(visits.length) } },
          { owner: object },
        )
        expect((await client.get(ConfigMap, object.metadata)).data).toEqual({ n: String(visits.length) })
        await client.status(world.widgets, object, { observedValue: String(visits.length) })
        if (visits.length < 3) controller.trigger(ref, 'again')
      },
      {},
      own => own.owns(ConfigMap, { when: byOthers }),
    )
    await world.until('three visits', () => visits.length === 3)
    expect(seen).toEqual([undefined, undefined, '1', '1', '2', '2'])
  })

  it('is never called twice at once for one key, by ten workers', async () => {
    const names = ['a', 'b', 'c']
    const refs: Ref[] = []
    for (const name of names) refs.push(await world.widget(name))
    const active = new Map<string, number>()
    let most = 0
    const { visits, controller } = visiting(
      async ({ object }) => {
        const key = object.metadata.name
        active.set(key, (active.get(key) ?? 0) + 1)
        most = Math.max(
          most,
          [...active.values()].reduce((sum, n) => sum + n, 0),
        )
        expect(active.get(key), `reconciliations of ${key} at once`).toBe(1)
        await new Promise<void>(resolve => world.clock.after(7, resolve))
        active.set(key, 0)
      },
      { concurrency: 10 },
    )
    for (let i = 0; i < 200; i++) {
      controller.trigger(refs[i % 3] as Ref, `${i}`)
      await world.clock.advance(1)
    }
    await world.clock.advance(100)
    expect(most, 'different keys at once').toBe(3)
    expect(visits.length).toBeGreaterThan(60)
    expect(world.operators[0]?.complaints).toEqual([])
  })

  it('is not called more often at once than its concurrency', async () => {
    for (let i = 0; i < 30; i++) await world.widget(`w-${i}`)
    let active = 0
    let most = 0
    const { visits } = visiting(
      async () => {
        most = Math.max(most, ++active)
        await new Promise<void>(resolve => world.clock.after(5, resolve))
        active--
      },
      { concurrency: 4 },
    )
    await world.until('all are visited', () => visits.length === 30 && active === 0)
    expect(most).toBe(4)
  })

  it('gets a snapshot that cannot be changed by mistake', async () => {
    await world.widget('a')
    const errors: unknown[] = []
    const attempt = (change: () => void) => {
      try {
        change()
      } catch (error) {
        errors.push(error)
      }
    }
    const { visits } = visiting(async ({ object, client }) => {
      const mutable = object as { spec: { value: string }; metadata: { labels?: object }; extra?: string }
      attempt(() => (mutable.spec.value = 'changed'))
      attempt(() => (mutable.metadata.labels = {}))
      attempt(() => (mutable.extra = 'x'))
      attempt(() => {
        delete (mutable as { spec?: object }).spec
      })
      const [listed] = await client.list(world.widgets)
      attempt(() => ((listed as typeof mutable).spec.value = 'changed'))
    })
    await world.until('a visit', () => visits.length === 1 && errors.length === 5)
    for (const error of errors) expect(error).toBeInstanceOf(TypeError)
    expect(world.operators[0]?.manager.cache.informer(world.widgets).list()[0]?.spec.value).toBe('x')
  })

  it('logs with the names of its controller and its object', async () => {
    await world.widget('a')
    const { operator } = visiting(({ log }) => log.info('hello'), { name: 'greeter' })
    await world.until('a line', () => operator.lines.some(line => line.msg === 'hello'))
    expect(operator.lines.find(line => line.msg === 'hello')).toMatchObject({
      controller: 'greeter',
      object: 'default/a',
    })
  })

  it('logs by the level of the moment', async () => {
    const ref = await world.widget('a')
    const { operator, visits } = visiting(({ log }) => log.debug('detail'))
    await world.until('a visit', () => visits.length === 1)
    const details = () => operator.lines.filter(line => line.msg === 'detail').length
    expect(details()).toBe(1)
    operator.manager.log.level = 'warn'
    await world.change(ref, 'y')
    await world.until('a visit', () => visits.length === 2)
    expect(details()).toBe(1)
    operator.manager.log.level = 'debug'
    await world.change(ref, 'z')
    await world.until('a visit', () => visits.length === 3)
    expect(details()).toBe(2)
  })

  it('writes events about its object', async () => {
    await world.widget('a')
    visiting(({ event }) => event('Normal', 'Polished', 'it shines'))
    await world.until('an event', () => world.server.list('events.events.k8s.io').length === 1)
    expect(world.server.list('events.events.k8s.io')[0]).toMatchObject({
      ...{ type: 'Normal', reason: 'Polished', action: 'Reconcile', note: 'it shines' },
      regarding: { kind: 'Widget', name: 'a', namespace: 'default' },
    })
  })
})

describe('what a reconcile function throws', () => {
  const result = (name: string) => `controller_runtime_reconcile_total{controller="widget",result="${name}"}`
  const errors = 'controller_runtime_reconcile_errors_total{controller="widget"}'
  const panics = 'controller_runtime_reconcile_panics_total{controller="widget"}'
  const terminals = 'controller_runtime_terminal_reconcile_errors_total{controller="widget"}'
  const target = { verb: 'update', group: '', resource: 'configmaps' }

  /** Throws what `thrown` gives, as long as it gives something. */
  async function throwing(thrown: (attempt: number) => (() => unknown) | undefined) {
    const ref = await world.widget('a')
    const made = visiting(({ attempt }) => {
      const fail = thrown(attempt)
      if (fail) throw fail()
    })
    return { ref, ...made }
  }

  it.each<[string, () => unknown, boolean]>([
    ['an Error', () => new Error('out of luck'), false],
    ['a TypeError', () => new TypeError('out of luck'), true],
    ['a string', () => 'out of luck', true],
    ['undefined', () => undefined, true],
    ['an object without a prototype', () => Object.create(null), true],
    [
      'what cannot be told',
      () => ({
        toString: () => {
          throw new Error('no')
        },
      }),
      true,
    ],
    ['a bigint', () => 10n, true],
  ])(
    '%s: it is tried again with backoff, logged and counted, and others do not notice',
    async (_what, make, isPanic) => {
      const { visits, operator } = await throwing(attempt => (attempt < 4 ? make : undefined))
      await world.widget('b')
      await world.until('it succeeds in the end', () => visits.filter(visit => visit.key === 'default/a').length === 4)
      const own = visits.filter(visit => visit.key === 'default/a')
      expect(own.map(visit => visit.attempt)).toEqual([1, 2, 3, 4])
      const waits = own.slice(1).map((visit, i) => visit.at - (own[i] as Visit).at)
      expect(waits).toEqual([5, 10, 20])
      expect(own[1]?.reasons[0]).toMatch(/^retry after: /)
      expect(operator.complaints.filter(line => line.msg.startsWith('failed: '))).toHaveLength(3 + 3)
      await world.clock.advance(100)
      expect(await operator.metric(errors)).toBe(6)
      expect(await operator.metric(panics)).toBe(isPanic ? 6 : 0)
      expect(await operator.metric(result('error'))).toBe(6)
      expect(await operator.metric(result('success'))).toBe(2)
      expect(await operator.metric('workqueue_retries_total{name="widget",controller="widget"}')).toBe(6)
      expect(operator.ended, 'the manager goes on').toBeUndefined()
    },
  )

  it('a rejection is the same', async () => {
    await world.widget('a')
    const { visits, operator } = visiting(({ attempt }) =>
      attempt === 1 ? Promise.reject(new Error('out of luck')) : Promise.resolve(),
    )
    await world.until('it is tried again', () => visits.length === 2)
    expect(operator.complaints).toMatchObject([
      { msg: 'failed: out of luck', object: 'default/a', attempt: 1, retryInMs: 5 },
    ])
  })

  it('a TerminalError: not tried again until something changes', async () => {
    const { visits, operator, ref } = await throwing(() => () => new TerminalError('the size must not shrink'))
    await world.clock.advance(3_600_000)
    expect(visits).toHaveLength(1)
    expect(operator.complaints.map(line => line.msg)).toEqual([
      'failed, and is not retried until something changes: the size must not shrink',
    ])
    expect(await operator.metric(terminals)).toBe(1)
    expect(await operator.metric(errors)).toBe(1)
    await world.change(ref, 'y')
    await world.until('it is tried when it changes', () => visits.length === 2)
    expect(visits[1]?.attempt).toBe(1)
  })

  it('a Conflict: tried again, and no error anywhere', async () => {
    const { visits, operator } = await throwing(attempt =>
      attempt < 4 ? () => errorOfStatus(target, 409, { reason: 'Conflict' }) : undefined,
    )
    await world.until('it succeeds in the end', () => visits.length === 4)
    await world.clock.advance(100)
    expect(operator.complaints).toEqual([])
    expect(await operator.metric(errors)).toBe(0)
    expect(await operator.metric(result('requeue'))).toBe(3)
    expect(await operator.metric(result('success'))).toBe(1)
  })

  it('a Conflict that reading again does not mend: said in the log, after a while', async () => {
    const { operator } = await throwing(
      () => () => new Conflict('Conflict', 'fresh', 409, target, { message: 'field manager conflict' }),
    )
    await world.clock.advance(10_000)
    expect(operator.complaints[0]).toMatchObject({ level: 'warn', attempt: 6 })
    expect(operator.complaints[0]?.msg).toContain('field manager conflict')
  })

  it('a TooManyRequests that says how long: not before that', async () => {
    const limit = () => errorOfStatus(target, 429, { details: { retryAfterSeconds: 30 } })
    expect(limit()).toBeInstanceOf(TooManyRequests)
    const { visits } = await throwing(attempt => (attempt === 1 ? limit : undefined))
    await world.until('it is tried again', () => visits.length === 2)
    expect((visits[1] as Visit).at - (visits[0] as Visit).at).toBe(30_000)
  })

  it('while it fails, a change is not held up by its backoff', async () => {
    const { visits, ref } = await throwing(() => () => new Error('out of luck'))
    await world.clock.advance(100_000)
    const { length } = visits
    await world.change(ref, 'y')
    await world.clock.advance(10)
    expect(visits).toHaveLength(length + 1)
    expect(visits.at(-1)?.reasons).toEqual(['Widget default/a changed'])
  })
})

describe('what a reconcile function returns', () => {
  it('requeueAfter: looked at again then, for as long as it says so', async () => {
    await world.widget('a')
    const { visits, operator } = visiting(() => (visits.length < 3 ? { requeueAfter: 60_000 } : undefined))
    await world.clock.advance(600_000)
    expect(visits).toHaveLength(3)
    expect((visits[2] as Visit).at - (visits[0] as Visit).at).toBe(120_000)
    expect(visits[1]?.reasons).toEqual(['asked to come back after 60000 ms'])
    expect(
      await operator.metric('controller_runtime_reconcile_total{controller="widget",result="requeue_after"}'),
    ).toBe(2)
    expect(operator.complaints).toEqual([])
  })

  it('requeueAfter, and something happens before: the new outcome counts alone', async () => {
    const ref = await world.widget('a')
    const { visits } = visiting(() => (visits.length === 1 ? { requeueAfter: 60_000 } : undefined))
    await world.until('the first visit', () => visits.length === 1)
    await world.change(ref, 'y')
    await world.clock.advance(600_000)
    expect(visits).toHaveLength(2)
  })

  it.each([Number.NaN, -1, 'soon'])('requeueAfter %s: a program error, which is retried like one', async after => {
    await world.widget('a')
    const { visits, operator } = visiting(() => (visits.length < 3 ? { requeueAfter: after as number } : undefined))
    await world.until('it is tried again', () => visits.length === 3)
    expect(operator.complaints[0]?.msg).toMatch(/^failed: requeueAfter is .*; it must be milliseconds, 0 or more$/)
    expect(await operator.metric('controller_runtime_reconcile_panics_total{controller="widget"}')).toBe(2)
  })

  it('requeueAfter 0: at once', async () => {
    await world.widget('a')
    const { visits } = visiting(() => (visits.length < 3 ? { requeueAfter: 0 } : undefined))
    await world.clock.advance(1000)
    expect(visits).toHaveLength(3)
    expect((visits[2] as Visit).at).toBe((visits[0] as Visit).at)
  })

  it('requeueAfter infinity: never', async () => {
    await world.widget('a')
    const { visits } = visiting(() => ({ requeueAfter: Number.POSITIVE_INFINITY }))
    await world.clock.advance(1e9)
    expect(visits).toHaveLength(1)
  })
})

describe('an object that is gone', () => {
  it('is told to gone, by name, and not reconciled', async () => {
    const ref = await world.widget('a')
    const gone: Ref[] = []
    const { visits } = visiting(
      () => undefined,
      {},
      controller => controller.gone(context => void gone.push(context.ref)),
    )
    await world.until('the first visit', () => visits.length === 1)
    await world.client.delete(world.widgets, ref)
    await world.until('it is told', () => gone.length === 1)
    expect(gone).toEqual([{ name: 'a', namespace: 'default' }])
    await world.clock.advance(10_000)
    expect(visits).toHaveLength(1)
    expect(gone).toHaveLength(1)
  })

  it('is not told of what never was, whatever a mapping says', async () => {
    const gone: Ref[] = []
    const asked: string[] = []
    world.start(manager =>
      manager
        .controller(world.widgets)
        .watches(ConfigMap, object => {
          asked.push(object.metadata.name)
          return [{ name: `made-up-${object.metadata.name}` }]
        })
        .gone(({ ref }) => void gone.push(ref))
        .reconcile(() => undefined),
    )
    await world.client.create(ConfigMap, { metadata: { name: 'x', namespace: 'default' } })
    await world.until('it was mapped', () => asked.includes('x'))
    await world.clock.advance(60_000)
    expect(gone).toEqual([])
  })

  it('is told again until gone succeeds', async () => {
    const ref = await world.widget('a')
    let tries = 0
    const { visits, operator } = visiting(
      () => undefined,
      {},
      controller =>
        controller.gone(() => {
          if (++tries < 3) throw new Error('the tape is stuck')
        }),
    )
    await world.until('the first visit', () => visits.length === 1)
    await world.client.delete(world.widgets, ref)
    await world.until('it is told three times', () => tries === 3)
    await world.clock.advance(10_000)
    expect(tries).toBe(3)
    expect(operator.complaints.map(line => line.msg)).toEqual([
      'failed: the tape is stuck',
      'failed: the tape is stuck',
    ])
  })

  it('is nothing special where nobody wants to know', async () => {
    const ref = await world.widget('a')
    const { visits, operator } = visiting(() => ({ requeueAfter: 10_000 }))
    await world.until('the first visit', () => visits.length === 1)
    await world.client.delete(world.widgets, ref)
    await world.clock.advance(100_000)
    expect(visits).toHaveLength(1)
    expect(operator.complaints).toEqual([])
  })

  it('and made again under its name is another one', async () => {
    const ref = await world.widget('a')
    const uids: string[] = []
    visiting(({ object }) => void uids.push(object.metadata.uid))
    await world.until('the first visit', () => uids.length === 1)
    await world.client.delete(world.widgets, ref)
    await world.widget('a')
    await world.until('a visit of the other one', () => uids.length === 2)
    expect(uids[0]).not.toBe(uids[1])
  })

  it('with a finalizer is reconciled while it goes, until that lets go', async () => {
    await world.widget('a', 'x', { finalizers: ['test.example.com/hold'] })
    const gone: Ref[] = []
    const { visits } = visiting(
      async ({ object, client }) => {
        if (!object.metadata.deletionTimestamp) return
        const { resourceVersion } = object.metadata
        await client.patch(world.widgets, object.metadata, {
          merge: { metadata: { resourceVersion, finalizers: null } },
        })
      },
      {},
      controller => controller.gone(({ ref }) => void gone.push(ref)),
    )
    await world.until('the first visit', () => visits.length === 1)
    await world.client.delete(world.widgets, { name: 'a' })
    await world.until('it is gone', () => gone.length > 0)
    expect(visits.length).toBeGreaterThanOrEqual(2)
    expect(world.server.list('widgets.test.example.com')).toEqual([])
  })
})

describe('a hot loop', () => {
  const hot = (options: ControllerOptions['hotLoop'] = { burst: 3, refill: 1000 }) => {
    let times = 0
    return visiting(
      async ({ object, client }) => {
        await client.status(world.widgets, object, { observedValue: String(times++) })
      },
      { hotLoop: options },
    )
  }

  it('is found, slowed down, counted, and said in the log and in an Event', async () => {
    await world.widget('a')
    const { visits, operator } = hot()
    await world.until('it is found', () => operator.complaints.length > 0)
    expect(operator.complaints[0]).toMatchObject({
      level: 'warn',
      reason: 'HotLoop',
      holdMs: 1000,
      writes: 'status Widget a',
      object: 'default/a',
    })
    expect(visits).toHaveLength(4)
    await world.until('the event is written', () => world.server.list('events.events.k8s.io').length === 1)
    expect(world.server.list('events.events.k8s.io')[0]).toMatchObject({
      type: 'Warning',
      reason: 'HotLoop',
      regarding: { name: 'a' },
    })
    expect(await operator.metric('shipmate_hot_loops_total{controller="widget"}')).toBe(1)
    visits.length = 0
    await world.clock.advance(600_000)
    expect(visits.length, 'visits in ten minutes').toBeLessThanOrEqual(16)
    expect(visits.length, 'it is not stopped').toBeGreaterThan(10)
  })

  it('of a reconciler that writes its own spec is found as well', async () => {
    await world.widget('a')
    let times = 0
    const { visits, operator } = visiting(
      async ({ object, client }) => {
        await client.patch(world.widgets, object.metadata, { merge: { spec: { value: String(times++) } } })
      },
      { hotLoop: { burst: 3, refill: 1000 } },
    )
    await world.until('it is found', () => operator.complaints.length > 0)
    expect(visits).toHaveLength(4)
  })

  it('is set free at once when somebody changes what is wished', async () => {
    const ref = await world.widget('a')
    const { visits, operator } = hot({ burst: 3, refill: 60_000 })
    await world.until('it is found', () => operator.complaints.length > 0)
    await world.clock.advance(1000)
    expect(visits).toHaveLength(4)
    await world.change(ref, 'y')
    await world.clock.advance(100)
    expect(visits.length, 'visits after a change of the spec').toBeGreaterThan(4)
  })

  it('does not concern other objects', async () => {
    await world.widget('a')
    const { visits } = visiting(
      async ({ object, client }) => {
        if (object.metadata.name === 'a')
          await client.status(world.widgets, object, { observedValue: String(visits.length) })
      },
      { hotLoop: { burst: 3, refill: 60_000 } },
    )
    await world.clock.advance(1000)
    await world.widget('b')
    await world.clock.advance(10)
    expect(visits.at(-1)?.key).toBe('default/b')
  })

  it('is not what writes once for each change', async () => {
    const ref = await world.widget('a')
    const operator = world.start(widgetWork(world.widgets, { hotLoop: { burst: 3, refill: 1000 } }))
    for (let i = 0; i < 30; i++) {
      await world.change(ref, `value ${i}`)
      await world.clock.advance(50)
    }
    expect(operator.complaints).toEqual([])
    expect(world.server.list('configmaps')[0]).toMatchObject({ data: { value: 'value 29' } })
  })

  it('that is stopped while it is held leaves nothing behind', async () => {
    await world.widget('a')
    const { operator } = hot({ burst: 1, refill: 60_000 })
    await world.until('it is found', () => operator.complaints.length > 0)
    await operator.stop()
    expect(world.clock.pending).toBe(0)
  })

  it('that is found while all stops leaves nothing behind either', async () => {
    await world.widget('a')
    let stop: (() => void) | undefined
    const { operator } = visiting(
      async ({ object, client }) => {
        await client.status(world.widgets, object, { observedValue: String(Math.random()) })
        stop?.()
      },
      { hotLoop: { burst: 1, refill: 60_000 } },
    )
    stop = () => void operator.manager.stop()
    await world.until('it has stopped', () => operator.ended !== undefined)
    expect(world.clock.pending).toBe(0)
  })
})

describe('a kind that may be absent', () => {
  let gadgets: Kind<Widget>

  beforeEach(() => {
    gadgets = { ...widgetKind('gadgets.example.com'), kind: 'Gadget', plural: 'gadgets' }
  })

  const mapped = (controller: Controller<Widget>) =>
    controller.watches(gadgets, gadget => [{ name: gadget.spec.value, namespace: gadget.metadata.namespace }], {
      optional: true,
    })

  it('is done without, watched when it comes, and done without again when it goes', async () => {
    await world.widget('a')
    const { visits, operator } = visiting(() => undefined, {}, mapped)
    await world.until('work begins without it', () => visits.length === 1)
    expect(operator.lines.filter(line => line['reason'] === 'KindAbsent')).toHaveLength(1)
    for (let round = 0; round < 3; round++) {
      visits.length = 0
      world.server.serve(gadgets)
      await world.client.create(gadgets, { metadata: { name: 'g' }, spec: { value: 'a' } })
      await world.until('a visit because of it', () => visits.length > 0)
      expect(reasonsOf(visits)[0]).toMatch(/^Gadget default\/g (exists|added)$/)
      visits.length = 0
      world.server.unserve(gadgets)
      await world.until('a visit because it went', () => visits.length > 0)
      expect(reasonsOf(visits)).toContain('Gadget default/g removed')
    }
    expect(operator.ended).toBeUndefined()
  })

  it('costs nothing while it is absent but one watch on its CRD', async () => {
    await world.widget('a')
    const { operator } = visiting(() => undefined, {}, mapped)
    await world.clock.advance(60_000)
    operator.requests.length = 0
    await world.clock.advance(200_000)
    const others = operator.requests.filter(({ target }) => target.resource !== 'widgets')
    expect(others.map(({ target }) => `${target.verb} ${target.resource}`)).toEqual([])
  })

  it('when it is required keeps the work from beginning, until it is there', async () => {
    await world.widget('a')
    const { visits } = visiting(
      () => undefined,
      {},
      controller => controller.owns(gadgets),
    )
    await world.clock.advance(3_600_000)
    expect(visits).toEqual([])
    world.server.serve(gadgets)
    await world.until('work begins', () => visits.length === 1)
  })

  it('and goes while it is required: the work goes on', async () => {
    const ref = await world.widget('a')
    world.server.serve(gadgets)
    const { visits } = visiting(
      () => undefined,
      {},
      controller => controller.owns(gadgets),
    )
    await world.until('work begins', () => visits.length === 1)
    world.server.unserve(gadgets)
    await world.clock.advance(1000)
    await world.change(ref, 'y')
    await world.until('work goes on', () => visits.length === 2)
  })
})

describe('misuse is told in words', () => {
  it.each([0, -1, Number.NaN, 1.5])('a concurrency of %s', async concurrency => {
    const { manager } = world.start(() => undefined)
    const { manager: other } = { manager }
    await world.clock.advance(10)
    expect(() => other).not.toThrow()
    const fresh = new World()
    const declare = () => fresh.start(own => own.controller(world.widgets, { concurrency }))
    expect(declare).toThrow(`the concurrency of controller widget must be 1 or more, not ${concurrency}`)
  })

  it('no reconcile function', async () => {
    const operator = world.start(manager => void manager.controller(world.widgets))
    await world.until('it ends', () => operator.ended !== undefined)
    expect(operator.ended?.error).toMatchObject({ message: 'controller widget has no reconcile function' })
  })
})

it('does nothing at all when nothing happens: no request but its watches, no timer that does something', async () => {
  for (let i = 0; i < 5; i++) await world.widget(`w-${i}`)
  const operator: Operator = world.start(widgetWork(world.widgets))
  await world.until('all is as wished', () => operator.writes.length === 10)
  await world.clock.advance(10_000)
  operator.requests.length = 0
  operator.reconciled.length = 0
  await world.clock.advance(3_600_000)
  expect(operator.requests.filter(({ target }) => target.verb !== 'watch')).toEqual([])
  expect(operator.reconciled).toEqual([])
})
