/**
 * A definition: what it makes, how it is typed, and what it refuses.
 */
import { describe, expect, expectTypeOf, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import type { Client } from '../../../controller/kube/client.ts'
import type { Kind } from '../../../controller/kube/kind.ts'
import { CustomResourceDefinition } from '../../../controller/kube/kinds.ts'
import { defineCustomResource, type ResourceOf, type SpecInputOf } from '../../../controller/toolkit/definition.ts'
import { ShipmateError } from '../../../shared/errors.ts'

const base = {
  group: 'cache.example.com',
  version: 'v1alpha1',
  kind: 'Memcached',
  spec: z.object({ size: z.int().min(1).max(5).describe('How many servers run.'), image: z.string().default('m:1') }),
}
const status = z.object({ nodes: z.array(z.string()).default([]), ready: z.int(), at: z.iso.datetime() })
const Memcached = defineCustomResource({ ...base, shortNames: ['mc'], status, columns: { Size: '.spec.size' } })
type Memcached = ResourceOf<typeof Memcached>

const version = (definition: { crd(): ReturnType<typeof Memcached.crd> }) => {
  const [first] = definition.crd().spec.versions
  if (!first) throw new Error('no version')
  return first
}
const parts = (definition: { crd(): ReturnType<typeof Memcached.crd> }) =>
  version(definition).schema.openAPIV3Schema.properties ?? {}

describe('a definition', () => {
  test('is a kind', () => {
    const kind: Kind<Memcached> = Memcached
    expect(kind).toMatchObject({
      group: 'cache.example.com',
      version: 'v1alpha1',
      kind: 'Memcached',
      plural: 'memcacheds',
    })
    expect(kind.namespaced).toBe(true)
  })

  test('has the types of what is on the wire', () => {
    expectTypeOf<Memcached['spec']>().toEqualTypeOf<{ size: number; image: string }>()
    expectTypeOf<SpecInputOf<typeof Memcached>>().toEqualTypeOf<{ size: number; image?: string | undefined }>()
    expectTypeOf<NonNullable<Memcached['status']>['nodes']>().toEqualTypeOf<string[] | undefined>()
    expectTypeOf<NonNullable<Memcached['status']>['observedGeneration']>().toEqualTypeOf<number | undefined>()
    const calls = (client: Client) => {
      const read = async () => (await client.get(Memcached, { name: 'a' })).spec.image satisfies string
      const conditions = async () =>
        (await client.get(Memcached, { name: 'a' })).status?.conditions?.[0]?.lastTransitionTime
      const write = () => client.create(Memcached, Memcached.draft({ metadata: { name: 'a' }, spec: { size: 1 } }))
      const install = () => client.apply(CustomResourceDefinition, Memcached.crd())
      // @ts-expect-error: no such field
      const wrong = () => client.create(Memcached, { metadata: { name: 'a' }, spec: { size: 1, image: 'm', sise: 2 } })
      return [read, conditions, write, install, wrong]
    }
    expect(calls).toBeTypeOf('function')
    const Bare = defineCustomResource(base)
    expectTypeOf<keyof NonNullable<ResourceOf<typeof Bare>['status']>>().toEqualTypeOf<
      'conditions' | 'observedGeneration'
    >()
  })

  test('makes a CRD with both subresources, names and scope', () => {
    const { metadata, spec } = Memcached.crd()
    expect(metadata.name).toBe('memcacheds.cache.example.com')
    expect(spec.names).toEqual({
      ...{
        kind: 'Memcached',
        listKind: 'MemcachedList',
        plural: 'memcacheds',
        singular: 'memcached',
        shortNames: ['mc'],
      },
    })
    expect(spec.scope).toBe('Namespaced')
    expect(version(Memcached)).toMatchObject({
      name: 'v1alpha1',
      served: true,
      storage: true,
      subresources: { status: {} },
    })
    const Cluster = defineCustomResource({ ...base, namespaced: false, plural: 'memcached', categories: ['all'] })
    expect(Cluster.crd().spec).toMatchObject({ scope: 'Cluster', names: { plural: 'memcached', categories: ['all'] } })
  })

  test('requires a spec, or fills one in where nothing in it is required', () => {
    expect(version(Memcached).schema.openAPIV3Schema.required).toEqual(['spec'])
    const Lax = defineCustomResource({ ...base, spec: z.object({ size: z.int().default(1) }) })
    expect(version(Lax).schema.openAPIV3Schema.required).toBeUndefined()
    expect(parts(Lax)['spec']).toMatchObject({ default: {} })
    expect(Lax.validate({ metadata: { name: 'a' } })).toEqual([])
  })

  test('always has conditions and observedGeneration, and no required field in the status', () => {
    for (const definition of [
      Memcached,
      defineCustomResource(base),
      defineCustomResource({ ...base, status: z.object({ conditions: z.string(), observedGeneration: z.string() }) }),
    ]) {
      const { required, properties = {} } = parts(definition)['status'] ?? {}
      expect(required).toBeUndefined()
      expect(properties['observedGeneration']).toMatchObject({ type: 'integer', format: 'int64' })
      expect(properties['conditions']).toMatchObject({
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['type'],
        items: { required: ['type', 'status', 'reason', 'message', 'lastTransitionTime'] },
      })
    }
    const described = defineCustomResource({ ...base, status: status.describe('What is observed.') })
    expect(parts(described)['status']?.description).toBe('What is observed.')
  })

  test('gives the same YAML each time, marked as generated', () => {
    const text = Memcached.crdYaml()
    expect(text).toMatch(/^# Generated from the definition of Memcached/)
    expect(parse(text)).toEqual(Memcached.crd())
    expect(
      defineCustomResource({ ...base, shortNames: ['mc'], status, columns: { Size: '.spec.size' } }).crdYaml(),
    ).toBe(text)
  })

  test('gives a manifest that can be changed without harm', () => {
    Memcached.crd().spec.versions.pop()
    expect(Memcached.crd().spec.versions).toHaveLength(1)
  })

  test('puts other versions into the same CRD', () => {
    const Old = defineCustomResource({ ...base, version: 'v1alpha0', storage: false, deprecated: 'use v1alpha1' })
    const Both = defineCustomResource({ ...base, versions: [Old] })
    expect(Both.crd().spec.versions.map(({ name, storage }) => [name, storage])).toEqual([
      ['v1alpha1', true],
      ['v1alpha0', false],
    ])
    expect(Both.crd().spec.versions[1]).toMatchObject({ deprecated: true, deprecationWarning: 'use v1alpha1' })
    const Stored = defineCustomResource({ ...base, version: 'v1alpha0' })
    expect(() => defineCustomResource({ ...base, versions: [Stored] })).toThrow(/one is stored.*storage: false/)
    const Other = defineCustomResource({ ...base, kind: 'Other', storage: false })
    expect(() => defineCustomResource({ ...base, versions: [Other] })).toThrow(/is no version of Memcached/)
  })
})

describe('columns', () => {
  const columns = (given: Parameters<typeof defineCustomResource>[0]['columns'] & object) =>
    version(defineCustomResource({ ...base, status, columns: given })).additionalPrinterColumns

  test('have the type that the schema says, and an age is added', () => {
    expect(
      columns({
        Size: '.spec.size',
        Nodes: '.status.nodes',
        First: '.status.nodes[0]',
        At: '.status.at',
        Ready: '.status.conditions[?(@.type=="Ready")].status',
        Team: ".metadata.labels['example.com/team']",
        Wide: { path: '.spec.image', type: 'string', priority: 1, description: 'Its image.' },
      }),
    ).toEqual([
      { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
      { name: 'Nodes', type: 'string', jsonPath: '.status.nodes' },
      { name: 'First', type: 'string', jsonPath: '.status.nodes[0]' },
      { name: 'At', type: 'date', jsonPath: '.status.at' },
      { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
      { name: 'Team', type: 'string', jsonPath: ".metadata.labels['example.com/team']" },
      { name: 'Wide', type: 'string', jsonPath: '.spec.image', priority: 1, description: 'Its image.' },
      { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    ])
  })

  test('have one age where one is given', () => {
    expect(columns({ AGE: '.metadata.creationTimestamp' })).toHaveLength(1)
    expect(columns({ Born: '.metadata.creationTimestamp' })).toEqual([
      { name: 'Born', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    ])
  })

  test.each([
    ['.spec.sise', /columns\.X: \.spec has no field "sise"; did you mean "size"\?/],
    ['.spec.size.more', /\.spec\.size has no field "more"/],
    ['spec.size', /begins with a dot/],
    ['.spec..size', /is no path from "\.\.size" on/],
    ['.status.nodes.name', /is a list: write \.status\.nodes\[0\]/],
    ['.spec.size[0]', /\.spec\.size is no list/],
    ['.status.conditions[?(@.typ=="Ready")].status', /did you mean "type"/],
  ])('refuse the path %s', (path, message) => expect(() => columns({ X: path })).toThrow(message))

  test('refuse an unknown type and an odd priority', () => {
    expect(() => columns({ X: { path: '.spec.size', type: 'int' as 'integer' } })).toThrow(
      /"int" is no type of a column/,
    )
    expect(() => columns({ X: { path: '.spec.size', priority: -1 } })).toThrow(/priority is -1/)
  })
})

describe('the scale', () => {
  test('names where the numbers are', () => {
    const Scaled = defineCustomResource({ ...base, status, scale: { spec: '.spec.size', status: '.status.ready' } })
    expect(version(Scaled).subresources.scale).toEqual({
      specReplicasPath: '.spec.size',
      statusReplicasPath: '.status.ready',
    })
  })

  test.each([
    [{ spec: '.spec.sise', status: '.status.ready' }, /did you mean "size"/],
    [{ spec: '.spec.image', status: '.status.ready' }, /of type string, but has to be of type integer/],
    [{ spec: '.status.ready', status: '.status.ready' }, /scale\.spec: "\.status\.ready" is not accepted/],
    [{ spec: '.spec.size', status: '.status.ready', selector: '.status.ready' }, /has to be of type string/],
  ])('refuses %o', (scale, message) => expect(() => defineCustomResource({ ...base, status, scale })).toThrow(message))
})

describe('what is no definition is refused with the kind and the field:', () => {
  test.each([
    ['kind', { kind: 'memcached' }, /kind: "memcached" is not accepted.*CamelCase/],
    ['kind', { kind: 'Mem-cached' }, /CamelCase/],
    ['group', { group: 'cache' }, /at least one dot/],
    ['group', { group: 'Cache.example.com' }, /lower case/],
    ['group', { group: 'cache.k8s.io' }, /belongs to Kubernetes/],
    ['version', { version: '1' }, /v1, v1beta1/],
    ['plural', { plural: 'Memcacheds' }, /plural: "Memcacheds"/],
    ['singular', { singular: 'mem_cached' }, /singular/],
    ['short names', { shortNames: ['MC'] }, /shortNames: "MC"/],
    ['short names', { shortNames: ['mc', 'mc'] }, /twice/],
    ['categories', { categories: [''] }, /categories/],
    ['rules', { rules: [{ rule: 'self.spec.size >' }] }, /rules: the rule .* is no CEL/],
    ['spec', { spec: z.string() as never }, /spec: it is a z\.string, but has to be a z\.object/],
    ['spec', { spec: {} as never }, /schema of zod 4/],
    ['status', { status: z.array(z.string()) as never }, /status: it is a z\.array/],
    ['a field', { spec: z.object({ a: z.array(z.object({ b: z.date() })) }) }, /^Memcached: spec\.a\[\]\.b: a Date/],
  ])('%s', (_, change, message) => {
    const define = () => defineCustomResource({ ...base, ...change } as typeof base)
    expect(define).toThrow(message)
    expect(define).toThrow(ShipmateError)
  })
})
