/**
 * Server-side apply, and who manages what after other writes: the rules that people rely on. That they are a real server's is shown beside one.
 */
import { describe, expect, test } from 'vitest'
import { type Apply, apply } from '../../../devcluster/api/patch/apply.ts'
import { keepTimes, updateManaged } from '../../../devcluster/api/patch/managed.ts'
import { fromScaleManaged, toScaleManaged } from '../../../devcluster/api/patch/scale.ts'
import { ApiError } from '../../../devcluster/api/problems.ts'
import { typeNamed } from '../../../devcluster/api/resources/link.ts'
import type { ManagedFieldsEntry, Obj } from '../../../devcluster/api/types.ts'
import { gadgets } from './subjects.ts'

const { schema, apiVersion } = gadgets.v1
const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`
const gadget = (spec: object, metadata: object = {}): Obj =>
  ({ apiVersion, kind: 'Gadget', metadata: { name: 'x', ...metadata }, spec }) as unknown as Obj

const applied = (live: Obj | undefined, spec: object, manager: string, more: Partial<Apply> = {}) =>
  apply({ live, applied: gadget(spec), manager, force: false, schema, apiVersion, now: at(1), ...more })
const updated = (live: Obj | undefined, next: Obj, manager: string, now = at(2)) =>
  updateManaged({ live, next, manager, schema, apiVersion, now })

/** As if it were stored. */
const stored = (object: Obj): Obj => ({ ...object, metadata: { ...object.metadata, uid: '1' } })
const entriesOf = (object: Obj): ManagedFieldsEntry[] => object.metadata.managedFields ?? []
const fieldsOf = (object: Obj, manager: string) => entriesOf(object).find(entry => entry.manager === manager)?.fieldsV1

const refused = (run: () => unknown) => {
  try {
    run()
  } catch (error) {
    if (error instanceof ApiError) return error.status
    throw error
  }
  throw new Error('it was not refused')
}

describe('apply', () => {
  test('makes an object, and its manager owns what it said', () => {
    const object = applied(undefined, { count: 1, tags: ['a'] }, 'one')
    expect(object['spec']).toEqual({ count: 1, tags: ['a'] })
    expect(entriesOf(object)).toEqual([
      {
        manager: 'one',
        operation: 'Apply',
        apiVersion,
        time: at(1),
        fieldsType: 'FieldsV1',
        fieldsV1: { 'f:spec': { 'f:count': {}, 'f:tags': { 'v:"a"': {} } } },
      },
    ])
  })

  test('removes what it no longer says, unless somebody else says it too', () => {
    const first = stored(applied(undefined, { count: 1, name: 'x', labels: { a: '1' } }, 'one'))
    const shared = stored(applied(first, { name: 'x' }, 'two'))
    expect(applied(shared, {}, 'one')['spec']).toEqual({ name: 'x' })
  })

  test('refuses to change what somebody else manages, and says whose it is', () => {
    const live = stored(
      updated(undefined, gadget({ count: 1, ports: [{ port: 1, protocol: 'TCP', note: 'x' }] }), 'other'),
    )
    const problem = refused(() => applied(live, { count: 2, ports: [{ port: 1, note: 'y' }] }, 'one'))
    expect(problem).toMatchObject({ code: 409, reason: 'Conflict' })
    expect(problem.message).toBe(
      `Apply failed with 2 conflicts: conflicts with "other" using ${apiVersion}:\n- .spec.count\n- .spec.ports[port=1,protocol="TCP"].note`,
    )
    expect(problem.details?.causes?.[0]).toEqual({
      reason: 'FieldManagerConflict',
      message: `conflict with "other" using ${apiVersion}`,
      field: '.spec.count',
    })
  })

  test('takes it by force', () => {
    const live = stored(updated(undefined, gadget({ count: 1, name: 'x' }), 'other'))
    const object = applied(live, { count: 2 }, 'one', { force: true })
    expect(object['spec']).toEqual({ count: 2, name: 'x' })
    expect(fieldsOf(object, 'other')).toEqual({ 'f:spec': { '.': {}, 'f:name': {} } })
  })

  test('knows an item by its keys, with the defaults that they have', () => {
    const live = stored(applied(undefined, { ports: [{ port: 1, protocol: 'TCP', note: 'x' }] }, 'one'))
    const object = applied(
      live,
      {
        ports: [
          { port: 1, deep: { a: 'b' } },
          { port: 1, protocol: 'UDP' },
        ],
      },
      'two',
    )
    expect(object['spec'].ports).toEqual([
      { port: 1, protocol: 'TCP', note: 'x', deep: { a: 'b' } },
      { port: 1, protocol: 'UDP' },
    ])
  })

  test('that changes nothing leaves the time alone', () => {
    const live = stored(applied(undefined, { count: 1 }, 'one'))
    expect(entriesOf(applied(live, { count: 1 }, 'one', { now: at(9) }))[0]?.time).toBe(at(1))
  })

  test('of an object that nobody tracked begins with an entry for what was there', () => {
    const live = stored(gadget({ count: 1, name: 'x' }))
    const object = applied(live, { count: 1 }, 'one')
    expect(entriesOf(object).map(({ manager, operation }) => [manager, operation])).toEqual([
      ['one', 'Apply'],
      ['before-first-apply', 'Update'],
    ])
  })

  test.each([
    [{ unknown: 1 }, '.spec.unknown: field not declared in schema'],
    [{ count: 'x' }, '.spec.count: expected numeric (int or float), got string'],
    [{ tags: ['a', 'a'] }, '.spec.tags: duplicate entries for key [="a"]'],
  ])('refuses %j', (spec, words) => {
    const problem = refused(() => applied(undefined, spec, 'one'))
    expect(problem.code).toBe(500)
    expect(problem.message).toContain(words)
  })

  test('refuses managedFields in what is applied', () => {
    const body = gadget({}, { managedFields: [] })
    expect(refused(() => applied(undefined, {}, 'one', { applied: body }))).toMatchObject({
      code: 400,
      message: 'metadata.managedFields must be nil',
    })
  })

  test('of a status does not own what a status write leaves alone', () => {
    const live = stored(applied(undefined, { count: 1 }, 'one'))
    const body = { ...gadget({ count: 2 }), status: { phase: 'a' } }
    const object = applied(live, {}, 'two', { applied: body, subresource: 'status' })
    expect(fieldsOf(object, 'two')).toEqual({ 'f:status': { 'f:phase': {} } })
  })
})

describe('another write', () => {
  test('owns what it changed, and takes it from who had it', () => {
    const live = stored(applied(undefined, { count: 1, name: 'x' }, 'one'))
    const object = updated(live, { ...live, spec: { count: 2, name: 'x' } }, 'two')
    expect(fieldsOf(object, 'one')).toEqual({ 'f:spec': { 'f:name': {} } })
    expect(fieldsOf(object, 'two')).toEqual({ 'f:spec': { 'f:count': {} } })
  })

  test('drops an entry that has nothing left', () => {
    const live = stored(applied(undefined, { count: 1 }, 'one'))
    expect(entriesOf(updated(live, { ...live, spec: {} }, 'two')).map(entry => entry.manager)).not.toContain('one')
  })

  test('with one empty entry forgets them all', () => {
    const live = stored(applied(undefined, { count: 1 }, 'one'))
    const next = { ...live, metadata: { ...live.metadata, managedFields: [{}] } }
    expect(entriesOf(updated(live, next, 'two'))).toEqual([])
  })

  test('merges the oldest entries of updates once there are more than ten', () => {
    let live = stored(updated(undefined, gadget({ labels: { m0: '1' } }), 'm0', at(0)))
    for (let i = 1; i <= 11; i++) {
      const labels = { ...live['spec'].labels, [`m${i}`]: '1' }
      live = stored(updated(live, { ...live, spec: { labels } }, `m${i}`, at(i)))
    }
    expect(entriesOf(live).map(entry => entry.manager)).toEqual([
      'ancient-changes',
      ...Array.from({ length: 9 }, (_, i) => `m${i + 3}`),
    ])
    expect(fieldsOf(live, 'ancient-changes')).toEqual({
      'f:spec': { '.': {}, 'f:labels': { '.': {}, 'f:m0': {}, 'f:m1': {}, 'f:m2': {} } },
    })
  })

  test('that changes nothing but times is none', () => {
    const live = stored(updated(undefined, gadget({ count: 1 }), 'one', at(1)))
    const entries = entriesOf(live).map(entry => ({ ...entry, time: at(9) }))
    const next = { ...live, metadata: { ...live.metadata, managedFields: entries } }
    expect(keepTimes(live, next)).toEqual(live)
    expect(keepTimes(live, { ...next, spec: { count: 2 } }).metadata.managedFields).toEqual(entries)
  })

  test('that makes a built-in object owns no field that its kind always has', () => {
    const kind = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'x' } }
    const next = { ...kind, spec: { type: 'ClusterIP' }, status: { loadBalancer: {} } } as unknown as Obj
    const service = typeNamed('io.k8s.api.core.v1.Service')
    const object = updateManaged({
      live: undefined,
      next,
      manager: 'one',
      schema: service,
      apiVersion: 'v1',
      now: at(1),
    })
    expect(fieldsOf(object, 'one')).toEqual({ 'f:spec': { 'f:type': {} } })
  })
})

test('a scale has the replicas of its object, and gives them back', () => {
  const paths = { [apiVersion]: '.spec.count' }
  const live = applied(undefined, { count: 1, name: 'x' }, 'one')
  const scale = toScaleManaged(entriesOf(live), paths)
  expect(scale?.map(entry => [entry.apiVersion, entry.fieldsV1])).toEqual([
    ['autoscaling/v1', { 'f:spec': { 'f:replicas': {} } }],
  ])
  expect(fromScaleManaged(entriesOf(live), scale, apiVersion, paths)).toEqual(entriesOf(live))
  expect(fromScaleManaged(entriesOf(live), [], apiVersion, paths)?.[0]?.fieldsV1).toEqual({
    'f:spec': { 'f:name': {} },
  })
})
