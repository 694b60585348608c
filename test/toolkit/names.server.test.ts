/**
 * Under which names children are applied on a real API server: that of the operator, whoever else is in the process; and what becomes of fields and children that were
 * made under a former one.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, it, vi } from 'vitest'
import { type Access, connect } from '../../controller/kube/access.ts'
import { defineKind, type Kind } from '../../controller/kube/kind.ts'
import { ConfigMap, CustomResourceDefinition, Deployment, Namespace } from '../../controller/kube/kinds.ts'
import type { Manager } from '../../controller/runtime/manager.ts'
import {
  type AnyResource,
  advancedReconciler,
  managerFor,
  mutable,
  type Reconciler,
  type ReconcilerOptions,
} from '../../controller/toolkit/index.ts'
import { installWidgets, type Widget } from '../fixtures/widget.ts'

const file = inject('kubeconfig')
const patience = { timeout: 20_000, interval: 50 }

let access: Access
let widgets: Kind<Widget>
let others: Kind<Widget>
let namespace: string
let running: { manager: Manager; started: Promise<void> } | undefined
let requests: string[]

beforeAll(async () => {
  access = connect({ kubeconfig: { file } })
  widgets = await installWidgets(access.client, 'names.test.example.com', { preserve: true })
  others = await installWidgets(access.client, 'others.test.example.com', { preserve: true })
})
afterAll(() => access.close())
beforeEach(async () => {
  namespace = (await access.client.create(Namespace, { metadata: { generateName: 'names-' } })).metadata.name
  requests = []
})
afterEach(stop)

async function stop(): Promise<void> {
  await running?.manager.stop()
  await running?.started
  running = undefined
}

function run(...operators: Reconciler<Widget>[]): void {
  const manager = managerFor(operators, {
    ...{ kubeconfig: { file }, namespaces: [namespace], signals: false, log: { level: 'silent' }, election: false },
    ...{ health: undefined, metrics: undefined },
    interceptors: [
      next => request => {
        const { verb, resource } = request.target
        if (resource === 'configmaps' || resource === 'deployments')
          if (!request.stream) requests.push(`${verb} ${resource}`)
        return next(request)
      },
    ],
  })
  running = { manager, started: manager.start() }
}

const operator = (
  name: string,
  resources: AnyResource<Widget>[],
  { of = widgets, ...more }: ReconcilerOptions<Widget> & { of?: Kind<Widget> } = {},
) => advancedReconciler(of, { name, resources, ...more })

const settings = (data: Record<string, string>, name?: string, of = widgets) =>
  mutable(ConfigMap, of, { name, mutateWithInitialData: () => ({ data }) })
const map = (name = 'a') => access.client.get(ConfigMap, { name, namespace })
const wish = (kind = widgets) =>
  access.client.create(kind, { metadata: { name: 'a', namespace }, spec: { value: 'x' } })
const appliers = async (name?: string) =>
  ((await map(name)).metadata.managedFields ?? []).filter(one => one.operation === 'Apply').map(one => one.manager)
/** Until it has been looked at. */
const walked = () =>
  vi.waitFor(async () => {
    const text = await running?.manager.metrics.registry.metrics()
    expect(text).toMatch(/^shipmate_paths_total\{.*SuccessManager.*\} [1-9]/m)
  }, patience)
/** What is asked about children for a change that concerns nothing. */
async function asked(): Promise<string[]> {
  const before = await counted()
  requests = []
  await access.client.patch(
    widgets,
    { name: 'a', namespace },
    { merge: { metadata: { annotations: { look: String(before) } } } },
  )
  await vi.waitFor(async () => expect(await counted()).toBeGreaterThan(before), patience)
  return requests
}
async function counted(): Promise<number> {
  const text = (await running?.manager.metrics.registry.metrics()) ?? ''
  return [...text.matchAll(/^shipmate_paths_total\{.*\} (\d+)$/gm)].reduce((sum, [, count]) => sum + Number(count), 0)
}

it.each([
  ['first', ['widgets', 'others']],
  ['last', ['others', 'widgets']],
])('an operator that is the %s in its process applies under its own name', async (_, order) => {
  const both: Record<string, Reconciler<Widget>> = {
    widgets: operator('widgets', [settings({ a: 'x' }, 'ours')]),
    others: operator('others', [settings({ a: 'x' }, 'theirs', others)], { of: others }),
  }
  run(...order.map(name => both[name] as Reconciler<Widget>))
  await Promise.all([wish(), wish(others)])
  await vi.waitFor(
    async () => expect([await appliers('ours'), await appliers('theirs')]).toEqual([['widgets'], ['others']]),
    patience,
  )
})

it('a renamed operator takes over what it applied under its former name: what is no longer wished goes, and then nothing is asked', async () => {
  run(operator('old', [settings({ kept: 'x', gone: 'x' }), settings({}, 'unwished')]))
  await wish()
  await vi.waitFor(async () => expect(await appliers('unwished')).toEqual(['old']), patience)
  await walked()
  await stop()
  await access.client.patch(ConfigMap, { name: 'a', namespace }, { merge: { data: { theirs: 'y' } } })
  requests = []
  run(operator('new', [settings({ kept: 'x' })], { formerNames: ['older', 'old'] }))
  await vi.waitFor(async () => expect((await map()).data).toEqual({ kept: 'x', theirs: 'y' }), patience)
  await vi.waitFor(async () => await expect(map('unwished')).rejects.toThrow('not found'), patience)
  expect(await appliers()).toEqual(['new'])
  expect(requests.filter(one => one.startsWith('get'))).toHaveLength(1)
  expect(await asked()).toEqual([])
})

it('an item of a list gives way to another of the same name in one write, as under one name', async () => {
  const labels = { app: 'a' }
  const server = (containerPort: number) =>
    mutable(Deployment, widgets, {
      mutateWithInitialData: () => ({
        spec: {
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: { containers: [{ name: 'web', image: 'x', ports: [{ name: 'http', containerPort }] }] },
          },
        },
      }),
      ready: () => true,
    })
  run(operator('old', [server(80)]))
  await wish()
  const live = () => access.client.get(Deployment, { name: 'a', namespace })
  await vi.waitFor(async () => expect((await live()).metadata.generation).toBe(1), patience)
  await walked()
  await stop()
  run(operator('new', [server(8080)], { formerNames: ['old'] }))
  await vi.waitFor(async () => {
    const { spec, metadata } = await live()
    expect(spec?.template.spec?.containers[0]?.ports?.map(port => port.containerPort)).toEqual([8080])
    expect(metadata.generation).toBe(2)
  }, patience)
})

it('what both names own already, as after a rename that was not said, is united', async () => {
  run(operator('old', [settings({ kept: 'x', gone: 'x' })]))
  await wish()
  await vi.waitFor(async () => expect(await appliers()).toEqual(['old']), patience)
  await walked()
  await stop()
  run(operator('new', [settings({ kept: 'x' })]))
  await vi.waitFor(async () => expect((await appliers()).sort()).toEqual(['new', 'old']), patience)
  expect((await map()).data, 'the former name still wishes it').toEqual({ kept: 'x', gone: 'x' })
  await walked()
  await stop()
  run(operator('new', [settings({ kept: 'x' })], { formerNames: ['old'] }))
  await vi.waitFor(async () => expect((await map()).data).toEqual({ kept: 'x' }), patience)
  expect(await appliers()).toEqual(['new'])
})

it('what was applied under a former name in another version of the API is given up, once what is wished is ours', async () => {
  const group = 'parts.test.example.com'
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as object }
  const version = (name: string) => ({ name, served: true, storage: name === 'v1', schema })
  await access.client.create(CustomResourceDefinition, {
    metadata: { name: `parts.${group}` },
    spec: {
      ...{ group, scope: 'Namespaced', names: { kind: 'Part', plural: 'parts', singular: 'part' } },
      versions: [version('v1'), version('v1beta1')],
    },
  })
  interface Part {
    spec: Record<string, string>
  }
  const [older, newer] = ['v1beta1', 'v1'].map(version => defineKind<Part>({ group, version, kind: 'Part' })) as [
    Kind<Part>,
    Kind<Part>,
  ]
  await vi.waitFor(() => Promise.all([access.client.list(older), access.client.list(newer)]), patience)
  const part = (kind: Kind<Part>, spec: Record<string, string>) =>
    mutable(kind, widgets, { mutateWithInitialData: () => ({ spec }), ready: () => true })
  const live = () => access.client.get(newer, { name: 'a', namespace })
  const names = async () =>
    (await live()).metadata.managedFields?.map(({ manager, apiVersion }) => `${manager} ${apiVersion?.slice(-2)}`)
  run(operator('old', [part(older, { kept: 'x', gone: 'x' })]))
  await wish()
  await vi.waitFor(async () => expect(await names()).toEqual(['old a1']), patience)
  await stop()
  run(operator('new', [part(newer, { kept: 'x' })]))
  await vi.waitFor(async () => expect((await names())?.sort()).toEqual(['new v1', 'old a1']), patience)
  await stop()
  run(operator('new', [part(newer, { kept: 'x' })], { formerNames: ['old'] }))
  await vi.waitFor(async () => expect((await live()).spec).toEqual({ kept: 'x' }), patience)
  expect(await names()).toEqual(['new v1'])
})
