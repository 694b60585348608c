import { describe, expect, it } from 'vitest'
import { Memo } from '../../controller/kube/memo.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'

/** A memo of the number of its fetches, which end when the test says so. */
function counting() {
  const clock = new VirtualClock()
  const fetches: (PromiseWithResolvers<number> & { signal: AbortSignal })[] = []
  const memo = new Memo(signal => {
    const fetch = { ...Promise.withResolvers<number>(), signal }
    fetches.push(fetch)
    return fetch.promise
  }, clock)
  const end = (index: number) => fetches[index]?.resolve(index + 1)
  return { clock, fetches, memo, end }
}

describe('a value that is kept', () => {
  it('is fetched once for all who want it at the same time, and for those after', async () => {
    const { memo, fetches, end } = counting()
    const both = Promise.all([memo.get(1000), memo.get(1000)])
    end(0)
    expect(await both).toEqual([1, 1])
    expect(await memo.get(1000)).toBe(1)
    expect(fetches).toHaveLength(1)
  })

  it('is fetched anew when it is older than wanted, counted from the question', async () => {
    const { memo, end, clock } = counting()
    const first = memo.get(1000)
    await clock.advance(900)
    end(0)
    expect(await first).toBe(1)
    await clock.advance(99)
    expect(await memo.get(1000)).toBe(1)
    await clock.advance(1)
    const second = memo.get(1000)
    end(1)
    expect(await second).toBe(2)
  })

  it('is not kept when fetching it failed', async () => {
    const { memo, fetches, end } = counting()
    const first = memo.get(1000)
    fetches[0]?.reject(new Error('no'))
    await expect(first).rejects.toThrow('no')
    const second = memo.get(1000)
    end(1)
    expect(await second).toBe(2)
  })

  it('is not kept when it was forgotten while it was fetched', async () => {
    const { memo, end } = counting()
    const first = memo.get(1000)
    memo.forget()
    const second = memo.get(1000)
    end(1)
    end(0)
    expect(await Promise.all([first, second])).toEqual([1, 2])
    expect(await memo.get(1000)).toBe(2)
  })

  it('goes on being fetched while anybody wants it, and no longer', async () => {
    const { memo, fetches, end } = counting()
    const [one, other] = [new AbortController(), new AbortController()]
    const first = memo.get(1000, one.signal)
    const second = memo.get(1000, other.signal)
    one.abort('enough')
    await expect(first).rejects.toBe('enough')
    expect(fetches[0]?.signal.aborted).toBe(false)
    other.abort('enough, too')
    await expect(second).rejects.toBe('enough, too')
    expect(fetches[0]?.signal.aborted).toBe(true)

    const third = memo.get(1000)
    end(1)
    expect(await third).toBe(2)
    await expect(memo.get(1000, one.signal)).rejects.toBe('enough')
  })
})
