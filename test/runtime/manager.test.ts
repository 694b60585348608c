/**
 * What a manager promises, in a world of virtual time and a server that is a model.
 */
import { execFile } from 'node:child_process'
import { createServer } from 'node:net'
import { promisify } from 'node:util'
import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Aborted } from '../../controller/kube/errors.ts'
import { NotLeading } from '../../controller/kube/gate.ts'
import { keyOf } from '../../controller/kube/kind.ts'
import { ConfigMap } from '../../controller/kube/kinds.ts'
import type { Context, Trigger } from '../../controller/runtime/controller.ts'
import type { Manager, ManagerOptions } from '../../controller/runtime/manager.ts'
import { sleep } from '../../shared/clock.ts'
import { type Widget, widgetKind } from '../fixtures/widget.ts'
import { type Meddle, type Operator, World, widgetWork } from '../fixtures/world.ts'

let world: World
const localhost = { host: '127.0.0.1', port: 0 }
const leaderElection = { name: 'widgets' }

beforeEach(() => {
  world = new World()
})
afterEach(async () => {
  await world.end()
  expect(world.clock.pending, 'timers that are left when all has stopped').toBe(0)
  expect(world.server.watches, 'watches that are left when all has stopped').toBe(0)
})

/** A manager of one controller of Widgets that does `work`. */
function operate(work: (context: Context<Widget>) => Promise<void> | void, options: ManagerOptions = {}): Operator {
  return world.start(manager => void manager.controller(world.widgets).owns(ConfigMap).reconcile(work), options)
}

/** Waits in virtual time. */
const pause = (ms: number, signal?: AbortSignal) => sleep(world.clock, ms, signal)

/** Requests that match get lost, until their caller leaves. */
const losing =
  (isLost: (resource: string) => boolean): Meddle =>
  (request, next) => {
    if (!isLost(request.target.resource)) return next(request)
    return new Promise((_, reject) => {
      const { signal } = request
      const leave = () => reject(new Aborted(request.target, signal?.reason))
      if (signal?.aborted) leave()
      else signal?.addEventListener('abort', leave, { once: true })
    })
  }

const holder = () =>
  (world.server.list('leases.coordination.k8s.io')[0] as { spec?: { holderIdentity?: string } } | undefined)?.spec
    ?.holderIdentity

async function readyz({ manager }: Operator): Promise<{ status: number; text: string }> {
  await vi.waitFor(() => expect(manager.addresses).not.toEqual([]))
  const { port } = manager.addresses[0] as { port: number }
  const response = await fetch(`http://127.0.0.1:${port}/readyz?verbose`)
  return { status: response.status, text: await response.text() }
}

describe('readiness', () => {
  const start = async (options: ManagerOptions = {}) => {
    const operator = operate(() => undefined, { health: localhost, ...options })
    expect((await readyz(operator)).status, 'before anything has been read').toBe(500)
    return operator
  }

  it('comes when every required kind has been read', async () => {
    const operator = await start()
    let isReady = false
    void operator.manager.ready.then(() => (isReady = true))
    await world.until('it is ready', () => isReady)
    expect(await readyz(operator)).toEqual({
      status: 200,
      text: '[+]watch-widgets.v1.test.example.com ok\n[+]watch-configmaps.v1 ok\nreadyz check passed\n',
    })
  })

  it('names a required kind that is not served', async () => {
    world.server.unserve(world.widgets)
    const operator = await start()
    await world.clock.advance(60_000)
    expect((await readyz(operator)).text).toContain(
      '[-]watch-widgets.v1.test.example.com failed: not served: is its CRD installed?\n[+]watch-configmaps.v1 ok',
    )
    world.server.serve(world.widgets)
    await world.clock.advance(1000)
    expect((await readyz(operator)).status).toBe(200)
    world.server.unserve(world.widgets)
    await world.clock.advance(1000)
    expect((await readyz(operator)).status, 'it went again').toBe(500)
  })

  it('does not count kinds that may be absent', async () => {
    const gadgets = widgetKind('gadgets.example.com')
    const declare = (operator: Operator['manager']) =>
      void operator
        .controller(world.widgets)
        .owns(gadgets, { optional: true })
        .reconcile(() => undefined)
    const operator = world.start(declare, { health: localhost })
    await readyz(operator)
    await world.clock.advance(1000)
    expect(await readyz(operator)).toEqual({
      status: 200,
      text: '[+]watch-widgets.v1.test.example.com ok\nreadyz check passed\n',
    })
  })

  it('counts a kind that may be absent as long as nobody knows whether it is: there is no work before that', async () => {
    const gadgets = { ...widgetKind('test.example.com'), kind: 'Gadget', plural: 'gadgets' }
    await world.widget('a')
    let visits = 0
    const operator = world.start(
      manager =>
        void manager
          .controller(world.widgets)
          .owns(gadgets, { optional: true })
          .reconcile(() => void visits++),
      { health: localhost },
    )
    operator.meddle = async (request, next) => {
      if (request.target.resource !== 'gadgets') return next(request)
      return { status: 503, headers: {}, text: JSON.stringify({ kind: 'Status', message: 'no gadgets today' }) }
    }
    await readyz(operator)
    await world.clock.advance(10_000)
    expect(visits).toBe(0)
    expect((await readyz(operator)).text).toMatch(
      /\[-\]watch-gadgets\.v1\.test\.example\.com failed: not read yet: .*no gadgets today/,
    )
    operator.meddle = (request, next) => next(request)
    await world.until('work begins without it', () => visits === 1)
    expect((await readyz(operator)).status).toBe(200)
  })

  it('says why a kind could not be read at all', async () => {
    const operator = operate(() => undefined, { health: localhost })
    operator.meddle = async request => ({
      status: 403,
      headers: {},
      text: JSON.stringify({ kind: 'Status', message: `${request.target.resource} is forbidden` }),
    })
    await readyz(operator)
    await world.clock.advance(1000)
    expect((await readyz(operator)).text).toMatch(
      /\[-\]watch-widgets\.v1\.test\.example\.com failed: not read yet: .*widgets is forbidden/,
    )
  })

  it('is not there while a kind may not be read, but work begins, and each object is looked at again when the rule is there', async () => {
    const seen: string[] = []
    const operator = world.start(
      manager =>
        void manager
          .controller(world.widgets)
          .owns(ConfigMap)
          .reconcile(({ object, client }) => {
            try {
              seen.push(`${client.owned(ConfigMap, object).length} owned`)
            } catch (error) {
              seen.push((error as Error).message)
            }
          }),
      { health: localhost },
    )
    const rule = '{apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch"]}'
    operator.meddle = async (request, next) => {
      if (request.target.resource !== 'configmaps') return next(request)
      return { status: 403, headers: {}, text: JSON.stringify({ kind: 'Status', message: 'no' }) }
    }
    await world.widget('a')
    await world.until('that it is looked at', () => seen.length === 1)
    expect(seen).toEqual([`ConfigMap may not be read; the missing rule is ${rule}`])
    expect((await readyz(operator)).text).toContain(rule)
    expect(operator.complaints.some(({ msg }) => msg.includes(rule))).toBe(true)
    operator.meddle = (request, next) => next(request)
    await world.until('that it is looked at again', () => seen.length === 2)
    expect(seen[1]).toBe('0 owned')
    expect((await readyz(operator)).status).toBe(200)
  })

  it('goes when a watch has been dead for 5 s, not before, and comes back with it', async () => {
    const operator = await start()
    await world.clock.advance(1000)
    expect((await readyz(operator)).status).toBe(200)
    operator.meddle = request =>
      Promise.resolve({ status: 503, headers: {}, text: `no ${request.target.resource} today` })
    world.server.cutWatches('configmaps')
    await world.clock.advance(4900)
    expect((await readyz(operator)).status, 'after 4.9 s').toBe(200)
    await world.clock.advance(200)
    const { status, text } = await readyz(operator)
    expect(status, 'after 5.1 s').toBe(500)
    expect(text).toMatch(
      /\[\+\]watch-widgets\.v1\.test\.example\.com ok\n\[-\]watch-configmaps.v1 failed: the watch is dead: .*no configmaps today/,
    )
    expect(await operator.metric('shipmate_watch_up{resource="configmaps.v1",namespace=""}')).toBe(0)
    expect(
      await operator.metric('shipmate_watch_failures_total{resource="configmaps.v1",namespace=""}'),
    ).toBeGreaterThan(2)
    operator.meddle = (request, next) => next(request)
    await world.clock.advance(31_000)
    await world.client.create(ConfigMap, { metadata: { name: 'sign-of-life' } })
    await world.clock.advance(100)
    expect((await readyz(operator)).status, 'when the watch is up again').toBe(200)
    expect(await operator.metric('shipmate_watch_up{resource="configmaps.v1",namespace=""}')).toBe(1)
  })

  it('is not bothered by watches that end as watches do', async () => {
    const operator = await start()
    for (let i = 0; i < 6; i++) {
      await world.clock.advance(30_000)
      expect(await readyz(operator), `after ${i} cuts`).toMatchObject({ status: 200 })
      world.server.cutWatches()
    }
  })

  it('of several namespaces needs all of them', async () => {
    const operator = operate(() => undefined, { health: localhost, namespaces: ['a', 'b'] })
    operator.meddle = (request, next) =>
      request.target.namespace === 'b' ? Promise.resolve({ status: 503, headers: {}, text: '' }) : next(request)
    await readyz(operator)
    await world.clock.advance(1000)
    expect((await readyz(operator)).status).toBe(500)
    operator.meddle = (request, next) => next(request)
    await world.clock.advance(60_000)
    expect((await readyz(operator)).status).toBe(200)
  })
})

describe('servers', () => {
  const get = (operator: Operator, path: string, at = 0) =>
    fetch(`http://127.0.0.1:${operator.manager.addresses[at]?.port}${path}`)

  it('health and metrics can have addresses of their own', async () => {
    const operator = operate(() => undefined, { health: localhost, metrics: localhost })
    await vi.waitFor(() => expect(operator.manager.addresses).toHaveLength(2))
    expect((await get(operator, '/healthz')).status).toBe(200)
    expect((await get(operator, '/log-level')).status).toBe(200)
    expect((await get(operator, '/metrics')).status).toBe(404)
    expect((await get(operator, '/metrics', 1)).status).toBe(200)
    expect((await get(operator, '/log-level', 1)).status, 'the level is not for who scrapes').toBe(404)
  })

  it('health and metrics can share one', async () => {
    const { port } = await new Promise<{ port: number }>(resolve => {
      const server = createServer().listen(0, '127.0.0.1', () => {
        const address = server.address() as { port: number }
        server.close(() => resolve(address))
      })
    })
    const address = { host: '127.0.0.1', port }
    const operator = operate(() => undefined, { health: address, metrics: address })
    await vi.waitFor(() => expect(operator.manager.addresses).toHaveLength(1))
    for (const path of ['/healthz', '/metrics', '/log-level'])
      expect((await get(operator, path)).status, path).toBe(200)
  })

  it('that cannot listen end the start with the reason, and leave nothing behind', async () => {
    const server = createServer()
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const operator = operate(() => undefined, { health: localhost, metrics: { host: '127.0.0.1', port } })
    await vi.waitFor(() => expect(operator.ended).toBeDefined())
    expect(operator.ended?.error).toMatchObject({ code: 'EADDRINUSE' })
    await expect(get(operator, '/healthz')).rejects.toThrow()
    await new Promise(resolve => server.close(resolve))
  })
})

describe('stopping', () => {
  it('goes in order: work, lease, events, watches', async () => {
    await world.widget('a')
    const order: string[] = []
    const operator = operate(
      async ({ client, object, event }) => {
        await pause(1000)
        await client.apply(ConfigMap, { metadata: { name: 'last-words' }, data: {} }, { owner: object })
        // The first is written at once; that it happened again would be told later.
        event('Normal', 'Done', 'finished in time')
        await pause(10)
        event('Normal', 'Done', 'finished in time')
      },
      { leaderElection, health: localhost },
    )
    operator.meddle = async (request, next) => {
      const { verb, resource } = request.target
      if (request.method !== 'GET') order.push(`${verb} ${resource}`)
      return next(request)
    }
    await readyz(operator)
    await world.until('work is under way', () => operator.lines.some(line => line.msg === 'reconciling'))
    order.length = 0
    const { watches } = world.server
    const running = operator.manager.stop()
    await world.clock.advance(500)
    expect(world.server.watches, 'watches while the work goes on').toBe(watches)
    expect(holder(), 'the lease while the work goes on').toBe(operator.manager.election?.identity)
    expect((await fetch(`http://127.0.0.1:${operator.manager.addresses[0]?.port}/healthz`)).status).toBe(200)
    await operator.stop()
    await running
    const renewals = order.findIndex(step => step !== 'update leases')
    expect(order.slice(renewals)).toEqual(['patch configmaps', 'create events', 'update leases', 'patch events'])
    expect(holder()).toBe('')
    expect(operator.ended).toEqual({})
  })

  it('keeps a server of its own open, leading or not, until its work has ended and while it can still ask', async () => {
    await world.widget('a')
    const leader = operate(() => undefined, { leaderElection })
    await world.until('one leads', () => holder() === leader.manager.election?.identity)
    const order: string[] = []
    const declare = (manager: Manager, { requests }: Operator) => {
      manager.controller(world.widgets).reconcile(() => undefined)
      manager.server(async stopping => {
        order.push(`open after ${requests.length} requests`)
        stopping.addEventListener('abort', () => order.push('told'))
        const close = async () => {
          await manager.client.list(ConfigMap)
          order.push('closed')
        }
        return { host: '127.0.0.1', port: 1, close }
      })
    }
    const operator = world.start(declare, { leaderElection })
    let isReady = false
    void operator.manager.ready.then(() => (isReady = true))
    await world.until('the other is ready', () => isReady)
    expect(order).toEqual(['open after 0 requests'])
    await operator.stop()
    expect(order).toEqual(['open after 0 requests', 'told', 'closed'])
    expect(operator.ended).toEqual({})
  })

  it('finishes what is under way, begins nothing new, and writes nothing afterwards', async () => {
    for (let i = 0; i < 30; i++) await world.widget(`w-${i}`)
    const begun: string[] = []
    const finished: string[] = []
    const operator = operate(async ({ object }) => {
      begun.push(object.metadata.name)
      await pause(500)
      finished.push(object.metadata.name)
    })
    await world.until('work is under way', () => begun.length === 10)
    await operator.stop()
    expect(begun).toHaveLength(10)
    expect(finished.sort()).toEqual(begun.sort())
    expect(operator.ended).toEqual({})
  })

  it('calls off, after four fifths of the grace period, what does not end by itself', async () => {
    await world.widget('a')
    let aborted: number | undefined
    const operator = operate(async ({ signal }) => {
      signal.addEventListener('abort', () => (aborted = world.clock.monotonic()))
      await pause(1e6, signal)
    })
    await world.until('work is under way', () => operator.lines.some(line => line.msg === 'reconciling'))
    const asked = world.clock.monotonic()
    await operator.stop()
    expect((aborted as number) - asked).toBe(24_000)
    expect(world.clock.monotonic() - asked).toBeLessThan(24_100)
    expect(operator.complaints, 'being called off is no failure').toEqual([])
    expect(operator.ended).toEqual({})
  })

  it('ends within the grace period even if the work ignores its signal, and says so', async () => {
    await world.widget('a')
    let release: (() => void) | undefined
    const operator = operate(() => new Promise<void>(resolve => (release = resolve)), { leaderElection })
    await world.until('work is under way', () => release !== undefined)
    const asked = world.clock.monotonic()
    await operator.stop()
    expect(world.clock.monotonic() - asked, 'virtual milliseconds that the stop took').toBeLessThanOrEqual(30_000)
    expect(operator.complaints.map(line => line.msg)).toContain(
      'work did not end within 27000 ms and is left behind: reconcile functions must heed their signal',
    )
    expect(holder(), 'the lease is released all the same').toBe('')
    expect(world.clock.pending, 'nothing is left that could still happen').toBe(0)
    release?.()
    await world.clock.advance(60_000)
  })

  it('lets nothing out of work that it left behind', async () => {
    await world.widget('a')
    let release: (() => void) | undefined
    let refusal: unknown
    const operator = operate(
      async ({ client }) => {
        await new Promise<void>(resolve => (release = resolve))
        const late = { metadata: { name: 'too-late', namespace: 'default' } }
        await client.live.create(ConfigMap, late).catch(error => (refusal = error))
      },
      { leaderElection },
    )
    await world.until('work is under way', () => release !== undefined)
    await operator.stop()
    release?.()
    await world.until('it tries to write', () => refusal !== undefined)
    expect(refusal).toBeInstanceOf(NotLeading)
    expect(operator.writes).toEqual([])
  })

  it('is not held up by a lease that cannot be released', async () => {
    const operator = operate(() => undefined, { leaderElection, gracePeriod: 1000 })
    await world.until('it leads', () => holder() === operator.manager.election?.identity)
    operator.meddle = losing(resource => resource === 'leases')
    const asked = world.clock.monotonic()
    await operator.stop()
    expect(world.clock.monotonic() - asked).toBeLessThanOrEqual(1000)
    expect(operator.complaints.map(line => line.msg)).toContain(
      'the lease was not released in time: a successor waits until it runs out',
    )
    // What is left of the election gives up by itself.
    await world.clock.advance(10_000)
  })

  it('has as long as it is given', async () => {
    await world.widget('a')
    const operator = operate(() => new Promise<void>(() => {}), { gracePeriod: 100 })
    await world.until('work is under way', () => operator.lines.some(line => line.msg === 'reconciling'))
    const asked = world.clock.monotonic()
    await operator.stop()
    expect(world.clock.monotonic() - asked).toBeLessThanOrEqual(100)
  })

  it('is not held up by events that cannot be written', async () => {
    await world.widget('a')
    const operator = operate(({ event }) => event('Normal', 'Hello', 'anybody there?'))
    operator.meddle = losing(resource => resource === 'events')
    await world.until('the event is on its way', () =>
      operator.requests.some(({ target }) => target.resource === 'events'),
    )
    const asked = world.clock.monotonic()
    await operator.stop()
    expect(world.clock.monotonic() - asked).toBeLessThanOrEqual(30_000)
    expect(operator.ended).toEqual({})
  })

  it('before the start makes it a short one', async () => {
    await world.widget('a')
    let visits = 0
    const operator = world.start(manager => {
      manager.controller(world.widgets).reconcile(() => void visits++)
      void manager.stop()
    })
    await world.clock.advance(100)
    expect(operator.ended).toEqual({})
    expect(visits).toBe(0)
  })

  it('while it still waits for a kind ends at once', async () => {
    world.server.unserve(world.widgets)
    const operator = operate(() => undefined)
    await world.clock.advance(1000)
    const asked = world.clock.monotonic()
    await operator.stop()
    expect(world.clock.monotonic() - asked).toBeLessThan(100)
  })

  it('by a signal that is aborted', async () => {
    const operator = new World()
    const control = new AbortController()
    const running = operator.start(() => undefined)
    await operator.end()
    expect(running.ended).toEqual({})
    const other = world.start(() => undefined)
    void other.manager.start(control.signal)
    await world.clock.advance(10)
    expect(other.ended, 'a second start is the first one').toBeUndefined()
    control.abort()
    await other.stop()
  })

  it('listens to SIGTERM and SIGINT while it runs, and not afterwards', async () => {
    const names = ['SIGTERM', 'SIGINT', 'unhandledRejection'] as const
    const count = () => names.map(name => process.listenerCount(name))
    const before = count()
    const operator = operate(() => undefined, { signals: true, containRejections: true })
    await world.clock.advance(100)
    expect(count()).toEqual(before.map(n => n + 1))
    const listener = process.listeners('SIGTERM').at(-1) as (name: string) => void
    listener('SIGTERM')
    await world.until('it stops', () => operator.ended !== undefined)
    expect(operator.lines.find(line => line.msg === 'stopping')).toMatchObject({ why: 'SIGTERM' })
    expect(count()).toEqual(before)
  })

  it('leaves signals and rejections alone if told so', async () => {
    const before = [process.listenerCount('SIGTERM'), process.listenerCount('unhandledRejection')]
    operate(() => undefined, { signals: false, containRejections: false })
    await world.clock.advance(100)
    expect([process.listenerCount('SIGTERM'), process.listenerCount('unhandledRejection')]).toEqual(before)
  })
})

it('contains promises that are rejected with nobody waiting, and says so', async () => {
  const known = new Set(process.listeners('unhandledRejection'))
  const operator = operate(() => undefined, { containRejections: true })
  await world.clock.advance(100)
  const [listener] = process.listeners('unhandledRejection').filter(one => !known.has(one))
  listener?.(new Error('forgotten'), Promise.resolve())
  listener?.(Object.create(null), Promise.resolve())
  expect(operator.complaints[0]).toMatchObject({
    level: 'error',
    msg: 'a promise was rejected with nobody waiting for it: forgotten',
  })
  expect(operator.complaints).toHaveLength(2)
  expect(operator.ended).toBeUndefined()
})

describe('a process in which a promise is rejected with nobody waiting', () => {
  /** Runs a manager whose reconcile function forgets a promise, as a process of its own. */
  async function forgetful(containRejections: boolean) {
    const code = `
      const { World } = await import(${JSON.stringify(new URL('../fixtures/world.ts', import.meta.url))})
      const world = new World()
      await world.widget('a')
      const reconcile = () => void Promise.reject(new Error('forgotten'))
      const declare = manager => manager.controller(world.widgets).reconcile(reconcile)
      const operator = world.start(declare, { containRejections: ${containRejections} })
      await world.clock.advance(1000)
      console.log(operator.complaints.map(line => line.msg).join())
      await world.end()`
    const child = promisify(execFile)(process.execPath, ['--input-type=module', '-e', code])
    return child.then(
      ({ stdout }) => stdout,
      error => `exit ${error.code}: ${error.stderr}`,
    )
  }

  it('goes on, and ends by itself when the manager has stopped', { timeout: 30_000 }, async () => {
    expect(await forgetful(true)).toBe('a promise was rejected with nobody waiting for it: forgotten\n')
  })

  it('ends, if the manager is told to leave rejections alone', { timeout: 30_000 }, async () => {
    expect(await forgetful(false)).toMatch(/^exit 1: .*Error: forgotten/s)
  })
})

describe('leader election', () => {
  it('lets one of two work, and the other when that stops', async () => {
    await world.widget('a')
    const first = world.start(widgetWork(world.widgets), { leaderElection })
    await world.until('the first works', () => first.reconciled.length > 0)
    const second = world.start(widgetWork(world.widgets), { leaderElection })
    await world.clock.advance(60_000)
    expect(second.reconciled).toEqual([])
    expect(await first.metric('leader_election_master_status{name="widgets"}')).toBe(1)
    expect(await second.metric('leader_election_master_status{name="widgets"}')).not.toBe(1)
    const asked = world.clock.monotonic()
    await first.stop()
    await world.until('the second works', () => second.reconciled.length > 0)
    expect(world.clock.monotonic() - asked, 'ms to take over a lease that was handed over').toBeLessThan(3000)
    expect(second.writes, 'what is as wished is not written').toEqual([])
  })

  it('lets the other one work when the first crashes', async () => {
    await world.widget('a')
    const first = world.start(widgetWork(world.widgets), { leaderElection })
    await world.until('the first works', () => first.reconciled.length > 0)
    const second = world.start(widgetWork(world.widgets), { leaderElection })
    await world.clock.advance(10_000)
    first.kill()
    await first.stop()
    await world.until('the second works', () => second.reconciled.length > 0)
  })

  it('keeps every replica ready, whether it leads or not', async () => {
    operate(() => undefined, { leaderElection })
    await world.clock.advance(1000)
    const second = operate(() => undefined, { leaderElection })
    let isReady = false
    void second.manager.ready.then(() => (isReady = true))
    await world.until('the second is ready', () => isReady)
  })

  it('that is lost in the middle of the work calls that off, lets nothing out, and is contested again', async () => {
    await world.widget('a')
    const seen: { signal?: unknown; error?: unknown } = {}
    let visits = 0
    const first = operate(
      async ({ object, client, signal }) => {
        visits++
        if (visits > 1) return
        await pause(1e6, signal).catch(reason => (seen.signal = reason))
        // It does not listen, and goes on writing.
        await client.live
          .create(ConfigMap, { metadata: { name: 'too-late', namespace: 'default' } })
          .catch(error => (seen.error = error))
        await client.status(world.widgets, object, { observedValue: 'too late' })
      },
      { leaderElection },
    )
    await world.until('the first works', () => visits === 1)
    first.meddle = losing(resource => resource === 'leases')
    const second = world.start(widgetWork(world.widgets), { leaderElection })
    await world.until('the first has lost its lease', () => seen.error !== undefined)
    expect(second.reconciled, 'the other one works already').toEqual([])
    expect(seen.signal).toBeInstanceOf(NotLeading)
    expect(seen.error).toBeInstanceOf(NotLeading)
    expect(first.writes).toEqual([])
    expect(await first.metric('leader_election_master_status{name="widgets"}')).toBe(0)
    await world.until('the second works', () => second.reconciled.length > 0)
    expect(
      first.complaints.filter(line => line.level === 'error'),
      'being called off is no failure',
    ).toEqual([])
    expect(first.ended, 'the process goes on').toBeUndefined()

    first.meddle = (request, next) => next(request)
    await second.stop()
    await world.until('the first works again', () => visits > 1)
    expect(await first.metric('leader_election_master_status{name="widgets"}')).toBe(1)
  })

  it('that is lost and regained leaves a source that can be read once where it was', async () => {
    const ref = await world.widget('a')
    const wakes: (() => void)[] = []
    let isClosed = false
    async function* knocks(): AsyncGenerator<Trigger> {
      try {
        for (let i = 1; ; i++) {
          await new Promise<void>(resolve => wakes.push(resolve))
          yield { ref, reason: `knock ${i}` }
        }
      } finally {
        isClosed = true
      }
    }
    const reasons: string[] = []
    const operator = world.start(
      manager =>
        void manager
          .controller(world.widgets)
          .from(knocks())
          .reconcile(context => void reasons.push(...context.reasons)),
      { leaderElection },
    )
    const knock = () => wakes.shift()?.()
    await world.until('work begins', () => reasons.length === 1)
    knock()
    await world.until('a knock is heard', () => reasons.at(-1) === 'knock 1')
    operator.meddle = losing(resource => resource === 'leases')
    await world.clock.advance(20_000)
    knock()
    await world.clock.advance(20_000)
    expect(reasons.at(-1), 'while nobody leads').toBe('knock 1')
    operator.meddle = (request, next) => next(request)
    await world.until('what was knocked meanwhile is heard', () => reasons.includes('knock 2'))
    await world.clock.advance(1000)
    knock()
    await world.until('a knock is heard', () => reasons.at(-1) === 'knock 3')
    operator.meddle = losing(resource => resource === 'leases')
    await world.clock.advance(20_000)
    knock()
    await operator.stop()
    expect(isClosed, 'it is closed by a stop, even while nobody leads').toBe(true)
    expect(wakes, 'nothing more is asked of it').toEqual([])
  })

  it('that is regained wakes every object, and what was wished before it was lost is not forgotten', async () => {
    for (const name of ['a', 'b']) await world.widget(name)
    const visits: string[] = []
    const operator = operate(({ object }) => void visits.push(keyOf(object.metadata)), { leaderElection })
    await world.until('both are visited', () => visits.length === 2)
    operator.meddle = losing(resource => resource === 'leases')
    await world.clock.advance(20_000)
    await world.change({ name: 'a' }, 'meanwhile')
    await world.clock.advance(20_000)
    expect(visits).toHaveLength(2)
    operator.meddle = (request, next) => next(request)
    await world.until('both are visited again', () => visits.length === 4)
  })
})

describe('tasks', () => {
  it('run while this process leads, each time anew', async () => {
    const runs: string[] = []
    const operator = world.start(
      manager =>
        void manager.task(async signal => {
          runs.push('begun')
          await pause(1e9, signal).catch(() => undefined)
          runs.push('ended')
        }),
      { leaderElection },
    )
    await world.until('it runs', () => runs.length === 1)
    operator.meddle = losing(resource => resource === 'leases')
    await world.until('it is ended when the lease is lost', () => runs.length === 2)
    operator.meddle = (request, next) => next(request)
    await world.until('it runs again', () => runs.length === 3)
    await operator.stop()
    expect(runs).toEqual(['begun', 'ended', 'begun', 'ended'])
  })

  it('that end by themselves end nothing else', async () => {
    const ref = await world.widget('a')
    const operator = world.start((manager, own) => {
      widgetWork(world.widgets)(manager, own)
      manager.task(async () => undefined)
    })
    await world.clock.advance(10_000)
    await world.change(ref, 'y')
    await world.until('work goes on', () => operator.writes.length === 4)
  })

  it.each([
    ['with an election', { leaderElection }],
    ['without', {}],
  ])('that fail stop the manager, in order, and tell why: %s', async (_how, options) => {
    await world.widget('a')
    const finished: string[] = []
    const operator = world.start((manager, own) => {
      manager.controller(world.widgets).reconcile(async () => {
        await pause(1000)
        finished.push('reconciliation')
        return { requeueAfter: 5000 }
      })
      manager.task(async () => {
        await pause(500)
        throw new Error('the tape is torn')
      })
      manager.task(async signal => {
        await pause(1e9, signal).catch(() => undefined)
        finished.push('other task')
        own.lines.push({ level: 'info', msg: `the lease is held by ${holder()}` })
      })
    }, options)
    await world.until('it ends', () => operator.ended !== undefined)
    expect(operator.ended?.error).toMatchObject({ message: 'the tape is torn' })
    expect(finished.sort(), 'what was under way is finished').toEqual(['other task', 'reconciliation'])
    expect(operator.complaints.map(line => line.msg)).toContain(
      'stopping, since a part of the work failed: the tape is torn',
    )
    if ('leaderElection' in options) expect(holder(), 'the lease is released in the end').toBe('')
    expect(world.clock.pending, 'nothing is left that could still happen').toBe(0)
  })

  it('that throw at once, without a promise, are the same', async () => {
    const operator = world.start(
      manager =>
        void manager.task(() => {
          throw new Error('torn from the start')
        }),
    )
    await world.until('it ends', () => operator.ended !== undefined)
    expect(operator.ended?.error).toMatchObject({ message: 'torn from the start' })
  })

  it('that reject because they are to stop have not failed, and nobody is left behind for it', async () => {
    await world.widget('a')
    let finished = false
    const operator = world.start(manager => {
      manager.task(signal => pause(1e9, signal))
      manager.controller(world.widgets).reconcile(async () => {
        await pause(1000)
        finished = true
      })
    })
    await world.until('work is under way', () => operator.lines.some(line => line.msg === 'reconciling'))
    await operator.stop()
    expect(operator.ended).toEqual({})
    expect(finished, 'the reconciliation was waited for').toBe(true)
    expect(operator.complaints).toEqual([])
  })
})

describe('tracing', () => {
  const exporter = new InMemorySpanExporter()

  beforeEach(() => {
    trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }))
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  })
  afterEach(() => {
    trace.disable()
    context.disable()
    exporter.reset()
  })

  it('has a span for each reconciliation, with its requests below it', async () => {
    await world.widget('a')
    const operator = world.start(widgetWork(world.widgets))
    await world.until('all is as wished', () => operator.reconciled.length >= 2)
    const spans = exporter.getFinishedSpans()
    const reconcile = spans.find(span => span.name === 'reconcile widget')
    expect(reconcile?.attributes).toEqual({
      'shipmate.controller': 'widget',
      'shipmate.object': 'default/a',
      'shipmate.reasons': ['Widget default/a exists'],
      'shipmate.attempt': 1,
    })
    const below = spans.filter(span => span.parentSpanContext?.spanId === reconcile?.spanContext().spanId)
    expect(below.map(span => span.name)).toEqual([
      'patch configmaps in namespace default',
      'patch widgets.test.example.com/status in namespace default',
    ])
  })

  it('has spans of requests also where the first was made before the start', async () => {
    const operator = world.start(manager => {
      void manager.client.find(ConfigMap, { name: 'early' })
      widgetWork(world.widgets)(manager, { reconciled: [] } as unknown as Operator)
    })
    await world.clock.advance(1000)
    exporter.reset()
    void operator.manager.client.find(ConfigMap, { name: 'late' })
    await world.clock.advance(1000)
    expect(exporter.getFinishedSpans().map(span => span.name)).toContain('get configmaps in namespace default')
  })
})

describe('misuse is told in words', () => {
  it('two controllers of one name', () => {
    expect(() =>
      world.start(manager => {
        manager.controller(world.widgets)
        manager.controller(world.widgets)
      }),
    ).toThrow('two controllers are named "widget": give one a name of its own')
  })

  it('a controller that is declared when it runs already', async () => {
    const { manager } = world.start(() => undefined)
    expect(() => manager.controller(world.widgets)).toThrow('controllers are declared before the manager starts')
  })
})

it('runs several controllers of one kind, each with a name and a queue of its own', async () => {
  await world.widget('a')
  const visits: string[] = []
  const operator = world.start(manager => {
    for (const name of ['first', 'second']) {
      manager.controller(world.widgets, { name }).reconcile(() => {
        visits.push(name)
        if (name === 'first' && visits.length < 10) throw new Error('out of luck')
      })
    }
  })
  await world.until('both work', () => visits.length === 10)
  expect(
    visits.filter(name => name === 'second'),
    'one fails, the other does not notice',
  ).toHaveLength(1)
  const watches = operator.requests.filter(({ target }) => target.verb === 'watch' && target.resource === 'widgets')
  expect(watches, 'the kind is watched once').toHaveLength(1)
})

it('goes on when a listener of the cache throws', async () => {
  await world.widget('a')
  const operator = world.start((manager, own) => {
    widgetWork(world.widgets)(manager, own)
    manager.cache.informer(world.widgets).subscribe(() => {
      throw new Error('a bad listener')
    })
  })
  await world.until('all is as wished', () => operator.writes.length === 2)
  expect(operator.complaints[0]?.msg).toBe('a listener of the cache threw: a bad listener')
})
