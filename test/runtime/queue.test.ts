/**
 * What the queue promises: one case at a time, and against a naive model of it that knows no lines, tickets or turns.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { type Item, priorities, Queue, type QueueEvent, type QueueOptions } from '../../controller/runtime/queue.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'

const seed = Number(process.env.SHIPMATE_SEED ?? 1)
const numRuns = 10 * Number(process.env.SHIPMATE_SCHEDULES ?? 20)

let clock: VirtualClock
let queue: Queue

beforeEach(() => {
  clock = new VirtualClock()
  queue = queueWith()
})

function queueWith(options: QueueOptions = {}): Queue {
  return new Queue({ clock, backoff: { first: 10, longest: 1000, jitter: 0 }, random: () => 0, ...options })
}

function add(key: string, reason = 'changed', priority?: number): void {
  queue.add(key, { reason, priority })
}

async function take(): Promise<Item> {
  const item = await queue.take()
  if (!item) throw new Error('the queue is closed')
  return item
}

/** Takes and ends all that waits, without moving on in time. */
async function drain(): Promise<Item[]> {
  const items: Item[] = []
  while (queue.length > 0) {
    const item = await take()
    items.push(item)
    queue.done(item.key)
  }
  return items
}

const keysOf = (items: readonly Item[]) => items.map(item => item.key)

/** Whether a taker gets something without time moving on. */
async function isTaken(taking: Promise<Item | undefined>): Promise<boolean> {
  let taken = false
  void taking.then(() => {
    taken = true
  })
  await clock.advance(0)
  return taken
}

describe('a key', () => {
  it('waits once, however often it is added', async () => {
    for (let i = 0; i < 5; i++) add('a/x')
    expect(queue.length).toBe(1)
    expect(keysOf(await drain())).toEqual(['a/x'])
  })

  it('is never worked on twice at the same time, and once more for what came meanwhile', async () => {
    add('a/x', 'first')
    const item = await take()
    add('a/x', 'second')
    add('a/x', 'third')
    expect(queue.length).toBe(0)
    const other = queue.take()
    expect(await isTaken(other)).toBe(false)
    queue.done(item.key)
    expect(await other).toMatchObject({ key: 'a/x', reasons: ['second', 'third'] })
  })

  it('is handed to whoever has waited longest for work', async () => {
    const takers = [queue.take(), queue.take()]
    add('a/x')
    add('a/y')
    expect(await Promise.all(takers)).toMatchObject([{ key: 'a/x' }, { key: 'a/y' }])
  })

  it('says since when it has waited', async () => {
    await clock.advance(100)
    add('a/x', 'changed', priorities.initial)
    await clock.advance(50)
    add('a/x')
    expect((await take()).since).toBe(100)
  })

  it('cannot be ended by who does not work on it', () => {
    add('a/x')
    expect(() => queue.done('a/x')).toThrow('"a/x" is not being worked on')
    expect(() => queue.retry('a/y', 'x')).toThrow('"a/y" is not being worked on')
    expect(() => queue.comeBack('a/y', 'x', 1)).toThrow('"a/y" is not being worked on')
    expect(() => queue.hold('a/y', 1)).toThrow('"a/y" is not being worked on')
  })
})

describe('reasons', () => {
  it('are merged, each once, the oldest first', async () => {
    for (const reason of ['b', 'a', 'b', 'c']) add('a/x', reason)
    expect((await take()).reasons).toEqual(['b', 'a', 'c'])
  })

  it('are at most 16, then it is said how many came after them', async () => {
    for (let i = 0; i < 20; i++) add('a/x', `reason ${i}`)
    add('a/x', 'reason 3')
    const { reasons } = await take()
    expect(reasons).toHaveLength(17)
    expect(reasons[0]).toBe('reason 0')
    expect(reasons[16]).toBe('and 4 more')
  })

  it('of the last time are not given again', async () => {
    add('a/x', 'old')
    await drain()
    add('a/x', 'new')
    expect((await take()).reasons).toEqual(['new'])
  })

  it('of additions with a delay are all kept, whichever is due first', async () => {
    queue.add('a/x', { reason: 'in 100', after: 100 })
    queue.add('a/x', { reason: 'in 50', after: 50 })
    queue.add('a/x', { reason: 'in 200', after: 200 })
    await clock.advance(50)
    expect((await take()).reasons).toEqual(['in 100', 'in 50', 'in 200'])
  })

  it('that are handed over do not change afterwards', async () => {
    add('a/x', 'first')
    const { reasons } = await take()
    add('a/x', 'second')
    expect(reasons).toEqual(['first'])
  })
})

describe('priorities', () => {
  it('go first', async () => {
    add('a/low', 'x', -100)
    add('a/high', 'x', 100)
    add('a/fresh')
    expect(keysOf(await drain())).toEqual(['a/high', 'a/fresh', 'a/low'])
  })

  it('of a key are the highest of its additions', async () => {
    add('a/x', 'x', -100)
    add('a/y', 'x', -50)
    add('a/x', 'x', 5)
    add('a/x', 'x', -200)
    const [x, y] = await drain()
    expect(x).toMatchObject({ key: 'a/x', priority: 5 })
    expect(y).toMatchObject({ key: 'a/y', priority: -50 })
  })

  it('of additions with a delay are the highest too', async () => {
    queue.add('a/x', { reason: 'x', after: 10, priority: 7 })
    queue.add('a/x', { reason: 'x', after: 5, priority: -100 })
    await clock.advance(10)
    expect((await take()).priority).toBe(7)
  })

  it('of a key that was added while it was worked on are those of the new additions', async () => {
    add('a/x', 'x', 10)
    const { key } = await take()
    add('a/x', 'x', -100)
    add('a/x', 'x', -50)
    queue.done(key)
    expect((await take()).priority).toBe(-50)
  })

  it('are never starved: the lowest gets every eighth turn of a flood', async () => {
    for (let i = 0; i < 100; i++) add(`a/high-${i}`)
    for (let i = 0; i < 5; i++) add(`a/low-${i}`, 'x', priorities.initial)
    const turns = keysOf(await drain())
    const low = turns.flatMap((key, i) => (key.startsWith('a/low') ? [i] : []))
    for (const [i, turn] of low.entries()) expect(turn, `the turn of low ${i}`).toBeLessThanOrEqual(8 * (i + 1))
  })

  it('are never starved, neither the lowest nor those in between, while others keep coming', async () => {
    const levels = [10, 0, -50, -100]
    const served = new Map<number, number>()
    for (const level of levels) for (let i = 0; i < 3; i++) add(`a/${level}/${i}`, 'x', level)
    for (let turn = 0; turn < 200; turn++) {
      const { key, priority } = await take()
      queue.done(key)
      served.set(priority, (served.get(priority) ?? 0) + 1)
      add(key, 'x', priority)
    }
    for (const level of levels) expect(served.get(level), `turns of priority ${level}`).toBeGreaterThanOrEqual(8)
    expect(served.get(10), 'turns of the highest priority').toBeGreaterThanOrEqual(7 * 25)
  })

  it('that are made up anew each time neither pile up nor slow anything down', async () => {
    for (let i = 0; i < 20_000; i++) {
      add('a/x', 'x', i % 2 === 0 ? i : -i)
      add(`a/${i}`, 'x', -i / 3)
      await drain()
    }
    expect(queue.length).toBe(0)
  })
})

describe('namespaces', () => {
  it('take turns: ten thousand keys of one delay the only key of another by one turn', async () => {
    for (let i = 0; i < 10_000; i++) add(`crowd/${i}`)
    add('lonely/x')
    expect(keysOf([await take(), await take()])).toContain('lonely/x')
  })

  it('take turns, all of them, whatever their numbers', async () => {
    for (let i = 0; i < 100; i++) add(`a/${i}`)
    for (let i = 0; i < 10; i++) add(`b/${i}`)
    for (let i = 0; i < 10; i++) add(`${i}`)
    const first = keysOf(await drain()).slice(0, 30)
    for (let i = 0; i < 30; i += 3) {
      const three = first.slice(i, i + 3).map(key => key.slice(0, Math.max(key.indexOf('/'), 0)))
      expect(new Set(three)).toEqual(new Set(['a', 'b', '']))
    }
  })

  it('are first come, first served within', async () => {
    for (const key of ['a/3', 'a/1', 'b/9', 'a/2']) add(key)
    expect(keysOf(await drain()).filter(key => key.startsWith('a'))).toEqual(['a/3', 'a/1', 'a/2'])
  })

  it('can be something else than what stands before the slash', async () => {
    queue = queueWith({ namespaceOf: key => key.slice(-1) })
    for (const key of ['1a', '2a', '3a', '4b']) add(key)
    expect(keysOf(await drain()).slice(0, 2)).toContain('4b')
  })

  it('do not lose their turn to keys that have moved to a better priority', async () => {
    for (let i = 0; i < 100; i++) add(`a/${i}`, 'x', -100)
    add('b/x', 'x', -100)
    for (let i = 0; i < 100; i++) add(`a/${i}`, 'x', 0)
    const keys = keysOf(await drain())
    expect(keys).toHaveLength(101)
    expect(keys.indexOf('b/x')).toBeLessThan(8)
  })
})

describe('backoff', () => {
  it('doubles with each failure of the key, up to the longest, and ends with a success', async () => {
    const waits: number[] = []
    add('a/x')
    for (let i = 0; i < 9; i++) {
      const item = await take()
      expect(item.failures).toBe(i)
      waits.push(queue.retry('a/x', 'failed'))
      await clock.advance(waits.at(-1) as number)
    }
    expect(waits).toEqual([10, 20, 40, 80, 160, 320, 640, 1000, 1000])
    await take()
    queue.done('a/x')
    add('a/x')
    await take()
    expect(queue.retry('a/x', 'failed')).toBe(10)
  })

  it("is each key's own", async () => {
    add('a/x')
    add('a/y')
    await take()
    queue.retry('a/x', 'failed')
    await take()
    expect(queue.retry('a/y', 'failed')).toBe(10)
  })

  it('does not hold up an addition from outside, nor is it ended by one', async () => {
    add('a/x')
    await take()
    queue.retry('a/x', 'failed')
    add('a/x', 'news')
    expect(await take()).toMatchObject({ reasons: ['news'], failures: 1 })
    expect(queue.retry('a/x', 'failed')).toBe(20)
  })

  it('does not hold up what came while it failed', async () => {
    add('a/x')
    await take()
    add('a/x', 'news')
    queue.retry('a/x', 'failed')
    expect(await take()).toMatchObject({ reasons: ['news'], failures: 1 })
  })

  it('is not fed by additions, however many come', async () => {
    add('a/x')
    await take()
    queue.retry('a/x', 'failed')
    for (let i = 0; i < 10; i++) add('a/x')
    await take()
    queue.comeBack('a/x', 'later', 5)
    await clock.advance(5)
    expect(await take()).toMatchObject({ failures: 0 })
    expect(queue.retry('a/x', 'failed')).toBe(10)
  })

  it('gives way to a longer wait that the server asked for', async () => {
    add('a/x')
    await take()
    expect(queue.retry('a/x', 'slow down', 5000)).toBe(5000)
    await clock.advance(4999)
    expect(queue.length).toBe(0)
    await clock.advance(1)
    expect(await take()).toMatchObject({ reasons: ['slow down'] })
  })
})

describe('delays', () => {
  it('are waited for', async () => {
    queue.add('a/x', { reason: 'later', after: 100 })
    await clock.advance(99)
    expect(queue.length).toBe(0)
    await clock.advance(1)
    expect(keysOf(await drain())).toEqual(['a/x'])
  })

  it('of one key are the earliest of them', async () => {
    for (const after of [100, 50, 200]) queue.add('a/x', { reason: 'later', after })
    await clock.advance(50)
    expect(keysOf(await drain())).toEqual(['a/x'])
    expect(clock.pending).toBe(0)
  })

  it('do not end because the key was worked on before', async () => {
    queue.add('a/x', { reason: 'later', after: 100 })
    add('a/x', 'now')
    expect((await drain())[0]?.reasons).toEqual(['now'])
    await clock.advance(100)
    expect((await drain())[0]?.reasons).toEqual(['later'])
  })

  it.each([0, -5, Number.NaN])('of %s are none', async after => {
    queue.add('a/x', { reason: 'x', after })
    expect(queue.length).toBe(1)
  })

  it('that end while the key is worked on lead to work afterwards', async () => {
    add('a/x')
    await take()
    queue.add('a/x', { reason: 'later', after: 10 })
    await clock.advance(10)
    expect(queue.length).toBe(0)
    queue.done('a/x')
    expect((await take()).reasons).toEqual(['later'])
  })
})

describe('coming back', () => {
  it('happens when it was wished', async () => {
    add('a/x')
    await take()
    queue.comeBack('a/x', 'look again', 100)
    await clock.advance(99)
    expect(queue.length).toBe(0)
    await clock.advance(1)
    expect(await take()).toMatchObject({ reasons: ['look again'], failures: 0 })
  })

  it('is decided anew by each outcome', async () => {
    add('a/x')
    await take()
    queue.comeBack('a/x', 'old wish', 100)
    await clock.advance(50)
    add('a/x', 'news')
    await take()
    queue.comeBack('a/x', 'new wish', 100)
    await clock.advance(60)
    expect(queue.length, 'the old wish is void').toBe(0)
    await clock.advance(40)
    expect((await take()).reasons).toEqual(['new wish'])
    queue.done('a/x')
    expect(clock.pending, 'timers left').toBe(0)
  })

  it('is not wished any more after an outcome that does not wish it', async () => {
    add('a/x')
    await take()
    queue.comeBack('a/x', 'old wish', 100)
    add('a/x', 'news')
    await take()
    queue.done('a/x')
    expect(clock.pending).toBe(0)
  })

  it('does not move a delay that somebody else asked for', async () => {
    queue.add('a/x', { reason: 'appointment', after: 30 })
    add('a/x', 'now')
    await take()
    queue.comeBack('a/x', 'look again', 100)
    await clock.advance(30)
    expect((await take()).reasons).toEqual(['appointment'])
  })
})

describe('a hold', () => {
  async function held(ms: number) {
    add('a/x')
    await take()
    queue.hold('a/x', ms)
  }

  it('keeps a key from being handed out, whatever happens', async () => {
    await held(100)
    queue.add('a/x', { reason: 'delayed', after: 10 })
    add('a/x', 'meanwhile')
    queue.retry('a/x', 'failed')
    add('a/x', 'afterwards')
    await clock.advance(99)
    expect(queue.length).toBe(0)
    await clock.advance(1)
    expect((await take()).reasons).toEqual(['meanwhile', 'afterwards', 'delayed', 'failed'])
  })

  it('does not wake a key that nobody wants', async () => {
    await held(100)
    queue.done('a/x')
    await clock.advance(100)
    expect(queue.length).toBe(0)
    expect(clock.pending).toBe(0)
  })

  it('is over when it is over, even while the key is worked on', async () => {
    await held(10)
    await clock.advance(10)
    add('a/x', 'news')
    queue.done('a/x')
    expect((await take()).reasons).toEqual(['news'])
  })

  it('can be ended before its time, and then what came meanwhile is handed out at once', async () => {
    await held(100)
    queue.done('a/x')
    add('a/x', 'news')
    expect(queue.length).toBe(0)
    queue.release('a/x')
    expect((await take()).reasons).toEqual(['news'])
    queue.done('a/x')
    expect(clock.pending).toBe(0)
  })

  it('that there is not can be ended as well', () => {
    queue.release('a/x')
    expect(queue.length).toBe(0)
  })

  it('replaces the one before', async () => {
    await held(100)
    queue.hold('a/x', 10)
    queue.done('a/x')
    add('a/x')
    await clock.advance(10)
    expect(queue.length).toBe(1)
  })

  it('of one key does not concern others', async () => {
    await held(100)
    queue.done('a/x')
    add('a/y')
    expect(keysOf(await drain())).toEqual(['a/y'])
  })
})

describe('closing', () => {
  it('sends takers away, drops what waits, and leaves no timer', async () => {
    const takers = [queue.take(), queue.take()]
    queue.add('a/later', { reason: 'x', after: 100 })
    queue.close()
    expect(await Promise.all(takers)).toEqual([undefined, undefined])
    expect(await queue.take()).toBeUndefined()
    expect(clock.pending).toBe(0)
  })

  it('hears nothing any more', async () => {
    queue.close()
    add('a/x')
    queue.add('a/y', { reason: 'x', after: 5 })
    expect(queue.length).toBe(0)
    expect(await queue.take()).toBeUndefined()
    expect(clock.pending).toBe(0)
  })

  it('lets work under way end in any way, and leaves no timer then either', async () => {
    for (const name of ['done', 'retry', 'comeBack', 'hold', 'failed and held']) add(`a/${name}`)
    for (let i = 0; i < 5; i++) await take()
    queue.hold('a/failed and held', 1000)
    queue.close()
    queue.done('a/done')
    expect(queue.retry('a/retry', 'failed')).toBe(10)
    queue.comeBack('a/comeBack', 'wish', 50)
    queue.hold('a/hold', 60_000)
    queue.done('a/hold')
    queue.retry('a/failed and held', 'failed')
    expect(clock.pending, 'timers left').toBe(0)
    expect(queue.length).toBe(0)
  })

  it('twice is closing once', () => {
    queue.close()
    queue.close()
    expect(queue.length).toBe(0)
  })
})

it('counts keys that begin to wait, and retries', async () => {
  const events: QueueEvent[] = []
  queue = queueWith({ onEvent: event => events.push(event) })
  add('a/x')
  add('a/x')
  await take()
  queue.retry('a/x', 'failed')
  await clock.advance(10)
  await drain()
  expect(events).toEqual(['added', 'retried', 'added'])
})

it('spreads retries by chance, and never waits longer than the backoff says', async () => {
  const plain = new Queue({ clock, random: () => 0.999 })
  plain.add('a/x', { reason: 'x' })
  await plain.take()
  const wait = plain.retry('a/x', 'failed')
  expect(wait).toBeGreaterThanOrEqual(4)
  expect(wait).toBeLessThan(5)
})

it('keeps nothing of keys that are settled', async () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const heap = () => {
    gc()
    return process.memoryUsage().heapUsed / 1048576
  }
  async function round(from: number, to: number) {
    for (let i = from; i < to; i++) {
      const key = `namespace-${i}/a-rather-long-name-of-an-object-${i}`
      add(key, `ConfigMap of-a-rather-long-name-${i} changed`, priorities.initial)
      add(key, `Widget of-a-rather-long-name-${i} changed`, i % 3)
      const item = await take()
      if (i % 5 === 0) {
        queue.retry(item.key, 'failed')
        await clock.advance(10)
        await take()
      }
      queue.done(item.key)
    }
  }
  await round(0, 2000)
  const before = heap()
  await round(2000, 52_000)
  expect(heap() - before, 'MiB kept of 50,000 keys that nobody wants any more').toBeLessThan(2)
})

/** What is wished of one key, told as simply as possible. */
interface Wish {
  isWorked: boolean
  /** To be handed out; with when it began to wait in its line. */
  waits: { priority: number; order: number } | undefined
  reasons: Set<string>
  failures: number
  later: { at: number; reasons: string[]; priority: number } | undefined
  comeback: { at: number; reason: string } | undefined
  heldUntil: number | undefined
}

class Model {
  readonly wishes = new Map<string, Wish>()
  time = 0
  handed = 0
  #order = 0
  readonly #log: string[] = []

  wish(key: string): Wish {
    let wish = this.wishes.get(key)
    if (!wish) {
      wish = {
        isWorked: false,
        waits: undefined,
        reasons: new Set(),
        failures: 0,
        later: undefined,
        comeback: undefined,
        heldUntil: undefined,
      }
      this.wishes.set(key, wish)
    }
    return wish
  }

  say(line: string): void {
    this.#log.push(`${this.time}: ${line}`)
  }

  get story(): string {
    return this.#log.join('\n')
  }

  /** Keys that could be handed out now. */
  get ready(): string[] {
    return [...this.wishes].filter(([, wish]) => this.isReady(wish)).map(([key]) => key)
  }

  isReady(wish: Wish): boolean {
    return wish.waits !== undefined && !wish.isWorked && wish.heldUntil === undefined
  }

  get worked(): string[] {
    return [...this.wishes].filter(([, wish]) => wish.isWorked).map(([key]) => key)
  }

  arrive(key: string, reasons: readonly string[], priority: number): void {
    const wish = this.wish(key)
    for (const reason of reasons) wish.reasons.add(reason)
    if (!wish.waits || priority > wish.waits.priority) wish.waits = { priority, order: this.#order++ }
  }

  /** Whoever waits because of something that ends now gets a new place in its line. */
  #lineUp(wish: Wish): void {
    if (this.isReady(wish) && wish.waits) wish.waits = { ...wish.waits, order: this.#order++ }
  }

  endWork(wish: Wish): void {
    wish.isWorked = false
    this.#lineUp(wish)
  }

  endHold(wish: Wish): void {
    wish.heldUntil = undefined
    this.#lineUp(wish)
  }

  /** When something is due. */
  get due(): number[] {
    const times = [...this.wishes.values()].flatMap(wish => [wish.later?.at, wish.comeback?.at, wish.heldUntil])
    return times.filter(at => at !== undefined)
  }

  /** `ms` or a little more, so that no two things happen at the very same moment: which is first then is left open. */
  apart(ms: number): number {
    let apart = ms
    while (this.due.includes(this.time + apart)) apart += 1 / 1024
    return apart
  }

  /** Everything that is due up to `time` happens. */
  moveTo(time: number): void {
    const due: { at: number; run: () => void }[] = []
    for (const [key, wish] of this.wishes) {
      const { later, comeback, heldUntil } = wish
      if (later && later.at <= time) {
        const run = () => {
          wish.later = undefined
          this.arrive(key, later.reasons, later.priority)
        }
        due.push({ at: later.at, run })
      }
      if (comeback && comeback.at <= time) {
        const run = () => {
          wish.comeback = undefined
          this.arrive(key, [comeback.reason], priorities.fresh)
        }
        due.push({ at: comeback.at, run })
      }
      if (heldUntil !== undefined && heldUntil <= time) due.push({ at: heldUntil, run: () => this.endHold(wish) })
    }
    for (const { run } of due.sort((a, b) => a.at - b.at)) run()
    this.time = time
  }
}

class Real {
  readonly clock = new VirtualClock()
  readonly queue = new Queue({ clock: this.clock, backoff: { first: 10, longest: 100, jitter: 0 }, random: () => 0 })
  /** Items that takers got who had to wait for them, in that order. */
  readonly got: Item[] = []
  takers = 0

  /** Somebody who takes and may have to wait. */
  take(): void {
    this.takers++
    void this.queue.take().then(item => {
      if (!item) return
      this.takers--
      this.got.push(item)
    })
  }
}

/**
 * What the model says of an item that was handed out. `isChosen`: among all that were ready, not because it came first.
 */
function hand(model: Model, item: Item, isChosen: boolean): void {
  model.say(`handed out: ${JSON.stringify(item)}`)
  model.handed++
  const wish = model.wishes.get(item.key)
  if (!wish?.waits) throw new Error(`${item.key} was handed out though nobody wants it\n${model.story}`)
  expect(wish.isWorked, `${item.key} is handed out while it is worked on\n${model.story}`).toBe(false)
  expect(wish.heldUntil, `${item.key} is handed out while it is held\n${model.story}`).toBeUndefined()
  expect([...item.reasons].sort(), `reasons of ${item.key}\n${model.story}`).toEqual([...wish.reasons].sort())
  expect(item.failures, `failures of ${item.key}\n${model.story}`).toBe(wish.failures)
  expect(item.priority, `priority of ${item.key}\n${model.story}`).toBe(wish.waits.priority)
  if (isChosen) {
    const rivals = model.ready.map(key => ({ key, ...(model.wishes.get(key)?.waits as NonNullable<Wish['waits']>) }))
    const highest = Math.max(...rivals.map(rival => rival.priority))
    if (model.handed % 8 !== 0) expect(item.priority, `the priority that has its turn\n${model.story}`).toBe(highest)
    const mates = rivals.filter(rival => rival.priority === item.priority && rival.key[0] === item.key[0])
    const first = mates.reduce((a, b) => (b.order < a.order ? b : a))
    expect(item.key, `first come, first served\n${model.story}`).toBe(first.key)
  }
  Object.assign(wish, { isWorked: true, waits: undefined, reasons: new Set(), comeback: undefined })
}

type Command = fc.AsyncCommand<Model, Real>

/** Something that happens, then what follows from it. */
abstract class Happening implements Command {
  check(_model: Readonly<Model>): boolean {
    return true
  }

  async run(model: Model, real: Real): Promise<void> {
    model.say(String(this))
    await this.happen(model, real)
    await real.clock.advance(0)
    for (const item of real.got.splice(0)) hand(model, item, false)
    expect(real.queue.length, `how many wait\n${model.story}`).toBe(model.ready.length)
    if (real.takers > 0) expect(model.ready, `ready, though somebody waits for work\n${model.story}`).toEqual([])
  }

  abstract happen(model: Model, real: Real): Promise<void> | void
  abstract toString(): string
}

class Add extends Happening {
  readonly key: string
  readonly reason: string
  readonly priority: number
  readonly after: number

  constructor(key: string, reason: string, priority: number, after: number) {
    super()
    this.key = key
    this.reason = reason
    this.priority = priority
    this.after = after
  }

  happen(model: Model, real: Real): void {
    const { key, reason, priority } = this
    const wish = model.wish(key)
    const after = this.after === 0 ? 0 : model.apart(this.after)
    real.queue.add(key, { reason, priority, after })
    if (after === 0) return model.arrive(key, [reason], priority)
    const at = model.time + after
    wish.later = {
      at: Math.min(at, wish.later?.at ?? at),
      reasons: [...(wish.later?.reasons ?? []), reason],
      priority: Math.max(priority, wish.later?.priority ?? priority),
    }
  }

  toString(): string {
    return `add(${this.key}, ${this.reason}, priority ${this.priority}, after ${this.after})`
  }
}

class Take extends Happening {
  async happen(model: Model, real: Real): Promise<void> {
    const isReady = model.ready.length > 0
    real.take()
    await real.clock.advance(0)
    if (!isReady) return
    const item = real.got.shift()
    expect(item, `nothing was handed out though something is ready\n${model.story}`).toBeDefined()
    hand(model, item as Item, true)
  }

  toString(): string {
    return 'take()'
  }
}

class End extends Happening {
  readonly how: 'done' | 'retry' | 'comeBack' | 'hold' | 'release'
  readonly which: number
  readonly ms: number

  constructor(how: 'done' | 'retry' | 'comeBack' | 'hold' | 'release', which: number, ms: number) {
    super()
    this.how = how
    this.which = which
    this.ms = ms
  }

  override check(model: Readonly<Model>): boolean {
    return this.#among(model).length > 0
  }

  happen(model: Model, real: Real): void {
    const { how } = this
    const keys = this.#among(model)
    const key = keys[this.which % keys.length] as string
    const wish = model.wish(key)
    const backoff = how === 'retry' ? Math.min(10 * 2 ** wish.failures, 100) : 0
    const ms = model.apart(Math.max(backoff, this.ms))
    switch (how) {
      case 'done':
        real.queue.done(key)
        wish.failures = 0
        break
      case 'retry':
        wish.failures++
        expect(real.queue.retry(key, 'failed', ms), `how long ${key} waits\n${model.story}`).toBe(ms)
        wish.comeback = { at: model.time + ms, reason: 'failed' }
        break
      case 'comeBack':
        real.queue.comeBack(key, 'wished', ms)
        wish.failures = 0
        wish.comeback = { at: model.time + ms, reason: 'wished' }
        break
      case 'hold':
        real.queue.hold(key, ms)
        wish.heldUntil = model.time + ms
        return
      case 'release':
        real.queue.release(key)
        return model.endHold(wish)
    }
    model.endWork(wish)
  }

  #among(model: Readonly<Model>): string[] {
    if (this.how !== 'release') return model.worked
    return [...model.wishes].filter(([, wish]) => wish.heldUntil !== undefined).map(([key]) => key)
  }

  toString(): string {
    return `${this.how}(one of those, ${this.ms})`
  }
}

class Wait extends Happening {
  readonly ms: number

  constructor(ms: number) {
    super()
    this.ms = ms
  }

  /** Step by step, so that what takers get on the way is told to the model when it happened. */
  async happen(model: Model, real: Real): Promise<void> {
    for (const end = model.time + this.ms; model.time < end; ) {
      const next = Math.min(end, ...model.due)
      await real.clock.advance(next - model.time)
      model.moveTo(next)
      for (const item of real.got.splice(0)) hand(model, item, false)
    }
  }

  toString(): string {
    return `wait(${this.ms})`
  }
}

const timeout = 60_000 + 100 * numRuns

it(`does what a naive model of it does, over ${numRuns} histories from seed ${seed}`, { timeout }, async () => {
  const key = fc.constantFrom('a/1', 'a/2', 'a/3', 'b/1', 'b/2', 'c/1')
  const reason = fc.constantFrom('r1', 'r2', 'r3')
  const ms = fc.integer({ min: 1, max: 25 })
  const which = fc.nat(10)
  const how = fc.constantFrom('done', 'retry', 'comeBack', 'hold', 'release' as const)
  const commands = [
    fc.tuple(key, reason, fc.constantFrom(0, 0, -100, 5)).map(args => new Add(...args, 0)),
    fc.tuple(key, reason, fc.constantFrom(0, -100), ms).map(args => new Add(...args)),
    fc.constant(new Take()),
    fc.constant(new Take()),
    fc.tuple(how, which, ms).map(args => new End(...args)),
    ms.map(time => new Wait(time)),
  ]
  const history = fc.asyncProperty(fc.commands(commands, { maxCommands: 60, size: 'max' }), async happenings => {
    const model = new Model()
    const real = new Real()
    await fc.asyncModelRun(() => ({ model, real }), happenings)
    await settleAll(model, real)
  })
  await fc.assert(history, { seed, numRuns })
})

/** Whatever has happened: all that is wished is worked on in the end, and then nothing is left. */
async function settleAll(model: Model, real: Real): Promise<void> {
  for (let step = 0; step < 400; step++) {
    for (const key of model.worked) await new EndOf(key).run(model, real)
    if ([...model.wishes.values()].every(isSettled)) break
    await (model.ready.length > 0 ? new Take() : new Wait(25)).run(model, real)
  }
  expect(
    [...model.wishes].filter(([, wish]) => !isSettled(wish)),
    `never worked on\n${model.story}`,
  ).toEqual([])
  expect(real.clock.pending, `timers left of nothing\n${model.story}`).toBe(0)
  expect(real.queue.length).toBe(0)
  real.queue.close()
}

class EndOf extends Happening {
  readonly key: string

  constructor(key: string) {
    super()
    this.key = key
  }

  happen(model: Model, real: Real): void {
    real.queue.done(this.key)
    const wish = model.wish(this.key)
    wish.failures = 0
    model.endWork(wish)
  }

  toString(): string {
    return `done(${this.key})`
  }
}

function isSettled(wish: Wish): boolean {
  return !wish.isWorked && !wish.waits && !wish.later && !wish.comeback && wish.heldUntil === undefined
}

it(`gives each of many namespaces its turn, over ${numRuns} crowds from seed ${seed}`, { timeout }, async () => {
  const crowds = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 2, maxLength: 8 })
  const turns = fc.asyncProperty(crowds, async sizes => {
    const crowded = new Queue({ clock: new VirtualClock() })
    for (const [namespace, size] of sizes.entries()) {
      for (let i = 0; i < size; i++) crowded.add(`${namespace}/${i}`, { reason: 'x' })
    }
    const left = [...sizes]
    const served = sizes.map(() => 0)
    while (crowded.length > 0) {
      const { key } = (await crowded.take()) as Item
      const namespace = Number(key.split('/')[0])
      left[namespace] = (left[namespace] as number) - 1
      served[namespace] = (served[namespace] as number) + 1
      crowded.done(key)
      const waiting = served.filter((_, i) => (left[i] as number) > 0)
      const most = Math.max(...served)
      for (const turnsOfOne of waiting)
        expect(most - turnsOfOne, 'turns that a waiting namespace is behind').toBeLessThanOrEqual(1)
    }
    expect(left.every(count => count === 0)).toBe(true)
  })
  await fc.assert(turns, { seed, numRuns })
})
