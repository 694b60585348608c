import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { decodeContinue, encodeContinue } from '../../../devcluster/api/store/continue.ts'
import type { Change } from '../../../devcluster/api/store/shelf.ts'
import { Compacted, createStore, Stale } from '../../../devcluster/api/store/store.ts'
import type { Obj } from '../../../devcluster/api/types.ts'

const maps = '/configmaps'
const map = (name: string, data: Record<string, string> = {}, namespace = 'default'): Obj => ({
  kind: 'ConfigMap',
  apiVersion: 'v1',
  metadata: { name, namespace, uid: name, resourceVersion: '', creationTimestamp: '' },
  data,
})
const namesOf = (objects: readonly Obj[]) => objects.map(({ metadata }) => metadata.name)

test('each change has the next revision, and an object that of its last change', () => {
  const store = createStore()
  const first = store.write(maps, map('a'), undefined)
  const second = store.write(maps, map('a', { x: '1' }), first)
  expect(Number(second.metadata.resourceVersion)).toBe(Number(first.metadata.resourceVersion) + 1)
  const gone = store.remove(maps, second)
  expect(gone.metadata.resourceVersion).toBe(String(store.revision))
  expect(store.get(maps, 'default', 'a')).toBeUndefined()
})

test('a write in the place of what is no longer there is refused', () => {
  const store = createStore()
  const first = store.write(maps, map('a'), undefined)
  const second = store.write(maps, map('a', { x: '1' }), first)
  expect(() => store.write(maps, map('a', { x: '2' }), first)).toThrow(Stale)
  expect(() => store.write(maps, map('a'), undefined)).toThrow(Stale)
  expect(() => store.remove(maps, first)).toThrow(Stale)
  expect(store.get(maps, 'default', 'a')).toBe(second)
})

test('a list at a revision is what was there then, whatever is written after it', () => {
  const store = createStore()
  const b = store.write(maps, map('b'), undefined)
  const d = store.write(maps, map('d', { x: '1' }), undefined)
  const at = store.revision
  store.write(maps, map('a'), undefined)
  store.write(maps, map('c'), undefined)
  store.remove(maps, b)
  store.write(maps, map('d', { x: '2' }), d)
  expect(namesOf(store.page(maps).items)).toEqual(['a', 'c', 'd'])
  const then = store.page(maps, { at })
  expect(namesOf(then.items)).toEqual(['b', 'd'])
  expect(then.items[1]).toBe(d)
})

test('pages hold together over writes, and say how many follow', () => {
  const store = createStore()
  for (const name of ['a', 'b', 'c', 'd', 'e']) store.write(maps, map(name), undefined)
  store.write(maps, map('z', {}, 'other'), undefined)
  const first = store.page(maps, { namespace: 'default', limit: 2 })
  expect([namesOf(first.items), first.remaining]).toEqual([['a', 'b'], 3])
  store.write(maps, map('bb'), undefined)
  store.remove(maps, store.get(maps, 'default', 'd') as Obj)
  const second = store.page(maps, { namespace: 'default', limit: 2, at: first.revision, after: first.next })
  expect([namesOf(second.items), second.remaining]).toEqual([['c', 'd'], 1])
  const last = store.page(maps, { namespace: 'default', limit: 2, at: first.revision, after: second.next })
  expect([namesOf(last.items), last.next]).toEqual([['e'], undefined])
})

test('a namespace is not mixed up with one whose name begins alike', () => {
  const store = createStore()
  for (const namespace of ['a', 'a-b', 'ab']) store.write(maps, map('x', {}, namespace), undefined)
  expect(store.page(maps, { namespace: 'a' }).items.map(({ metadata }) => metadata.namespace)).toEqual(['a'])
})

test('a watch from a revision gets each later change of its namespace once, in order', () => {
  const store = createStore()
  const a = store.write(maps, map('a'), undefined)
  const from = store.revision
  store.write(maps, map('b'), undefined)
  store.write(maps, map('x', {}, 'other'), undefined)
  const seen: Change[] = []
  const stop = store.watch(maps, 'default', from, change => seen.push(change))
  store.remove(maps, a)
  stop()
  store.write(maps, map('c'), undefined)
  expect(seen.map(({ object, previous }) => [object?.metadata.name, previous?.metadata.name])).toEqual([
    ['b', undefined],
    [undefined, 'a'],
  ])
})

test('history is bounded: what is older is refused, not guessed', () => {
  const store = createStore({ history: 4 })
  const from = store.revision
  for (let i = 0; i < 20; i++) store.write(maps, map(`m${i}`), undefined)
  expect(() => store.watch(maps, undefined, from, () => {})).toThrow(Compacted)
  expect(() => store.page(maps, { at: from })).toThrow(Compacted)
  const seen: string[] = []
  store.watch(maps, undefined, store.revision - 4, ({ object }) => seen.push(object?.metadata.name ?? ''))
  expect(seen).toEqual(['m16', 'm17', 'm18', 'm19'])
})

test('compaction ends the history of every resource up to now', () => {
  const store = createStore()
  const from = store.revision
  store.write(maps, map('a'), undefined)
  store.compact()
  expect(() => store.watch(maps, undefined, from, () => {})).toThrow(Compacted)
  expect(() => store.watch(maps, undefined, store.revision, () => {})).not.toThrow()
})

test('a file has everything after the process was killed, under the same revision', () => {
  const folder = mkdtempSync(join(tmpdir(), 'store-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'cluster.db')
  const program = `
    const { createStore } = await import(${JSON.stringify(new URL('../../../devcluster/api/store/store.ts', import.meta.url).href)})
    const store = createStore({ file: ${JSON.stringify(file)} })
    const made = name => ({ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name, namespace: 'default', uid: name, resourceVersion: '', creationTimestamp: '' } })
    const a = store.write('/configmaps', made('a'), undefined)
    store.write('/configmaps', made('b'), undefined)
    store.remove('/configmaps', a)
    process.stdout.write(String(store.revision))
    process.kill(process.pid, 'SIGKILL')`
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  expect(child.signal, child.stderr).toBe('SIGKILL')
  const store = createStore({ file })
  onTestFinished(() => store.close())
  expect(String(store.revision)).toBe(child.stdout)
  expect(namesOf(store.page(maps).items)).toEqual(['b'])
  // What was before is not known any more, and said so.
  expect(() => store.watch(maps, undefined, store.revision - 1, () => {})).toThrow(Compacted)
})

test('a continue token is what it was made of; anything else is refused', () => {
  const token = encodeContinue({ revision: 7, after: 'p1' }, true)
  expect(decodeContinue(token)).toEqual({ revision: 7, after: 'p1' })
  expect(() => decodeContinue('abc')).toThrow(/invalid continue token: continue key is not valid/)
})
