import { describe, expect, it } from 'vitest'
import { connectThrough } from '../../controller/kube/access.ts'
import { Cache } from '../../controller/kube/cache.ts'
import { CachedClient, type Write } from '../../controller/kube/cached.ts'
import { Client } from '../../controller/kube/client.ts'
import { Aborted, Conflict, NotFound } from '../../controller/kube/errors.ts'
import type { Kind, Live, Snapshot } from '../../controller/kube/kind.ts'
import { ConfigMap, Deployment, Namespace, Secret } from '../../controller/kube/kinds.ts'
import type { Request, Response, Send } from '../../controller/kube/transport.ts'
import { ModelServer } from '../fixtures/model-server.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'
import { widgetKind } from '../fixtures/widget.ts'

const Widgets = widgetKind('test.example.com')

/** A cache of ConfigMaps, Deployments and Widgets, a client on it, and what it asks of the server. */
async function world({
  watched = [ConfigMap, Deployment, Widgets] as Kind[],
  namespaces = undefined as string[] | undefined,
} = {}) {
  const clock = new VirtualClock()
  const server = new ModelServer({ clock })
  server.serve(Widgets)
  const others = new Client(request => server.answer(request), { fieldManager: 'others', namespace: 'x' })
  const line = { meddle: (request: Request, next: Send): Promise<Response> => next(request) }
  const requests: string[] = []
  const access = connectThrough(
    request => {
      const { verb, resource, subresource, name } = request.target
      if (verb !== 'watch')
        requests.push(`${verb} ${resource}${subresource ? `/${subresource}` : ''} ${name ?? ''}`.trim())
      return line.meddle(request, onward => server.send(onward))
    },
    { name: 'us', clock, retry: { tries: 1 } },
  )
  const cache = new Cache(access.client, { clock, random: () => 0, namespaces })
  for (const kind of watched) {
    cache.for(kind, { keepManager: 'us' })
    cache.informer(kind)
  }
  const stop = new AbortController()
  const running = cache.run(stop.signal)
  const writes: Write[] = []
  const client = new CachedClient(access.client, cache).with({ onWrite: write => writes.push(write) })
  await clock.advance(10)
  /** Moves time on until something is done. */
  const during = async <R>(call: Promise<R>): Promise<R> => {
    let isOver = false
    const over = () => {
      isOver = true
    }
    call.then(over, over)
    // Not a moment longer: what comes by the watch afterwards must not have come.
    await clock.until(() => isOver, 60_000)
    return call
  }
  /** The same, and what was asked of the server meanwhile. */
  const asked = async (call: () => Promise<unknown>): Promise<string[]> => {
    const before = requests.length
    await during(call())
    return requests.slice(before)
  }
  const end = async () => {
    stop.abort()
    await running
    expect(clock.pending).toBe(0)
  }
  return { clock, server, others, line, requests, cache, client, writes, during, asked, end }
}

const x = (name: string) => ({ name, namespace: 'x' })

describe('reading', () => {
  it('costs no request for what is watched', async () => {
    const { client, others, clock, requests, end } = await world()
    await others.create(ConfigMap, { metadata: { name: 'a', labels: { app: 'x' } }, data: { k: 'v' } })
    await clock.advance(10)
    expect(await client.get(ConfigMap, x('a'))).toMatchObject({ kind: 'ConfigMap', data: { k: 'v' } })
    expect(await client.find(ConfigMap, x('none'))).toBeUndefined()
    expect(await client.list(ConfigMap, { namespace: 'x', labels: { app: 'x' } })).toHaveLength(1)
    expect(await client.list(ConfigMap, { namespace: 'y' })).toEqual([])
    await expect(client.get(ConfigMap, x('none'))).rejects.toThrow(
      'get configmaps none in namespace x: ConfigMap "none" not found',
    )
    await expect(client.get(ConfigMap, x('none'))).rejects.toBeInstanceOf(NotFound)
    expect(requests).toEqual([])
    await end()
  })

  it('asks the server for what is not watched', async () => {
    const { client, others, asked, end } = await world()
    await others.create(Secret, { metadata: { name: 'a' } })
    expect(await asked(() => client.get(Secret, x('a')))).toEqual(['get secrets a'])
    expect(await asked(() => client.list(Secret, { namespace: 'x' }))).toEqual(['list secrets'])
    expect(() => client.by(Secret, 'owner', 'u')).toThrow('Secret is not watched: declare it with owns or watches')
    await end()
  })

  it('asks the server for what is in a namespace that is not watched, instead of saying that it is not there', async () => {
    const { client, others, asked, during, end } = await world({ namespaces: ['y'] })
    await others.create(ConfigMap, { metadata: { name: 'a' } })
    expect(await during(client.find(ConfigMap, x('a')))).toBeDefined()
    expect(await asked(() => client.list(ConfigMap, { namespace: 'x' }))).toEqual(['list configmaps'])
    expect(await asked(() => client.find(ConfigMap, { name: 'a', namespace: 'y' }))).toEqual([])
    await end()
  })

  it('hands out what cannot be changed, wherever it comes from', async () => {
    const { client, others, clock, during, end } = await world()
    await others.create(ConfigMap, { metadata: { name: 'a', labels: {} }, data: { k: 'v' } })
    await others.create(Secret, { metadata: { name: 'a', labels: {} } })
    await clock.advance(10)
    const got: Snapshot[] = [
      await client.get(ConfigMap, x('a')),
      await during(client.get(Secret, x('a'))),
      ...(await during(client.list(Secret))),
      await during(client.create(ConfigMap, { metadata: { ...x('b'), labels: {} } })),
      await during(client.patch(ConfigMap, x('b'), { merge: { data: { a: '1' } } })),
      await during(client.apply(Secret, { metadata: { ...x('c'), labels: { a: 'b' } } })),
    ]
    expect(got).toHaveLength(6)
    for (const object of got) {
      expect(() => {
        ;(object as unknown as Live).metadata.labels = {}
      }).toThrow(TypeError)
      expect(() => Object.assign(object.metadata.labels ?? {}, { more: 'x' })).toThrow(TypeError)
    }
    await end()
  })
})

describe('a write', () => {
  it('is in the cache when its call returns, though the watch has not told', async () => {
    const { client, server, cache, during, end } = await world()
    server.lag = () => 10_000
    const informer = cache.informer(ConfigMap)
    const made = await during(client.create(ConfigMap, { metadata: x('a'), data: { k: '1' } }))
    expect(informer.get(x('a'))).toBe(made)
    await during(client.update(ConfigMap, { ...made, data: { k: '2' } }))
    expect(informer.get(x('a'))?.data).toEqual({ k: '2' })
    await during(client.patch(ConfigMap, x('a'), { merge: { data: { k: '3' } } }))
    expect(informer.get(x('a'))?.data).toEqual({ k: '3' })
    await during(client.apply(ConfigMap, { metadata: x('a'), data: { k: '4' } }))
    expect(informer.get(x('a'))?.data).toEqual({ k: '4' })
    await during(client.delete(ConfigMap, x('a')))
    expect(informer.get(x('a'))).toBeUndefined()
    await end()
  })

  it('that was refused changes nothing in the cache', async () => {
    const { client, others, clock, during, cache, end } = await world()
    const made = await others.create(ConfigMap, { metadata: { name: 'a' }, data: { k: '1' } })
    await clock.advance(10)
    await others.patch(ConfigMap, { name: 'a' }, { merge: { data: { k: '2' } } })
    await expect(during(client.update(ConfigMap, { ...made, data: { k: '3' } }))).rejects.toBeInstanceOf(Conflict)
    await clock.advance(10)
    expect(cache.informer(ConfigMap).get(x('a'))?.data).toEqual({ k: '2' })
    await end()
  })

  it('in a dry run is told, and not kept', async () => {
    const { client, others, clock, during, cache, writes, end } = await world()
    const dryRun = true
    const informer = cache.informer(ConfigMap)
    expect(await during(client.create(ConfigMap, { metadata: x('a'), data: { k: '1' } }, { dryRun }))).toMatchObject({
      data: { k: '1' },
    })
    expect(informer.size).toBe(0)
    await others.create(ConfigMap, { metadata: { name: 'a', finalizers: ['x/y'] }, data: { k: '1' } })
    await others.create(ConfigMap, { metadata: { name: 'b' } })
    await clock.advance(10)
    const before = informer.list()
    const patched = await during(client.patch(ConfigMap, x('a'), { merge: { data: { k: '2' } } }, { dryRun }))
    expect(patched.data).toEqual({ k: '2' })
    await during(client.apply(ConfigMap, { metadata: x('a'), data: { k: '3' } }, { dryRun }))
    await during(client.update(ConfigMap, { metadata: x('b'), data: { k: '3' } }, { dryRun }))
    expect(await during(client.delete(ConfigMap, x('a'), { dryRun }))).toBe(true)
    expect(await during(client.delete(ConfigMap, x('b'), { dryRun }))).toBe(true)
    await clock.advance(10)
    expect(informer.list()).toEqual(before)
    expect(writes).toEqual([])
    await end()
  })

  it('whose answer is of another kind does not take the object’s place', async () => {
    const { client, others, clock, line, during, cache, end } = await world()
    const made = await others.create(Deployment, { metadata: { name: 'a' }, spec: { replicas: 1 } as never })
    await clock.advance(10)
    const { name, namespace, uid } = made.metadata
    const metadata = { name, namespace, uid, resourceVersion: '999' }
    const scale = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata, spec: { replicas: 3 } }
    line.meddle = async () => ({ status: 200, headers: {}, text: JSON.stringify(scale) })
    await during(client.patch(Deployment, x('a'), { merge: { spec: { replicas: 3 } } }, { subresource: 'scale' }))
    expect(cache.informer(Deployment).get(x('a'))).toMatchObject({ kind: 'Deployment', spec: { replicas: 1 } })
    await end()
  })

  it('is told to who counts them, with whether it changed anything', async () => {
    const { client, writes, during, end } = await world()
    await during(client.create(ConfigMap, { metadata: x('a'), data: { k: '1' } }))
    await during(client.patch(ConfigMap, x('a'), { merge: { data: { k: '1' } } }))
    await during(client.patch(ConfigMap, x('a'), { merge: { data: { k: '2' } } }))
    await during(client.delete(ConfigMap, x('a')))
    await during(client.delete(ConfigMap, x('a')))
    expect(writes.map(({ verb, kind, ref, changed }) => `${verb} ${kind.kind} ${ref.name} ${changed}`)).toEqual([
      'create ConfigMap a true',
      'patch ConfigMap a false',
      'patch ConfigMap a true',
      'delete ConfigMap a true',
    ])
    await end()
  })

  it('ends with the work that it belongs to', async () => {
    const { client, clock, end } = await world()
    const control = new AbortController()
    const working = client.with({ signal: control.signal })
    const calls = [
      working.create(ConfigMap, { metadata: x('a') }),
      working.apply(ConfigMap, { metadata: x('b') }),
      working.delete(ConfigMap, x('c')),
      working.get(Secret, x('d')),
      working.list(Secret),
    ]
    const ends = Promise.allSettled(calls)
    control.abort('enough')
    await clock.advance(0)
    for (const call of await ends) expect(call).toMatchObject({ status: 'rejected', reason: expect.any(Aborted) })
    await end()
  })
})

describe('applying', () => {
  it('sends nothing when nothing would change', async () => {
    const { client, asked, clock, end } = await world()
    const wish = { metadata: { ...x('a'), labels: { app: 'x' } }, data: { k: '1' } }
    expect(await asked(() => client.apply(ConfigMap, wish))).toEqual(['patch configmaps a'])
    // From the answer, and from the watch.
    expect(await asked(() => client.apply(ConfigMap, wish))).toEqual([])
    await clock.advance(10)
    expect(await asked(() => client.apply(ConfigMap, wish))).toEqual([])
    expect(await asked(() => client.apply(ConfigMap, { ...wish, data: { k: '2' } }))).toEqual(['patch configmaps a'])
    await end()
  })

  it('sends it when somebody else has changed what is ours', async () => {
    const { client, others, asked, clock, end } = await world()
    const wish = { metadata: x('a'), data: { k: '1' } }
    await asked(() => client.apply(ConfigMap, wish))
    await others.patch(ConfigMap, { name: 'a' }, { merge: { data: { k: '2' } } })
    await clock.advance(10)
    expect(await asked(() => client.apply(ConfigMap, wish))).toEqual(['patch configmaps a'])
    expect((await client.get(ConfigMap, x('a'))).data).toEqual({ k: '1' })
    await end()
  })

  it('sends a wish once that the server keeps in words of its own', async () => {
    const { client, others, line, asked, clock, end } = await world()
    // The server writes "1" for "1000m".
    line.meddle = (request, next) => next({ ...request, body: request.body?.replace('1000m', '1') })
    const wish = { metadata: x('a'), data: { cpu: '1000m' } }
    expect(await asked(() => client.apply(ConfigMap, wish))).toHaveLength(1)
    for (let i = 0; i < 3; i++) {
      await clock.advance(10)
      expect(await asked(() => client.apply(ConfigMap, wish))).toEqual([])
    }
    expect(await asked(() => client.with({}).apply(ConfigMap, wish))).toEqual([])
    expect(await asked(() => client.apply(ConfigMap, { ...wish, data: { cpu: '2' } }))).toHaveLength(1)
    expect(await asked(() => client.apply(ConfigMap, wish))).toHaveLength(1)
    await others.patch(ConfigMap, { name: 'a' }, { merge: { data: { more: 'x' } } })
    await clock.advance(10)
    expect(await asked(() => client.apply(ConfigMap, wish))).toHaveLength(1)
    expect(await asked(() => client.apply(ConfigMap, wish))).toHaveLength(0)
    await end()
  })

  it('always sends what is not watched, in a dry run, or for a subresource', async () => {
    const { client, asked, end } = await world()
    for (let i = 0; i < 2; i++) {
      expect(await asked(() => client.apply(Secret, { metadata: x('a') }))).toHaveLength(1)
      const wish = { metadata: x('a'), data: { k: '1' } }
      expect(await asked(() => client.apply(ConfigMap, wish, { dryRun: true }))).toHaveLength(1)
      expect(await asked(() => client.apply(ConfigMap, wish, { subresource: 'status' }))).toHaveLength(1)
    }
    await end()
  })

  it('makes an owner of who is named', async () => {
    const { client, others, during, clock, end } = await world()
    const owner = (await others.create(Widgets, { metadata: { name: 'w' }, spec: { value: '' } })) as Snapshot
    await clock.advance(10)
    const made = await during(client.apply(ConfigMap, { metadata: { name: 'a' }, data: { k: '1' } }, { owner }))
    expect(made.metadata).toMatchObject({
      namespace: 'x',
      ownerReferences: [
        {
          ...{ apiVersion: 'test.example.com/v1', kind: 'Widget', name: 'w', uid: owner.metadata.uid },
          ...{ controller: true, blockOwnerDeletion: true },
        },
      ],
    })
    expect(client.owned(ConfigMap, owner).map(object => object.metadata.name)).toEqual(['a'])
    const elsewhere = client.apply(ConfigMap, { metadata: { name: 'a', namespace: 'y' } }, { owner })
    await expect(elsewhere).rejects.toThrow(/Widget x\/w cannot own ConfigMap y\/a/)
    await expect(client.create(Namespace, { metadata: { name: 'n' } }, { owner })).rejects.toThrow(
      /cannot own Namespace/,
    )
    await end()
  })
})

describe('a status', () => {
  async function widget() {
    const all = await world()
    await all.others.create(Widgets, { metadata: { name: 'w' }, spec: { value: '1' } })
    await all.clock.advance(10)
    return { ...all, object: (await all.client.get(Widgets, x('w'))) as Snapshot<{ status?: Record<string, unknown> }> }
  }
  const kind = Widgets as Kind<{ status?: Record<string, unknown> }>

  it('is written when it changes, and only then', async () => {
    const { client, object, asked, clock, end } = await widget()
    expect(await asked(() => client.status(kind, object, { a: 1, list: [{ b: 2 }] }))).toEqual([
      'patch widgets/status w',
    ])
    expect(await asked(() => client.status(kind, object, { a: 1, list: [{ b: 2 }] }))).toEqual([])
    await clock.advance(10)
    expect(await asked(() => client.status(kind, object, { list: [{ b: 2 }] }))).toEqual([])
    expect(await asked(() => client.status(kind, object, { a: 2 }))).toHaveLength(1)
    expect(await client.get(kind, x('w'))).toMatchObject({ status: { a: 2, list: [{ b: 2 }] }, spec: { value: '1' } })
    await end()
  })

  it('loses the fields that are given as nothing, once', async () => {
    const { client, object, asked, end } = await widget()
    await asked(() => client.status(kind, object, { a: 1, b: { c: 1, d: 2 } }))
    for (const nothing of [undefined, null]) {
      expect(await asked(() => client.status(kind, object, { a: 1 }))).toHaveLength(nothing === null ? 1 : 0)
      expect(await asked(() => client.status(kind, object, { a: nothing, never: nothing }))).toHaveLength(1)
      expect(await asked(() => client.status(kind, object, { a: nothing, never: nothing }))).toEqual([])
    }
    expect(await asked(() => client.status(kind, object, { b: { c: 1, d: null } }))).toHaveLength(1)
    expect(await asked(() => client.status(kind, object, { b: { c: 1, d: null } }))).toEqual([])
    expect(await asked(() => client.status(kind, object, { e: { f: null, g: undefined } }))).toHaveLength(1)
    expect(await asked(() => client.status(kind, object, { e: { f: null, g: undefined } }))).toEqual([])
    expect((await client.get(kind, x('w'))).status).toEqual({ b: { c: 1 }, e: {} })
    await end()
  })

  it('is never that of a namesake', async () => {
    const { client, others, object, during, clock, end } = await widget()
    await others.delete(Widgets, { name: 'w' })
    await others.create(Widgets, { metadata: { name: 'w' }, spec: { value: '2' } })
    await expect(during(client.status(kind, object, { a: 1 }))).rejects.toBeInstanceOf(Conflict)
    await clock.advance(10)
    await expect(during(client.status(kind, object, { a: 1 }))).rejects.toBeInstanceOf(Conflict)
    expect((await client.get(kind, x('w'))).status).toBeUndefined()
    await end()
  })
})

describe('deleting', () => {
  it('says whether there was something to delete', async () => {
    const { client, during, end } = await world()
    await during(client.create(ConfigMap, { metadata: x('a') }))
    expect(await during(client.delete(ConfigMap, x('a')))).toBe(true)
    expect(await during(client.delete(ConfigMap, x('a')))).toBe(false)
    await end()
  })

  it('of a snapshot deletes that very object, not its namesake', async () => {
    const { client, others, during, clock, server, end } = await world()
    const first = await during(client.create(ConfigMap, { metadata: x('a') }))
    await others.delete(ConfigMap, { name: 'a' })
    await others.create(ConfigMap, { metadata: { name: 'a' } })
    await expect(during(client.delete(ConfigMap, first))).rejects.toBeInstanceOf(Conflict)
    await clock.advance(10)
    expect(server.list('configmaps')).toHaveLength(1)
    await end()
  })

  it('shows what finalizers hold as being deleted', async () => {
    const { client, during, cache, end } = await world()
    await during(client.create(ConfigMap, { metadata: { ...x('a'), finalizers: ['x/y'] } }))
    expect(await during(client.delete(ConfigMap, x('a')))).toBe(true)
    expect(cache.informer(ConfigMap).get(x('a'))?.metadata.deletionTimestamp).toBeDefined()
    await during(client.patch(ConfigMap, x('a'), { merge: { metadata: { finalizers: null } } }))
    await end()
  })

  it('keeps a namespace that its spec holds, whoever writes to it meanwhile', async () => {
    const { client, others, during, line, cache, clock, end } = await world({ watched: [Namespace] })
    await others.create(Namespace, { metadata: { name: 'a' } })
    await clock.advance(10)
    let held = ['kubernetes']
    line.meddle = async (request, next) => {
      const response = await next(request)
      if (request.target.verb !== 'patch') return response
      const object = JSON.parse(response.text)
      object.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'
      // By the watch it is not known yet.
      object.metadata.resourceVersion = String(Number(object.metadata.resourceVersion) + 100)
      object.spec = { finalizers: held }
      return { ...response, text: JSON.stringify(object) }
    }
    const touch = (note: string) =>
      during(client.patch(Namespace, { name: 'a' }, { merge: { metadata: { annotations: { note } } } }))
    await touch('1')
    expect(cache.informer(Namespace).get({ name: 'a' })?.metadata.deletionTimestamp).toBeDefined()
    held = []
    await touch('2')
    expect(cache.informer(Namespace).get({ name: 'a' })).toBeUndefined()
    await end()
  })

  it('by name does not hide a namesake that came since', async () => {
    const { client, others, during, clock, line, cache, end } = await world()
    // Not in the cache yet when it is deleted; and the answer is slow.
    let answer: (() => void) | undefined
    line.meddle = async (request, next) => {
      const response = await next(request)
      if (request.target.verb === 'delete') await new Promise<void>(resolve => (answer = resolve))
      return response
    }
    await others.create(ConfigMap, { metadata: { name: 'a' } })
    const deleting = client.delete(ConfigMap, x('a'))
    await clock.until(() => answer !== undefined, 1000)
    await others.create(ConfigMap, { metadata: { name: 'a' }, data: { second: 'x' } })
    await clock.advance(100)
    answer?.()
    expect(await during(deleting)).toBe(true)
    expect(cache.informer(ConfigMap).get(x('a'))?.data).toEqual({ second: 'x' })
    await others.patch(ConfigMap, { name: 'a' }, { merge: { data: { second: 'y' } } })
    await clock.advance(10)
    expect(cache.informer(ConfigMap).get(x('a'))?.data).toEqual({ second: 'y' })
    await end()
  })
})

describe('a cache', () => {
  it('watches a kind once, however many ask for it, before or after it runs', async () => {
    const { cache, clock, server, end } = await world()
    const before = server.watches
    const late = { ...Secret }
    expect(cache.informer(Secret)).toBe(cache.informer(late))
    await clock.advance(10)
    expect(server.watches).toBe(before + 1)
    expect(cache.informer(Secret).hasSynced).toBe(true)
    expect(() => cache.for(Secret, {})).toThrow(/watched already/)
    expect([...cache.informers()]).toHaveLength(4)
    await end()
  })

  it('that was stopped before it began does nothing', async () => {
    const clock = new VirtualClock()
    const cache = new Cache(new Client(() => Promise.reject(new Error('nobody asks'))), { clock })
    cache.informer(ConfigMap)
    await cache.run(AbortSignal.abort())
    expect(clock.pending).toBe(0)
  })
})
