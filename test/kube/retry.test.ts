import { describe, expect, it } from 'vitest'
import { Aborted, Unavailable } from '../../controller/kube/errors.ts'
import { type RetryOptions, retry } from '../../controller/kube/retry.ts'
import { type Request, type Response, type Send, timeFor } from '../../controller/kube/transport.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'

type Method = Request['method']
const verbs: Record<Method, string> = { GET: 'get', POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' }
const target = (method: Method) => ({ verb: verbs[method], group: '', resource: 'pods', name: 'a' })
const call = (method: Method, more: Partial<Request> = {}): Request => ({
  method,
  path: '/',
  target: target(method),
  ...more,
})
const ok: Response = { status: 200, headers: {}, text: 'ok' }
const status = (code: number, retryAfter?: string): Response => ({
  status: code,
  headers: { 'retry-after': retryAfter },
  text: '',
})
const lost = (mayHaveActed: boolean, code: 'Unavailable' | 'DeadlineExceeded' | 'Garbled' = 'Unavailable') =>
  new Unavailable(code, target('GET'), 'lost', { mayHaveActed })

/** A server that answers with each of `answers` in turn, then with the last for ever. */
function script(...answers: (Response | Error)[]) {
  const sent: Request[] = []
  const send: Send = async request => {
    sent.push(request)
    const next = answers[Math.min(sent.length, answers.length) - 1] as Response | Error
    if (next instanceof Error) throw next
    return next
  }
  return { sent, send }
}

/** Runs a call to its end on a clock of its own; how it ended, and how long that took. */
async function run(send: Send, request: Request, options: RetryOptions = {}) {
  const clock = new VirtualClock()
  let end: { response?: Response; error?: unknown } | undefined
  retry({ clock, random: () => 0.5, ...options })(send)(request).then(
    response => {
      end = { response }
    },
    error => {
      end = { error }
    },
  )
  await clock.until(() => end !== undefined, 3_600_000)
  if (!end) throw new Error('the call never ended')
  return { ...end, took: clock.monotonic(), timers: clock.pending }
}

describe('what is tried again', () => {
  const methods: Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
  /** A failure, and whether reads and writes are tried again after it. */
  const table: [string, Response | Error, { read: boolean; write: boolean }][] = [
    ['429', status(429), { read: true, write: true }],
    ['429 with Retry-After', status(429, '1'), { read: true, write: true }],
    ['429 with a Retry-After beyond the deadline', status(429, '31'), { read: false, write: false }],
    ['500', status(500), { read: true, write: false }],
    ['500 with Retry-After', status(500, '1'), { read: true, write: false }],
    ['502', status(502), { read: true, write: false }],
    ['503', status(503), { read: true, write: false }],
    ['503 with Retry-After', status(503, '1'), { read: true, write: true }],
    ['504', status(504), { read: true, write: false }],
    ['504 with Retry-After', status(504, '1'), { read: true, write: false }],
    ['a connection that never was', lost(false), { read: true, write: true }],
    ['a connection lost on the way', lost(true), { read: true, write: false }],
    ['a deadline before anything was sent', lost(false, 'DeadlineExceeded'), { read: true, write: true }],
    ['a deadline', lost(true, 'DeadlineExceeded'), { read: true, write: false }],
    ['a garbled answer', lost(true, 'Garbled'), { read: true, write: false }],
    ['400', status(400), { read: false, write: false }],
    ['401', status(401), { read: false, write: false }],
    ['403', status(403), { read: false, write: false }],
    ['404', status(404), { read: false, write: false }],
    ['409', status(409), { read: false, write: false }],
    ['410', status(410), { read: false, write: false }],
    ['422', status(422), { read: false, write: false }],
    ["the caller's own end", new Aborted(target('GET'), 'enough'), { read: false, write: false }],
    ['a bug', new TypeError('x is undefined'), { read: false, write: false }],
  ]
  const cases = table.flatMap(([name, failure, again]) =>
    methods.map(method => [method, name, failure, method === 'GET' ? again.read : again.write] as const),
  )

  it.each(cases)('%s after %s', async (method, _name, failure, isTriedAgain) => {
    const { sent, send } = script(failure, ok)
    const { response, error } = await run(send, call(method))
    expect(sent).toHaveLength(isTriedAgain ? 2 : 1)
    if (isTriedAgain) expect(response).toBe(ok)
    else if (failure instanceof Error) expect(error).toBe(failure)
    else expect(response).toBe(failure)
  })

  it('is never an eviction that a budget forbids, but one that never arrived is', async () => {
    const eviction = call('POST', { target: { ...target('POST'), subresource: 'eviction' } })
    const refused = script(status(429), ok)
    expect((await run(refused.send, eviction)).response?.status).toBe(429)
    expect(refused.sent).toHaveLength(1)
    expect((await run(script(lost(false), ok).send, eviction)).response).toBe(ok)
  })

  it('is never a stream: its reader knows where to go on', async () => {
    for (const failure of [lost(false), status(429), status(500)]) {
      const { sent, send } = script(failure, ok)
      await run(send, call('GET', { stream: true }))
      expect(sent).toHaveLength(1)
    }
  })

  it('is a write only as long as nobody can have acted: then the doubt is the caller’s', async () => {
    const { sent, send } = script(lost(false), status(429), lost(true), ok)
    const { error } = await run(send, call('POST'))
    expect(sent).toHaveLength(3)
    expect(error).toMatchObject({ mayHaveActed: true })
  })

  it('is the same request each time, with the time that is left', async () => {
    const { sent, send } = script(status(500), status(500), ok)
    const request = call('GET', { deadline: 10_000 })
    await run(send, request, { backoff: { first: 1000, longest: 1000, jitter: 0 } })
    expect(sent.map(again => timeFor(again, 30_000))).toEqual([10_000, 9000, 8000])
    for (const again of sent) expect({ ...again, left: undefined }).toEqual(request)
  })
})

describe('how often, and how long between', () => {
  it('is five times in all, and then the failure is the answer', async () => {
    const { sent, send } = script(status(503))
    expect((await run(send, call('GET'))).response?.status).toBe(503)
    expect(sent).toHaveLength(5)
    const broken = script(lost(false))
    expect((await run(broken.send, call('POST'))).error).toBeInstanceOf(Unavailable)
    expect(broken.sent).toHaveLength(5)
  })

  it('is as often as the options say', async () => {
    const { sent, send } = script(status(503))
    await run(send, call('GET'), { tries: 1 })
    expect(sent).toHaveLength(1)
  })

  it('is a delay that doubles, less what chance takes', async () => {
    const backoff = { first: 100, longest: 400 }
    const { took } = await run(script(status(500)).send, call('GET'), { backoff, tries: 5, random: () => 0 })
    expect(took).toBe(100 + 200 + 400 + 400)
    const { took: less } = await run(script(status(500)).send, call('GET'), { backoff, tries: 5, random: () => 1 })
    expect(less).toBe((100 + 200 + 400 + 400) / 2)
  })

  it('is what the server asks for, and never less', async () => {
    const { took } = await run(script(status(429, '20'), ok).send, call('GET'), { random: () => 0 })
    expect(took).toBe(20_000)
    const { took: spread } = await run(script(status(429, '20'), ok).send, call('GET'), { random: () => 0.99 })
    expect(spread).toBeGreaterThan(20_000)
  })

  it('is at once where the server asks for no time at all', async () => {
    expect((await run(script(status(429, '0'), ok).send, call('GET'), { random: () => 0 })).took).toBe(0)
  })
})

describe('the deadline of a call', () => {
  it('holds for all its tries together', async () => {
    const clock = new VirtualClock()
    let tries = 0
    // A server that never answers.
    const send: Send = async request => {
      tries++
      await new Promise<void>(resolve => clock.after(timeFor(request, 0), resolve))
      throw lost(true, 'DeadlineExceeded')
    }
    const answer = retry({ clock })(send)(call('GET', { deadline: 5000 }))
    answer.catch(() => undefined)
    await clock.advance(5000)
    await expect(answer).rejects.toMatchObject({ code: 'DeadlineExceeded' })
    expect(tries).toBe(1)
  })

  it('is not waited out: a server that asks for more time is the answer', async () => {
    const { sent, send } = script(status(429, '10'), ok)
    const { response, took } = await run(send, call('GET', { deadline: 5000 }))
    expect(response?.status).toBe(429)
    expect({ took, sent: sent.length }).toEqual({ took: 0, sent: 1 })
    expect((await run(script(status(429, '10'), ok).send, call('GET', { deadline: 20_000 }))).response).toBe(ok)
  })

  it('is the client’s where the call has none', async () => {
    const { sent, send } = script(status(429, '10'), ok)
    await run(send, call('GET'), { deadline: 5000 })
    expect(sent).toHaveLength(1)
  })

  it('gives no try more time than the first had: a second dead connection holds a call up no longer than one', async () => {
    const clock = new VirtualClock()
    const began: number[] = []
    // Each try is on a connection that is dead, and has the connection's own deadline.
    const send: Send = async request => {
      began.push(clock.monotonic())
      await new Promise<void>(resolve => clock.after(timeFor(request, 1500), resolve))
      throw lost(true, 'DeadlineExceeded')
    }
    const backoff = { first: 100, longest: 100, jitter: 0 }
    const answer = retry({ clock, tries: 3, deadline: 4000, backoff })(send)(call('GET'))
    answer.catch(() => undefined)
    await clock.advance(3999)
    expect(began).toEqual([0, 1600, 3200])
    await clock.advance(1)
    await expect(answer).rejects.toMatchObject({ code: 'DeadlineExceeded' })
  })
})

describe('a caller who no longer wants the answer', () => {
  it('ends the wait between tries, and leaves no timer behind', async () => {
    const clock = new VirtualClock()
    const control = new AbortController()
    const { sent, send } = script(status(500))
    const answer = retry({ clock })(send)(call('GET', { signal: control.signal }))
    answer.catch(() => undefined)
    await clock.advance(0)
    expect(clock.pending).toBe(1)
    control.abort('enough')
    await expect(answer).rejects.toMatchObject({ code: 'Aborted', cause: 'enough' })
    expect(clock.pending).toBe(0)
    expect(sent).toHaveLength(1)
  })

  it('is not asked for again when the signal was aborted during the try', async () => {
    const control = new AbortController()
    let tries = 0
    const send: Send = async () => {
      tries++
      control.abort('enough')
      return status(500)
    }
    const { error, timers } = await run(send, call('GET', { signal: control.signal }))
    expect(error).toBeInstanceOf(Aborted)
    expect(tries).toBe(1)
    expect(timers).toBe(0)
  })
})

it('all tries, and the waits between them, end by the deadline of the call', async () => {
  const { sent, send } = script(status(503))
  const { response, took } = await run(send, call('GET', { deadline: 1000 }), { tries: 100 })
  expect(response?.status).toBe(503)
  expect(took).toBeLessThanOrEqual(1000)
  expect(sent.length).toBeGreaterThan(2)
  const times = sent.map(request => timeFor(request, 30_000))
  for (const time of times) expect(time).toBeLessThanOrEqual(1000)
  expect(times.at(-1)).toBeLessThan(1000)
})
