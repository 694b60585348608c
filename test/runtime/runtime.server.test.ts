/**
 * The runtime against a real API server: the Widget work, with all that can happen to it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test, vi } from 'vitest'
import { type Access, connect } from '../../controller/kube/access.ts'
import { NotFound } from '../../controller/kube/errors.ts'
import { defineKind, type Kind, keyOf, type Ref } from '../../controller/kube/kind.ts'
import { ConfigMap, CustomResourceDefinition, Event, Lease, Namespace } from '../../controller/kube/kinds.ts'
import type { Interceptor } from '../../controller/kube/transport.ts'
import type { Controller, ControllerOptions } from '../../controller/runtime/controller.ts'
import { createManager, type Manager, type ManagerOptions } from '../../controller/runtime/manager.ts'
import { type ApiServer, startApiServer } from '../fixtures/apiserver.ts'
import { installWidgets, type Widget, widgetKind } from '../fixtures/widget.ts'

const kubeconfig = inject('kubeconfig')
const group = 'runtime.test.example.com'
const localhost = { host: '127.0.0.1', port: 0 }

/** A manager that runs, and what it wrote and said. */
interface Running {
  manager: Manager
  /** Every write that was sent, but of leases and events. */
  writes: string[]
  lines: { level: string; msg: string; [field: string]: unknown }[]
  /** Keys in the order of their reconciliations. */
  reconciled: string[]
  stop(): Promise<void>
}

let running: Running[] = []
let namespace: string
let access: Access

/** Starts a manager; `declare` says what it does. */
function operate(declare: (manager: Manager, running: Running) => void, options: ManagerOptions = {}): Running {
  const lines: Running['lines'] = []
  const writes: string[] = []
  const count: Interceptor = next => request => {
    const { verb, resource, subresource, name } = request.target
    if (request.method !== 'GET' && resource !== 'leases' && resource !== 'events') {
      writes.push(`${verb} ${resource}${subresource ? `/${subresource}` : ''} ${name}`)
    }
    return next(request)
  }
  const manager = createManager({
    ...{ kubeconfig: { file: kubeconfig }, namespaces: [namespace], signals: false, interceptors: [count] },
    log: { level: 'debug', destination: { write: line => void lines.push(JSON.parse(line)) } },
    ...options,
  })
  const own: Running = { manager, writes, lines, reconciled: [], stop: () => manager.stop() }
  declare(manager, own)
  const started = manager.start()
  own.stop = async () => {
    running = running.filter(other => other !== own)
    await manager.stop()
    await started
  }
  running.push(own)
  return own
}

/** The Widget work. */
function widgetWork(kind: Kind<Widget>, options: ControllerOptions = {}) {
  return (manager: Manager, { reconciled }: Running): Controller<Widget> =>
    manager
      .controller(kind, options)
      .owns(ConfigMap)
      .reconcile(async ({ object, client }) => {
        const { name } = object.metadata
        await client.apply(ConfigMap, { metadata: { name }, data: { value: object.spec.value } }, { owner: object })
        await client.status(kind, object, { observedValue: object.spec.value })
        reconciled.push(keyOf(object.metadata))
      })
}

/** Waits for what is expected. */
function until(expectation: () => Promise<unknown> | unknown): Promise<unknown> {
  return vi.waitFor(expectation, { timeout: 30_000, interval: 20 })
}

async function createWidgets(kind: Kind<Widget>, count: number): Promise<Ref[]> {
  const names = Array.from({ length: count }, (_, i) => ({ name: `w-${i}`, namespace }))
  await Promise.all(
    names.map((ref, i) => access.client.create(kind, { metadata: { ...ref }, spec: { value: `value ${i}` } })),
  )
  return names
}

/** Expects all Widgets to be as wished. */
async function expectConverged(kind: Kind<Widget>, count: number): Promise<void> {
  const [there, maps] = await Promise.all([
    access.client.list(kind, { namespace }),
    access.client.list(ConfigMap, { namespace }),
  ])
  expect(there).toHaveLength(count)
  expect(maps.filter(map => map.metadata.ownerReferences)).toHaveLength(count)
  for (const { metadata, spec, status } of there) {
    expect(status?.observedValue, `status of ${metadata.name}`).toBe(spec.value)
    const map = maps.find(one => one.metadata.name === metadata.name)
    expect(map?.data, `ConfigMap of ${metadata.name}`).toMatchObject({ value: spec.value })
    expect(map?.metadata.ownerReferences).toMatchObject([{ uid: metadata.uid, controller: true }])
  }
}

/**
 * Waits until a manager has nothing to do and its watches have told all: a mark, written last, has gone through them.
 */
async function expectQuiet({ manager, reconciled }: Running, kind: Kind<Widget>): Promise<void> {
  const name = 'mark'
  const mark = await access.client.create(kind, { metadata: { name, namespace }, spec: { value: 'mark' } })
  const isDone = () => expect(manager.cache.informer(kind).get(mark.metadata)?.status?.observedValue).toBe('mark')
  await until(isDone)
  await until(() => expect(reconciled.filter(key => key === keyOf(mark.metadata)).length).toBeGreaterThan(1))
  await access.client.delete(kind, mark.metadata)
  await access.client.delete(ConfigMap, mark.metadata)
  await until(() => expect(manager.cache.informer(ConfigMap).get(mark.metadata)).toBeUndefined())
}

const withoutMark = (writes: readonly string[]) => writes.filter(write => !write.endsWith(' mark'))

async function readyz({ manager }: Running): Promise<{ status: number; text: string }> {
  const { port } = manager.addresses[0] as { port: number }
  const response = await fetch(`http://127.0.0.1:${port}/readyz?verbose`)
  return { status: response.status, text: await response.text() }
}

/** Removes a CRD, and waits until it is gone. */
async function removeCrd(kind: Kind): Promise<void> {
  const ref = { name: `${kind.plural}.${kind.group}` }
  await access.client.delete(CustomResourceDefinition, ref).catch(error => {
    if (!(error instanceof NotFound)) throw error
  })
  await until(async () => expect(await access.client.find(CustomResourceDefinition, ref)).toBeUndefined())
}

describe.skipIf(!kubeconfig)('the Widget operator', () => {
  let widgets: Kind<Widget>

  beforeAll(async () => {
    access = connect({ kubeconfig: { file: kubeconfig } })
    widgets = await installWidgets(access.client, group)
  })
  beforeEach(async () => {
    const made = await access.client.create(Namespace, { metadata: { generateName: 'runtime-' } })
    namespace = made.metadata.name
  })
  afterEach(async () => {
    await Promise.all(running.map(one => one.stop()))
  })
  afterAll(() => access.close())

  test('brings 50 Widgets about with 2 writes each, and not one more', async () => {
    await createWidgets(widgets, 50)
    const operator = operate(widgetWork(widgets))
    await until(() => expectConverged(widgets, 50))
    await expectQuiet(operator, widgets)
    const expected = Array.from({ length: 50 }, (_, i) => [
      `patch configmaps w-${i}`,
      `patch widgets/status w-${i}`,
    ]).flat()
    expect(withoutMark(operator.writes).sort()).toEqual(expected.sort())
  })

  test('the same for Widgets that come while it runs, and for their changes', async () => {
    const operator = operate(widgetWork(widgets))
    await operator.manager.ready
    const refs = await createWidgets(widgets, 50)
    await until(() => expectConverged(widgets, 50))
    await Promise.all(refs.map(ref => access.client.patch(widgets, ref, { merge: { spec: { value: 'new' } } })))
    await until(async () => {
      await expectConverged(widgets, 50)
      expect((await access.client.get(widgets, refs[0] as Ref)).spec.value).toBe('new')
    })
    await expectQuiet(operator, widgets)
    expect(withoutMark(operator.writes)).toHaveLength(200)
  })

  test('repairs children that were changed or deleted, with one write each', async () => {
    const refs = await createWidgets(widgets, 10)
    const operator = operate(widgetWork(widgets))
    await until(() => expectConverged(widgets, 10))
    operator.writes.length = 0
    for (const ref of refs.slice(0, 5)) await access.client.delete(ConfigMap, ref)
    for (const ref of refs.slice(5))
      await access.client.patch(ConfigMap, ref, { merge: { data: { value: 'damaged' } } })
    await until(() => expectConverged(widgets, 10))
    await expectQuiet(operator, widgets)
    expect(withoutMark(operator.writes).sort()).toEqual(refs.map(ref => `patch configmaps ${ref.name}`).sort())
  })

  test('leaves what others put into a child, and writes nothing for it', async () => {
    const [ref] = (await createWidgets(widgets, 1)) as [Ref]
    const operator = operate(widgetWork(widgets))
    await until(() => expectConverged(widgets, 1))
    operator.writes.length = 0
    await access.client.patch(ConfigMap, ref, { merge: { data: { theirs: 'yes' } } })
    await expectQuiet(operator, widgets)
    expect(withoutMark(operator.writes)).toEqual([])
    expect((await access.client.get(ConfigMap, ref)).data).toEqual({ value: 'value 0', theirs: 'yes' })
  })

  test('writes nothing after a restart', async () => {
    await createWidgets(widgets, 50)
    const first = operate(widgetWork(widgets))
    await until(() => expectConverged(widgets, 50))
    await first.stop()
    const second = operate(widgetWork(widgets))
    await until(() => expect(new Set(second.reconciled).size).toBe(50))
    await expectQuiet(second, widgets)
    expect(withoutMark(second.writes)).toEqual([])
  })

  test('takes a conflict for everyday life: decided anew, no error anywhere', async () => {
    const [ref] = (await createWidgets(widgets, 1)) as [Ref]
    await access.client.create(ConfigMap, { metadata: { name: ref.name, namespace }, data: { value: 'old' } })
    let attempts = 0
    const operator = operate(manager =>
      manager.controller(widgets).reconcile(async ({ object, client }) => {
        attempts++
        const map = await client.live.get(ConfigMap, object.metadata)
        if (map.data?.['value'] === object.spec.value) return
        if (attempts === 1) await access.client.patch(ConfigMap, ref, { merge: { data: { other: 'faster' } } })
        await client.update(ConfigMap, { ...map, data: { ...map.data, value: object.spec.value } })
      }),
    )
    await until(async () =>
      expect((await access.client.get(ConfigMap, ref)).data).toEqual({ value: 'value 0', other: 'faster' }),
    )
    expect(attempts).toBe(2)
    expect(operator.lines.filter(line => ['warn', 'error', 'fatal'].includes(line.level))).toEqual([])
    expect(await operator.manager.metrics.registry.metrics()).toContain(
      'controller_runtime_reconcile_errors_total{controller="widget"} 0',
    )
  })

  test('calls gone when a Widget is gone', async () => {
    const [ref] = (await createWidgets(widgets, 1)) as [Ref]
    const gone: string[] = []
    operate((manager, own) => widgetWork(widgets)(manager, own).gone(context => void gone.push(keyOf(context.ref))))
    await until(() => expectConverged(widgets, 1))
    await access.client.delete(widgets, ref)
    await until(() => expect(gone).toEqual([keyOf(ref)]))
  })

  test('looks after its namespaces alone', async () => {
    const other = (await access.client.create(Namespace, { metadata: { generateName: 'runtime-' } })).metadata.name
    await access.client.create(widgets, { metadata: { name: 'w', namespace: other }, spec: { value: 'x' } })
    const operator = operate(widgetWork(widgets))
    await createWidgets(widgets, 1)
    await until(() => expectConverged(widgets, 1))
    await expectQuiet(operator, widgets)
    expect(new Set(operator.reconciled)).toEqual(new Set([`${namespace}/w-0`, `${namespace}/mark`]))
    expect((await access.client.get(widgets, { name: 'w', namespace: other })).status).toBeUndefined()
  })

  test('says in an Event that an object is a hot loop, and goes on slowly', async () => {
    const [ref] = (await createWidgets(widgets, 1)) as [Ref]
    let times = 0
    const operator = operate(manager =>
      manager
        .controller(widgets, { hotLoop: { burst: 3 } })
        .owns(ConfigMap)
        .reconcile(async ({ object, client }) => {
          await client.apply(
            ConfigMap,
            { metadata: { name: 'clock' }, data: { time: String(times++) } },
            { owner: object },
          )
        }),
    )
    await until(async () => {
      const events = await access.client.list(Event, { namespace })
      expect(events.filter(event => event.reason === 'HotLoop')).toMatchObject([
        {
          type: 'Warning',
          regarding: { kind: 'Widget', name: ref.name },
          note: expect.stringContaining('apply ConfigMap clock'),
        },
      ])
    })
    expect(times, 'writes until it was found').toBe(4)
    expect(await operator.manager.metrics.registry.metrics()).toContain(
      'shipmate_hot_loops_total{controller="widget"} 1',
    )
  })

  test('serves the metrics of a running operator', async () => {
    await createWidgets(widgets, 3)
    const operator = operate(widgetWork(widgets), { metrics: localhost })
    await until(() => expectConverged(widgets, 3))
    const { port } = operator.manager.addresses[0] as { port: number }
    await until(async () => {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
      expect(text).toMatch(/^controller_runtime_reconcile_total\{controller="widget",result="success"\} [3-9]/m)
      expect(text).toMatch(/^rest_client_requests_total\{code="201",method="PATCH",host="127\.0\.0\.1:\d+"\} 3$/m)
      expect(text).toMatch(
        new RegExp(`^shipmate_watch_up\\{resource="widgets\\.v1\\.${group}",namespace="${namespace}"\\} 1$`, 'm'),
      )
      expect(text).toMatch(/^process_cpu_seconds_total /m)
    })
  })

  test('can be stopped while it is busy, and what is left is done by the next one', async () => {
    await createWidgets(widgets, 50)
    const first = operate(widgetWork(widgets, { concurrency: 2 }))
    await until(() => expect(first.reconciled.length).toBeGreaterThan(5))
    await first.stop()
    const { length } = first.writes
    const second = operate(widgetWork(widgets))
    await until(() => expectConverged(widgets, 50))
    await expectQuiet(second, widgets)
    expect(first.writes, 'nothing is written after the stop').toHaveLength(length)
    expect(length + withoutMark(second.writes).length).toBe(100)
  })
})

describe.skipIf(!kubeconfig)('a kind whose CRD comes and goes', () => {
  let groups = 0
  let kind: Kind<Widget>

  beforeAll(() => {
    access = connect({ kubeconfig: { file: kubeconfig } })
  })
  beforeEach(async () => {
    kind = widgetKind(`coming-${++groups}.test.example.com`)
    namespace = (await access.client.create(Namespace, { metadata: { generateName: 'runtime-' } })).metadata.name
  })
  afterEach(async () => {
    await Promise.all(running.map(one => one.stop()))
    await removeCrd(kind)
  })
  afterAll(() => access.close())

  test('is waited for when it is required: not ready, and the reason is named', async () => {
    const operator = operate(widgetWork(kind), { health: localhost })
    await until(async () => {
      const { status, text } = await readyz(operator)
      expect(status).toBe(500)
      expect(text).toContain(`[-]watch-widgets.v1.${kind.group} failed: not served: is its CRD installed?`)
    })
    await installWidgets(access.client, kind.group)
    await createWidgets(kind, 3)
    await until(() => expectConverged(kind, 3))
    expect((await readyz(operator)).status).toBe(200)
  })

  test('can be deleted and installed again', async () => {
    await installWidgets(access.client, kind.group)
    await createWidgets(kind, 3)
    const gone: string[] = []
    const operator = operate(
      (manager, own) => widgetWork(kind)(manager, own).gone(({ ref }) => void gone.push(ref.name)),
      { health: localhost },
    )
    await until(() => expectConverged(kind, 3))
    await removeCrd(kind)
    await until(() => expect(gone.sort()).toEqual(['w-0', 'w-1', 'w-2']))
    await until(async () => expect((await readyz(operator)).text).toContain('not served'))

    await access.client.deleteCollection(ConfigMap, { namespace })
    await installWidgets(access.client, kind.group)
    await createWidgets(kind, 2)
    await until(() => expectConverged(kind, 2))
    await until(async () => expect((await readyz(operator)).status).toBe(200))
  })

  test('is done without when it is optional, and watched when it is there', async () => {
    const main = await installWidgets(access.client, group)
    const gadgets = defineKind<Widget>({ ...kind })
    const reasons: string[] = []
    const operator = operate(
      manager =>
        manager
          .controller(main)
          .watches(gadgets, gadget => [{ name: gadget.spec.value, namespace: gadget.metadata.namespace }], {
            optional: true,
          })
          .reconcile(context => void reasons.push(...context.reasons)),
      { health: localhost },
    )
    const [ref] = (await createWidgets(main, 1)) as [Ref]
    await until(() => expect(reasons.some(reason => reason.includes(keyOf(ref)))).toBe(true))
    expect((await readyz(operator)).status).toBe(200)
    expect(
      operator.lines.some(line => line['reason'] === 'KindAbsent'),
      'it says so in the log',
    ).toBe(true)

    await installWidgets(access.client, kind.group)
    await access.client.create(gadgets, { metadata: { name: 'gadget', namespace }, spec: { value: ref.name } })
    await until(() => expect(reasons.some(reason => reason.includes(`${namespace}/gadget`))).toBe(true))

    await removeCrd(kind)
    await until(() => expect(reasons).toContain(`Widget ${namespace}/gadget removed`))
    expect((await readyz(operator)).status).toBe(200)
  })
})

describe.skipIf(!kubeconfig)('two replicas', () => {
  let widgets: Kind<Widget>
  let replicas: { process: ChildProcess; lines: string[] }[] = []

  beforeAll(async () => {
    access = connect({ kubeconfig: { file: kubeconfig } })
    widgets = await installWidgets(access.client, group)
  })
  beforeEach(async () => {
    namespace = (await access.client.create(Namespace, { metadata: { generateName: 'runtime-' } })).metadata.name
  })
  afterEach(() => {
    for (const { process } of replicas) process.kill('SIGKILL')
    replicas = []
  })
  afterAll(() => access.close())

  function join(identity: string) {
    const program = fileURLToPath(new URL('../fixtures/widget-operator.ts', import.meta.url))
    const child = spawn(process.execPath, [program, kubeconfig, namespace, group, identity], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const lines: string[] = []
    createInterface({ input: child.stdout }).on('line', line => lines.push(line))
    const replica = { process: child, lines }
    replicas.push(replica)
    return replica
  }

  const holder = async () => (await access.client.find(Lease, { name: 'widgets', namespace }))?.spec?.holderIdentity
  const by = async () =>
    new Set((await access.client.list(ConfigMap, { namespace })).flatMap(map => map.data?.['by'] ?? []))

  async function touch(name: string): Promise<void> {
    await access.client.create(widgets, { metadata: { name, namespace }, spec: { value: name } })
    await until(async () =>
      expect((await access.client.get(widgets, { name, namespace })).status?.observedValue).toBe(name),
    )
  }

  test('one works, and when it is killed the other takes over', async () => {
    const first = join('first')
    await until(async () => expect(await holder()).toBe('first'))
    const second = join('second')
    await until(() => expect(second.lines.some(line => line.includes('every watched kind has been read'))).toBe(true))
    await touch('a')
    expect(await by()).toEqual(new Set(['first']))
    first.process.kill('SIGKILL')
    await touch('b')
    expect(await holder()).toBe('second')
    expect(await by(), 'the other one makes everything its own').toEqual(new Set(['second']))
  })

  test('one that is asked to stop hands over at once, and ends well', async () => {
    const first = join('first')
    await until(async () => expect(await holder()).toBe('first'))
    const second = join('second')
    await until(() => expect(second.lines.some(line => line.includes('every watched kind has been read'))).toBe(true))
    const ended = once(first.process, 'exit')
    first.process.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
    expect(
      first.lines.some(line => line.includes('released')),
      'it releases the lease',
    ).toBe(true)
    await touch('a')
    expect(await by()).toEqual(new Set(['second']))
  })
})

describe.skipIf(!kubeconfig)('while the API server cannot be reached', () => {
  let server: ApiServer

  beforeAll(async () => {
    server = await startApiServer()
    access = connect({ kubeconfig: { file: server.kubeconfig } })
    namespace = 'default'
  }, 90_000)
  afterAll(async () => {
    await access.close()
    await server.stop()
  })

  test('it is not ready, says why, and is again when the server is back', { timeout: 180_000 }, async () => {
    const widgets = await installWidgets(access.client, group)
    const options: ManagerOptions = {
      ...{ kubeconfig: { file: server.kubeconfig }, health: localhost },
      // Sooner than by default, so that the test does not take as long as an outage.
      cache: { silence: { withBookmarks: 2000, without: 2000 }, backoff: { first: 100, longest: 500 } },
      ...{ connection: { deadline: 1500 }, retry: { tries: 1 } },
    }
    const operator = operate(widgetWork(widgets), options)
    await operator.manager.ready
    await createWidgets(widgets, 3)
    await until(() => expectConverged(widgets, 3))

    process.kill(server.pids.apiserver, 'SIGSTOP')
    try {
      await until(async () => {
        const { status, text } = await readyz(operator)
        expect(status).toBe(500)
        expect(text).toContain(`[-]watch-widgets.v1.${group} failed: the watch is dead: `)
      })
    } finally {
      process.kill(server.pids.apiserver, 'SIGCONT')
    }
    let value = 0
    await until(async () => {
      await access.client.patch(widgets, { name: 'w-0', namespace }, { merge: { spec: { value: `after ${value++}` } } })
      expect((await readyz(operator)).status).toBe(200)
    })
    await until(() => expectConverged(widgets, 3))

    await server.stop()
    await until(async () => {
      const { status, text } = await readyz(operator)
      expect(status).toBe(500)
      expect(text).toMatch(/the watch is dead: .*(ECONNREFUSED|ECONNRESET|closed)/)
    })
    await operator.stop()
  })
})
