import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Live } from '../../controller/kube/kind.ts'
import { type Command, type Happening, initial, type State, step } from '../../controller/kube/reflect.ts'
import { type Round, Store } from '../../controller/kube/store.ts'

type Failure = (Happening<never> & { is: 'failed' })['how']

/** What a server has: every change that was made, with its version. */
class Log {
  #changes: { version: number; key: string; deleted: boolean }[] = []
  version = 10
  compacted = 0

  change(key: string, deleted: boolean): void {
    if (deleted && !this.at(this.version).has(key)) return
    this.version++
    this.#changes.push({ version: this.version, key, deleted })
  }

  /** The server is restored from an older copy of its data. */
  rollBack(by: number): void {
    this.version = Math.max(10, this.version - by)
    this.#changes = this.#changes.filter(change => change.version <= this.version)
    this.compacted = Math.min(this.compacted, this.version)
  }

  /** The versions of what exists, by key, as of a version. */
  at(version: number): Map<string, number> {
    const there = new Map<string, number>()
    for (const change of this.#changes) {
      if (change.version > version) break
      if (change.deleted) there.delete(change.key)
      else there.set(change.key, change.version)
    }
    return there
  }

  after(version: number) {
    return this.#changes.find(change => change.version > version)
  }
}

const object = (key: string, version: number): Live => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name: key, uid: key, resourceVersion: String(version), creationTimestamp: '' },
})

const ios = ['stream', 'list', 'watch', 'check', 'wait', 'park'] as const
type Io = Command<Live> & { do: (typeof ios)[number] }
const isIo = (command: Command<Live>): command is Io => ios.some(io => io === command.do)

interface Stream {
  initial: Live[] | undefined
  version: number
}

/** The step function with a store behind it and a server before it. Checks what must hold at each step. */
class Rig {
  readonly log = new Log()
  readonly store = new Store()
  state: State
  io: Io
  /** Initial events still to come, and then up to which version all has been sent. */
  #stream: Stream | undefined
  #round: Round<object> | undefined
  #rolledBack = false
  /** The server was rolled back, and the copy does not know yet. */
  unseenRollback = false
  /** Every I/O command that was given. */
  readonly commands: Io[] = []

  constructor(streams: boolean) {
    const latest = new Map<string, number>()
    this.store.subscribe(({ type, key, object: { metadata } }) => {
      const version = Number(metadata.resourceVersion)
      if (!this.#rolledBack) expect(version, `${key} went back`).toBeGreaterThanOrEqual(latest.get(key) ?? 0)
      if (type === 'removed' || this.#rolledBack) latest.delete(key)
      else latest.set(key, version)
    })
    const [state, commands] = step<Live>(initial(streams), { is: 'started' })
    this.state = state
    this.io = this.#carryOut(commands) as Io
    this.#start()
  }

  happens(happened: Happening<Live>): void {
    const before = this.state
    const [state, commands] = step(before, happened)
    this.state = state
    const isOver = ['page', 'checked', 'ended', 'failed', 'waited', 'appeared'].includes(happened.is)
    const next = this.#carryOut(commands)
    if (isOver) expect(next, `after ${happened.is} in ${before.phase.at} there is something to do`).toBeDefined()
    if (happened.is === 'failed') {
      const isFree = before.failures === 0 && happened.how === 'expired'
      const isOtherWay = happened.how === 'unsupported' && before.phase.at === 'Streaming'
      if (!isOtherWay) expect(state.failures, 'failures are counted').toBe(before.failures + 1)
      if (!isFree && !isOtherWay) expect(['wait', 'park']).toContain(next?.do)
    }
    if (!next) return
    this.io = next
    this.#start()
  }

  #carryOut(commands: readonly Command<Live>[]): Io | undefined {
    const next = commands.filter(isIo)
    expect(next.length, 'one thing to do at a time').toBeLessThanOrEqual(1)
    if (next.length === 1) expect(commands.at(-1), 'the store first, then the server').toBe(next[0])
    for (const command of commands) {
      switch (command.do) {
        case 'begin':
          this.#round = this.store.round(undefined, command.rolledBack)
          this.#rolledBack = command.rolledBack
          if (command.rolledBack) this.unseenRollback = false
          break
        case 'put':
          if (command.initial) expect(this.#round, 'initial objects belong to a round').toBeDefined()
          if (command.initial) this.#round?.put(command.object)
          else this.store.put(command.object)
          break
        case 'remove':
          this.store.remove(command.object)
          break
        case 'prune':
          this.#round?.prune(command.version)
          this.#round = undefined
          this.#rolledBack = false
          break
      }
    }
    return next[0]
  }

  #start(): void {
    this.commands.push(this.io)
    this.#stream = undefined
    if (this.io.do === 'stream') {
      const { version } = this.log
      const objects = Array.from(this.log.at(version), ([key, at]) => object(key, at))
      this.#stream = { initial: objects, version }
    }
    if (this.io.do === 'watch') this.#stream = { initial: undefined, version: Number(this.io.version) }
  }

  /** Everything goes well, until nothing is left to do. */
  settle(): void {
    let steps = 0
    while (this.proceed()) expect(++steps, 'it gets there').toBeLessThan(300)
  }

  /** The server, or the clock, does its part of what is under way; false where nothing is left to do. */
  proceed(pageSize = 2): boolean {
    const { io, log } = this
    switch (io.do) {
      case 'wait':
        this.happens({ is: 'waited' })
        return true
      case 'park':
        this.happens({ is: 'appeared' })
        return true
      case 'check':
        this.happens({ is: 'checked', version: String(log.version) })
        return true
      case 'list': {
        const [version, offset] = io.token ? (io.token.split(':').map(Number) as [number, number]) : [log.version, 0]
        // A version that is not there any more, or not yet.
        if (version < log.compacted) this.happens({ is: 'failed', how: 'expired' })
        else if (version > log.version) this.happens({ is: 'failed', how: 'passing' })
        else {
          const all = Array.from(log.at(version), ([key, at]) => object(key, at))
          const items = all.slice(offset, offset + pageSize)
          const token = offset + pageSize < all.length ? `${version}:${offset + pageSize}` : undefined
          this.happens({ is: 'page', items, version: String(version), token })
        }
        return true
      }
      default:
        return this.#proceedStream()
    }
  }

  #proceedStream(): boolean {
    const stream = this.#stream as Stream
    if (stream.initial) {
      const next = stream.initial.shift()
      if (next) this.happens({ is: 'put', object: next, version: next.metadata.resourceVersion })
      else {
        stream.initial = undefined
        this.happens({ is: 'bookmark', version: String(stream.version), endsInitial: true })
      }
      return true
    }
    if (stream.version < this.log.compacted) {
      this.happens({ is: 'failed', how: 'expired' })
      return true
    }
    // Whoever watches from the future hears nothing at all; but a server that is restored loses its connections.
    if (stream.version > this.log.version) {
      this.happens({ is: 'failed', how: 'passing' })
      return true
    }
    const next = this.log.after(stream.version)
    if (!next) return false
    stream.version = next.version
    const changed = object(next.key, next.version)
    this.happens({ is: next.deleted ? 'removed' : 'put', object: changed, version: String(next.version) })
    return true
  }

  bookmark(): void {
    const stream = this.#stream
    if (!stream || stream.initial || stream.version > this.log.version) return
    if (stream.version < this.log.compacted || this.log.after(stream.version)) return
    stream.version = this.log.version
    this.happens({ is: 'bookmark', version: String(stream.version), endsInitial: false })
  }

  fail(how: Failure): void {
    if (this.io.do === 'wait') return
    if (how === 'unsupported' && this.io.do !== 'stream') return
    if (this.io.do === 'park' && how !== 'passing') return
    this.happens({ is: 'failed', how })
  }

  end(idle: boolean): void {
    if (this.io.do === 'stream' || this.io.do === 'watch') this.happens({ is: 'ended', idle })
  }

  copy(): Map<string, number> {
    return new Map(Array.from(this.store.values(), ({ metadata }) => [metadata.name, Number(metadata.resourceVersion)]))
  }
}

type Move =
  | { do: 'change'; key: string; deleted: boolean }
  | { do: 'proceed'; times: number }
  | { do: 'bookmark' }
  | { do: 'fail'; how: Failure }
  | { do: 'end'; idle: boolean }
  | { do: 'compact' }
  | { do: 'rollBack'; by: number }

const key = fc.constantFrom('a', 'b', 'c', 'd', 'e')
const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('change'), key, deleted: fc.boolean() }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('proceed'), times: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 1, arbitrary: fc.constant({ do: 'bookmark' }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('fail'),
      how: fc.constantFrom<Failure[]>('expired', 'unsupported', 'absent', 'passing'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('end'), idle: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant({ do: 'compact' }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('rollBack'), by: fc.integer({ min: 1, max: 30 }) }) },
) as fc.Arbitrary<Move>

function play(rig: Rig, moves: Move[]): void {
  for (const move of moves) {
    switch (move.do) {
      case 'change':
        // Until it is seen, a server that went back does not catch up: nobody could tell then.
        if (!rig.unseenRollback) rig.log.change(move.key, move.deleted)
        break
      case 'proceed':
        for (let i = 0; i < move.times; i++) rig.proceed()
        break
      case 'bookmark':
        rig.bookmark()
        break
      case 'fail':
        rig.fail(move.how)
        break
      case 'end':
        rig.end(move.idle)
        break
      case 'compact':
        rig.log.compacted = rig.log.version
        break
      case 'rollBack': {
        // A server is stopped to be restored: whoever was connected notices.
        rig.log.rollBack(move.by)
        if (rig.io.do !== 'park') rig.fail('passing')
        const { newest } = rig.state
        if (newest !== undefined && Number(newest) > rig.log.version) rig.unseenRollback = true
        break
      }
    }
  }
}

describe('a copy of a collection', () => {
  it('is the collection in the end, whatever happened on the way', () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(move, { maxLength: 60 }), (streams, moves) => {
        const rig = new Rig(streams)
        play(rig, moves)
        rig.settle()
        expect(rig.state.phase.at).toBe('Watching')
        expect(rig.copy()).toEqual(rig.log.at(rig.log.version))
      }),
      { numRuns: 2000 },
    )
  })

  it('keeps what it has while it is made anew', () => {
    const rig = new Rig(false)
    for (const name of ['a', 'b', 'c', 'd', 'e']) rig.log.change(name, false)
    rig.settle()
    const before = rig.copy()
    rig.fail('expired')
    while (rig.state.phase.at !== 'Watching') {
      expect(rig.copy()).toEqual(before)
      rig.proceed(1)
    }
    expect(rig.copy()).toEqual(before)
  })

  it('is listed where the server cannot stream, from then on', () => {
    const rig = new Rig(true)
    expect(rig.io.do).toBe('stream')
    rig.fail('unsupported')
    expect(rig.io.do).toBe('list')
    rig.settle()
    rig.fail('expired')
    expect(rig.io.do).toBe('list')
  })

  it('is listed, too, where a stream came to its end without having said that it was complete', () => {
    const rig = new Rig(true)
    rig.log.change('a', false)
    rig.fail('passing')
    rig.proceed()
    rig.proceed()
    rig.end(false)
    rig.settle()
    expect(rig.commands.map(io => io.do)).toContain('list')
    expect(rig.copy()).toEqual(rig.log.at(rig.log.version))
  })

  it('goes on where it was after a passing failure', () => {
    const rig = new Rig(true)
    rig.log.change('a', false)
    rig.settle()
    rig.fail('passing')
    expect(rig.io).toMatchObject({ do: 'wait', failures: 1 })
    rig.proceed()
    expect(rig.io.do).toBe('check')
    rig.proceed()
    expect(rig.io).toEqual({ do: 'watch', version: String(rig.log.version) })
  })

  it('goes on at once where it was when the server ends the watch, and asks nothing before', () => {
    const rig = new Rig(true)
    rig.log.change('a', false)
    rig.settle()
    const { version } = rig.log
    rig.end(false)
    expect(rig.io).toEqual({ do: 'watch', version: String(version) })
    // A server that fails even then is waited for.
    rig.end(true)
    expect(rig.io).toMatchObject({ do: 'wait', failures: 1 })
    rig.proceed()
    rig.fail('passing')
    expect(rig.io).toMatchObject({ do: 'wait', failures: 2 })
  })

  it('goes on at the page where it was, but not for ever', () => {
    const rig = new Rig(false)
    for (const name of ['a', 'b', 'c', 'd', 'e']) rig.log.change(name, false)
    rig.fail('passing')
    rig.proceed()
    rig.proceed()
    expect(rig.io).toMatchObject({ do: 'list', token: expect.any(String) })
    const token = (rig.io as { token?: string }).token
    rig.fail('passing')
    rig.proceed()
    expect(rig.io).toMatchObject({ do: 'list', token })
    for (let i = 0; i < 20 && (rig.io as { token?: string }).token !== undefined; i++) {
      rig.fail('passing')
      rig.proceed()
    }
    expect(rig.io).toEqual({ do: 'list', token: undefined })
  })

  it('begins anew after a silence: the server may have gone back behind it, and then says nothing', () => {
    const rig = new Rig(true)
    for (const name of ['a', 'b', 'c']) rig.log.change(name, false)
    rig.settle()
    rig.log.rollBack(2)
    rig.settle()
    expect(rig.copy()).toEqual(rig.log.at(rig.log.version))
    expect(rig.copy().size).toBe(1)
  })

  it('survives that the server goes back, and fails while that is being mended', () => {
    const rig = new Rig(true)
    for (const name of ['a', 'b', 'c']) rig.log.change(name, false)
    rig.settle()
    rig.log.rollBack(2)
    rig.fail('expired')
    // The stream says that it is older, the list that follows fails.
    while (rig.io.do === 'stream') rig.proceed()
    expect(rig.io.do).toBe('list')
    rig.fail('passing')
    rig.settle()
    expect(rig.copy()).toEqual(rig.log.at(rig.log.version))
  })

  it('is kept while the kind is not served, and made anew when it is', () => {
    const rig = new Rig(true)
    for (const name of ['a', 'b']) rig.log.change(name, false)
    rig.settle()
    rig.fail('absent')
    expect(rig.io.do).toBe('park')
    expect(rig.copy().size).toBe(2)
    rig.log.change('a', true)
    rig.settle()
    expect(rig.copy()).toEqual(rig.log.at(rig.log.version))
  })

  it('never goes back in its version by what happens to an object', () => {
    let state = step<Live>(initial(false), { is: 'started' })[0]
    state = step<Live>(state, { is: 'page', items: [], version: '100' })[0]
    state = step<Live>(state, { is: 'removed', object: object('a', 80), version: '80' })[0]
    expect(state.phase).toEqual({ at: 'Watching', version: '100' })
  })

  it('begins anew, and believes the server, when a bookmark is older than what was asked for', () => {
    let state = step<Live>(initial(true), { is: 'started' })[0]
    state = step<Live>(state, { is: 'bookmark', version: '100', endsInitial: true })[0]
    const [next, commands] = step<Live>(state, { is: 'bookmark', version: '90', endsInitial: false })
    expect(next.phase).toEqual({ at: 'Listing' })
    expect(commands).toEqual([{ do: 'begin', rolledBack: true }, { do: 'list' }])
  })

  it('ignores what does not belong to what is under way', () => {
    const [state] = step<Live>(initial(false), { is: 'started' })
    const strays: Happening<Live>[] = [
      { is: 'waited' },
      { is: 'appeared' },
      { is: 'put', object: object('a', 1), version: '1' },
      { is: 'removed', object: object('a', 1), version: '1' },
      { is: 'bookmark', version: '1', endsInitial: true },
    ]
    for (const stray of strays) expect(step(state, stray)).toEqual([state, []])
  })
})

describe('a server that keeps failing', () => {
  /** How the server fails each time that it is asked for this; what is not named succeeds. */
  const worlds: [string, Partial<Record<Io['do'], Failure>>][] = [
    ['with everything', { stream: 'passing', list: 'passing', watch: 'passing' }],
    ['as expired with everything', { stream: 'expired', list: 'expired', watch: 'expired' }],
    ['as expired when it is watched, though it lists', { stream: 'unsupported', watch: 'expired' }],
    ['when it is watched, though it lists', { stream: 'unsupported', watch: 'passing' }],
    ['when it is asked where it is', { stream: 'unsupported', watch: 'passing', check: 'passing' }],
    ['as not serving the kind', { stream: 'absent', list: 'absent' }],
  ]

  it.each(worlds)('%s is left alone longer and longer', (_how, world) => {
    const rig = new Rig(true)
    for (const name of ['a', 'b', 'c']) rig.log.change(name, false)
    for (let i = 0; i < 200; i++) {
      const how = world[rig.io.do]
      if (how) rig.fail(how)
      else rig.proceed()
    }
    const rests = rig.commands.filter(io => io.do === 'wait' || io.do === 'park').length
    // One round of asking is a stream or two pages, a question where it is, and a watch.
    expect(rig.commands.length / rests).toBeLessThan(6)
    const waits = rig.commands.flatMap(io => (io.do === 'wait' ? [io.failures] : []))
    for (let i = 1; i < waits.length; i++) expect(waits[i]).toBeGreaterThan(waits[i - 1] as number)
  })

  it('as expired at the second page is left alone longer and longer', () => {
    const rig = new Rig(false)
    for (const name of ['a', 'b', 'c']) rig.log.change(name, false)
    for (let i = 0; i < 200; i++) {
      if (rig.io.do === 'list' && rig.io.token) rig.fail('expired')
      else rig.proceed()
    }
    const waits = rig.commands.flatMap(io => (io.do === 'wait' ? [io.failures] : []))
    expect(rig.commands.length / waits.length).toBeLessThan(5)
    expect(waits.at(-1)).toBeGreaterThan(10)
  })

  it('now and then is forgiven as soon as it brings news', () => {
    const rig = new Rig(true)
    rig.settle()
    for (let i = 0; i < 20; i++) {
      rig.fail('passing')
      expect(rig.io).toMatchObject({ do: 'wait', failures: 1 })
      rig.log.change('a', false)
      rig.settle()
    }
    rig.fail('passing')
    rig.settle()
    rig.bookmark()
    rig.fail('passing')
    expect(rig.io).toMatchObject({ do: 'wait', failures: 1 })
    rig.settle()
    rig.end(false)
    rig.fail('passing')
    expect(rig.io).toMatchObject({ do: 'wait', failures: 1 })
  })
})
