/**
 * CRDs from definitions, against the server that has the last word on them.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { z } from 'zod'
import { type Access, connect } from '../../../controller/kube/access.ts'
import type { Client } from '../../../controller/kube/client.ts'
import { BadRequest, Invalid, NotFound } from '../../../controller/kube/errors.ts'
import { ClusterRole, ClusterRoleBinding, CustomResourceDefinition, Namespace } from '../../../controller/kube/kinds.ts'
import { checkCrd } from '../../../controller/toolkit/crd/check.ts'
import { type CustomResource, defineCustomResource, type ResourceOf } from '../../../controller/toolkit/definition.ts'
import { isEmbedded } from '../../fixtures/apiserver.ts'
import { field } from './arbitraries.ts'
import { table } from './schemas.ts'

const kubeconfig = inject('kubeconfig')
const numRuns = Number(process.env.SHIPMATE_SCHEDULES ?? 20)
const seed = Number(process.env.SHIPMATE_SEED ?? 1)
const namespace = 'crd-test'
const group = 'crd.test.example.com'

const Memcached = defineCustomResource({
  group,
  version: 'v1alpha1',
  kind: 'Memcached',
  shortNames: ['mcd'],
  categories: ['caches'],
  description: 'Servers that remember.',
  spec: z.object({
    size: z.int().min(1).max(5).describe('How many servers run.'),
    image: z.string().default('memcached:1.6'),
    port: z.union([z.int(), z.string().regex(/^[a-z]+$/)]).optional(),
    mode: z.enum(['Fast', 'Safe']).nullable().optional(),
    limits: z.object({ memory: z.string().default('64Mi') }).prefault({}),
    parts: z
      .array(z.object({ name: z.string(), weight: z.int().optional() }))
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
      .optional(),
    until: z.iso.datetime().optional(),
    step: z
      .int()
      .meta({ rules: [{ rule: 'self >= oldSelf', message: 'step never goes back' }] })
      .optional(),
  }),
  status: z.object({ nodes: z.array(z.string()).default([]), ready: z.int(), selector: z.string() }),
  columns: {
    Size: '.spec.size',
    Nodes: '.status.nodes',
    Until: { path: '.spec.until', priority: 1 },
    Ready: '.status.conditions[?(@.type=="Ready")].status',
  },
  rules: [{ rule: "self.spec.size < 5 || self.spec.image != 'small'", message: 'a small image has no 5 servers' }],
  scale: { spec: '.spec.size', status: '.status.ready', selector: '.status.selector' },
})
type Memcached = ResourceOf<typeof Memcached>

describe.skipIf(!kubeconfig)('CRDs, with a real API server', () => {
  let access: Access
  let client: Client

  beforeAll(async () => {
    access = connect({ kubeconfig: { file: kubeconfig } })
    client = access.client
    await client.create(Namespace, { metadata: { name: namespace } })
    await install(client, Memcached)
  })
  afterAll(() => access.close())

  const memcached = (name: string, spec: object = { size: 1 }) =>
    Memcached.draft({ metadata: { name, namespace }, spec: spec as { size: number } })
  const refusal = async (spec: object): Promise<Invalid> => {
    const error = await client.create(Memcached, memcached('refused', spec)).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(Invalid)
    return error as Invalid
  }

  test('a definition is accepted whole, without a warning', async () => {
    const found = await client.get(CustomResourceDefinition, { name: `memcacheds.${group}` })
    const ours = Memcached.crd()
    expect(found.spec.names).toEqual(ours.spec.names)
    expect(found.spec.versions).toEqual(ours.spec.versions)
    expect(found.status?.conditions?.filter(({ type }) => type === 'NonStructuralSchema')).toEqual([])
  })

  test('the YAML is the same CRD', async () => {
    const applied = await client.raw(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/memcacheds.${group}`)
    const { parse } = await import('yaml')
    expect(JSON.parse(applied.text).spec).toMatchObject(parse(Memcached.crdYaml()).spec)
  })

  test('the server fills in the defaults', async () => {
    const made = await client.create(Memcached, memcached('defaults'))
    expect(made.spec).toEqual({ size: 1, image: 'memcached:1.6', limits: { memory: '64Mi' } })
    const image: string = made.spec.image
    expect(image).toBe('memcached:1.6')
    const status: Memcached['status'] = made.status
    expect(status).toBeUndefined()
  })

  test('a wrong value is refused, and its field named', async () => {
    expect((await refusal({ size: 9 })).causes).toMatchObject([{ field: 'spec.size' }])
    expect((await refusal({ size: 1, mode: 'Fat' })).causes[0]).toMatchObject({ field: 'spec.mode' })
    expect((await refusal({ size: 1, until: 'soon' })).message).toMatch(/spec.until/)
    expect((await refusal({ size: 1, port: true })).message).toMatch(/spec.port/)
    expect((await refusal({})).message).toMatch(/spec.size: Required/)
  })

  test('a rule of the object and one of a field are enforced, with their own words', async () => {
    expect((await refusal({ size: 5, image: 'small' })).message).toMatch(/a small image has no 5 servers/)
    await client.create(Memcached, memcached('stepped', { size: 1, step: 3 }))
    const back = client.patch(Memcached, { name: 'stepped', namespace }, { merge: { spec: { step: 2 } } })
    await expect(back).rejects.toThrow(/step never goes back/)
  })

  test('an unknown field is refused where that is asked for', async () => {
    const typo = memcached('typo', { size: 1, sise: 2 })
    await expect(client.create(Memcached, typo, { fieldValidation: 'Strict' })).rejects.toThrow(
      /unknown field "spec.sise"/,
    )
  })

  test('null is accepted where the definition says so', async () => {
    const made = await client.create(Memcached, memcached('null', { size: 1, mode: null }))
    expect(made.spec.mode).toBeNull()
  })

  test('the columns are printed', async () => {
    await client.create(Memcached, memcached('printed', { size: 3, until: '2031-01-01T00:00:00Z' }))
    const condition = {
      type: 'Ready',
      status: 'True',
      reason: 'Fine',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    }
    const merge = { status: { nodes: ['a', 'b'], conditions: [condition], observedGeneration: 1 } }
    await client.patch(Memcached, { name: 'printed', namespace }, { merge }, { subresource: 'status' })
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io'
    const path = `/apis/${group}/v1alpha1/namespaces/${namespace}/memcacheds`
    const { columnDefinitions, rows } = JSON.parse((await client.raw(path, { accept })).text)
    expect(
      columnDefinitions.map(({ name, type, priority }: Record<string, unknown>) => [name, type, priority]),
    ).toEqual([
      ['Name', 'string', 0],
      ['Size', 'integer', 0],
      ['Nodes', 'string', 0],
      ['Until', 'date', 1],
      ['Ready', 'string', 0],
      ['Age', 'date', 0],
    ])
    const row = rows.find(({ cells }: { cells: unknown[] }) => cells[0] === 'printed')
    expect(row.cells).toEqual(['printed', 3, '["a","b"]', expect.any(String), 'True', expect.any(String)])
  })

  test('a status may be written field by field, and its conditions are checked', async () => {
    await client.create(Memcached, memcached('status'))
    const ref = { name: 'status', namespace }
    const write = (status: object) => client.patch(Memcached, ref, { merge: { status } }, { subresource: 'status' })
    expect((await write({ observedGeneration: 1 })).status).toEqual({ observedGeneration: 1, nodes: [] })
    await expect(write({ conditions: [{ type: 'Ready', status: 'Perhaps' }] })).rejects.toThrow(
      /status.conditions\[0\].status/,
    )
    const twice = {
      type: 'A',
      status: 'True',
      reason: 'B',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00+01:00',
    }
    await expect(write({ conditions: [twice, twice] })).rejects.toThrow(/Duplicate/)
  })

  test('it can be scaled', async () => {
    await client.create(Memcached, memcached('scaled', { size: 2 }))
    const ref = { name: 'scaled', namespace }
    expect((await client.scale(Memcached, ref)).replicas).toBe(2)
    expect((await client.setScale(Memcached, ref, 3)).replicas).toBe(3)
  })

  test('every sort of schema is accepted', async () => {
    // The last of the rules has an optional item of a list, which the embedded server's CEL does not know: docs/devcluster.md.
    const all = Object.values(isEmbedded ? { ...table, rules: table['rules']?.slice(0, -1) ?? [] } : table).flat()
    const fields = Object.fromEntries(all.map(([schema], index) => [`f${index}`, schema.optional()]))
    const Everything = defineCustomResource({
      group,
      version: 'v1',
      kind: 'Everything',
      plural: 'everythings',
      spec: z.object(fields),
    })
    const made = await client.create(CustomResourceDefinition, Everything.crd(), {
      dryRun: true,
      fieldValidation: 'Strict',
    })
    expect(made.spec.versions[0]?.schema).toEqual(Everything.crd().spec.versions[0]?.schema)
  })

  test('every format means the same to the server as to validate()', async () => {
    const shape = Object.fromEntries(Object.entries(formats).map(([name, { schema }]) => [name, schema.optional()]))
    const Format = defineCustomResource({ group, version: 'v1', kind: 'Format', spec: z.object(shape) })
    await install(client, Format)
    for (const [name, { good, bad }] of Object.entries(formats)) {
      for (const value of [...good, ...bad]) {
        const draft = { metadata: { name: 'format', namespace }, spec: { [name]: value } }
        const created = client.create(Format, draft, { dryRun: true })
        const answer = await created.then(
          () => 'accepted',
          () => 'refused',
        )
        const checked = Format.validate(draft).length === 0 ? 'accepted' : 'refused'
        const wanted = good.includes(value) ? 'accepted' : 'refused'
        expect([name, value, answer, checked]).toEqual([name, value, wanted, wanted])
      }
    }
  })

  test('any definition is accepted', async () => {
    const property = fc.asyncProperty(fc.array(field, { minLength: 1, maxLength: 8 }), async fields => {
      const spec = z.object(Object.fromEntries(fields.map(({ schema }, index) => [`f${index}`, schema])))
      const Random = defineCustomResource({ group, version: 'v1', kind: 'Random', spec })
      await client.create(CustomResourceDefinition, Random.crd(), { dryRun: true, fieldValidation: 'Strict' })
    })
    await fc.assert(property, { numRuns: numRuns * 5, seed })
  })

  test('the server accepts the values that validate() accepts, and no others', async () => {
    const fields = fc.sample(field, { numRuns: 60, seed })
    const spec = z.object(Object.fromEntries(fields.map(({ schema }, index) => [`f${index}`, schema.optional()])))
    const Sample = defineCustomResource({ group, version: 'v1', kind: 'Sample', spec })
    await install(client, Sample)
    const values = fc
      .nat({ max: fields.length - 1 })
      .chain(index => (fields[index]?.value ?? fc.constant(null)).map(value => ({ [`f${index}`]: value })))
    const property = fc.asyncProperty(values, async spec => {
      const draft = { apiVersion: `${group}/v1`, kind: 'Sample', metadata: { name: 'sample', namespace }, spec }
      const refused = await client
        .create(Sample, draft, { dryRun: true, fieldValidation: 'Strict' })
        .then(() => undefined)
        .catch((error: unknown) => {
          if (error instanceof Invalid || error instanceof BadRequest) return error.message
          throw error
        })
      const problems = Sample.validate(draft)
      expect({ problems, refused: refused !== undefined }, `${refused}`).toEqual({
        problems: refused === undefined ? [] : expect.arrayContaining([expect.any(String)]),
        refused: problems.length > 0,
      })
    })
    await fc.assert(property, { numRuns: numRuns * 20, seed })
  })

  test('a field that the cluster does not know is found, and so is a CRD that is not there', async () => {
    expect(await checkCrd(client, Memcached)).toEqual([])
    const older = Memcached.crd()
    const { spec } = older.spec.versions[0]?.schema.openAPIV3Schema.properties ?? {}
    delete spec?.properties?.['limits']
    const name = older.metadata.name
    await client.apply(CustomResourceDefinition, older)
    expect(await checkCrd(client, Memcached, { command: 'make install' })).toEqual([
      {
        is: 'FieldMissing',
        field: 'spec.limits',
        message: `the CRD ${name} has no field spec.limits`,
        remedy: 'make install',
        blocks: true,
      },
    ])
    await client.apply(CustomResourceDefinition, Memcached.crd())
    expect(await checkCrd(client, Memcached)).toEqual([])
    const Absent = defineCustomResource({ group, version: 'v1', kind: 'Absent', spec: z.object({}) })
    expect(await checkCrd(client, Absent)).toMatchObject([
      { is: 'Missing', remedy: expect.stringContaining('shipmate operator install') },
    ])
  })

  test('who may not read CRDs is told the rule that is missing', async () => {
    const metadata = { name: 'crd-test-nothing' }
    await client.create(ClusterRole, { metadata, rules: [] })
    const subject = { kind: 'User', name: 'crd-test-poor', apiGroup: 'rbac.authorization.k8s.io' }
    const roleRef = { kind: 'ClusterRole', name: metadata.name, apiGroup: 'rbac.authorization.k8s.io' }
    await client.create(ClusterRoleBinding, { metadata, subjects: [subject], roleRef })
    const poor = connect({
      kubeconfig: { file: kubeconfig },
      interceptors: [
        next => request => next({ ...request, headers: { ...request.headers, 'impersonate-user': subject.name } }),
      ],
    })
    try {
      expect(await checkCrd(poor.client, Memcached)).toMatchObject([
        { is: 'Unreadable', blocks: false, remedy: expect.stringContaining('customresourcedefinitions') },
      ])
    } finally {
      await poor.close()
    }
  })
})

/** Texts that fit a format, and texts that do not. */
const formats: Record<string, { schema: z.ZodType; good: string[]; bad: string[] }> = {
  email: {
    schema: z.email(),
    good: ['a@b.example', "o'x.y@b-c.example"],
    bad: ['a', 'a@b', '.a@b.example', 'a..b@c.example'],
  },
  url: { schema: z.url(), good: ['https://a.example/b?c=d#e', 'http://[::1]:80'], bad: ['', 'a', '//a'] },
  uuid: {
    schema: z.uuid(),
    good: ['123e4567-e89b-42d3-a456-426614174000', '00000000-0000-0000-0000-000000000000'],
    bad: ['123e4567-e89b-92d3-a456-426614174000', '123e4567e89b42d3a456426614174000', 'a'],
  },
  guid: { schema: z.guid(), good: ['123e4567-e89b-92d3-a456-426614174000'], bad: ['a'] },
  ipv4: { schema: z.ipv4(), good: ['10.0.0.1'], bad: ['10.0.0.256', '10.0.0', '::1'] },
  ipv6: { schema: z.ipv6(), good: ['::1', 'fe80::1', '2001:db8::8a2e:370:7334'], bad: ['10.0.0.1', ':::', 'g::'] },
  cidrv4: { schema: z.cidrv4(), good: ['10.0.0.0/8'], bad: ['10.0.0.0', '10.0.0.0/33'] },
  cidrv6: { schema: z.cidrv6(), good: ['2001:db8::/32'], bad: ['2001:db8::', '::/129'] },
  base64: { schema: z.base64(), good: ['', 'YQ==', 'YWJj'], bad: ['YQ', 'Y', '====', 'a-_b'] },
  base64url: { schema: z.base64url(), good: ['YQ', 'a-_b'], bad: ['a+/b'] },
  hostname: {
    schema: z.hostname(),
    good: ['a', 'a-b.example', 'A.example', '1.example'],
    bad: ['', '-a', 'a-.example', 'a..b', 'a_b', `${'a'.repeat(64)}.example`, Array(64).fill('abcd').join('.')],
  },
  mac: {
    schema: z.mac(),
    good: ['00:1a:2b:3c:4d:5e', '00:1A:2B:3C:4D:5E'],
    bad: ['00:1a:2b:3c:4d', '00:1a:2B:3c:4d:5e'],
  },
  sha256: { schema: z.hash('sha256'), good: ['ab'.repeat(32)], bad: ['ab', 'xy'.repeat(32)] },
  e164: { schema: z.e164(), good: ['+49301234567'], bad: ['49301234567', '+0'] },
  ulid: { schema: z.ulid(), good: ['01ARZ3NDEKTSV4RRFFQ69G5FAV'], bad: ['81ARZ3NDEKTSV4RRFFQ69G5FAV', 'a'] },
  time: { schema: z.iso.time(), good: ['10:00', '23:59:59.5'], bad: ['24:00', '10', '10:00Z'] },
  date: { schema: z.iso.date(), good: ['2024-02-29'], bad: ['2023-02-29', '2023-1-1', '2023-01-01T00:00:00Z'] },
  datetime: {
    schema: z.iso.datetime(),
    good: ['2024-02-29T10:00:00Z', '2024-02-29T10:00:00.123456Z'],
    bad: [
      '2023-02-29T10:00:00Z',
      '2024-02-29T10:00:00+01:00',
      '2024-02-29T10:00:00',
      '2024-02-29T25:00:00Z',
      '2024-02-29',
    ],
  },
  offset: {
    schema: z.iso.datetime({ offset: true }),
    good: ['2024-02-29T10:00:00Z', '2024-02-29T10:00:00+01:00'],
    bad: ['2024-02-29T10:00:00', '2024-02-29T10:00:60Z', '2024-13-01T10:00:00Z'],
  },
  precise: {
    schema: z.iso.datetime({ precision: 3 }),
    good: ['2024-02-29T10:00:00.123Z'],
    bad: ['2024-02-29T10:00:00Z', '2024-02-29T10:00:00.1Z'],
  },
  local: {
    schema: z.iso.datetime({ local: true }),
    good: ['2024-02-29T10:00:00', '2024-02-29T10:00:00Z'],
    bad: ['2024-02-29'],
  },
  lower: { schema: z.string().lowercase(), good: ['abc', '1'], bad: ['aBc'] },
  insensitive: { schema: z.string().regex(/^ab$/i), good: ['ab', 'AB', 'aB'], bad: ['abc'] },
}

/** Installs the CRD, and waits until its objects are served. */
async function install(client: Client, kind: CustomResource): Promise<void> {
  await client.create(CustomResourceDefinition, kind.crd(), { fieldValidation: 'Strict' })
  for (;;) {
    try {
      await client.list(kind)
      return
    } catch (error) {
      if (!(error instanceof NotFound)) throw error
      await new Promise(resolve => setTimeout(resolve, 50))
    }
  }
}
