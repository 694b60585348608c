import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { keyOf, type Live, type Snapshot } from '../../controller/kube/kind.ts'
import { type Change, type Round, Store } from '../../controller/kube/store.ts'

type Thing = { data: { color: string } }

const thing = (
  name: string,
  version: number,
  more: { uid?: string; color?: string; namespace?: string } = {},
): Live<Thing> => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: {
    name,
    namespace: more.namespace ?? 'x',
    uid: more.uid ?? `uid-${name}`,
    resourceVersion: String(version),
    creationTimestamp: '',
    labels: { color: more.color ?? 'red' },
  },
  data: { color: more.color ?? 'red' },
})

const byColor = { color: (object: Live<Thing>) => [object.data.color] }
const colors = ['red', 'green', 'blue']
const versionOf = (object: Snapshot<Thing> | undefined) => Number(object?.metadata.resourceVersion ?? 0)
const clone = (object: Live<Thing>): Live<Thing> => structuredClone(object)

/** Whether a value cannot be changed anywhere. */
function isDeeplyFrozen(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true
  return Object.isFrozen(value) && Object.values(value).every(isDeeplyFrozen)
}

/**
 * A server with a log, a watch on it whose news come late, and ourselves, who write and hear the answers late. What must hold of the store
 * is checked at each step.
 */
class World {
  readonly store: Store<Thing>
  #version = 0
  /** What exists. */
  #there = new Map<string, Live<Thing>>()
  #log: { type: 'put' | 'removed'; object: Live<Thing> }[] = []
  /** How much of the log the watch has brought. */
  #cursor = 0
  /** Answers that are on their way to us. */
  #answers: (() => void)[] = []
  #round: { round: Round<Thing>; version: number; left: Live<Thing>[]; log: number } | undefined
  /** Everything that listeners made of what they heard. */
  readonly #heard = new Map<string, Snapshot<Thing>>()
  /** Below these nothing may be seen again, by key. */
  readonly #floor = new Map<string, number>()
  readonly #erased = new Set<string>()
  #rolledBack = false

  constructor() {
    this.store = new Store<Thing>({ indices: byColor })
    this.store.subscribe(change => this.#hear(change))
    this.relist()
    this.finishRound()
  }

  #hear(change: Change<Thing>): void {
    const { key, object, type } = change
    const before = this.#heard.get(key)
    if (type === 'added') expect(before, `${key} is added once`).toBeUndefined()
    if (type === 'changed') expect(change.old, `${key} changed from what it was`).toBe(before)
    if (type === 'removed') expect(before, `${key} was there to be removed`).toBeDefined()
    expect(isDeeplyFrozen(object)).toBe(true)
    if (type === 'removed') this.#heard.delete(key)
    else this.#heard.set(key, object)
    if (this.#rolledBack) return
    const version = versionOf(object)
    const floor = this.#floor.get(key) ?? 0
    if (type === 'removed') {
      expect(version, `${key} went back when it was removed`).toBeGreaterThanOrEqual(floor)
      this.#floor.set(key, version)
    } else {
      expect(version, `${key} went back`).toBeGreaterThan(floor)
      expect(this.#erased.has(object.metadata.uid), `${key}, which we deleted, came back`).toBe(false)
      this.#floor.set(key, version)
    }
  }

  check(): void {
    const all = new Map(Array.from(this.store.values(), object => [keyOf(object.metadata), object]))
    expect(all, 'listeners heard everything once').toEqual(this.#heard)
    expect(this.store.size).toBe(all.size)
    for (const color of colors) {
      const found = new Set(Array.from(this.store.by('color', color), object => keyOf(object.metadata)))
      const right = new Set(Array.from(all).flatMap(([key, object]) => (object.data.color === color ? [key] : [])))
      expect(found, `the index of ${color}`).toEqual(right)
    }
  }

  /** Somebody writes or deletes on the server. */
  #act(name: string, color: string, isDeletion: boolean): Live<Thing> | undefined {
    const key = `x/${name}`
    const before = this.#there.get(key)
    if (isDeletion && !before) return undefined
    const version = ++this.#version
    const uid = before?.metadata.uid ?? `uid-${name}-${version}`
    const object = thing(name, version, { uid, color })
    if (isDeletion) this.#there.delete(key)
    else this.#there.set(key, object)
    this.#log.push({ type: isDeletion ? 'removed' : 'put', object })
    return object
  }

  others(name: string, color: string, isDeletion: boolean): void {
    this.#act(name, color, isDeletion)
  }

  /** We write or delete: the server acts now, the answer comes later. */
  ourselves(name: string, color: string, isDeletion: boolean): void {
    const key = `x/${name}`
    const uid = this.#there.get(key)?.metadata.uid
    const object = this.#act(name, color, isDeletion)
    if (!object) return
    this.#answers.push(() => {
      const version = Number(object.metadata.resourceVersion)
      if (isDeletion) {
        const known = this.store.get(key)
        if (known?.metadata.uid === uid) this.#erased.add(uid as string)
        this.store.erased(key, uid as string)
        expect(this.store.get(key)?.metadata.uid, `${key} is gone when our deletion was answered`).not.toBe(uid)
        return
      }
      const isGone = this.#isToldGone(object)
      this.store.wrote(clone(object))
      // Unless it is known to be gone again, it is there, this version or a newer one.
      if (!isGone)
        expect(versionOf(this.store.get(key)), `${key}, which we wrote, is there`).toBeGreaterThanOrEqual(version)
    })
  }

  /** Whether we have heard already that an object was deleted. */
  #isToldGone({ metadata }: Live<Thing>): boolean {
    if (this.#erased.has(metadata.uid)) return true
    const told = this.#log.slice(0, this.#cursor)
    return told.some(({ type, object }) => type === 'removed' && object.metadata.uid === metadata.uid)
  }

  answer(which: number): void {
    if (this.#answers.length === 0) return
    const [answer] = this.#answers.splice(which % this.#answers.length, 1)
    answer?.()
  }

  /** The next news of the watch; none while a list is read. */
  news(): boolean {
    if (this.#round) return false
    const next = this.#log[this.#cursor]
    if (!next) return false
    this.#cursor++
    if (next.type === 'put') this.store.put(clone(next.object))
    else this.store.remove(clone(next.object))
    return true
  }

  /** What exists is listed anew, from now. As long as a server that went back has not been read whole, it went back. */
  relist(): void {
    this.#begin(this.#rolledBack)
  }

  #begin(rolledBack: boolean): void {
    const left = Array.from(this.#there.values(), clone)
    this.#rolledBack = rolledBack
    this.#round = {
      round: this.store.round(undefined, rolledBack),
      version: this.#version,
      left,
      log: this.#log.length,
    }
  }

  page(): void {
    const next = this.#round?.left.shift()
    if (next) this.#round?.round.put(next)
    else this.finishRound()
  }

  finishRound(): void {
    const current = this.#round
    if (!current) return
    for (const object of current.left) current.round.put(object)
    current.round.prune(String(current.version))
    this.#cursor = current.log
    this.#round = undefined
    this.#rolledBack = false
  }

  /** The server is restored from an older copy, and everything begins anew from there. */
  rollBack(by: number): void {
    this.finishRound()
    this.#answers = []
    this.#version = Math.max(0, this.#version - by)
    this.#log = this.#log.filter(({ object }) => Number(object.metadata.resourceVersion) <= this.#version)
    this.#there = new Map()
    for (const { type, object } of this.#log) {
      if (type === 'put') this.#there.set(keyOf(object.metadata), object)
      else this.#there.delete(keyOf(object.metadata))
    }
    this.#floor.clear()
    this.#erased.clear()
    this.#begin(true)
  }

  finish(): void {
    this.finishRound()
    while (this.#answers.length > 0) this.answer(0)
    while (this.news());
    this.check()
    const copy = new Map(Array.from(this.store.values(), object => [keyOf(object.metadata), object]))
    expect(copy, 'the copy is what exists').toEqual(this.#there)
  }
}

const name = fc.constantFrom('a', 'b', 'c')
const write = fc.record({ name, color: fc.constantFrom(...colors), isDeletion: fc.boolean() })
type Move = (world: World) => void
const move = fc.oneof(
  {
    weight: 4,
    arbitrary: write.map(w => [
      `others ${w.name} ${w.isDeletion}`,
      (world: World) => world.others(w.name, w.color, w.isDeletion),
    ]),
  },
  {
    weight: 6,
    arbitrary: write.map(w => [
      `ourselves ${w.name} ${w.isDeletion}`,
      (world: World) => world.ourselves(w.name, w.color, w.isDeletion),
    ]),
  },
  { weight: 6, arbitrary: fc.nat({ max: 5 }).map(which => [`answer ${which}`, (world: World) => world.answer(which)]) },
  { weight: 6, arbitrary: fc.constant(['news', (world: World) => world.news()]) },
  { weight: 1, arbitrary: fc.constant(['relist', (world: World) => world.relist()]) },
  { weight: 3, arbitrary: fc.constant(['page', (world: World) => world.page()]) },
) as fc.Arbitrary<[string, Move]>
const rollBack: fc.Arbitrary<[string, Move]> = fc
  .integer({ min: 1, max: 8 })
  .map(by => [`rollBack ${by}`, world => world.rollBack(by)])

function live(moves: [string, Move][]): void {
  const world = new World()
  for (const [, run] of moves) {
    run(world)
    world.check()
  }
  world.finish()
}

describe('a store', () => {
  it('is never older than what was seen or written, and in the end what exists, in whatever order news and answers come', () => {
    fc.assert(fc.property(fc.array(move, { maxLength: 50 }), live), { numRuns: 3000 })
  })

  it('believes a server that went back, and what we wrote to it meanwhile', () => {
    const moves = fc.array(fc.oneof({ weight: 20, arbitrary: move }, { weight: 1, arbitrary: rollBack }), {
      maxLength: 60,
    })
    fc.assert(fc.property(moves, live), { numRuns: 2000 })
  })

  it('is not taken in by the answer to a write that comes after the news of the deletion', () => {
    const store = new Store<Thing>()
    store.round(undefined, false).prune('10')
    store.put(thing('a', 11))
    store.remove(thing('a', 12))
    store.wrote(thing('a', 11))
    expect(store.get('x/a')).toBeUndefined()
  })

  it('is not taken in by it while a new list is being read, either', () => {
    const store = new Store<Thing>()
    store.round(undefined, false).prune('10')
    const round = store.round(undefined, false)
    store.wrote(thing('a', 11))
    expect(store.get('x/a')).toBeDefined()
    round.prune('12')
    expect(store.get('x/a')).toBeUndefined()
  })

  it('shows nothing again that we deleted, though older news of it are on their way', () => {
    const store = new Store<Thing>()
    const round = store.round(undefined, false)
    round.put(thing('a', 5))
    round.prune('10')
    store.erased('x/a', 'uid-a')
    store.put(thing('a', 11))
    expect(store.get('x/a')).toBeUndefined()
    store.wrote(thing('a', 13, { uid: 'second' }))
    store.erased('x/a', 'second')
    // What we deleted first had been changed by somebody else before.
    store.put(thing('a', 11))
    store.remove(thing('a', 12))
    store.put(thing('a', 13, { uid: 'second' }))
    expect(store.get('x/a')).toBeUndefined()
    store.remove(thing('a', 14, { uid: 'second' }))
    store.put(thing('a', 15, { uid: 'third' }))
    expect(store.get('x/a')?.metadata.uid).toBe('third')
  })

  it('keeps to that while a list from before the deletion is read', () => {
    const store = new Store<Thing>()
    const first = store.round(undefined, false)
    first.put(thing('a', 5))
    first.prune('10')
    const round = store.round(undefined, false)
    store.erased('x/a', 'uid-a')
    round.put(thing('a', 11))
    round.prune('11')
    store.put(thing('a', 12))
    expect(store.get('x/a')).toBeUndefined()
  })

  it('loses at once what we wrote out of what is kept, and has it again when we write it back', () => {
    const store = new Store<Thing>()
    store.round(undefined, false).prune('10')
    store.put(thing('a', 11))
    store.left(thing('a', 15))
    expect(store.get('x/a')).toBeUndefined()
    // Older news of it are still on their way.
    store.put(thing('a', 12))
    store.put(thing('a', 14))
    expect(store.get('x/a')).toBeUndefined()
    store.wrote(thing('a', 16))
    expect(versionOf(store.get('x/a'))).toBe(16)
    store.left(thing('a', 15))
    store.remove(thing('a', 15))
    expect(versionOf(store.get('x/a'))).toBe(16)
    store.left(thing('a', 17, { uid: 'namesake' }))
    store.remove(thing('a', 17))
    store.put(thing('a', 18))
    expect(versionOf(store.get('x/a'))).toBe(18)
  })

  it('keeps to both, though it had left and come back before, which is told only now', () => {
    const store = new Store<Thing>()
    store.round(undefined, false).prune('10')
    store.put(thing('a', 11))
    store.put(thing('b', 11))
    store.left(thing('a', 20))
    store.erased('x/b', 'uid-b')
    for (const name of ['a', 'b']) {
      store.remove(thing(name, 13))
      store.put(thing(name, 15))
      expect(store.get(`x/${name}`)).toBeUndefined()
    }
    store.remove(thing('a', 20))
    store.remove(thing('b', 20))
    store.put(thing('a', 21))
    store.put(thing('b', 22, { uid: 'another' }))
    expect(store.size).toBe(2)
  })

  it('remembers a thousand deletions, no more', () => {
    const store = new Store<Thing>()
    for (let i = 0; i <= 1000; i++) {
      store.put(thing(`n${i}`, i + 1))
      store.erased(`x/n${i}`, `uid-n${i}`)
    }
    store.put(thing('n1', 5000))
    expect(store.size).toBe(0)
    store.put(thing('n0', 5001))
    expect(store.size).toBe(1)
  })

  it('is not taken in by an answer to a write from before the kind was no longer served', () => {
    const store = new Store<Thing>()
    store.round(undefined, false).prune('10')
    store.wrote(thing('a', 15))
    store.clear()
    store.wrote(thing('a', 14))
    expect(store.size).toBe(0)
    store.wrote(thing('a', 20, { uid: 'another' }))
    expect(store.size).toBe(1)
  })

  it('keeps namespaces apart: a round over one says nothing of the others', () => {
    const store = new Store<Thing>()
    for (const namespace of ['x', 'y']) {
      const round = store.round(namespace, false)
      round.put(thing('a', 1, { namespace }))
      round.prune('10')
    }
    store.put(thing('b', 50, { namespace: 'y' }))
    // The news of y are further on than those of x.
    store.wrote(thing('c', 20, { namespace: 'x' }))
    expect(store.get('x/c')).toBeDefined()
    store.round('y', false).prune('60')
    expect(Array.from(store.values(), object => keyOf(object.metadata))).toEqual(['x/a', 'x/c'])
    store.clear('x')
    expect(store.size).toBe(0)
  })

  it('takes versions that cannot be compared as they come', () => {
    const store = new Store<Thing>()
    const odd = (version: string, color: string) => {
      const object = thing('a', 0, { color })
      object.metadata.resourceVersion = version
      return object
    }
    store.put(odd('abc', 'red'))
    store.put(odd('abd', 'green'))
    expect(store.get('x/a')?.data.color).toBe('green')
    store.put(odd('abd', 'blue'))
    expect(store.get('x/a')?.data.color).toBe('green')
  })

  it('hands out nothing that can be changed, in whatever way it is got', () => {
    const store = new Store<Thing>({ indices: byColor })
    store.put(thing('a', 1))
    store.put(thing('b', 1))
    store.put(thing('c', 1))
    const got = [store.get('x/a'), [...store.by('color', 'red')][1], [...store.values()][2]]
    store.subscribe(({ object }) => got.push(object))
    store.wrote(thing('d', 2))
    expect(got).toHaveLength(7)
    for (const object of got) {
      expect(isDeeplyFrozen(object)).toBe(true)
      expect(() => {
        ;(object as unknown as Live<Thing>).metadata.labels = {}
      }).toThrow(TypeError)
    }
  })
})

describe('a listener', () => {
  it('hears first what is there, as no news, then each change once', () => {
    const store = new Store<Thing>()
    store.put(thing('a', 1))
    const heard: string[] = []
    const stop = store.subscribe(({ type, key, object, initial, own }) => {
      heard.push(`${type} ${key} ${object.metadata.resourceVersion}${initial ? ' initial' : ''}${own ? ' own' : ''}`)
    })
    store.put(thing('a', 2))
    store.put(thing('a', 2))
    store.put(thing('a', 1))
    store.wrote(thing('b', 3))
    store.put(thing('b', 3))
    store.remove(thing('a', 4))
    store.remove(thing('a', 4))
    store.erased('x/b', 'uid-b')
    store.remove(thing('b', 5))
    const round = store.round(undefined, false)
    round.put(thing('c', 6))
    round.prune('6')
    store.clear()
    stop()
    store.put(thing('d', 7))
    expect(heard).toEqual([
      'added x/a 1 initial',
      'changed x/a 2',
      'added x/b 3 own',
      'removed x/a 4',
      'removed x/b 3 own',
      'added x/c 6 initial',
      'removed x/c 6',
    ])
  })

  it('that throws disturbs nobody, and is heard of', () => {
    const errors: unknown[] = []
    const store = new Store<Thing>({ indices: byColor, onError: error => errors.push(error) })
    let heard = 0
    store.subscribe(() => {
      throw new Error('broken')
    })
    store.subscribe(() => heard++)
    store.put(thing('a', 1))
    store.put(thing('a', 2, { color: 'green' }))
    expect(heard).toBe(2)
    expect(errors).toHaveLength(2)
    expect([...store.by('color', 'green')]).toHaveLength(1)
  })

  it('that subscribes another does not make it hear twice', () => {
    const store = new Store<Thing>()
    const heard: string[] = []
    let isFirst = true
    store.subscribe(() => {
      if (isFirst) store.subscribe(({ key, object }) => heard.push(`${key} ${object.metadata.resourceVersion}`))
      isFirst = false
    })
    store.put(thing('a', 1))
    store.put(thing('a', 2))
    expect(heard).toEqual(['x/a 1', 'x/a 2'])
  })

  it('that was stopped by another hears nothing more', () => {
    const store = new Store<Thing>()
    let heard = 0
    const stops: (() => void)[] = []
    store.subscribe(() => {
      for (const stop of stops) stop()
    })
    stops.push(store.subscribe(() => heard++))
    store.put(thing('a', 1))
    expect(heard).toBe(0)
  })
})

describe('an index', () => {
  it('that is added late covers what is there', () => {
    const store = new Store<Thing>()
    store.put(thing('a', 1))
    store.put(thing('b', 1, { color: 'green' }))
    store.addIndex('color', byColor.color)
    expect(store.hasIndex('color')).toBe(true)
    expect(Array.from(store.by('color', 'green'), object => object.metadata.name)).toEqual(['b'])
    expect([...store.by('color', 'mauve')]).toEqual([])
  })

  it('that is not there is named, with those that are', () => {
    const store = new Store<Thing>({ indices: byColor })
    expect(() => [...store.by('size', 'x')]).toThrow('no index "size" (there are: color)')
  })

  it('may give several values, or one twice, or none', () => {
    const store = new Store<Thing>({ indices: { letters: object => [...object.data.color] } })
    store.put(thing('a', 1, { color: 'aab' }))
    store.put(thing('b', 1, { color: 'b' }))
    const names = (letter: string) => Array.from(store.by('letters', letter), object => object.metadata.name)
    expect(names('b')).toEqual(['a', 'b'])
    store.put(thing('a', 2, { color: 'ac' }))
    expect([names('a'), names('b'), names('c')]).toEqual([['a'], ['b'], ['a']])
    store.put(thing('a', 3, { color: '' }))
    expect([names('a'), names('b'), names('c')]).toEqual([[], ['b'], []])
  })

  it('that throws for one object loses neither the object nor the others', () => {
    const errors: unknown[] = []
    const store = new Store<Thing>({
      indices: {
        bad: object => {
          if (object.metadata.name === 'a') throw new Error('odd')
          return ['x']
        },
        ...byColor,
      },
      onError: error => errors.push(error),
    })
    const heard: string[] = []
    store.subscribe(({ key }) => heard.push(key))
    store.put(thing('a', 1))
    store.put(thing('b', 1))
    expect(heard).toEqual(['x/a', 'x/b'])
    expect([...store.by('color', 'red')]).toHaveLength(2)
    expect([...store.by('bad', 'x')]).toHaveLength(1)
    expect(errors.length).toBeGreaterThan(0)
  })
})

describe('a transform', () => {
  it('sees each object before it is kept, the removed one too', () => {
    const store = new Store<Thing>({
      transform: object => {
        object.data.color = object.data.color.toUpperCase()
      },
      indices: byColor,
    })
    const heard: string[] = []
    store.subscribe(({ type, object }) => heard.push(`${type} ${object.data.color}`))
    store.put(thing('a', 1))
    store.remove(thing('a', 2, { color: 'green' }))
    store.wrote(thing('a', 3))
    expect(heard).toEqual(['added RED', 'removed GREEN', 'added RED'])
    expect([...store.by('color', 'RED')]).toHaveLength(1)
  })

  it('that throws costs nobody the object', () => {
    const errors: unknown[] = []
    const store = new Store<Thing>({
      transform: () => {
        throw new Error('odd')
      },
      onError: error => errors.push(error),
    })
    store.put(thing('a', 1))
    expect(store.get('x/a')).toBeDefined()
    expect(errors).toHaveLength(1)
  })
})
