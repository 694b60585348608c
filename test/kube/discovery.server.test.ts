import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { authenticated } from '../../controller/kube/auth.ts'
import { Client } from '../../controller/kube/client.ts'
import { type Connection, createConnection } from '../../controller/kube/connection.ts'
import { createDiscovery } from '../../controller/kube/discovery.ts'
import { NotFound, Unavailable } from '../../controller/kube/errors.ts'
import { defineKind, kindKey } from '../../controller/kube/kind.ts'
import * as kinds from '../../controller/kube/kinds.ts'
import { credentialsFrom } from '../../controller/kube/kubeconfig.ts'
import { retry } from '../../controller/kube/retry.ts'
import { type Interceptor, intercept } from '../../controller/kube/transport.ts'
import { isEmbedded, notEmbedded } from '../fixtures/apiserver.ts'

const kubeconfig = inject('kubeconfig')
const APIService = defineKind({ group: 'apiregistration.k8s.io', version: 'v1', kind: 'APIService', namespaced: false })
const { CustomResourceDefinition } = kinds

/** What asks the old way, as older servers must be. */
const oldWay: Interceptor = next => request =>
  next({ ...request, headers: { ...request.headers, accept: 'application/json' } })

describe.skipIf(!kubeconfig)('discovery of a real API server', () => {
  const group = `d${randomUUID().slice(0, 8)}.example`
  let connection: Connection
  let client: Client
  let old: Client

  /** Waits for what the server makes known a moment later. */
  async function until(isSo: () => Promise<boolean>): Promise<void> {
    while (!(await isSo())) await new Promise(resolve => setTimeout(resolve, 100))
  }

  beforeAll(async () => {
    connection = createConnection()
    const send = authenticated(connection, credentialsFrom({ file: kubeconfig }))
    client = new Client(intercept(send, retry()))
    old = new Client(intercept(send, retry(), oldWay))
  })
  afterAll(() => connection?.close())

  it('knows the version', async () => {
    expect((await createDiscovery(client).version()).gitVersion).toMatch(/^v1\.\d+\.\d+/)
  })

  it('has every kind of ours that it serves as we have it', async () => {
    const discovery = createDiscovery(client)
    for (const kind of Object.values(kinds)) {
      const { group, version, plural, namespaced } = kind
      const found = await discovery.kindOfObject({
        apiVersion: group === '' ? version : `${group}/${version}`,
        kind: kind.kind,
      })
      expect(found).toMatchObject({ group, version, plural, namespaced })
      expect(await discovery.isServed(kind)).toBe(true)
    }
  })

  it('knows verbs, short names and subresources', async () => {
    const pod = await createDiscovery(client).kindForResource({ resource: 'po' })
    expect(pod).toMatchObject({ kind: 'Pod', singular: 'pod', verbs: expect.arrayContaining(['get', 'list', 'watch']) })
    expect(pod.subresources.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['exec', 'log', 'portforward', 'status']),
    )
  })

  it('says the same the old way', async () => {
    const [ways, before] = await Promise.all([createDiscovery(client).resources(), createDiscovery(old).resources()])
    const sorted = (all: typeof ways) =>
      all
        .map(kind => ({ ...kind, subresources: kind.subresources.toSorted((a, b) => a.name.localeCompare(b.name)) }))
        .toSorted((a, b) => kindKey(a).localeCompare(kindKey(b)))
    expect(sorted(before)).toEqual(sorted(ways))
  })

  it('prefers the version that the server prefers, and sees kinds come and go', async () => {
    const discovery = createDiscovery(client, { retryAfter: 0 })
    const Sail = defineKind({ group, version: 'v1', kind: 'Sail' })
    expect(await discovery.isServed(Sail)).toBe(false)
    await expect(discovery.kindFor({ kind: 'Sail', group })).rejects.toBeInstanceOf(NotFound)

    const version = (name: string) => ({
      ...{ name, served: true, storage: name === 'v1', subresources: { status: {} } },
      schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
    })
    await client.create(CustomResourceDefinition, {
      metadata: { name: `sails.${group}` },
      spec: {
        ...{ group, scope: 'Cluster', versions: [version('v1beta1'), version('v1'), version('v2alpha1')] },
        names: { plural: 'sails', singular: 'sail', kind: 'Sail', shortNames: ['sl'] },
      },
    })
    await until(() => discovery.isServed(Sail))
    for (const asked of ['sails', 'sail', 'sl']) {
      expect(await discovery.kindForResource({ resource: asked, group })).toMatchObject({
        kind: 'Sail',
        version: 'v1',
        namespaced: false,
      })
    }
    expect(await discovery.kindFor({ kind: 'Sail', version: 'v2alpha1' })).toMatchObject({
      plural: 'sails',
      version: 'v2alpha1',
    })
    expect((await discovery.groups()).find(({ name }) => name === group)?.versions.map(one => one.version)).toEqual([
      'v1',
      'v1beta1',
      'v2alpha1',
    ])
    await expect(discovery.kindFor({ kind: 'Sial', group })).rejects.toThrow(`nearest: Sail (${group}/v1)`)

    await client.delete(CustomResourceDefinition, { name: `sails.${group}` })
    await until(async () => {
      discovery.invalidate()
      return !(await discovery.isServed(Sail))
    })
  })

  it.skipIf(isEmbedded).each([
    ['aggregated', () => client],
    ['old', () => old],
  ])(`has all the rest when one API does not answer (%s)${notEmbedded('it has no APIServices')}`, async (_way, ask) => {
    const down = `down.${group}`
    const name = `v1.${down}`
    const service = { name: 'nobody', namespace: 'default', port: 443 }
    const spec = {
      group: down,
      version: 'v1',
      service,
      insecureSkipTLSVerify: true,
      groupPriorityMinimum: 100,
      versionPriority: 10,
    }
    await client.apply(APIService, { metadata: { name }, spec } as object as Parameters<typeof client.apply<object>>[1])
    try {
      const discovery = createDiscovery(ask())
      const isStale = async () =>
        (await discovery.groups()).find(one => one.name === down)?.versions.some(one => one.isStale) ?? false
      await until(async () => {
        discovery.invalidate()
        return isStale()
      })
      expect(await discovery.kindFor({ kind: 'Deployment' })).toMatchObject({ group: 'apps', version: 'v1' })
      await expect(discovery.kindFor({ kind: 'Anything', group: down })).rejects.toBeInstanceOf(Unavailable)
      await expect(discovery.kindFor({ kind: 'Anything' })).rejects.toBeInstanceOf(NotFound)
    } finally {
      await client.delete(APIService, { name })
    }
  })
})
