import { describe, expect, it } from 'vitest'
import { parseAggregated, parseLegacy } from '../../controller/kube/apis.ts'
import { Client } from '../../controller/kube/client.ts'
import { createDiscovery, type DiscoveryOptions } from '../../controller/kube/discovery.ts'
import { Aborted, NotFound, Unavailable } from '../../controller/kube/errors.ts'
import { defineKind } from '../../controller/kube/kind.ts'
import { Deployment, Pod } from '../../controller/kube/kinds.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'

type Resource = NonNullable<
  NonNullable<NonNullable<Parameters<typeof parseAggregated>[0]['items']>[number]['versions']>[number]['resources']
>[number]

const verbs = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch']

function resource(kind: string, more: Partial<Resource> = {}): Resource {
  return {
    ...{ resource: `${kind.toLowerCase()}s`, singularResource: kind.toLowerCase(), scope: 'Namespaced', verbs },
    responseKind: { kind },
    ...more,
  }
}

const status = { subresource: 'status', verbs: ['get', 'patch', 'update'] }

const core = [
  {
    metadata: {},
    versions: [
      {
        version: 'v1',
        freshness: 'Current',
        resources: [
          resource('Pod', {
            shortNames: ['po'],
            categories: ['all'],
            subresources: [status, { subresource: 'exec', verbs: ['create', 'get'] }],
          }),
          resource('Event', { shortNames: ['ev'] }),
          resource('Node', { scope: 'Cluster', shortNames: ['no'] }),
          // Named only for the sake of its subresources.
          { resource: 'ghosts', responseKind: { kind: '' }, scope: 'Namespaced', subresources: [status] },
        ],
      },
    ],
  },
]

const groups = [
  {
    metadata: { name: 'apps' },
    versions: [{ version: 'v1', resources: [resource('Deployment', { shortNames: ['deploy'] })] }],
  },
  {
    metadata: { name: 'events.k8s.io' },
    versions: [{ version: 'v1', resources: [resource('Event', { shortNames: ['ev'] })] }],
  },
  {
    metadata: { name: 'autoscaling' },
    versions: [
      { version: 'v2', resources: [resource('HorizontalPodAutoscaler', { shortNames: ['hpa'] })] },
      { version: 'v1', resources: [resource('HorizontalPodAutoscaler', { shortNames: ['hpa'] }), resource('Relic')] },
    ],
  },
  // A plural, singular and short name that are others' already.
  {
    metadata: { name: 'z.example' },
    versions: [{ version: 'v1', resources: [resource('Odd', { resource: 'po', shortNames: ['pods'] })] }],
  },
]

interface FakeServer {
  clock: VirtualClock
  /** The paths of all requests. */
  asked: string[]
  groups: readonly (typeof groups)[number][]
  /** What it says to a path; undefined: that it cannot say; null: that there is no such thing. */
  answer(path: string): unknown
}

/** A server that has these groups, and what is known of it. */
function serving(options: DiscoveryOptions = {}) {
  const server: FakeServer = {
    clock: new VirtualClock(),
    asked: [],
    groups,
    answer(path) {
      if (path === '/version') return { major: '1', minor: '36', gitVersion: 'v1.36.3' }
      return { kind: 'APIGroupDiscoveryList', items: path === '/api' ? core : server.groups }
    },
  }
  const client = new Client(async ({ path }) => {
    server.asked.push(path)
    const answer = server.answer(path)
    const status = answer === undefined ? 503 : answer === null ? 404 : 200
    return { status, headers: {}, text: typeof answer === 'string' ? answer : (JSON.stringify(answer) ?? '') }
  })
  return Object.assign(server, { discovery: createDiscovery(client, { clock: server.clock, ...options }) })
}

describe('what the server says of itself', () => {
  it('is asked for once', async () => {
    const { discovery, asked } = serving()
    await Promise.all([discovery.groups(), discovery.resources(), discovery.kindFor({ kind: 'Pod' })])
    await discovery.isServed(Pod)
    expect(asked.sort()).toEqual(['/api', '/apis'])
    expect(await discovery.version()).toMatchObject({ gitVersion: 'v1.36.3' })
    await discovery.version()
    expect(asked).toHaveLength(3)
  })

  it('is asked for anew after invalidate, and when it is old', async () => {
    const { discovery, asked, clock } = serving({ maxAge: 1000 })
    await discovery.groups()
    discovery.invalidate()
    await discovery.groups()
    expect(asked).toHaveLength(4)
    await clock.advance(1000)
    await discovery.groups()
    expect(asked).toHaveLength(6)
  })

  it('is in its order, with all there is to know of a kind', async () => {
    const { discovery } = serving()
    const found = await discovery.groups()
    expect(found.map(({ name, versions }) => [name, versions.map(({ version }) => version)])).toEqual([
      ['', ['v1']],
      ['apps', ['v1']],
      ['events.k8s.io', ['v1']],
      ['autoscaling', ['v2', 'v1']],
      ['z.example', ['v1']],
    ])
    expect((await discovery.resources())[0]).toEqual({
      ...{ group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true, singular: 'pod' },
      ...{ shortNames: ['po'], categories: ['all'], verbs },
      subresources: [
        { name: 'status', verbs: ['get', 'patch', 'update'] },
        { name: 'exec', verbs: ['create', 'get'] },
      ],
    })
  })

  it('is told as an error when it makes no sense, and not kept', async () => {
    const server = serving()
    const { answer } = server
    server.answer = () => '<html>'
    await expect(server.discovery.groups()).rejects.toMatchObject({ code: 'Garbled' })
    server.answer = answer
    expect(await server.discovery.groups()).toHaveLength(5)
  })

  it('is no longer waited for when aborted', async () => {
    const { discovery } = serving()
    const stop = new AbortController()
    const asking = discovery.groups({ signal: stop.signal })
    stop.abort('enough')
    await expect(asking).rejects.toBeInstanceOf(Aborted)
    expect(await discovery.groups()).toHaveLength(5)
  })

  it('comes out the same from a server that says it the old way', async () => {
    const legacy = (
      group: { metadata: { name?: string }; versions: { version: string; resources: Resource[] }[] },
      version: string,
    ) => ({
      resources: group.versions
        .find(one => one.version === version)
        ?.resources.flatMap(one => [
          ...(one.responseKind?.kind
            ? [
                {
                  ...{
                    name: one.resource,
                    kind: one.responseKind.kind,
                    namespaced: one.scope === 'Namespaced',
                    singularName: one.singularResource,
                  },
                  ...{ verbs: one.verbs, shortNames: one.shortNames, categories: one.categories },
                },
              ]
            : []),
          ...(one.subresources ?? []).map(sub => ({
            name: `${one.resource}/${sub.subresource}`,
            kind: 'Any',
            namespaced: true,
            verbs: sub.verbs,
          })),
        ]),
    })
    const old = serving()
    old.answer = path => {
      if (path === '/api') return { kind: 'APIVersions', versions: ['v1'] }
      if (path === '/api/v1') return legacy(core[0] as never, 'v1')
      if (path === '/apis') {
        return {
          kind: 'APIGroupList',
          groups: groups.map(({ metadata: { name }, versions }) => ({
            name,
            // The preferred one is named, wherever it stands.
            versions: versions.map(({ version }) => ({ version })).toReversed(),
            preferredVersion: { version: versions[0]?.version },
          })),
        }
      }
      const [, , name, version = ''] = path.split('/')
      return legacy(groups.find(group => group.metadata.name === name) as never, version)
    }
    expect(await old.discovery.groups()).toEqual(await serving().discovery.groups())
  })
})

describe('a kind', () => {
  it.each([
    [{ kind: 'Deployment' }, 'apps/v1 deployments'],
    [{ kind: 'Event' }, '/v1 events'],
    [{ kind: 'Event', group: 'events.k8s.io' }, 'events.k8s.io/v1 events'],
    [{ kind: 'HorizontalPodAutoscaler' }, 'autoscaling/v2 horizontalpodautoscalers'],
    [{ kind: 'HorizontalPodAutoscaler', version: 'v1' }, 'autoscaling/v1 horizontalpodautoscalers'],
    [{ kind: 'Relic', group: 'autoscaling' }, 'autoscaling/v1 relics'],
  ])('is found by %j', async (asked, found) => {
    const { group, version, plural } = await serving().discovery.kindFor(asked)
    expect(`${group}/${version} ${plural}`).toBe(found)
  })

  it.each([
    [{ resource: 'deployments' }, 'apps/v1 Deployment'],
    [{ resource: 'Deployment' }, 'apps/v1 Deployment'],
    [{ resource: 'deploy' }, 'apps/v1 Deployment'],
    [{ resource: 'ev', group: 'events.k8s.io' }, 'events.k8s.io/v1 Event'],
    [{ resource: 'hpa', version: 'v1' }, 'autoscaling/v1 HorizontalPodAutoscaler'],
    // A plural goes before a short name, whosever it is.
    [{ resource: 'pods' }, '/v1 Pod'],
    [{ resource: 'po' }, 'z.example/v1 Odd'],
    [{ resource: 'po', group: '' }, '/v1 Pod'],
  ])('is found by %j', async (asked, found) => {
    const { group, version, kind } = await serving().discovery.kindForResource(asked)
    expect(`${group}/${version} ${kind}`).toBe(found)
  })

  it('is found for an object', async () => {
    const { discovery } = serving()
    expect(await discovery.kindOfObject({ apiVersion: 'apps/v1', kind: 'Deployment' })).toMatchObject(Deployment)
    expect(await discovery.kindOfObject({ apiVersion: 'v1', kind: 'Pod' })).toMatchObject(Pod)
    await expect(discovery.kindOfObject({ apiVersion: 'v1', kind: 'Deployment' })).rejects.toBeInstanceOf(NotFound)
  })

  it.each([
    {},
    { kind: 'Pod' },
    { apiVersion: 'v1' },
    { apiVersion: 'a/b/c', kind: 'Pod' },
    { apiVersion: '/v1', kind: 'Pod' },
  ])('is not guessed for %j', async object => {
    await expect(serving().discovery.kindOfObject(object)).rejects.toMatchObject({ code: 'Misuse' })
  })

  it('that is not there is named, with the nearest', async () => {
    const { discovery } = serving()
    const missing = discovery.kindFor({ kind: 'Deploymnet' })
    await expect(missing).rejects.toBeInstanceOf(NotFound)
    await expect(missing).rejects.toThrow('the server has no kind "Deploymnet"; nearest: Deployment (apps/v1)')
    await expect(discovery.kindFor({ kind: 'Event', group: 'event.k8s.io', version: 'v1' })).rejects.toThrow(
      'the server has no kind "Event" in event.k8s.io/v1; nearest: Event (v1), Event (events.k8s.io/v1)',
    )
    await expect(discovery.kindForResource({ resource: 'deploymets', group: '' })).rejects.toThrow(
      'the server has no resource "deploymets" in the core group; nearest: deployments.apps',
    )
    await expect(discovery.kindFor({ kind: 'Qwertyuiop' })).rejects.toThrow(/"Qwertyuiop"$/)
  })

  it('that is not known is looked for anew, but not again and again', async () => {
    const server = serving({ retryAfter: 5000 })
    const { discovery, asked, clock } = server
    const widget = defineKind({ group: 'w.example', version: 'v1', kind: 'Widget' })
    expect(await discovery.isServed(widget)).toBe(false)
    expect(asked).toHaveLength(2)
    server.groups = [
      ...groups,
      { metadata: { name: 'w.example' }, versions: [{ version: 'v1', resources: [resource('Widget')] }] },
    ]
    expect(await discovery.isServed(widget)).toBe(false)
    expect(asked).toHaveLength(2)
    await clock.advance(5000)
    expect(await Promise.all([discovery.isServed(widget), discovery.kindFor({ kind: 'Widget' })])).toMatchObject([
      true,
      widget,
    ])
    expect(asked).toHaveLength(4)
    expect(await discovery.isServed({ ...widget, version: 'v2' })).toBe(false)
  })

  it('is not called absent when the server cannot be asked', async () => {
    const server = serving({ retryAfter: 0 })
    await server.discovery.groups()
    server.answer = () => undefined
    await expect(server.discovery.kindFor({ kind: 'Widget' })).rejects.toBeInstanceOf(Unavailable)
    expect(await server.discovery.kindFor({ kind: 'Pod' })).toMatchObject(Pod)
  })
})

describe('an API whose own server does not answer', () => {
  const metrics = {
    metadata: { name: 'metrics.k8s.io' },
    versions: [{ version: 'v1', resources: [resource('PodMetrics')] }],
  }
  const stale = {
    metadata: metrics.metadata,
    versions: [{ version: 'v1', freshness: 'Stale', resources: [] as Resource[] }],
  }

  it('leaves the others as they are, and may have what is asked for', async () => {
    const server = serving()
    server.groups = [...groups, stale]
    expect(await server.discovery.kindFor({ kind: 'Deployment' })).toMatchObject(Deployment)
    const asking = server.discovery.kindFor({ kind: 'PodMetrics', group: 'metrics.k8s.io' })
    await expect(asking).rejects.toBeInstanceOf(Unavailable)
    await expect(asking).rejects.toThrow('the server of metrics.k8s.io/v1 does not answer')
    await expect(
      server.discovery.isServed(defineKind({ group: 'metrics.k8s.io', version: 'v1', kind: 'PodMetrics' })),
    ).rejects.toBeInstanceOf(Unavailable)
    await expect(server.discovery.kindFor({ kind: 'PodMetric' })).rejects.toThrow('not answering: metrics.k8s.io/v1')
  })

  it('has what it had', async () => {
    const server = serving()
    server.groups = [...groups, metrics]
    await server.discovery.groups()
    server.groups = [...groups, stale]
    server.discovery.invalidate()
    expect(await server.discovery.kindFor({ kind: 'PodMetrics' })).toMatchObject({ group: 'metrics.k8s.io' })
    expect((await server.discovery.groups()).at(-1)?.versions).toMatchObject([{ version: 'v1', isStale: true }])
  })

  it('is told from one that is gone, the old way too', async () => {
    const server = serving()
    server.answer = path => {
      if (path === '/api') return { kind: 'APIVersions', versions: ['v1'] }
      if (path === '/api/v1') return { resources: [{ name: 'pods', kind: 'Pod', namespaced: true }] }
      const group = { name: 'down.example', versions: [{ version: 'v1' }, { version: 'v1beta1' }] }
      if (path === '/apis') return { kind: 'APIGroupList', groups: [group] }
      return path.endsWith('/v1') ? undefined : null
    }
    expect(await server.discovery.groups()).toMatchObject([
      { name: '', versions: [{ version: 'v1', isStale: false, kinds: [{ kind: 'Pod', singular: 'pod' }] }] },
      { name: 'down.example', versions: [{ version: 'v1', isStale: true, kinds: [] }] },
    ])
  })
})

describe('parsing', () => {
  it('takes what has nothing in it', () => {
    expect(parseAggregated({ kind: 'APIGroupDiscoveryList' })).toEqual([])
    expect(parseAggregated({ kind: 'APIGroupDiscoveryList', items: [{}] })).toEqual([{ name: '', versions: [] }])
    expect(parseLegacy('', 'v1', {})).toEqual([])
  })
})
