import { expect, it } from 'vitest'
import { changedAt, changesOf } from '../../../controller/app/schedule/since.ts'
import type { Snapshot } from '../../../controller/kube/kind.ts'

const plan = { schedule: '0 * * * *', timeZone: 'Etc/UTC', suspend: false }

function set(...entries: [time: string | undefined, fields: string[], subresource?: string][]): Snapshot {
  const managedFields = entries.map(([time, fields, subresource]) => ({
    ...{ time, subresource, manager: 'x', operation: 'Update', fieldsType: 'FieldsV1' },
    fieldsV1: { 'f:spec': Object.fromEntries(fields.map(field => [`f:${field}`, {}])) },
  }))
  return { metadata: { name: 's', managedFields } } as unknown as Snapshot
}
const one = '2026-06-01T12:00:00Z'
const two = '2026-06-01T13:00:00Z'

it('knows what changed', () => {
  expect(changesOf(plan, plan)).toEqual([])
  expect(changesOf(plan, { ...plan, timeZone: 'Europe/Berlin' })).toEqual(['timeZone'])
  expect(changesOf(undefined, plan)).toEqual(['schedule', 'timeZone', 'suspend'])
})

it('is the latest of those who set what changed', () => {
  const object = set([one, ['schedule', 'timeZone']], [two, ['schedule', 'template']], [two, ['suspend'], 'status'])
  expect(changedAt(object, ['timeZone'])).toBe(Date.parse(one))
  expect(changedAt(object, ['timeZone', 'schedule'])).toBe(Date.parse(two))
})

it('is not known where nobody is known to have set it, or when', () => {
  expect(changedAt(set([one, ['schedule']]), ['schedule', 'suspend'])).toBeUndefined()
  expect(changedAt(set([undefined, ['schedule']]), ['schedule'])).toBeUndefined()
  expect(changedAt({ metadata: { name: 's' } } as Snapshot, ['schedule'])).toBeUndefined()
})
