/**
 * The client against a real API server: every verb, every subresource, every refusal.
 */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type Access, connect } from '../../controller/kube/access.ts'
import { authenticated } from '../../controller/kube/auth.ts'
import { Client } from '../../controller/kube/client.ts'
import { createConnection } from '../../controller/kube/connection.ts'
import {
  AlreadyExists,
  BadRequest,
  Conflict,
  Expired,
  Forbidden,
  Invalid,
  NotFound,
  TooManyRequests,
  Unauthorized,
} from '../../controller/kube/errors.ts'
import { defineKind, type Kind } from '../../controller/kube/kind.ts'
import {
  ConfigMap,
  CustomResourceDefinition,
  Deployment,
  Namespace,
  Pod,
  PodDisruptionBudget,
  Secret,
  ServiceAccount,
} from '../../controller/kube/kinds.ts'
import { installWidgets, type Widget } from '../fixtures/widget.ts'

const kubeconfig = inject('kubeconfig')
const namespace = 'client-test'

describe.skipIf(!kubeconfig)('the client, with a real API server', () => {
  let access: Access
  let client: Client
  let widgets: Kind<Widget>
  /** The paths of all requests since the last look. */
  let requests: string[] = []

  beforeAll(async () => {
    access = connect({
      kubeconfig: { file: kubeconfig },
      interceptors: [
        next => request => {
          requests.push(`${request.method} ${request.path}`)
          return next(request)
        },
      ],
    })
    client = access.client
    await client.create(Namespace, { metadata: { name: namespace } })
    widgets = await installWidgets(client, 'client.test.example.com')
  })
  afterAll(() => access.close())

  const map = (name: string, data: Record<string, string> = {}) => ({ metadata: { name, namespace }, data })

  test('creates, reads, replaces and deletes an object', async () => {
    const made = await client.create(ConfigMap, map('life', { a: '1' }))
    expect(made).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap', data: { a: '1' } })
    expect(await client.get(ConfigMap, { name: 'life', namespace })).toEqual(made)
    const changed = await client.update(ConfigMap, { ...made, data: { b: '2' } })
    expect(changed.data).toEqual({ b: '2' })
    await client.delete(ConfigMap, { name: 'life', namespace })
    expect(await client.find(ConfigMap, { name: 'life', namespace })).toBeUndefined()
    await expect(client.get(ConfigMap, { name: 'life', namespace })).rejects.toThrow(NotFound)
    await expect(client.delete(ConfigMap, { name: 'life', namespace })).rejects.toThrow(NotFound)
  })

  test('refuses to replace what changed since it was read', async () => {
    const first = await client.create(ConfigMap, map('race', { n: '0' }))
    await client.update(ConfigMap, { ...first, data: { n: '1' } })
    await expect(client.update(ConfigMap, { ...first, data: { n: '2' } })).rejects.toThrow(Conflict)
    await expect(client.create(ConfigMap, map('race'))).rejects.toThrow(AlreadyExists)
  })

  test('patches by merge, by JSON operations and strategically', async () => {
    await client.create(ConfigMap, map('patched', { keep: 'k', drop: 'd' }))
    const ref = { name: 'patched', namespace }
    expect((await client.patch(ConfigMap, ref, { merge: { data: { drop: null, add: 'a' } } })).data).toEqual({
      keep: 'k',
      add: 'a',
    })
    const operations = [
      { op: 'test', path: '/data/keep', value: 'k' },
      { op: 'replace', path: '/data/keep', value: 'l' },
    ] as const
    expect((await client.patch(ConfigMap, ref, { json: operations })).data).toEqual({ keep: 'l', add: 'a' })
    await expect(client.patch(ConfigMap, ref, { json: operations })).rejects.toThrow(Invalid)
    const finalizers = await client.patch(ConfigMap, ref, { strategic: { metadata: { labels: { x: 'y' } } } })
    expect(finalizers.metadata.labels).toEqual({ x: 'y' })
  })

  test('applies: fields given before and not now go, and others keep theirs', async () => {
    const ref = { name: 'applied', namespace }
    await client.apply(ConfigMap, { metadata: ref, data: { ours: '1', gone: '2' } })
    await client.patch(ConfigMap, ref, { merge: { data: { theirs: '3' } } }, { fieldManager: 'somebody' })
    expect((await client.apply(ConfigMap, { metadata: ref, data: { ours: '1' } })).data).toEqual({
      ours: '1',
      theirs: '3',
    })
    const wish = { metadata: ref, data: { theirs: '4' } }
    await expect(client.apply(ConfigMap, wish, { force: false })).rejects.toThrow(Conflict)
    expect((await client.apply(ConfigMap, wish)).data).toEqual({ theirs: '4' })
  })

  test('does everything but write in a dry run', async () => {
    await client.create(ConfigMap, map('dry'), { dryRun: true })
    expect(await client.find(ConfigMap, { name: 'dry', namespace })).toBeUndefined()
  })

  test('keeps fields that nobody here knows', async () => {
    const Free = defineKind<{ anything?: unknown }>({
      group: 'client.test.example.com',
      version: 'v1',
      kind: 'Free',
      plural: 'frees',
    })
    const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
    await client.create(CustomResourceDefinition, {
      metadata: { name: 'frees.client.test.example.com' },
      spec: {
        ...{ group: 'client.test.example.com', scope: 'Namespaced', names: { kind: 'Free', plural: 'frees' } },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
      },
    })
    const anything = {
      _continue: 1,
      from: [null, { deep: 'ä😀' }],
      date: '2026-01-01T00:00:00.000000Z',
      big: 9007199254740991,
    }
    const made = await served(() => client.create(Free, { metadata: { name: 'free', namespace }, anything }))
    expect(made.anything).toEqual(anything)
    expect((await client.list(Free, { namespace }))[0]).toEqual(made)
  })

  test('lists page by page, all from one moment, and selects by labels and fields', async () => {
    for (let i = 0; i < 7; i++) {
      await client.create(Secret, {
        metadata: { name: `page-${i}`, namespace, labels: { page: 'yes', odd: String(i % 2) } },
      })
    }
    requests = []
    const pages: string[][] = []
    for await (const page of client.pages(Secret, { namespace, labels: { page: 'yes' }, pageSize: 3 })) {
      pages.push(page.items.map(item => item.metadata.name))
      await client.delete(Secret, { name: `page-${7 - pages.length}`, namespace })
    }
    expect(pages.map(page => page.length)).toEqual([3, 3, 1])
    expect(requests.filter(request => request.includes('continue='))).toHaveLength(2)
    expect(await client.list(Secret, { namespace, labels: 'odd=1,page' })).toHaveLength(2)
    expect(await client.list(Secret, { namespace, fields: { 'metadata.name': 'page-0' } })).toHaveLength(1)
    expect((await client.list(Secret, { namespace, labels: { page: 'yes' } }))[0]).toMatchObject({
      apiVersion: 'v1',
      kind: 'Secret',
    })
    await client.deleteCollection(Secret, { namespace, labels: { page: 'yes' } })
    expect(await client.list(Secret, { namespace, labels: { page: 'yes' } })).toEqual([])
  })

  test('watches from a version on, and says when that is too old', async () => {
    const { resourceVersion } = await client.page(ConfigMap, { namespace })
    await client.create(ConfigMap, map('watched', { v: '1' }))
    await client.patch(ConfigMap, { name: 'watched', namespace }, { merge: { data: { v: '2' } } })
    await client.delete(ConfigMap, { name: 'watched', namespace })
    const seen: string[] = []
    for await (const event of client.watch(ConfigMap, {
      namespace,
      resourceVersion,
      fields: 'metadata.name=watched',
    })) {
      if (event.type === 'BOOKMARK') continue
      seen.push(`${event.type} ${event.object.data?.['v']}`)
      if (event.type === 'DELETED') break
    }
    expect(seen).toEqual(['ADDED 1', 'MODIFIED 2', 'DELETED 2'])
    const old = (async () => {
      // The server's memory of this kind begins with its CRD.
      for await (const _ of client.watch(widgets, { resourceVersion: '1' }));
    })()
    await expect(old).rejects.toThrow(Expired)
    await expect(client.page(ConfigMap, { continue: 'bm9uc2Vuc2U', pageSize: 1 })).rejects.toThrow(BadRequest)
  })

  test('streams what exists, then marks the end of it', async () => {
    await client.create(ConfigMap, map('stream-1'))
    const kinds: string[] = []
    for await (const event of client.watch(ConfigMap, {
      namespace,
      sendInitialEvents: true,
      fields: 'metadata.name=stream-1',
    })) {
      kinds.push(event.type)
      if (event.type === 'BOOKMARK' && event.initialEventsEnd) break
    }
    expect(kinds).toEqual(['ADDED', 'BOOKMARK'])
  })

  test('writes the status apart from the spec', async () => {
    const made = await client.create(widgets, {
      metadata: { name: 'w', namespace },
      spec: { value: '1' },
      status: { observedValue: 'no' },
    })
    expect(made.status).toBeUndefined()
    const merge = { spec: { value: 'no' }, status: { observedValue: '1' } }
    const written = await client.patch(widgets, { name: 'w', namespace }, { merge }, { subresource: 'status' })
    expect(written).toMatchObject({ spec: { value: '1' }, status: { observedValue: '1' } })
  })

  test('reads and sets the scale of anything that has one', async () => {
    const labels = { app: 'scaled' }
    const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } }
    await client.create(Deployment, {
      metadata: { name: 'scaled', namespace },
      spec: { replicas: 1, selector: { matchLabels: labels }, template },
    })
    const ref = { name: 'scaled', namespace }
    expect(await client.scale(Deployment, ref)).toEqual({ replicas: 1, observed: 0, selector: 'app=scaled' })
    expect((await client.setScale(Deployment, ref, 3)).replicas).toBe(3)
    expect((await client.get(Deployment, ref)).spec?.replicas).toBe(3)
  })

  test('deletes only the very object that was meant', async () => {
    const made = await client.create(ConfigMap, map('meant'))
    const ref = { name: 'meant', namespace }
    await expect(client.delete(ConfigMap, ref, { preconditions: { uid: 'another' } })).rejects.toThrow(Conflict)
    await expect(client.delete(ConfigMap, ref, { preconditions: { resourceVersion: '1' } })).rejects.toThrow(Conflict)
    await client.delete(ConfigMap, ref, { preconditions: { uid: made.metadata.uid } })
  })

  test('passes on what is to become of dependents', async () => {
    await client.create(ConfigMap, map('foreground'))
    const left = await client.delete(ConfigMap, { name: 'foreground', namespace }, { propagation: 'Foreground' })
    expect(left?.metadata.deletionTimestamp).toBeDefined()
    expect(left?.metadata.finalizers).toEqual(['foregroundDeletion'])
    await client.patch(ConfigMap, { name: 'foreground', namespace }, { merge: { metadata: { finalizers: null } } })
  })

  test('evicts a pod as far as budgets allow, and takes a no for an answer', async () => {
    // No controller runs here: a pod that was never scheduled goes at once, one that is Running is counted.
    await client.create(ServiceAccount, { metadata: { name: 'default', namespace } }).catch(() => undefined)
    const labels = { evict: 'me' }
    const spec = { containers: [{ name: 'c', image: 'i' }], nodeName: 'nowhere' }
    await client.create(Pod, { metadata: { name: 'evicted', namespace, labels }, spec })
    const running = { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } }
    await client.patch(Pod, { name: 'evicted', namespace }, { merge: running }, { subresource: 'status' })
    await client.create(PodDisruptionBudget, {
      metadata: { name: 'none', namespace },
      spec: { minAvailable: 1, selector: { matchLabels: labels } },
    })
    const status = {
      observedGeneration: 1,
      disruptionsAllowed: 0,
      currentHealthy: 1,
      desiredHealthy: 1,
      expectedPods: 1,
    }
    await client.patch(
      PodDisruptionBudget,
      { name: 'none', namespace },
      { merge: { status } },
      { subresource: 'status' },
    )
    requests = []
    await expect(client.evict({ name: 'evicted', namespace })).rejects.toThrow(TooManyRequests)
    expect(requests.filter(request => request.includes('/eviction'))).toHaveLength(1)
    await client.delete(PodDisruptionBudget, { name: 'none', namespace })
    await client.evict({ name: 'evicted', namespace }, { gracePeriodSeconds: 0 })
    expect(await client.find(Pod, { name: 'evicted', namespace })).toBeUndefined()
  })

  test('names the fields that are wrong', async () => {
    const wrong = client.create(Deployment, {
      metadata: { name: 'Not_A_Name', namespace },
      spec: {
        replicas: -1,
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: { containers: [] } },
      },
    })
    const error = await wrong.catch((error: unknown) => error)
    expect(error).toBeInstanceOf(Invalid)
    expect((error as Invalid).causes.map(cause => cause.field)).toEqual(
      expect.arrayContaining(['metadata.name', 'spec.replicas', 'spec.template.spec.containers']),
    )
  })

  test('refuses unknown fields where it is asked to', async () => {
    const typo = { metadata: { name: 'typo', namespace }, spec: { value: '1', valeu: '2' } }
    await expect(client.create(widgets, typo, { fieldValidation: 'Strict' })).rejects.toThrow(
      /unknown field "spec.valeu"/,
    )
    expect((await client.create(widgets, typo)).spec).toEqual({ value: '1' })
  })

  test('gives tokens of service accounts, and names the rule that they lack', async () => {
    await client.create(ServiceAccount, { metadata: { name: 'poor', namespace } })
    const { token, expirationTimestamp } = await client.token({ name: 'poor', namespace }, { expirationSeconds: 600 })
    expect(Date.parse(expirationTimestamp)).toBeGreaterThan(Date.now())
    const { server, tls } = await access.credentials.current()
    const connection = createConnection()
    const as = (authorization: string) => {
      const credentials = { server, tls: { ca: tls.ca }, headers: { authorization }, namespace }
      const source = {
        current: async () => credentials,
        refused: () => undefined,
        kubeConfig: access.credentials.kubeConfig,
      }
      return new Client(authenticated(connection, source))
    }
    const error = await as(`Bearer ${token}`)
      .list(widgets, { namespace })
      .catch((error: unknown) => error)
    expect(error).toBeInstanceOf(Forbidden)
    expect((error as Forbidden).rule).toEqual({
      apiGroups: ['client.test.example.com'],
      resources: ['widgets'],
      verbs: ['list'],
    })
    expect((error as Forbidden).message).toContain(
      '{apiGroups: ["client.test.example.com"], resources: ["widgets"], verbs: ["list"]}',
    )
    expect((error as Forbidden).message).toContain(`system:serviceaccount:${namespace}:poor`)
    await expect(as('Bearer nonsense').list(widgets, { namespace })).rejects.toThrow(Unauthorized)
    await connection.close()
  })

  test('makes a name up where it is asked to', async () => {
    const made = await client.create(ConfigMap, { metadata: { generateName: 'made-', namespace } })
    expect(made.metadata.name).toMatch(/^made-.{5}$/)
  })

  test('refuses names that would lead elsewhere, before anything is sent', async () => {
    requests = []
    for (const name of ['', '..', 'a/b'])
      await expect(client.delete(ConfigMap, { name, namespace })).rejects.toThrow(/is no name/)
    expect(requests).toEqual([])
  })
})

/** A new CRD is served a moment after it was made. */
async function served<R>(call: () => Promise<R>): Promise<R> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof NotFound)) throw error
      await new Promise(resolve => setTimeout(resolve, 50))
    }
  }
}
