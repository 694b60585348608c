import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { begin, follow, machine, passed, successors } from '../../shared/machine.ts'

const seed = Number(process.env.SHIPMATE_SEED ?? 1)

const door = machine<'open' | 'closed' | 'gone', 'open' | 'close' | 'burn'>({
  open: { close: 'closed', burn: 'gone' },
  closed: { open: 'open', burn: 'gone' },
  gone: {},
})

describe('a machine', () => {
  it('goes where its table says', () => {
    expect(door.step('open', 'close')).toBe('closed')
    expect(door.step('open', 'open')).toBeUndefined()
    expect(door.events('closed')).toEqual(['open', 'burn'])
    expect(door.states).toEqual(['open', 'closed', 'gone'])
    expect(door.states.filter(door.isFinal)).toEqual(['gone'])
  })

  it('has no events by inheritance', () => {
    expect(door.step('open', 'toString' as 'open')).toBeUndefined()
    expect(door.step('constructor' as 'open', 'close')).toBeUndefined()
  })

  it('can be a list of what may come next', () => {
    const walk = successors({ a: ['b', 'c'], b: ['a'], c: [] })
    expect(walk.step('a', 'c')).toBe('c')
    expect(walk.step('b', 'c')).toBeUndefined()
    expect(walk.isFinal('c')).toBe(true)
  })
})

it(`a path knows every state that it has passed, and is not changed by going on: seed ${seed}`, () => {
  const events = fc.array(fc.constantFrom('open', 'close', 'burn'))
  const property = fc.property(events, events => {
    let path = begin<'open' | 'closed' | 'gone'>('open')
    const expected = [path.state]
    for (const event of events) {
      const before = passed(path)
      const next = follow(door, path, event)
      expect(passed(path)).toEqual(before)
      expect(next?.state).toBe(door.step(path.state, event))
      if (!next) continue
      path = next
      expected.push(path.state)
    }
    expect(passed(path)).toEqual(expected)
  })
  fc.assert(property, { seed })
})
