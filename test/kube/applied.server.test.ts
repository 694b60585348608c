/**
 * Whether applying would change anything, against the server that decides it.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { type Access, connect } from '../../controller/kube/access.ts'
import { isApplied } from '../../controller/kube/applied.ts'
import { Invalid } from '../../controller/kube/errors.ts'
import { type Applied, defineKind, type Kind, type Live } from '../../controller/kube/kind.ts'
import {
  ConfigMap,
  CustomResourceDefinition,
  Deployment,
  Namespace,
  Service,
  StatefulSet,
} from '../../controller/kube/kinds.ts'

const kubeconfig = inject('kubeconfig')
const numRuns = Math.ceil(Number(process.env.SHIPMATE_SCHEDULES ?? 100) / 2)
const seed = Number(process.env.SHIPMATE_SEED ?? 1)
const namespace = `applied-${process.pid}`

interface Gadget {
  spec?: object
}
const Gadget = defineKind<Gadget>({ group: 'applied.example.com', version: 'v1', kind: 'Gadget' })
const GadgetBeta = defineKind<Gadget>({ group: 'applied.example.com', version: 'v1beta1', kind: 'Gadget' })

const text = { type: 'string' }
const part = {
  type: 'object',
  required: ['name'],
  properties: { name: text, proto: { ...text, default: 'TCP' }, size: { type: 'integer' }, note: text },
}
const gadgetSpec = {
  type: 'object',
  properties: {
    title: text,
    count: { type: 'integer' },
    enabled: { type: 'boolean' },
    any: { ...text, nullable: true },
    filled: { ...text, default: 'by the server' },
    map: { type: 'object', additionalProperties: text },
    atomicMap: { type: 'object', additionalProperties: text, 'x-kubernetes-map-type': 'atomic' },
    tags: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
    order: { type: 'array', items: text },
    parts: {
      ...{ type: 'array', items: part, 'x-kubernetes-list-type': 'map' },
      'x-kubernetes-list-map-keys': ['name', 'proto'],
    },
    nested: {
      type: 'object',
      properties: {
        inner: { type: 'object', properties: { a: text, b: text } },
        list: {
          ...{ type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] },
          items: {
            type: 'object',
            required: ['name'],
            properties: { name: text, tags: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' } },
          },
        },
      },
    },
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  },
}
const gadgetVersion = (name: string, storage: boolean) => ({
  name,
  served: true,
  storage,
  schema: { openAPIV3Schema: { type: 'object', properties: { spec: gadgetSpec } } },
})

// What is given is given whole, or not at all: the server sees no difference between the two ways to leave something out.
const word = fc.constantFrom('a', 'b', 'c')
const some = <T>(value: fc.Arbitrary<T>) => ({ arbitrary: value })
const optional = <T extends Record<string, { arbitrary: fc.Arbitrary<unknown> }>>(fields: T) =>
  fc.record(Object.fromEntries(Object.entries(fields).map(([name, { arbitrary }]) => [name, arbitrary])), {
    requiredKeys: [],
  }) as fc.Arbitrary<Record<string, unknown>>
const words = fc.uniqueArray(word, { minLength: 1 })
const map = fc.dictionary(word, word, { minKeys: 1 })
const named = <T extends object>(one: fc.Arbitrary<T>, key: (item: T) => string) =>
  fc.uniqueArray(one, { minLength: 1, maxLength: 4, selector: key })

const parts = named(
  fc
    .tuple(
      word,
      optional({ proto: some(fc.constantFrom('TCP', 'UDP')), size: some(fc.nat({ max: 3 })), note: some(word) }),
    )
    .map(([name, rest]) => ({ name, ...rest }) as { name: string; proto?: string }),
  item => `${item.name}/${item.proto ?? 'TCP'}`,
)
const metadata = optional({
  labels: some(map),
  annotations: some(map),
  finalizers: some(fc.uniqueArray(fc.constantFrom('x.example.com/a', 'x.example.com/b'), { minLength: 1 })),
  ownerReferences: some(
    named(
      fc.record({
        apiVersion: fc.constant('v1'),
        kind: fc.constant('ConfigMap'),
        name: word,
        uid: fc.constantFrom('u1', 'u2'),
      }),
      item => item.uid,
    ),
  ),
})

const plainSpec = {
  title: some(word),
  count: some(fc.nat({ max: 3 })),
  enabled: some(fc.boolean()),
  filled: some(word),
  map: some(map),
  atomicMap: some(map),
  tags: some(words),
  order: some(fc.array(word, { minLength: 1, maxLength: 4 })),
  parts: some(parts),
  free: some(
    fc.dictionary(word, fc.oneof(word, fc.nat({ max: 2 }), fc.array(word, { minLength: 1 }), map), { minKeys: 1 }),
  ),
}
const list = named(
  fc.tuple(word, optional({ tags: some(words) })).map(([name, rest]) => ({ name, ...rest })),
  item => item.name,
)
const inner = optional({ a: some(word), b: some(word) }).filter(value => Object.keys(value).length > 0)
const nested = optional({ inner: some(inner), list: some(list) }).filter(value => Object.keys(value).length > 0)
const gadget = fc
  .record({ metadata, spec: optional({ ...plainSpec, nested: some(nested) }) })
  .map(({ metadata, spec }) => ({ metadata, ...(Object.keys(spec).length > 0 ? { spec } : {}) }))

/** The same with what means little: nulls, empty maps and lists. */
const maybe = <T>(value: fc.Arbitrary<T>) =>
  some(fc.oneof({ weight: 15, arbitrary: value as fc.Arbitrary<unknown> }, { weight: 1, arbitrary: fc.constant(null) }))
const oddGadget = fc.record({
  metadata,
  spec: optional({
    ...plainSpec,
    title: maybe(word),
    any: some(fc.oneof(word, fc.constant(null))),
    filled: some(fc.oneof(word, fc.constant(null))),
    map: maybe(fc.dictionary(word, word)),
    atomicMap: maybe(fc.dictionary(word, word)),
    tags: maybe(fc.uniqueArray(word)),
    order: maybe(fc.array(word)),
    parts: maybe(fc.oneof(parts, fc.constant([]))),
    free: some(fc.dictionary(word, fc.oneof(word, fc.constant(null), fc.constant({}), fc.constant([])))),
    nested: some(
      optional({
        inner: maybe(optional({ a: some(word), b: maybe(word) })),
        list: some(fc.oneof(list, fc.constant([]))),
      }),
    ),
  }),
})

const configMap = fc
  .tuple(
    metadata,
    optional({
      data: some(map),
      binaryData: some(fc.dictionary(fc.constantFrom('x', 'y'), fc.constantFrom('AAAA', 'BBBB'), { minKeys: 1 })),
    }),
  )
  .map(([metadata, rest]) => ({ metadata, ...rest }))

const containers = named(
  fc
    .tuple(
      word,
      optional({
        env: some(named(fc.record({ name: fc.constantFrom('A', 'B', 'C'), value: word }), item => item.name)),
        ports: some(
          named(
            fc
              .tuple(fc.constantFrom(53, 80), optional({ protocol: some(fc.constantFrom('TCP', 'UDP')) }))
              .map(
                ([containerPort, rest]) => ({ containerPort, ...rest }) as { containerPort: number; protocol?: string },
              ),
            item => `${item.containerPort}/${item.protocol ?? 'TCP'}`,
          ),
        ),
        args: some(fc.array(word, { minLength: 1, maxLength: 3 })),
        volumeMounts: some(
          named(
            fc.record({ name: fc.constant('scratch'), mountPath: fc.constantFrom('/a', '/b') }),
            item => item.mountPath,
          ),
        ),
      }),
    )
    .map(([name, rest]) => ({ name, image: 'x', ...rest })),
  item => item.name,
)
const app = { app: 'x' }
const pods = fc.tuple(map, containers).map(([labels, containers]) => ({
  metadata: { labels: { ...labels, ...app } },
  spec: { containers, volumes: [{ name: 'scratch', emptyDir: {} }] },
}))
const deployment = fc
  .tuple(metadata, pods, fc.nat({ max: 2 }), fc.nat({ max: 2 }))
  .map(([metadata, template, replicas, maxSurge]) => ({
    metadata,
    spec: {
      replicas,
      selector: { matchLabels: app },
      template,
      strategy: { rollingUpdate: { maxSurge, maxUnavailable: 1 } },
    },
  }))
const statefulSet = fc.tuple(metadata, pods, fc.nat({ max: 2 })).map(([metadata, template, replicas]) => ({
  metadata,
  spec: { replicas, serviceName: 'x', selector: { matchLabels: app }, template },
}))
const service = fc
  .tuple(
    metadata,
    named(
      fc
        .tuple(
          fc.constantFrom(80, 81, 82),
          optional({ protocol: some(fc.constantFrom('TCP', 'UDP')), targetPort: some(fc.constantFrom(8080, 'http')) }),
        )
        .map(
          ([port, rest]) =>
            ({ name: `p${port}${String(rest.protocol ?? 'TCP').toLowerCase()}`, port, ...rest }) as {
              name: string
              port: number
            },
        ),
      item => item.name,
    ),
    map,
  )
  .map(([metadata, ports, selector]) => ({ metadata, spec: { clusterIP: 'None', ports, selector } }))
/** Values that the server writes in its own way. */
const normalised = fc
  .tuple(
    fc.constantFrom('1000m', '1', '0.5', '500m'),
    fc.constantFrom('1Gi', '1024Mi', '1073741824'),
    optional({ paused: some(fc.boolean()) }),
  )
  .map(([cpu, memory, more]) => ({
    metadata: {},
    spec: {
      ...more,
      selector: { matchLabels: app },
      template: {
        metadata: { labels: app },
        spec: { containers: [{ name: 'a', image: 'x', resources: { requests: { cpu, memory } } }] },
      },
    },
  }))

/** What we apply one after the other, and who else has applied what before. */
interface Story {
  others: object | undefined
  first: object
  following: object[]
}
function story(object: fc.Arbitrary<object>): fc.Arbitrary<Story> {
  return fc
    .tuple(
      fc.option(object, { nil: undefined }),
      object,
      fc.array(object, { maxLength: 3 }),
      fc.array(fc.nat(), { maxLength: 5 }),
    )
    .map(([others, first, more, again]) => {
      const all = [first, ...more]
      // Mostly what was applied already, as a whole or but for one thing.
      const repeated = again.map(n =>
        n % 3 === 0 ? without(all[n % all.length] as object, n) : shuffled(all[n % all.length] as object, n),
      )
      return { others, first, following: [first, ...more.flatMap(one => [one, one]), ...repeated] }
    })
}

/** A value without what is empty, and without what is written down about it. */
function substance(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(substance)
  if (typeof value !== 'object') return value
  const parts = Object.entries(value ?? {}).flatMap(([key, below]) => {
    const left = ['resourceVersion', 'generation', 'managedFields'].includes(key) ? undefined : substance(below)
    return left === undefined ? [] : [[key, left]]
  })
  return parts.length === 0 ? undefined : Object.fromEntries(parts)
}

/** `object` without one of its fields, or items, somewhere. */
function without(object: object, n: number): object {
  const copy = structuredClone(object) as Record<string, unknown>
  let at: Record<string, unknown> = copy
  for (let rest = n; ; rest = Math.floor(rest / 2)) {
    const keys = Object.keys(at)
    const key = keys[rest % Math.max(keys.length, 1)]
    if (key === undefined) return copy
    const below = at[key]
    if (rest % 2 === 0 || typeof below !== 'object' || below === null) {
      if (['metadata', 'spec', 'selector', 'template', 'name', 'uid', 'clusterIP'].includes(key)) return copy
      if (Array.isArray(at) && at.length === 1) return copy
      if (Array.isArray(at)) at.splice(Number(key), 1)
      else delete at[key]
      return copy
    }
    at = below as Record<string, unknown>
  }
}

/** `object` with a list in another order, or with fields in another order. */
function shuffled(object: object, n: number): object {
  const turn = (value: unknown): unknown => {
    if (Array.isArray(value)) {
      const items = value.map(turn)
      return n % 2 === 0 ? items : items.reverse()
    }
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([key, below]) => [key, turn(below)]),
    )
  }
  return turn(object) as object
}

describe.skipIf(!kubeconfig)('that nothing would change', () => {
  let access: Access
  let count = 0

  beforeAll(async () => {
    access = connect({ kubeconfig: { file: kubeconfig }, name: 'us' })
    const { client } = access
    await client.create(Namespace, { metadata: { name: namespace } })
    await client.create(CustomResourceDefinition, {
      metadata: { name: 'gadgets.applied.example.com' },
      spec: {
        group: 'applied.example.com',
        scope: 'Namespaced',
        names: { kind: 'Gadget', plural: 'gadgets' },
        versions: [gadgetVersion('v1', true), gadgetVersion('v1beta1', false)],
      } as never,
    })
    for (const kind of [Gadget, GadgetBeta]) {
      await vi.waitFor(() => client.list(kind, { namespace }), { timeout: 30_000 })
    }
  })
  afterAll(async () => {
    await access.client.delete(CustomResourceDefinition, { name: 'gadgets.applied.example.com' })
    await access.close()
  })

  /** Lives a story; how often nothing changed, and how often that was known before. */
  async function live(kind: Kind, { others, first, following }: Story): Promise<{ unchanged: number; known: number }> {
    const { client } = access
    const name = `n${count++}`
    const applied = (object: object): Applied => {
      const { metadata } = object as { metadata?: object }
      return { ...object, metadata: { ...metadata, name, namespace } } as Applied
    }
    if (others) await client.apply(kind, applied(others), { fieldManager: 'others' }).catch(() => undefined)
    const score = { unchanged: 0, known: 0 }
    let live: Live
    try {
      live = await client.apply(kind, applied(first))
    } catch (error) {
      if (error instanceof Invalid) return score
      throw error
    }
    for (const object of following) {
      const wished = applied(object)
      const known = isApplied(wished, live, 'us')
      const result = await client.apply(kind, wished).catch(error => {
        if (error instanceof Invalid) return undefined
        throw error
      })
      if (!result) {
        expect(known, `the server refuses ${JSON.stringify(object)}`).toBe(false)
        continue
      }
      const isUnchanged = result.metadata.resourceVersion === live.metadata.resourceVersion
      if (known && !isUnchanged) {
        // Nothing but that something empty is there, or whose it is.
        const what = `applying ${JSON.stringify(object)} to ${JSON.stringify(live)} changes nothing`
        expect(substance(result), what).toEqual(substance(live))
        expect(substance(object), what).not.toEqual(object)
      }
      if (isUnchanged) score.unchanged++
      if (isUnchanged && known) score.known++
      live = result
    }
    return score
  }

  async function tell(kind: Kind, object: fc.Arbitrary<object>, runs = numRuns) {
    const total = { unchanged: 0, known: 0, missed: [] as string[] }
    await fc.assert(
      fc.asyncProperty(story(object), async one => {
        const { unchanged, known } = await live(kind, one)
        total.unchanged += unchanged
        total.known += known
        if (known < unchanged) total.missed.push(JSON.stringify(one))
      }),
      { numRuns: runs, seed },
    )
    console.log(`${kind.kind}: nothing changed ${total.unchanged} times, known before ${total.known} times`)
    return total
  }

  it.each([
    ['a ConfigMap', ConfigMap, configMap],
    ['a Deployment', Deployment, deployment],
    ['a StatefulSet', StatefulSet, statefulSet],
    ['a Service', Service, service],
    ['a custom object', Gadget, gadget],
  ] as [string, Kind, fc.Arbitrary<object>][])(
    'is known of %s, always and only when it is so',
    async (_, kind, object) => {
      const { unchanged, known, missed } = await tell(kind, object)
      expect(missed[0], 'a story in which the server changed nothing, and that was not known before').toBeUndefined()
      expect(known).toBe(unchanged)
      expect(known).toBeGreaterThan(0)
    },
    600_000,
  )

  it('is never believed wrongly of what means little: nulls, empty lists', async () => {
    await tell(Gadget, oddGadget)
  }, 600_000)

  it('is never believed wrongly of values that the server writes in its own way', async () => {
    await tell(Deployment, normalised, Math.ceil(numRuns / 4))
  }, 600_000)

  it('is not believed of an object that was applied in another version', async () => {
    const { client } = access
    const object = { metadata: { name: 'versions', namespace }, spec: { title: 'a' } }
    await client.apply(GadgetBeta, object)
    const live = await client.get(Gadget, object.metadata)
    const known = isApplied(object, live, 'us')
    const result = await client.apply(Gadget, object)
    const isUnchanged = result.metadata.resourceVersion === live.metadata.resourceVersion
    expect({ known: known && !isUnchanged }).toEqual({ known: false })
  })
})
