import { describe, expect, it } from 'vitest'
import { createPace } from '../../../controller/app/agents/pace.ts'
import { VirtualClock } from '../../fixtures/virtual-clock.ts'

describe('pacing', () => {
  it('lets the urgent in first and the others one after the other, never more at once than allowed', async () => {
    const clock = new VirtualClock()
    const pace = createPace({ clock, random: () => 0.5, atOnce: 10, perSecond: 100 })
    const begun: string[] = []
    const busy = new Set<object>()
    let most = 0
    const ask = (name: string, urgency: 'urgent' | 'usual') => {
      const key = { name }
      pace.ask(key, urgency, () => {
        begun.push(name)
        busy.add(key)
        most = Math.max(most, busy.size)
        clock.after(50, () => {
          busy.delete(key)
          pace.leave(key)
        })
      })
      return key
    }
    for (let count = 0; count < 500; count++) ask(`usual ${count}`, 'usual')
    expect(begun).toEqual([])
    for (let count = 0; count < 30; count++) ask(`urgent ${count}`, 'urgent')
    await clock.advance(160)
    expect(begun.slice(0, 30).every(name => name.startsWith('urgent'))).toBe(true)
    await clock.advance(1000)
    expect(begun.length).toBeGreaterThan(80)
    expect(begun.length, 'a hundred a second').toBeLessThan(180)
    await clock.advance(10_000)
    expect(new Set(begun).size).toBe(530)
    expect(most).toBe(10)
  })

  it('moves up who becomes urgent, and forgets who leaves', async () => {
    const clock = new VirtualClock()
    const pace = createPace({ clock, random: () => 0.5, atOnce: 1, perSecond: 1 })
    const begun: string[] = []
    const keys = ['a', 'b', 'c'].map(name => ({ name }))
    for (const key of keys) pace.ask(key, 'usual', () => begun.push(key.name))
    const [first = {}, second = {}, third = {}] = keys
    pace.ask(third, 'urgent', () => begun.push('c'))
    pace.leave(first)
    expect(begun).toEqual(['c'])
    pace.leave(third)
    await clock.advance(5_000)
    expect(begun).toEqual(['c', 'b'])
    pace.leave(second)
    pace.close()
    expect(clock.pending).toBe(0)
  })
})
