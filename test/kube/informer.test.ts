import { describe, expect, it } from 'vitest'
import { connectThrough } from '../../controller/kube/access.ts'
import { Client } from '../../controller/kube/client.ts'
import { Unavailable } from '../../controller/kube/errors.ts'
import { Informer, type InformerOptions } from '../../controller/kube/informer.ts'
import type { Live } from '../../controller/kube/kind.ts'
import { ConfigMap, Secret } from '../../controller/kube/kinds.ts'
import type { Health } from '../../controller/kube/reflector.ts'
import type { Request, Response, Send } from '../../controller/kube/transport.ts'
import { ModelServer } from '../fixtures/model-server.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'
import { type Widget, widgetKind } from '../fixtures/widget.ts'

const Widgets = widgetKind('test.example.com')
const minute = 60_000

/** A server, somebody who writes to it, and a line to it that a test can meddle with. */
function world() {
  const clock = new VirtualClock()
  const server = new ModelServer({ clock })
  const requests: Request[] = []
  const line = { meddle: (request: Request, next: Send): Promise<Response> => next(request) }
  const others = new Client(request => server.answer(request), { fieldManager: 'others' })
  const { client } = connectThrough(
    request => {
      requests.push(request)
      return line.meddle(request, onward => server.send(onward))
    },
    { clock, retry: { tries: 1 } },
  )
  const stop = new AbortController()
  return {
    ...{ clock, server, requests, others, client, line },
    /** Watches ConfigMaps, unless another kind is given. */
    watch<T extends object = Live>(options: InformerOptions<T> = {}, kind = ConfigMap as never) {
      const health: string[] = []
      const informer = new Informer<T>(client, kind, {
        ...{ clock, random: () => 0, onHealth: one => void health.push(one.is) },
        ...options,
      })
      const running = informer.run(stop.signal)
      return { informer, health, running }
    },
    put: (name: string, namespace = 'x', metadata: object = {}) =>
      others.apply(ConfigMap, { metadata: { name, namespace, ...metadata }, data: { at: String(clock.monotonic()) } }),
    drop: (name: string, namespace = 'x') => others.delete(ConfigMap, { name, namespace }),
    verbs: () => requests.map(({ target, path }) => (path.includes('sendInitialEvents') ? 'stream' : target.verb)),
    async end(running: Promise<void>) {
      stop.abort()
      await running
      expect(server.watches, 'open streams').toBe(0)
      expect(clock.pending, 'timers').toBe(0)
    },
  }
}
type World = ReturnType<typeof world>

const names = (informer: Informer<never> | Informer<Live>) =>
  (informer as Informer<Live>)
    .list()
    .map(object => object.metadata.name)
    .sort()

/** A line that is broken: nothing gets through. */
const broken = async (request: Request): Promise<Response> => {
  throw new Unavailable('Unavailable', request.target, 'connection refused', { mayHaveActed: false })
}

/** A stream that brings nothing more after `pieces`, and nobody says so. */
function frozen(response: Response, pieces: number, signal: AbortSignal | undefined): Response {
  async function* chunks() {
    let left = pieces
    for await (const chunk of response.chunks ?? []) {
      if (left-- > 0) yield chunk
      else await new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
    }
  }
  return { ...response, chunks: chunks() }
}

describe.each([
  ['streamed', true],
  ['listed in pages', false],
])('an informer whose kind is %s', (_, streaming) => {
  const options = { streaming, pageSize: 2 }

  it('has everything when it has synced, and every change soon after', async () => {
    const { clock, put, drop, watch, end } = world()
    for (const name of ['a', 'b', 'c', 'd', 'e']) await put(name)
    const { informer, health, running } = watch(options)
    let synced = false
    void informer.synced.then(() => {
      synced = true
    })
    expect(informer.hasSynced).toBe(false)
    await clock.until(() => informer.hasSynced, 1000)
    await clock.advance(0)
    expect(synced).toBe(true)
    expect(names(informer)).toEqual(['a', 'b', 'c', 'd', 'e'])
    await put('f')
    await drop('a')
    await clock.advance(10)
    expect(names(informer)).toEqual(['b', 'c', 'd', 'e', 'f'])
    expect(health).toEqual(['watching'])
    await end(running)
  })

  it('tells of what exists as no news, and of changes as news', async () => {
    const { clock, put, watch, end } = world()
    await put('a')
    const { informer, running } = watch(options)
    const heard: string[] = []
    informer.subscribe(({ type, key, initial }) => heard.push(`${type} ${key}${initial ? ' initial' : ''}`))
    await clock.until(() => informer.hasSynced, 1000)
    await put('b')
    await clock.advance(10)
    expect(heard).toEqual(['added x/a initial', 'added x/b'])
    await end(running)
  })

  it('loses nothing while its streams are cut, again and again', async () => {
    const { clock, server, put, drop, watch, end } = world()
    const { informer, running } = watch(options)
    await clock.until(() => informer.hasSynced, 1000)
    for (let i = 0; i < 20; i++) {
      await put(`n${i}`)
      if (i > 3) await drop(`n${i - 3}`)
      server.cutWatches()
      await put(`m${i}`)
      await clock.advance(i * 100)
    }
    await clock.advance(minute)
    expect(names(informer)).toEqual(
      server
        .list('configmaps')
        .map(object => object.metadata.name)
        .sort(),
    )
    await end(running)
  })

  it('reads anew what is too old, without losing sight of what is there', async () => {
    const { clock, server, put, drop, watch, line, end } = world()
    for (const name of ['a', 'b', 'c']) await put(name)
    const { informer, running } = watch(options)
    await clock.until(() => informer.hasSynced, 1000)
    const heard: string[] = []
    informer.subscribe(({ type, key, initial }) => void (!initial && heard.push(`${type} ${key}`)))
    line.meddle = broken
    server.cutWatches()
    await clock.advance(1000)
    await drop('a')
    await put('d')
    server.compact()
    line.meddle = (request, next) => next(request)
    await clock.advance(minute)
    expect(names(informer)).toEqual(['b', 'c', 'd'])
    expect(heard).toEqual(['removed x/a'])
    await end(running)
  })

  it('notices that the server was restored from an older state, though nobody says so', async () => {
    const { clock, server, put, drop, watch, end } = world()
    for (const name of ['a', 'b']) await put(name)
    const { informer, running } = watch(options)
    await clock.until(() => informer.hasSynced, 1000)
    await clock.advance(2 * minute)
    await put('c')
    await drop('a')
    await put('b')
    await clock.advance(minute)
    expect(names(informer)).toEqual(['b', 'c'])
    server.rollBack(3)
    await clock.advance(6 * minute)
    expect(names(informer)).toEqual(['a', 'b'])
    await put('d')
    await clock.advance(10)
    expect(names(informer)).toEqual(['a', 'b', 'd'])
    await end(running)
  })
})

describe('an idle informer', () => {
  it('asks for nothing but its watch, taken up again when the server ends it', async () => {
    const { clock, put, others, watch, requests, verbs, end } = world()
    await put('a')
    const { informer, health, running } = watch()
    await clock.until(() => informer.hasSynced, 1000)
    for (let i = 0; i < 60; i++) {
      // Somewhere something happens all the time: on a real server at least its own lease.
      await others.apply(Secret, { metadata: { name: 'elsewhere', namespace: 'x', labels: { i: String(i) } } })
      await clock.advance(minute)
    }
    expect(verbs()[0]).toBe('stream')
    expect(new Set(verbs().slice(1))).toEqual(new Set(['watch']))
    expect(requests.length).toBeLessThanOrEqual(1 + 60 / 4)
    expect(health).toEqual(['watching'])
    await end(running)
  })

  it('asks nothing either when a whole watch brought nothing', async () => {
    const { clock, put, server, watch, requests, health, end } = { ...world(), health: [] as string[] }
    server.progress = false
    await put('a')
    const { informer, running } = watch({ onHealth: ({ is }) => void health.push(is) })
    await clock.until(() => informer.hasSynced, 1000)
    await clock.advance(60 * minute)
    expect(requests.filter(({ target }) => target.verb !== 'watch')).toEqual([])
    expect(health).toEqual(['watching'])
    await end(running)
  })

  it('keeps up with the versions by bookmarks, so that a compaction costs it nothing', async () => {
    const { clock, server, others, watch, verbs, end } = world()
    const { informer, running } = watch()
    await clock.until(() => informer.hasSynced, 1000)
    for (let i = 0; i < 10; i++) {
      // Elsewhere on the server things happen.
      await others
        .create(Widgets, { metadata: { name: `n${i}`, namespace: 'x' }, spec: { value: '' } })
        .catch(() => undefined)
      await others.apply(
        { ...ConfigMap, plural: 'secrets', kind: 'Secret' },
        { metadata: { name: `n${i}`, namespace: 'x' } },
      )
      await clock.advance(2 * minute)
      server.compact()
    }
    await clock.advance(minute)
    expect(verbs().filter(verb => verb !== 'watch')).toEqual(['stream'])
    await end(running)
  })
})

describe('a stream that is open but dead', () => {
  async function freezeAt(pieces: number, options: InformerOptions<Live>): Promise<{ world: World; found: number }> {
    const all = world()
    const { clock, put, watch, line, end } = all
    await put('a')
    let streams = 0
    line.meddle = async (request, next) => {
      const response = await next(request)
      return response.chunks && streams++ === 0 ? frozen(response, pieces, request.signal) : response
    }
    const { informer, health, running } = watch(options)
    await clock.until(() => informer.hasSynced, 10 * minute)
    await clock.advance(2.5 * minute)
    const since = clock.monotonic()
    await put('b')
    await clock.until(() => names(informer).includes('b'), 20 * minute)
    const found = clock.monotonic() - since
    expect(names(informer)).toEqual(['a', 'b'])
    expect(health).toContain('watching')
    await end(running)
    return { world: all, found }
  }

  it('is found when bookmarks stay away that the server is known to send', async () => {
    // The initial events, and two bookmarks.
    const { found } = await freezeAt(3, {})
    expect(found).toBeLessThanOrEqual(3 * minute)
  })

  it('is found when the server should have ended it long ago, where it sent no bookmark yet', async () => {
    const { found } = await freezeAt(1, {})
    expect(found).toBeLessThanOrEqual(6 * minute)
  })

  it('is found by the patience that the options give', async () => {
    const { found } = await freezeAt(1, { silence: { without: 30_000 } })
    expect(found).toBeLessThanOrEqual(10_000)
  })

  it('that never gets to the end of what exists is read in pages instead', async () => {
    const { clock, put, watch, line, verbs, end } = world()
    await put('a')
    line.meddle = async (request, next) => {
      const response = await next(request)
      return request.path.includes('sendInitialEvents') ? frozen(response, 0, request.signal) : response
    }
    const { informer, running } = watch()
    await clock.until(() => informer.hasSynced, 10 * minute)
    expect(names(informer)).toEqual(['a'])
    expect(verbs()).toEqual(['stream', 'list', 'watch'])
    await end(running)
  })

  it('does not keep a stop waiting', async () => {
    const { clock, watch, line, end } = world()
    line.meddle = async (request, next) => frozen(await next(request), 0, request.signal)
    const { running } = watch()
    await clock.advance(1000)
    await end(running)
  })
})

describe('a server that cannot stream what exists', () => {
  it.each([400, 422])('and says %i is asked for pages, from then on', async status => {
    const { clock, server, put, watch, line, verbs, end } = world()
    await put('a')
    line.meddle = async (request, next) =>
      request.path.includes('sendInitialEvents')
        ? { status, headers: {}, text: 'sendInitialEvents is forbidden' }
        : next(request)
    const { informer, health, running } = watch()
    await clock.until(() => informer.hasSynced, 1000)
    expect(health).toEqual(['watching'])
    server.cutWatches()
    await put('b')
    server.compact()
    await clock.advance(minute)
    expect(names(informer)).toEqual(['a', 'b'])
    expect(verbs().filter(verb => verb === 'stream')).toHaveLength(1)
    await end(running)
  })
})

describe('the health of an informer', () => {
  it('is failing while nothing gets through, says why and since when, and is good again when the server watches again', async () => {
    const { clock, server, put, watch, line, end } = world()
    await put('a')
    const { informer, health, running } = watch()
    await clock.until(() => informer.hasSynced, 1000)
    line.meddle = broken
    server.cutWatches()
    await clock.advance(minute)
    const failing = informer.health as Health & { is: 'failing' }
    expect(failing).toMatchObject({ is: 'failing', why: expect.stringContaining('connection refused') })
    expect(failing.since).toBeLessThan(2000)
    line.meddle = (request, next) => next(request)
    // Though nothing happens to the objects.
    expect(await clock.until(() => informer.health.is === 'watching', 31_000)).toBe(true)
    expect(health.filter(is => is !== 'failing')).toEqual(['watching', 'watching'])
    await end(running)
  })

  it('is syncing until everything has been read, and stays failing where it never was', async () => {
    const { clock, watch, line, end } = world()
    line.meddle = broken
    const { informer, running } = watch()
    expect(informer.health.is).toBe('syncing')
    await clock.advance(minute)
    expect(informer.health.is).toBe('failing')
    expect(informer.hasSynced).toBe(false)
    await end(running)
  })

  it('costs a server that is down few requests', async () => {
    const { clock, watch, line, requests, end } = world()
    line.meddle = broken
    const { running } = watch({ random: () => 0.5 })
    await clock.advance(60 * minute)
    expect(requests.length).toBeLessThan(60 * 3)
    expect(requests.length).toBeGreaterThan(60)
    await end(running)
  })

  it('does not depend on who is told of it', async () => {
    const { clock, put, watch, line, server, end } = world()
    const errors: unknown[] = []
    const { informer, running } = watch({
      onHealth: () => {
        throw new Error('broken')
      },
      onError: error => errors.push(error),
    })
    await clock.until(() => informer.hasSynced, 1000)
    line.meddle = broken
    server.cutWatches()
    await clock.advance(minute)
    line.meddle = (request, next) => next(request)
    await put('a')
    await clock.advance(minute)
    expect(names(informer)).toEqual(['a'])
    expect(errors.length).toBeGreaterThan(1)
    await end(running)
  })
})

describe('a kind that is not served', () => {
  it('is waited for, watched when it comes, and cleared when it goes', async () => {
    const { clock, server, others, watch, end } = world()
    const { informer, health, running } = watch<Widget>({}, Widgets as never)
    let settled = false
    void informer.settled.then(() => {
      settled = true
    })
    await clock.advance(10)
    expect(informer.health.is).toBe('absent')
    expect(settled).toBe(true)
    expect(informer.hasSynced).toBe(false)
    for (let round = 0; round < 2; round++) {
      server.serve(Widgets)
      await others.create(Widgets, { metadata: { name: 'a', namespace: 'x' }, spec: { value: '1' } })
      await clock.until(() => informer.health.is === 'watching', 2 * minute)
      expect(informer.size).toBe(1)
      server.unserve(Widgets)
      await clock.until(() => informer.health.is === 'absent', 2 * minute)
      expect(informer.size).toBe(0)
    }
    expect(health.filter(is => is !== 'failing')).toEqual(['absent', 'watching', 'absent', 'watching', 'absent'])
    await end(running)
  })

  it('is not confused with a proxy that does not know the server: what is there stays', async () => {
    const { clock, server, put, watch, line, end } = world()
    await put('a')
    const { informer, running } = watch()
    await clock.until(() => informer.hasSynced, 1000)
    line.meddle = async () => ({ status: 404, headers: {}, text: '<html>default backend - 404</html>' })
    server.cutWatches()
    await clock.advance(5 * minute)
    expect(informer.health.is).toBe('failing')
    expect(names(informer)).toEqual(['a'])
    await end(running)
  })
})

describe('what an informer keeps', () => {
  it('is what is in its namespaces, when all of them have been read', async () => {
    const { clock, put, drop, watch, line, end } = world()
    for (const namespace of ['x', 'y', 'z']) await put('a', namespace)
    let isBroken = true
    line.meddle = (request, next) => (isBroken && request.target.namespace === 'y' ? broken(request) : next(request))
    const { informer, running } = watch({ namespaces: ['x', 'y', 'x'] })
    await clock.advance(5000)
    expect(informer.hasSynced).toBe(false)
    expect(informer.health.is).toBe('failing')
    isBroken = false
    await clock.until(() => informer.hasSynced, minute)
    expect(
      informer
        .list()
        .map(object => object.metadata.namespace)
        .sort(),
    ).toEqual(['x', 'y'])
    expect(informer.list({ namespace: 'y' })).toHaveLength(1)
    await drop('a', 'y')
    await put('b', 'z')
    await clock.advance(10)
    expect(informer.list().map(object => object.metadata.namespace)).toEqual(['x'])
    expect([informer.watches('x'), informer.watches('z')]).toEqual([true, false])
    await end(running)
  })

  it('is what its selector selects: what no longer is, goes', async () => {
    const { clock, put, watch, end } = world()
    await put('a', 'x', { labels: { app: 'a' } })
    await put('b', 'x', { labels: { app: 'b' } })
    const { informer, running } = watch({ labels: { app: 'a' } })
    await clock.until(() => informer.hasSynced, 1000)
    expect(names(informer)).toEqual(['a'])
    await put('a', 'x', { labels: { app: 'b' } })
    await put('b', 'x', { labels: { app: 'a' } })
    await clock.advance(10)
    expect(names(informer)).toEqual(['b'])
    expect(informer.list({ labels: { app: 'a' } })).toHaveLength(1)
    await end(running)
  })

  it('has no managedFields, but our own where they are wanted', async () => {
    const { clock, put, client, watch, end } = world()
    await put('a')
    const applying = client.apply(ConfigMap, { metadata: { name: 'a', namespace: 'x' }, data: { ours: '1' } })
    await clock.advance(10)
    await applying
    const { informer, running } = watch()
    const { informer: keeping, running: other } = watch({ keepManager: 'shipmate' })
    await clock.until(() => informer.hasSynced && keeping.hasSynced, 1000)
    expect(informer.get({ name: 'a', namespace: 'x' })?.metadata).not.toHaveProperty('managedFields')
    expect(keeping.get({ name: 'a', namespace: 'x' })?.metadata.managedFields).toMatchObject([{ manager: 'shipmate' }])
    await end(Promise.all([running, other]).then(() => undefined))
  })

  it('is found by its owner and by indices of one’s own', async () => {
    const { clock, put, watch, end } = world()
    const owner = (uid: string, controller: boolean) => ({ apiVersion: 'v1', kind: 'X', name: 'o', uid, controller })
    await put('a', 'x', { ownerReferences: [owner('u1', false), owner('u2', true)] })
    await put('b', 'x', { labels: { color: 'red' } })
    const { informer, running } = watch({ indices: { color: object => Object.values(object.metadata.labels ?? {}) } })
    await clock.until(() => informer.hasSynced, 1000)
    expect(informer.by('owner', 'u2').map(object => object.metadata.name)).toEqual(['a'])
    expect(informer.by('owner', 'u1')).toEqual([])
    expect(informer.by('color', 'red').map(object => object.metadata.name)).toEqual(['b'])
    informer.addIndex('name', object => [object.metadata.name])
    expect(informer.by('name', 'a')).toHaveLength(1)
    await end(running)
  })
})

describe('what we wrote', () => {
  const object = (name: string, version: string, metadata: object = {}) =>
    ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: 'x', uid: name, resourceVersion: version, ...metadata },
    }) as unknown as Live

  it('is not kept where it is not watched: nobody would tell when it goes', async () => {
    const { clock, watch, end } = world()
    const { informer, running } = watch({ namespaces: ['x'], labels: 'app=a' })
    await clock.until(() => informer.hasSynced, 1000)
    informer.wrote(object('a', '100', { labels: { app: 'b' } }))
    informer.wrote(object('b', '101', { labels: { app: 'a' }, namespace: 'y' }))
    expect(informer.size).toBe(0)
    informer.wrote(object('c', '102', { labels: { app: 'a' } }))
    expect(names(informer)).toEqual(['c'])
    informer.wrote(object('c', '103', { labels: { app: 'b' } }))
    expect(informer.size).toBe(0)
    await end(running)
  })

  it('is left to the watch where only the server can tell whether it is watched', async () => {
    const { clock, watch, line, end } = world()
    line.meddle = (request, next) => next({ ...request, path: request.path.replace(/&?fieldSelector=[^&]*/, '') })
    const { informer, running } = watch({ fields: 'status.phase=Running' })
    await clock.until(() => informer.hasSynced, 1000)
    informer.wrote(object('a', '100'))
    expect(informer.size).toBe(0)
    await end(running)
  })
})
