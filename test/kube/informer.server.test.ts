/**
 * Informers and the cached client against a real API server; and whether the model of the server, on which simulations rest, answers as it does.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { type Access, connect } from '../../controller/kube/access.ts'
import { Cache } from '../../controller/kube/cache.ts'
import { CachedClient } from '../../controller/kube/cached.ts'
import { Client } from '../../controller/kube/client.ts'
import { KubeError } from '../../controller/kube/errors.ts'
import { Informer, type InformerOptions } from '../../controller/kube/informer.ts'
import type { Kind, Live } from '../../controller/kube/kind.ts'
import { ConfigMap, CustomResourceDefinition, Deployment, Namespace, Secret } from '../../controller/kube/kinds.ts'
import { createPresence } from '../../controller/kube/presence.ts'
import { matcherOf } from '../../controller/kube/selector.ts'
import type { Request } from '../../controller/kube/transport.ts'
import { systemClock } from '../../shared/clock.ts'
import { ModelServer } from '../fixtures/model-server.ts'
import { installWidgets, type Widget } from '../fixtures/widget.ts'

const kubeconfig = inject('kubeconfig')
const schedules = Number(process.env.SHIPMATE_SCHEDULES ?? 100)
const namespace = 'informer-test'
const other = 'informer-test-other'

describe.skipIf(!kubeconfig)('with a real API server', () => {
  let access: Access
  let client: Client
  let requests: Request[] = []
  const asked = () => requests.map(({ target, method }) => `${method} ${target.verb} ${target.resource}`)

  beforeAll(async () => {
    access = connect({
      name: 'us',
      kubeconfig: { file: kubeconfig },
      interceptors: [
        next => request => {
          requests.push(request)
          return next(request)
        },
      ],
    })
    client = access.client
    for (const name of [namespace, other]) await client.create(Namespace, { metadata: { name } })
  })
  afterAll(() => access.close())

  /** Watches until the test ends. */
  function watch<T extends object>(kind: Kind<T>, options: InformerOptions<T> = {}): Informer<T> {
    const stop = new AbortController()
    const informer = new Informer(client, kind, options)
    const running = informer.run(stop.signal)
    onTestFinished(async () => {
      stop.abort()
      await running
    })
    return informer
  }
  const names = (objects: readonly { metadata: { name: string } }[]) =>
    objects.map(({ metadata }) => metadata.name).sort()
  const eventually = (check: () => void) => vi.waitFor(check, { timeout: 20_000, interval: 10 })

  it('what is streamed and what is read in pages is the same', async () => {
    const labels = { test: 'same' }
    for (let i = 0; i < 23; i++) {
      await client.create(ConfigMap, { metadata: { name: `same-${i}`, namespace, labels }, data: { i: String(i) } })
    }
    requests = []
    const streamed = watch(ConfigMap, { namespaces: [namespace], labels })
    const paged = watch(ConfigMap, { namespaces: [namespace], labels, streaming: false, pageSize: 5 })
    await Promise.all([streamed.synced, paged.synced])
    expect(streamed.size).toBe(23)
    const sorted = (informer: Informer<object>) =>
      informer.list().sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    expect(sorted(streamed as never)).toEqual(sorted(paged as never))
    expect(asked().filter(one => one.includes(' list '))).toHaveLength(5)
    await client.patch(ConfigMap, { name: 'same-3', namespace }, { merge: { data: { i: 'changed' } } })
    await client.delete(ConfigMap, { name: 'same-4', namespace })
    for (const informer of [streamed, paged]) {
      await eventually(() => {
        expect(informer.get({ name: 'same-3', namespace })?.data).toEqual({ i: 'changed' })
        expect(informer.size).toBe(22)
      })
    }
    expect(sorted(streamed as never)).toEqual(sorted(paged as never))
  })

  it('each of several namespaces is watched, and no other', async () => {
    const labels = { test: 'namespaces' }
    const make = (name: string, where: string) =>
      client.create(ConfigMap, { metadata: { name, namespace: where, labels } })
    await make('a', namespace)
    const both = watch(ConfigMap, { namespaces: [namespace, other], labels })
    const one = watch(ConfigMap, { namespaces: [other], labels })
    const all = watch(ConfigMap, { labels })
    await Promise.all([both.synced, one.synced, all.synced])
    await make('b', other)
    await make('c', 'default')
    await eventually(() => {
      expect(names(both.list())).toEqual(['a', 'b'])
      expect(names(one.list())).toEqual(['b'])
      expect(names(all.list())).toEqual(['a', 'b', 'c'])
    })
    await client.delete(ConfigMap, { name: 'c', namespace: 'default' })
  })

  it('an object that leaves the selection goes, and one that enters it comes', async () => {
    const informer = watch(ConfigMap, { namespaces: [namespace], labels: 'test in (selected),!hidden' })
    await informer.synced
    const metadata = { name: 'selected', namespace }
    await client.create(ConfigMap, { metadata: { ...metadata, labels: { test: 'not' } } })
    await client.patch(ConfigMap, metadata, { merge: { metadata: { labels: { test: 'selected' } } } })
    await eventually(() => expect(informer.size).toBe(1))
    const hidden = await client.patch(ConfigMap, metadata, { merge: { metadata: { labels: { hidden: 'x' } } } })
    await eventually(() => expect(informer.size).toBe(0))
    // Late, the answer to a write of ours that is not selected changes nothing.
    informer.wrote(hidden)
    expect(informer.size).toBe(0)
  })

  it('objects of a megabyte come whole', async () => {
    const labels = { test: 'large' }
    const big = (i: number) => String.fromCodePoint(0x1f600 + i).repeat(250_000)
    for (let i = 0; i < 8; i++) {
      await client.create(ConfigMap, { metadata: { name: `large-${i}`, namespace, labels }, data: { big: big(i) } })
    }
    const streamed = watch(ConfigMap, { namespaces: [namespace], labels })
    const paged = watch(ConfigMap, { namespaces: [namespace], labels, streaming: false, pageSize: 3 })
    await Promise.all([streamed.synced, paged.synced])
    for (const informer of [streamed, paged]) {
      for (let i = 0; i < 8; i++) expect(informer.get({ name: `large-${i}`, namespace })?.data?.['big']).toBe(big(i))
    }
    await client.patch(ConfigMap, { name: 'large-0', namespace }, { merge: { data: { big: big(9) } } })
    await eventually(() => expect(streamed.get({ name: 'large-0', namespace })?.data?.['big']).toBe(big(9)))
    await client.deleteCollection(ConfigMap, { namespace, labels })
    await eventually(() => expect([streamed.size, paged.size]).toEqual([0, 0]))
  })

  it('a watch that the server ends is taken up again, and misses nothing', async () => {
    const labels = { test: 'short' }
    const informer = watch(Secret, { namespaces: [namespace], labels, watchSeconds: 1 })
    await informer.synced
    requests = []
    const heard: string[] = []
    informer.subscribe(({ type, key }) => heard.push(`${type} ${key}`))
    const expected: string[] = []
    for (let i = 0; requests.filter(({ target }) => target.verb === 'watch').length < 3; i++) {
      await client.create(Secret, { metadata: { name: `short-${i}`, namespace, labels } })
      expected.push(`added ${namespace}/short-${i}`)
    }
    await eventually(() => expect(heard).toEqual(expected))
    expect(requests.filter(({ target }) => target.verb === 'list')).toEqual([])
  })

  it('bookmarks say how far the server is, though nothing happened to what is watched', async () => {
    const { resourceVersion } = await client.page(Secret, { namespace, labels: 'test=nothing' })
    const versions: string[] = []
    const elsewhere = () => void client.create(Secret, { metadata: { generateName: 'elsewhere-', namespace: other } })
    const quiet = { namespace, labels: 'test=nothing', resourceVersion, timeoutSeconds: 8, onOpen: elsewhere }
    for await (const event of client.watch(Secret, quiet))
      if (event.type === 'BOOKMARK') versions.push(event.resourceVersion)
    expect(versions.length).toBeGreaterThan(0)
    expect(Number(versions.at(-1))).toBeGreaterThan(Number(resourceVersion))
  })

  it('a kind is waited for, watched when it comes, and again after it went', async () => {
    const group = 'informer.test.example.com'
    const kind = { group, version: 'v1', kind: 'Widget', plural: 'widgets', namespaced: true } as Kind<Widget>
    const presence = createPresence(client)
    const informer = watch(kind, { presence })
    await informer.settled
    expect(informer.health.is).toBe('absent')
    for (let round = 0; round < 2; round++) {
      await installWidgets(client, group)
      await eventually(() => expect(informer.health.is).toBe('watching'))
      await client.create(kind, { metadata: { name: 'w', namespace }, spec: { value: String(round) } })
      await eventually(() => expect(informer.get({ name: 'w', namespace })?.spec.value).toBe(String(round)))
      await client.delete(CustomResourceDefinition, { name: `widgets.${group}` })
      await eventually(() => expect(informer.health.is).toBe('absent'))
      await eventually(() => expect(informer.size).toBe(0))
      await eventually(() =>
        client.find(CustomResourceDefinition, { name: `widgets.${group}` }).then(gone => expect(gone).toBeUndefined()),
      )
    }
  })

  it('nothing is sent when nothing would change, even what the server writes in its own way', async () => {
    const widgets = await installWidgets(client, 'cached.test.example.com')
    const stop = new AbortController()
    const cache = new Cache(client)
    for (const kind of [ConfigMap, Deployment, widgets] as Kind[]) {
      cache.for(kind, { keepManager: 'us' })
      cache.informer(kind)
    }
    const running = cache.run(stop.signal)
    await Promise.all(Array.from(cache.informers(), informer => informer.synced))
    const cached = new CachedClient(client, cache)
    const owner = await cached.create(widgets, { metadata: { name: 'owner', namespace }, spec: { value: '1' } })
    const labels = { app: 'quiet' }
    const reconcile = async () => {
      await cached.apply(ConfigMap, { metadata: { name: 'quiet' }, data: { value: owner.spec.value } }, { owner })
      await cached.apply(
        Deployment,
        {
          metadata: { name: 'quiet', labels },
          spec: {
            replicas: 0,
            selector: { matchLabels: labels },
            template: {
              metadata: { labels },
              spec: {
                containers: [
                  {
                    name: 'main',
                    image: 'x',
                    ports: [{ containerPort: 53 }, { containerPort: 53, protocol: 'UDP' }],
                    env: [{ name: 'A', value: '1' }],
                    resources: { requests: { cpu: '1000m', memory: '1024Mi' } },
                    volumeMounts: [],
                  },
                ],
              },
            },
          },
        },
        { owner },
      )
      await cached.status(widgets, owner, { observedValue: owner.spec.value })
    }
    requests = []
    await reconcile()
    expect(asked()).toEqual(['PATCH patch configmaps', 'PATCH patch deployments', 'PATCH patch widgets'])
    expect(cached.owned(Deployment, owner)).toHaveLength(1)
    requests = []
    for (let i = 0; i < 5; i++) {
      await reconcile()
      // The second time and later the news of the watch are there, too.
      const version = cache.informer(Deployment).get({ name: 'quiet', namespace })?.metadata.resourceVersion
      await eventually(() => expect(version).toBeDefined())
    }
    expect(asked()).toEqual([])
    await client.patch(ConfigMap, { name: 'quiet', namespace }, { merge: { data: { value: 'no' } } })
    await eventually(() =>
      expect(cache.informer(ConfigMap).get({ name: 'quiet', namespace })?.data?.['value']).toBe('no'),
    )
    requests = []
    await reconcile()
    expect(asked()).toEqual(['PATCH patch configmaps'])
    stop.abort()
    await running
  })

  it('label selectors select here what they select there', async () => {
    const value = fc.constantFrom('a', 'b', '')
    const key = fc.constantFrom('x', 'y', 'k8s.io/z')
    const labels = fc.uniqueArray(fc.tuple(key, value), { selector: ([name]) => name }).map(Object.fromEntries)
    const space = fc.constantFrom('', ' ')
    const requirement = fc
      .tuple(key, fc.array(value, { minLength: 1, maxLength: 3 }), space, fc.nat({ max: 6 }))
      .map(([name, values, s, form]) => {
        const list = `(${values.join(`,${s}`)})`
        return [
          name,
          `!${name}`,
          `${name}${s}=${s}${values[0]}`,
          `${name}==${values[0]}`,
          `${name}${s}!=${values[0]}`,
          `${name} in ${list}`,
          `${name} notin${s}${list}`,
        ][form]
      })
    const all = fc.sample(labels, { numRuns: 30, seed: 1 })
    const objects = await Promise.all(
      all.map((one, i) => client.create(Secret, { metadata: { name: `label-${i}`, namespace: other, labels: one } })),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(requirement, { minLength: 1, maxLength: 3 }), async requirements => {
        const selector = requirements.join(',')
        const there = names(await client.list(Secret, { namespace: other, labels: selector }))
        const here = objects.filter(object => matcherOf(selector)?.(object.metadata.labels ?? {}))
        expect(here.map(({ metadata }) => metadata.name).sort(), selector).toEqual(
          there.filter(name => name.startsWith('label-')),
        )
      }),
      { numRuns: schedules },
    )
  })

  it('the model of the server answers as the server does', async () => {
    const name = fc.constantFrom('a', 'b')
    const data = fc.dictionary(fc.constantFrom('k', 'l'), fc.constantFrom('1', '2'), { minKeys: 1, maxKeys: 2 })
    const labels = fc.constantFrom({ app: 'x' }, { app: 'y' })
    type Step = [string, string, Record<string, string>, { app: string }, boolean]
    const step: fc.Arbitrary<Step> = fc.tuple(
      fc.constantFrom(
        'get',
        'create',
        'update',
        'patch',
        'apply',
        'apply as another',
        'delete',
        'hold',
        'let go',
        'list',
      ),
      ...([name, data, labels, fc.boolean()] as const),
    )
    let run = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async steps => {
        const model = new ModelServer({ clock: systemClock })
        const prefix = `model-${run++}`
        const real = await play(client, prefix, steps)
        const modelled = await play(new Client(request => model.answer(request), { fieldManager: 'us' }), prefix, steps)
        expect(modelled).toEqual(real)
      }),
      { numRuns: Math.ceil(schedules / 4) },
    )
  })

  /** What came of each step, and what a watch told of it all, without what differs between servers. */
  async function play(
    on: Client,
    prefix: string,
    steps: [string, string, Record<string, string>, { app: string }, boolean][],
  ) {
    const selection = { namespace: other, labels: 'app=x' }
    const { resourceVersion } = await on.page(ConfigMap, selection)
    const uids = new Map<string, string>()
    const last = new Map<string, Live>()
    const essence = (object: Live | undefined) => {
      if (!object) return 'nothing'
      const { uid, labels, finalizers, deletionTimestamp, managedFields } = object.metadata
      if (!uids.has(uid)) uids.set(uid, `uid ${uids.size}`)
      const owners = managedFields
        ?.filter(one => one.operation === 'Apply')
        .map(({ manager, fieldsV1 }) => [manager, fieldsV1])
      // Empty maps are dropped by the real one, which knows the kind.
      const data = { ...(object as { data?: object }).data }
      return {
        uid: uids.get(uid),
        labels,
        finalizers,
        isDeleted: Boolean(deletionTimestamp),
        data,
        owners: owners?.sort(),
      }
    }
    const outcomes: unknown[] = []
    for (const [verb, short, data, labels, isStale] of steps) {
      const ref = { name: `${prefix}-${short}`, namespace: other }
      const known = last.get(short)
      const object = { metadata: { ...ref, labels }, data }
      const act = (): Promise<Live | undefined> => {
        const version = isStale && known ? { resourceVersion: known.metadata.resourceVersion } : {}
        switch (verb) {
          case 'get':
            return on.find(ConfigMap, ref)
          case 'create':
            return on.create(ConfigMap, object)
          case 'update':
            return on.update(ConfigMap, { ...object, metadata: { ...object.metadata, ...version } })
          case 'patch':
            return on.patch(ConfigMap, ref, { merge: { data: { ...data, l: null }, metadata: { labels, ...version } } })
          case 'apply':
            return on.apply(ConfigMap, object)
          case 'apply as another':
            return on.apply(ConfigMap, { metadata: ref, data }, { fieldManager: 'another' })
          case 'delete': {
            const uid = isStale ? known?.metadata.uid : undefined
            return on
              .delete(ConfigMap, ref, uid ? { preconditions: { uid } } : {})
              .then(left => (left?.metadata.finalizers ? left : undefined))
          }
          case 'hold':
            return on.patch(ConfigMap, ref, { merge: { metadata: { finalizers: ['x.example.com/y'] } } })
          case 'let go':
            return on.patch(ConfigMap, ref, { merge: { metadata: { finalizers: null } } })
          default:
            return on
              .list(ConfigMap, { ...selection, pageSize: 1 })
              .then(all => void outcomes.push(names(all.filter(one => one.metadata.name.startsWith(prefix)))))
        }
      }
      const before = await on.find(ConfigMap, ref)
      const result = await act().catch(error => {
        if (error instanceof KubeError) return error
        throw error
      })
      const after = await on.find(ConfigMap, ref)
      const isUnchanged = before?.metadata.resourceVersion === after?.metadata.resourceVersion
      outcomes.push([verb, result instanceof KubeError ? result.code : essence(result), isUnchanged, essence(after)])
      if (after && !(result instanceof KubeError) && verb === 'get') last.set(short, after)
    }
    // Marks the end of what the watch is to tell.
    const mark = { name: `${prefix}-mark`, namespace: other }
    await on.create(ConfigMap, { metadata: { ...mark, labels: { app: 'x' } } })
    const told: unknown[] = []
    for await (const event of on.watch(ConfigMap, { ...selection, resourceVersion, timeoutSeconds: 30 })) {
      if (event.type === 'BOOKMARK') continue
      if (event.object.metadata.name === mark.name) break
      if (event.object.metadata.name.startsWith(prefix)) told.push([event.type, essence(event.object)])
    }
    return { outcomes, told }
  }
})
