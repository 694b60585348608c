/**
 * Fields that were applied under a former name, on their way to the new one.
 */
import { describe, expect, it } from 'vitest'
import type { FieldsV1, ManagedFields } from '../../controller/kube/kind.ts'
import { formerOwners, takenOver } from '../../controller/kube/takeover.ts'

const applied = (manager: string, fieldsV1: FieldsV1, more: Partial<ManagedFields> = {}): ManagedFields => ({
  ...{ manager, operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1 },
  ...more,
})
const object = (...managedFields: ManagedFields[]) => ({ metadata: { managedFields } })
const field = (...names: string[]): FieldsV1 => Object.fromEntries(names.map(name => [`f:${name}`, {}]))

describe('what a former name applied', () => {
  it('becomes that of the new one, where this has nothing', () => {
    const other = applied('somebody', field('c'))
    expect(takenOver(object(other, applied('old', field('a'))), 'new', ['old'])).toEqual([
      other,
      applied('new', field('a')),
    ])
  })

  it('is united with what the new one has, and with that of other former ones', () => {
    const live = object(
      applied('oldest', { 'f:data': field('x') }),
      applied('new', { 'f:data': { '.': {}, ...field('y') } }),
      applied('old', { 'f:data': {}, 'f:spec': { 'k:{"name":"a"}': { '.': {}, 'f:image': {} } } }),
    )
    expect(takenOver(live, 'new', ['old', 'oldest'])).toEqual([
      applied('new', {
        'f:data': { '.': {}, ...field('x', 'y') },
        'f:spec': { 'k:{"name":"a"}': { '.': {}, 'f:image': {} } },
      }),
    ])
  })

  it('keeps that a field itself was owned, beside what is in it', () => {
    const live = object(applied('new', { 'f:data': field('x') }), applied('old', { 'f:data': {} }))
    expect(takenOver(live, 'new', ['old'])).toEqual([applied('new', { 'f:data': { '.': {}, ...field('x') } })])
  })

  it('is left where it was recorded in another version of the API than what it would be united with', () => {
    const old = applied('old', field('a'), { apiVersion: 'v1beta1' })
    expect(takenOver(object(old, applied('new', field('b'))), 'new', ['old'])).toBeUndefined()
    expect(takenOver(object(old), 'new', ['old']), 'alone it can be moved').toEqual([{ ...old, manager: 'new' }])
  })

  it.each([
    ['of somebody else', applied('somebody', field('a'))],
    ['by an update', applied('old', field('a'), { operation: 'Update' })],
    ['to a subresource', applied('old', field('a'), { subresource: 'status' })],
  ])('is not what was written %s', (_, entry) => {
    expect(takenOver(object(entry), 'new', ['old'])).toBeUndefined()
    expect(formerOwners(object(entry), ['old'])).toEqual([])
  })
})

it('who owns nothing is no former owner', () => {
  expect(formerOwners(object(applied('old', field('a'))), ['older', 'old'])).toEqual(['old'])
  expect(formerOwners({ metadata: {} }, ['old'])).toEqual([])
})
