/**
 * The step by itself, over random histories of a sidecar that restarts, forgets, repeats and loses, with sockets that break and overtake each other.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  begin,
  type Connection,
  type Effect,
  type Event,
  step,
  viewOf,
} from '../../../controller/app/agents/connection.ts'
import { stateOf } from './stand-in.ts'

type State = ReturnType<typeof stateOf>
const backoff = { first: 200, longest: 30_000, jitter: 1 }

/** A sidecar that numbers what it says, and sockets through which it comes. */
function createWorld() {
  let now = 0
  let boot = 0
  let seq = 0
  const log: { seq: number; reason: string }[] = []
  let { connection, effects } = begin('pod-uid')
  const sockets = new Map<number, { queue: object[]; isUp: boolean }>()
  let isWaiting = false
  const waits: number[] = []
  const told: string[] = []

  const carryOut = (all: readonly Effect[]) => {
    for (const effect of all) {
      if (effect.do === 'wait') {
        isWaiting = true
        waits.push(effect.ms)
      }
      if (effect.do === 'end') sockets.delete(effect.socket)
      if (effect.do === 'tell') told.push(effect.why)
      if (effect.do === 'dial') {
        const from = effect.cursor?.startsWith(`b${boot}.`) ? Number(effect.cursor.split('.')[1]) : undefined
        const isKept = from !== undefined && from >= seq - 5
        const missed = isKept ? log.filter(one => one.seq > from).map(one => state(one.seq, one.reason)) : [resetOf()]
        sockets.set(effect.socket, { queue: missed, isUp: false })
      }
    }
  }
  const at = (place: number) => ({ seq: place, cursor: `b${boot}.${place}`, at: '' })
  const podState = (place: number, reason: string): State => stateOf(place, { reason, bootId: `b${boot}` })
  const state = (place: number, reason: string) => ({ ...at(place), type: 'state', state: podState(place, reason) })
  const resetOf = () => ({ ...at(seq), type: 'reset', state: podState(seq, log.at(-1)?.reason ?? 'none'), runs: [] })
  const happen = (event: Event) => {
    const before = connection
    const stepped = step(connection, event, { now, random: () => 0.5, backoff })
    connection = stepped.connection
    check(before, stepped.effects)
    carryOut(stepped.effects)
  }
  const check = (before: Connection, effects: readonly Effect[]) => {
    const was = viewOf(before)?.isReachable
    const is = viewOf(connection)?.isReachable
    const words = effects.flatMap(effect => (effect.do === 'tell' ? [effect.why] : []))
    if (was !== is) expect(words).toContain(is ? 'reachable' : 'unreachable')
    else expect(words).not.toContain('unreachable')
    expect(is ? (connection.live ?? connection.next) : true, 'what is reachable has a socket').toBeTruthy()
    expect(connection.live || connection.next, 'it never gives up').toBeTruthy()
    // Of what one boot says, nothing is passed over and nothing goes back.
    if (before.state && connection.state && before.state.bootId === connection.state.bootId) {
      expect(
        connection.after === undefined || before.after === undefined || connection.after.seq >= before.after.seq,
      ).toBe(true)
    }
  }
  carryOut(effects)
  effects = []

  const pick = (index: number) => [...sockets.keys()][index % Math.max(sockets.size, 1)]
  return {
    told,
    waits,
    connection: () => connection,
    latest: () => ({ boot, seq, reason: log.at(-1)?.reason ?? 'none' }),
    turn() {
      now += 100
      if (!isWaiting) return
      isWaiting = false
      happen({ type: 'turn' })
    },
    publish() {
      seq++
      log.push({ seq, reason: `r${boot}.${seq}` })
      for (const socket of sockets.values()) socket.queue.push(state(seq, `r${boot}.${seq}`))
    },
    deliver(index: number) {
      const number = pick(index)
      const socket = number === undefined ? undefined : sockets.get(number)
      if (number === undefined || !socket) return
      const message = socket.queue.shift()
      if (message) return happen({ type: 'heard', socket: number, message: message as never })
      if (socket.isUp) return
      socket.isUp = true
      happen({ type: 'up', socket: number, features: [] })
    },
    skip: (index: number) => void sockets.get(pick(index) ?? 0)?.queue.shift(),
    repeat(index: number) {
      const queue = sockets.get(pick(index) ?? 0)?.queue
      const last = log.at(-1)
      if (queue && last) queue.unshift(state(last.seq, last.reason))
    },
    breaks(index: number) {
      const number = pick(index)
      if (number !== undefined) happen({ type: 'lost', socket: number, error: 'broken' })
    },
    restart() {
      boot++
      seq = 0
      log.length = 0
      for (const number of [...sockets.keys()]) happen({ type: 'lost', socket: number, error: 'restarted' })
    },
    renew: () => happen({ type: 'renewed' }),
    move: () => happen({ type: 'moved' }),
    wait: (ms: number) => {
      now += ms
    },
  }
}

type World = ReturnType<typeof createWorld>
const index = fc.nat({ max: 3 })
const commands: fc.Arbitrary<(world: World) => void> = fc.oneof(
  { weight: 3, arbitrary: fc.constant((world: World) => world.turn()) },
  { weight: 4, arbitrary: fc.constant((world: World) => world.publish()) },
  { weight: 10, arbitrary: index.map(at => (world: World) => world.deliver(at)) },
  { weight: 1, arbitrary: index.map(at => (world: World) => world.skip(at)) },
  { weight: 1, arbitrary: index.map(at => (world: World) => world.repeat(at)) },
  { weight: 1, arbitrary: index.map(at => (world: World) => world.breaks(at)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      (world: World) => world.restart(),
      (world: World) => world.renew(),
      (world: World) => world.move(),
    ),
  },
)

describe('the connection to a sidecar', () => {
  it('shows what the sidecar says once all is quiet, whatever happened before', () => {
    fc.assert(
      fc.property(fc.array(commands, { maxLength: 150, size: 'max' }), history => {
        const world = createWorld()
        for (const command of history) command(world)
        // A gap is found with the next message.
        world.publish()
        for (let round = 0; round < 30; round++) {
          world.turn()
          for (let count = 0; count < 200; count++) world.deliver(count)
        }
        const { boot, seq, reason } = world.latest()
        const view = viewOf(world.connection())
        expect(view).toMatchObject({ isReachable: true, state: { bootId: `b${boot}`, seq, reason } })
        expect(world.connection().next, 'no successor is left over').toBeUndefined()
      }),
      { seed: Number(process.env.SHIPMATE_SEED), numRuns: 25 * Number(process.env.SHIPMATE_SCHEDULES) },
    )
  })

  it('waits longer with each failure, half of it at random here, and no longer than 30 s', () => {
    const world = createWorld()
    for (let count = 0; count < 12; count++) {
      world.turn()
      world.breaks(0)
    }
    expect(world.waits.slice(0, 5)).toEqual([0, 100, 200, 400, 800])
    expect(world.waits.at(-1)).toBe(15_000)
    expect(world.told).toEqual(['unreachable'])
  })

  it('is not taken for healthy by one that dies as soon as it is up', () => {
    const world = createWorld()
    const waitAfterLife = (ms: number) => {
      world.turn()
      world.deliver(0)
      world.deliver(0)
      world.wait(ms)
      world.breaks(0)
      return world.waits.at(-1)
    }
    expect([waitAfterLife(0), waitAfterLife(0), waitAfterLife(0)]).toEqual([100, 200, 400])
    expect(waitAfterLife(10_000)).toBe(100)
  })
})
