import { describe, expect, it } from 'vitest'
import type { LiveMeta, Snapshot } from '../../controller/kube/kind.ts'
import type { Change } from '../../controller/kube/store.ts'
import {
  all,
  annotationsChanged,
  any,
  byOthers,
  deletion,
  generationChanged,
  labelsChanged,
  not,
} from '../../controller/runtime/predicates.ts'

function object(metadata: Partial<LiveMeta> = {}): Snapshot {
  const meta = { name: 'x', uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z', ...metadata }
  return { apiVersion: 'v1', kind: 'Thing', metadata: meta }
}

const base = { key: 'default/x', initial: false, own: false }
const added = (metadata?: Partial<LiveMeta>): Change<object> => ({ ...base, type: 'added', object: object(metadata) })
const removed = (metadata?: Partial<LiveMeta>): Change<object> => ({
  ...base,
  type: 'removed',
  object: object(metadata),
})
const changed = (before: Partial<LiveMeta>, after: Partial<LiveMeta>): Change<object> => ({
  ...base,
  type: 'changed',
  old: object(before),
  object: object(after),
})

describe.each([
  ['generationChanged', generationChanged, { generation: 1 }, { generation: 2 }],
  ['labelsChanged', labelsChanged, { labels: { a: '1' } }, { labels: { a: '2' } }],
  ['annotationsChanged', annotationsChanged, { annotations: { a: '1' } }, { annotations: { a: '1', b: '' } }],
])('%s', (_name, predicate, before, after) => {
  it('sees what comes and goes', () => {
    expect(predicate(added(before))).toBe(true)
    expect(predicate(removed(before))).toBe(true)
  })

  it('sees its own change, and no other', () => {
    expect(predicate(changed(before, after))).toBe(true)
    expect(predicate(changed(after, before))).toBe(true)
    expect(predicate(changed(before, { ...structuredClone(before), resourceVersion: '2' }))).toBe(false)
    expect(predicate(changed({}, before)), 'set for the first time').toBe(true)
    expect(predicate(changed(before, {})), 'taken away').toBe(true)
  })
})

it('labels in another order are the same labels', () => {
  expect(labelsChanged(changed({ labels: { a: '1', b: '2' } }, { labels: { b: '2', a: '1' } }))).toBe(false)
})

it('no labels and an empty map of labels differ on the wire', () => {
  expect(labelsChanged(changed({}, { labels: {} }))).toBe(true)
})

it('deletion is being asked to go, once, and being gone', () => {
  const going = { deletionTimestamp: '2026-01-01T00:00:00Z' }
  expect(deletion(changed({}, going))).toBe(true)
  expect(deletion(changed(going, { ...going, resourceVersion: '2' }))).toBe(false)
  expect(deletion(added(going)), 'first seen while it goes').toBe(true)
  expect(deletion(added())).toBe(false)
  expect(deletion(changed({}, {}))).toBe(false)
  expect(deletion(removed())).toBe(true)
})

it('byOthers leaves out what we wrote', () => {
  expect(byOthers(added())).toBe(true)
  expect(byOthers({ ...added(), own: true })).toBe(false)
})

it('any, all and not put predicates together', () => {
  const yes = () => true
  const no = () => false
  expect(any(no, yes)(added())).toBe(true)
  expect(any(no, no)(added())).toBe(false)
  expect(any()(added()), 'any of none').toBe(false)
  expect(all(yes, yes)(added())).toBe(true)
  expect(all(yes, no)(added())).toBe(false)
  expect(all()(added()), 'all of none').toBe(true)
  expect(not(yes)(added())).toBe(false)
  expect(
    any(generationChanged, all(labelsChanged, not(deletion)))(changed({ labels: {} }, { labels: { a: '' } })),
  ).toBe(true)
})
