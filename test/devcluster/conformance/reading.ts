/** Lists, watches, and the forms that objects are read in. */
import { expect } from 'vitest'
import { type Case, configMap, pod, type World } from './case.ts'
import type { WatchEvent } from './servers.ts'

async function make({ ask, core }: World, ...names: string[]) {
  const made = []
  for (const name of names)
    made.push((await ask(`POST ${core}/configmaps`, configMap(name, { labels: { name } }))).body)
  return made
}

async function take({ server }: World, path: string, count: number): Promise<WatchEvent[]> {
  const events: WatchEvent[] = []
  for await (const event of server.watch(path)) {
    events.push(event)
    if (events.length === count) break
  }
  return events
}

const nameOf = ({ metadata }: { metadata: { name: string } }) => metadata.name
const table = { accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' }

export const reading: readonly Case[] = [
  {
    name: 'pages of a list are of one moment, whatever is written in between',
    async run(world) {
      const { ask, core } = world
      await make(world, 'a', 'b', 'c')
      const first = await ask(`GET ${core}/configmaps?limit=2`)
      expect(first.body.items.map(nameOf)).toEqual(['a', 'b'])
      expect(first.body.metadata.remainingItemCount).toBe(1)
      await make(world, 'bb', 'd')
      await ask(`DELETE ${core}/configmaps/c`)
      const rest = await ask(`GET ${core}/configmaps?limit=2&continue=${first.body.metadata.continue}`)
      expect(rest.body.items.map(nameOf)).toEqual(['c'])
      expect(rest.body.metadata.resourceVersion).toBe(first.body.metadata.resourceVersion)
      expect(rest.body.metadata.continue ?? '').toBe('')
      const wrong = await ask(`GET ${core}/configmaps?limit=2&continue=wrong`)
      expect([wrong.status, wrong.body.reason]).toEqual([400, 'BadRequest'])
    },
  },
  {
    name: 'labels and fields select; a field that cannot is refused',
    async run(world) {
      const { ask, core } = world
      await make(world, 'a', 'b', 'c')
      const select = async (query: string) => (await ask(`GET ${core}/configmaps?${query}`)).body
      expect((await select('labelSelector=name%20in%20(a,b)')).items.map(nameOf)).toEqual(['a', 'b'])
      expect((await select('labelSelector=name!%3Da')).items.map(nameOf)).toEqual(['b', 'c'])
      expect((await select('fieldSelector=metadata.name%3Dc')).items.map(nameOf)).toEqual(['c'])
      expect((await select('fieldSelector=data.a%3D1')).message).toBe(
        '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"',
      )
      await ask(`POST ${core}/serviceaccounts`, { metadata: { name: 'default' } })
      await ask(`POST ${core}/pods`, pod('p'))
      expect(
        (await ask(`GET ${core}/pods?fieldSelector=status.phase%3DPending,spec.nodeName%3D`)).body.items.map(nameOf),
      ).toEqual(['p'])
      expect((await ask(`GET ${core}/pods?fieldSelector=spec.x%3Da`)).body.message).toBe(
        'field label not supported: spec.x',
      )
    },
  },
  {
    name: 'a watch from a version tells each later change once, in order',
    async run(world) {
      const { ask, core } = world
      const [first] = await make(world, 'a')
      await ask(`PUT ${core}/configmaps/a`, { ...first, data: { a: '2' } })
      await make(world, 'b')
      await ask(`DELETE ${core}/configmaps/a`)
      const events = await take(
        world,
        `${core}/configmaps?watch=true&resourceVersion=${first.metadata.resourceVersion}`,
        3,
      )
      expect(events.map(({ type, object }) => `${type} ${nameOf(object)}`)).toEqual([
        'MODIFIED a',
        'ADDED b',
        'DELETED a',
      ])
      const versions = events.map(({ object }) => Number(object.metadata.resourceVersion))
      expect(versions).toEqual([...versions].sort((a, b) => a - b))
    },
  },
  {
    name: 'what leaves a selector is deleted to whoever watches it',
    async run(world) {
      const { ask, core } = world
      const [first] = await make(world, 'a')
      const { metadata } = first
      await ask(`PUT ${core}/configmaps/a`, { ...first, metadata: { ...metadata, labels: { name: 'other' } } })
      const [event] = await take(
        world,
        `${core}/configmaps?watch=true&labelSelector=name%3Da&resourceVersion=${metadata.resourceVersion}`,
        1,
      )
      expect([event?.type, event?.object.metadata.name]).toEqual(['DELETED', 'a'])
    },
  },
  {
    name: 'a watch can begin with what there is, and says where that ends',
    async run(world) {
      const { core } = world
      await make(world, 'a', 'b')
      const path = `${core}/configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`
      const events = await take(world, path, 3)
      expect(events.map(({ type }) => type)).toEqual(['ADDED', 'ADDED', 'BOOKMARK'])
      expect(events[2]?.object.metadata.annotations).toEqual({ 'k8s.io/initial-events-end': 'true' })
    },
  },
  {
    name: 'a version that nobody has written yet cannot be watched or read',
    async run({ ask, core }) {
      const ahead = await ask(`GET ${core}/configmaps?resourceVersion=999999999&resourceVersionMatch=NotOlderThan`)
      expect([ahead.status, ahead.body.reason]).toEqual([504, 'Timeout'])
      const word = await ask(`GET ${core}/configmaps?resourceVersion=x`)
      expect(word.status).toBe(400)
    },
  },
  {
    name: 'a table has the columns of its kind',
    async run(world) {
      const { ask, core } = world
      await make(world, 'a')
      const { body } = await ask(`GET ${core}/configmaps`, undefined, table)
      expect(body).toMatchObject({ kind: 'Table', apiVersion: 'meta.k8s.io/v1' })
      expect(body.columnDefinitions.map(({ name }: { name: string }) => name)).toEqual(['Name', 'Data', 'Age'])
      expect(body.rows[0].cells.slice(0, 2)).toEqual(['a', 1])
      expect(body.rows[0].object).toMatchObject({ kind: 'PartialObjectMetadata', metadata: { name: 'a' } })
    },
  },
  {
    name: 'metadata can be had alone',
    async run(world) {
      const { ask, core } = world
      await make(world, 'a')
      const one = await ask(`GET ${core}/configmaps/a`, undefined, {
        accept: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
      })
      expect(one.body).toMatchObject({
        kind: 'PartialObjectMetadata',
        apiVersion: 'meta.k8s.io/v1',
        metadata: { name: 'a' },
      })
      expect(one.body.data).toBeUndefined()
      const wrong = await ask(`GET ${core}/configmaps`, undefined, { accept: 'image/png' })
      expect(wrong.status).toBe(406)
    },
  },
  {
    name: 'an event is the same under both groups',
    async run({ ask, core, namespace }) {
      const event = {
        metadata: { name: 'e' },
        involvedObject: { kind: 'Pod', name: 'p', namespace },
        reason: 'R',
        message: 'm',
        type: 'Normal',
      }
      expect((await ask(`POST ${core}/events`, event)).status).toBe(201)
      const { body } = await ask(`GET /apis/events.k8s.io/v1/namespaces/${namespace}/events/e`)
      expect(body).toMatchObject({
        apiVersion: 'events.k8s.io/v1',
        regarding: { kind: 'Pod', name: 'p' },
        note: 'm',
        reason: 'R',
        type: 'Normal',
      })
    },
  },
  {
    name: 'discovery tells of the same resources, aggregated and not; OpenAPI describes them',
    async run({ ask }) {
      const old = await ask('GET /apis/apps/v1')
      const names = old.body.resources.map(({ name }: { name: string }) => name)
      expect(names).toEqual(
        expect.arrayContaining(['deployments', 'deployments/scale', 'deployments/status', 'statefulsets']),
      )
      const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
      const { body } = await ask('GET /apis', undefined, { accept })
      const apps = body.items.find((one: { metadata: { name: string } }) => one.metadata.name === 'apps')
      const deployments = apps.versions[0].resources.find(
        ({ resource }: { resource: string }) => resource === 'deployments',
      )
      expect(deployments).toMatchObject({
        scope: 'Namespaced',
        singularResource: 'deployment',
        shortNames: ['deploy'],
        categories: ['all'],
        responseKind: { kind: 'Deployment' },
      })
      const openapi = await ask('GET /openapi/v3')
      const document = await ask(`GET ${openapi.body.paths['apis/apps/v1'].serverRelativeURL}`)
      expect(document.body.components.schemas['io.k8s.api.apps.v1.Deployment'].properties.spec).toBeDefined()
      expect(document.body.paths['/apis/apps/v1/namespaces/{namespace}/deployments'].post).toBeDefined()
    },
  },
]
