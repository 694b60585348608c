import { describe, expect, it } from 'vitest'
import { connectThrough } from '../../controller/kube/access.ts'
import { ConfigMap } from '../../controller/kube/kinds.ts'
import { createPresence, type PresenceOptions } from '../../controller/kube/presence.ts'
import type { Request, Response, Send } from '../../controller/kube/transport.ts'
import { ModelServer } from '../fixtures/model-server.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'
import { widgetKind } from '../fixtures/widget.ts'

const Widgets = widgetKind('test.example.com')
const minute = 60_000
const no = (status: number, message: string): Response => ({
  status,
  headers: {},
  text: JSON.stringify({ kind: 'Status', code: status, message }),
})

function world(options: PresenceOptions = {}) {
  const clock = new VirtualClock()
  const server = new ModelServer({ clock })
  const requests: Request[] = []
  const line = { meddle: (request: Request, next: Send): Promise<Response> => next(request) }
  const { client } = connectThrough(
    request => {
      requests.push(request)
      return line.meddle(request, onward => server.send(onward))
    },
    { clock, retry: { tries: 1 } },
  )
  const notices: string[] = []
  const presence = createPresence(client, { clock, random: () => 0, onNotice: one => notices.push(one), ...options })
  const appears = presence.waiter()
  const control = new AbortController()
  /** Waits for the kind; since when it is said to be worth asking for. */
  const wait = () => {
    const waiting = { since: undefined as number | undefined, error: undefined as unknown }
    appears(Widgets, control.signal).then(
      () => {
        waiting.since = clock.monotonic()
      },
      error => {
        waiting.error = error
      },
    )
    return waiting
  }
  /** Moves time on until somebody who waits need not any more; how long that took. */
  const until = async (waiting: ReturnType<typeof wait>, limit: number) => {
    const began = clock.monotonic()
    return (await clock.until(() => waiting.since !== undefined, limit)) ? clock.monotonic() - began : undefined
  }
  const end = () => {
    expect(server.watches, 'open streams').toBe(0)
    expect(clock.pending, 'timers').toBe(0)
  }
  return { clock, server, requests, line, notices, presence, control, wait, until, end }
}

describe('who waits for a kind', () => {
  it('has one idle watch on its CRD, and asks for nothing else', async () => {
    const { clock, requests, wait, control, end } = world()
    const waiting = wait()
    await clock.advance(4 * minute)
    expect(waiting.since).toBeUndefined()
    expect(requests).toHaveLength(1)
    expect(requests[0]?.path).toContain('fieldSelector=metadata.name%3Dwidgets.test.example.com')
    control.abort('enough')
    await clock.advance(0)
    expect(waiting.error).toBeDefined()
    end()
  })

  it('is told as soon as the CRD comes', async () => {
    const { clock, server, wait, until, end } = world()
    const waiting = wait()
    await clock.advance(minute)
    server.serve(Widgets)
    expect(await until(waiting, minute)).toBeLessThan(100)
    end()
  })

  it('is told at once where the CRD is there already, then less and less often while it does not help', async () => {
    const { server, wait, until, end } = world()
    server.serve(Widgets)
    expect(await until(wait(), minute)).toBeLessThan(100)
    const waits: number[] = []
    for (let i = 0; i < 8; i++) waits.push((await until(wait(), 10 * minute)) ?? Number.NaN)
    for (let i = 1; i < waits.length; i++) expect(waits[i]).toBeGreaterThan(waits[i - 1] as number)
    expect(waits[0]).toBeLessThanOrEqual(1000)
    end()
  })

  it('is told at once of each change of the CRD: it may be served now', async () => {
    const { clock, server, wait, until, end } = world()
    server.serve(Widgets)
    await until(wait(), minute)
    for (let i = 0; i < 4; i++) await until(wait(), 10 * minute)
    const waiting = wait()
    await clock.advance(10)
    server.serve(Widgets)
    expect(await until(waiting, minute)).toBeLessThan(100)
    end()
  })

  it('is told when the CRD comes back after it went', async () => {
    const { clock, server, wait, until, end } = world()
    server.serve(Widgets)
    await until(wait(), minute)
    await until(wait(), minute)
    server.unserve(Widgets)
    // What was tried of the old one may be tried once more; after that it is quiet.
    for (let i = 0; i < 2; i++) await until(wait(), minute)
    const waiting = wait()
    await clock.advance(100)
    server.serve(Widgets)
    expect(await until(waiting, 10 * minute)).toBeLessThan(1000)
    end()
  })

  it('is told from time to time all the same: not every kind has a CRD', async () => {
    const { wait, until, end } = world({ safetyNet: 2 * minute })
    const took = await until(wait(), 10 * minute)
    expect(took).toBeGreaterThan(minute)
    expect(took).toBeLessThanOrEqual(3 * minute)
    end()
  })

  it('polls where CRDs may not be watched, and says so once', async () => {
    const { line, notices, requests, wait, until, end } = world({ poll: 10_000 })
    line.meddle = async () => no(403, 'User "x" cannot watch resource "customresourcedefinitions"')
    await until(wait(), minute)
    for (let i = 0; i < 5; i++) expect(await until(wait(), minute)).toBe(10_000)
    expect(notices).toHaveLength(1)
    expect(notices[0]).toContain('asked for every 10 s instead')
    expect(requests).toHaveLength(1)
    end()
  })

  it('does not hammer a server that is down', async () => {
    const { line, requests, wait, until, end } = world()
    line.meddle = async () => no(500, 'down')
    let waited = 0
    for (let i = 0; i < 20; i++) waited += (await until(wait(), 10 * minute)) ?? 0
    expect(requests.length / (waited / 1000)).toBeLessThan(1)
    end()
  })

  it('does not hammer a server that ends each watch at once', async () => {
    const { line, requests, wait, until, end } = world()
    line.meddle = async () => ({ status: 200, headers: {}, text: '', chunks: (async function* () {})() })
    let waited = 0
    for (let i = 0; i < 20; i++) waited += (await until(wait(), 10 * minute)) ?? 0
    expect(requests.length / (waited / 1000)).toBeLessThan(1.1)
    end()
  })

  it('waits for himself: another waiter is told of the same CRD, too', async () => {
    const { clock, server, presence, control, end } = world()
    server.serve(Widgets)
    for (let i = 0; i < 3; i++) {
      let told = false
      void presence
        .waiter()(Widgets, control.signal)
        .then(() => {
          told = true
        })
      expect(await clock.until(() => told, 100)).toBe(true)
    }
    end()
  })
})

describe('that the objects of a kind are gone for good', () => {
  const ask = async ({ clock, presence, control }: ReturnType<typeof world>, kind = Widgets as never) => {
    let answer: boolean | undefined
    void presence.isGone(kind, control.signal).then(gone => {
      answer = gone
    })
    await clock.until(() => answer !== undefined, 5 * minute)
    return answer
  }

  it('is so when their CRD is', async () => {
    const one = world()
    expect(await ask(one)).toBe(true)
    one.server.serve(Widgets)
    expect(await ask(one)).toBe(false)
    one.server.unserve(Widgets)
    expect(await ask(one)).toBe(true)
    one.end()
  })

  it.each([
    ['a proxy that knows nothing', async () => ({ status: 404, headers: {}, text: '<html>404</html>' })],
    ['a server that is down', async () => no(503, 'down')],
    ['a server that does not let us see CRDs', async () => no(403, 'User "x" cannot get')],
  ])('is not believed of %s', async (_, answer) => {
    const one = world()
    one.line.meddle = answer
    expect(await ask(one)).toBe(false)
    one.end()
  })

  it('is never so of what Kubernetes itself serves', async () => {
    const one = world()
    expect(await ask(one, ConfigMap as never)).toBe(false)
    expect(one.requests).toEqual([])
  })
})
