/**
 * Our CRD beside the cluster's.
 */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Forbidden, Unavailable } from '../../../controller/kube/errors.ts'
import { checkCrd } from '../../../controller/toolkit/crd/check.ts'
import { type ClusterCrd, compareCrd } from '../../../controller/toolkit/crd/compare.ts'
import type { Crd } from '../../../controller/toolkit/crd/manifest.ts'
import { defineCustomResource } from '../../../controller/toolkit/definition.ts'

const define = (spec: z.ZodObject) =>
  defineCustomResource({
    ...{ group: 'cache.example.com', version: 'v1', kind: 'Memcached', spec },
    status: z.object({ ready: z.int() }),
    scale: { spec: '.spec.size', status: '.status.ready' },
  })
const spec = {
  size: z.int().default(1),
  mode: z.enum(['Fast', 'Safe']).nullable().optional(),
  level: z.enum(['a', 'b']).optional(),
  parts: z.array(z.object({ name: z.string() })).optional(),
  quotas: z.record(z.string(), z.object({ limit: z.int() })).optional(),
  free: z.object({ a: z.string().optional() }).optional(),
}
const Memcached = define(z.object(spec))
const name = 'memcacheds.cache.example.com'
const remedy = "npx shipmate operator install, in the operator's project"
const compare = (theirs: ClusterCrd | undefined) => compareCrd(Memcached.crd(), 'v1', theirs)
const found = (theirs: ClusterCrd) => compare(theirs).map(({ is, field, blocks }) => [is, field, blocks])
const changed = (change: (crd: Crd) => void): Crd => {
  const crd = Memcached.crd()
  change(crd)
  return crd
}
const first = (crd: Crd) => {
  const [version] = crd.spec.versions
  if (!version) throw new Error('no version')
  return version
}

describe('a CRD on the cluster', () => {
  test('that is ours has no findings, nor has one that knows more', () => {
    expect(compare(Memcached.crd())).toEqual([])
    expect(compare(define(z.object({ ...spec, more: z.string().optional() })).crd())).toEqual([])
  })

  test('may be missing', () => {
    expect(compare(undefined)).toEqual([
      { is: 'Missing', message: `the CRD ${name} is not on the cluster`, remedy, blocks: true },
    ])
    expect(compareCrd(Memcached.crd(), 'v1', undefined, { command: 'helm upgrade' })).toMatchObject([
      { remedy: 'helm upgrade' },
    ])
  })

  test('may lack the version, or not serve it, or store another', () => {
    const another = changed(crd => {
      first(crd).name = 'v2'
    })
    expect(compare(another)).toMatchObject([
      { is: 'VersionMissing', message: `the CRD ${name} has no version v1, only v2` },
    ])
    const unserved = changed(crd => {
      first(crd).served = false
    })
    expect(found(unserved)).toEqual([['VersionNotServed', undefined, true]])
    const stored = changed(crd => {
      crd.spec.versions.push({ ...first(crd), name: 'v2' })
      first(crd).storage = false
    })
    expect(found(stored)).toEqual([['StorageDiffers', undefined, false]])
  })

  test('may lack subresources', () => {
    const bare = {
      spec: { ...Memcached.crd().spec, versions: [{ ...first(Memcached.crd()), subresources: undefined }] },
    }
    expect(found(bare)).toEqual([
      ['StatusMissing', undefined, true],
      ['ScaleMissing', undefined, false],
    ])
  })

  test('may have another scope, which no apply can change', () => {
    const cluster = changed(crd => {
      crd.spec.scope = 'Cluster'
    })
    expect(compare(cluster)).toMatchObject([{ is: 'ScopeDiffers', remedy: expect.stringContaining('delete the CRD') }])
  })

  test('may have names that another one has', () => {
    const conditions = [{ type: 'NamesAccepted', status: 'False', message: '"mc" is already in use' }]
    expect(compare({ ...Memcached.crd(), status: { conditions } })).toMatchObject([
      { is: 'NotEstablished', message: expect.stringContaining('"mc" is already in use') },
    ])
  })

  test.each<[string, Partial<Record<keyof typeof spec, z.ZodType>>, unknown[]]>([
    ['a field', { level: undefined as never }, ['FieldMissing', 'spec.level', true]],
    ['a field of items', { parts: z.array(z.object({})).optional() }, ['FieldMissing', 'spec.parts[].name', true]],
    [
      'a field of values',
      { quotas: z.record(z.string(), z.object({})).optional() },
      ['FieldMissing', 'spec.quotas.*.limit', true],
    ],
    ['a type', { level: z.array(z.string()).optional() }, ['FieldDiffers', 'spec.level', true]],
    ['a default', { size: z.int() }, ['FieldDiffers', 'spec.size', true]],
    ['an allowed value', { level: z.enum(['a']).optional() }, ['FieldDiffers', 'spec.level', true]],
    [
      'an allowed value beside null',
      { mode: z.enum(['Fast']).nullable().optional() },
      ['FieldDiffers', 'spec.mode', true],
    ],
  ])('may lack %s', (_, change, finding) => {
    const fields = Object.entries({ ...spec, ...change }).filter(([, schema]) => schema !== undefined)
    const theirs = define(z.object(Object.fromEntries(fields)))
    expect(found(theirs.crd())).toContainEqual(finding)
  })

  test('may keep anything where we have fields', () => {
    const loose = z.looseObject({}).optional()
    expect(found(define(z.object({ ...spec, free: loose })).crd())).toEqual([])
    expect(found(define(z.object({ ...spec, free: z.unknown().optional() })).crd())).toEqual([])
  })
})

describe('the check', () => {
  const target = { verb: 'get', group: '', resource: 'customresourcedefinitions' }
  const client = (find: () => Promise<unknown>) => ({ find }) as unknown as Parameters<typeof checkCrd>[0]

  test('says what is missing', async () => {
    expect(
      await checkCrd(
        client(async () => undefined),
        Memcached,
      ),
    ).toMatchObject([{ is: 'Missing' }])
    expect(
      await checkCrd(
        client(async () => Memcached.crd()),
        Memcached,
      ),
    ).toEqual([])
  })

  test('says that it may not look, and does not fail', async () => {
    const forbidden = client(async () => Promise.reject(new Forbidden(403, target, { message: 'no' })))
    expect(await checkCrd(forbidden, Memcached)).toMatchObject([{ is: 'Unreadable', blocks: false }])
  })

  test('fails where the server cannot be reached', async () => {
    const down = client(async () =>
      Promise.reject(new Unavailable('Unavailable', target, 'down', { mayHaveActed: false })),
    )
    await expect(checkCrd(down, Memcached)).rejects.toThrow(/down/)
  })
})
