import { describe, expect, it } from 'vitest'
import { Client } from '../../controller/kube/client.ts'
import { createEventRecorder, cut, type EventRecorderOptions, eventName } from '../../controller/kube/events.ts'
import type { Request, Response } from '../../controller/kube/transport.ts'
import { refusal } from '../fixtures/lease-server.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'

const pod = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'ns', uid: `uid-${name}`, resourceVersion: '7' },
})
const started = { type: 'Normal', reason: 'Started', action: 'Start', note: 'it runs' } as const

interface Body {
  metadata: { name: string; namespace: string }
  note: string
  eventTime: string
  series?: { count: number; lastObservedTime: string }
}

/** A recorder, and a server that takes what it is told to take. */
function world(
  options: Partial<EventRecorderOptions> = {},
  answer: (request: Request) => Response | undefined = () => undefined,
) {
  const clock = new VirtualClock()
  const writes: { method: string; path: string; at: number; body: Body }[] = []
  const logged: { level: string; words: string }[] = []
  const ours = { answer }
  const client = new Client(async request => {
    const refused = ours.answer(request)
    if (refused) return refused
    const body = JSON.parse(request.body ?? '') as Body
    writes.push({ method: request.method, path: request.path.split('?')[0] ?? '', at: clock.monotonic(), body })
    return { status: 200, headers: {}, text: '{}' }
  })
  const log = {
    debug: (_: unknown, words?: string) => logged.push({ level: 'debug', words: words ?? '' }),
    warn: (_: unknown, words?: string) => logged.push({ level: 'warn', words: words ?? '' }),
  }
  let seed = 0
  const random = () => (++seed % 1000) / 1000
  const events = createEventRecorder(client, {
    component: 'shipmate.dev/controller',
    instance: 'one',
    clock,
    random,
    log,
    ...options,
  })
  return Object.assign(ours, { clock, writes, logged, events })
}

const first = <T>(items: readonly T[]): T => items[0] as T
const counts = (writes: { body: Body }[]) => writes.map(({ body }) => body.series?.count ?? 1)

describe('an event', () => {
  it('is written beside its object, with all that events.k8s.io/v1 asks for', async () => {
    const { clock, writes, events } = world()
    events.record(pod('web-0'), { ...started, related: { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } } })
    expect(writes).toHaveLength(0)
    await clock.advance(0)
    expect(first(writes)).toMatchObject({ method: 'POST', path: '/apis/events.k8s.io/v1/namespaces/ns/events' })
    expect(first(writes).body).toEqual({
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { namespace: 'ns', name: expect.stringMatching(/^web-0\.[0-9a-f]{23}$/) },
      eventTime: '2026-01-01T00:00:00.000000Z',
      type: 'Normal',
      reason: 'Started',
      action: 'Start',
      note: 'it runs',
      regarding: {
        apiVersion: 'v1',
        kind: 'Pod',
        name: 'web-0',
        namespace: 'ns',
        uid: 'uid-web-0',
        resourceVersion: '7',
      },
      related: { apiVersion: 'v1', kind: 'Node', name: 'n' },
      reportingController: 'shipmate.dev/controller',
      reportingInstance: 'one',
    })
    expect(events.stats()).toMatchObject({ recorded: 1, written: 1 })
  })

  it('of an object without a namespace stands in default', async () => {
    const { clock, writes, events } = world()
    events.record({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } }, started)
    await clock.advance(0)
    expect(first(writes).body.metadata.namespace).toBe('default')
  })

  it('is never an error for who records it, whatever is recorded', async () => {
    const { clock, writes, events } = world()
    for (const junk of [undefined, null, {}, { metadata: null }]) events.record(junk as never, started)
    events.record(pod('a'), undefined as never)
    events.record(pod('a'), { ...started, note: undefined } as never)
    await clock.advance(0)
    expect(events.stats().dropped.refused + writes.length).toBe(6)
  })

  it('has a note of 1,024 bytes at most, without half a character', async () => {
    const { clock, writes, events } = world()
    for (const note of ['é'.repeat(512), 'é'.repeat(513), '🚢'.repeat(300), 'x'.repeat(1e6)])
      events.record(pod('a'), { ...started, note })
    await clock.advance(0)
    const notes = writes.map(({ body }) => body.note)
    expect(notes[0]).toBe('é'.repeat(512))
    expect(notes[1]).toBe(`${'é'.repeat(510)}…`)
    expect(notes[2]).toBe(`${'🚢'.repeat(255)}…`)
    for (const note of notes) expect(Buffer.byteLength(note)).toBeLessThanOrEqual(1024)
  })
})

describe('what repeats', () => {
  it('is one event with a count, also when it repeats before it is written', async () => {
    const { clock, writes, events } = world()
    for (let time = 0; time < 5; time++) events.record(pod('a'), started)
    await clock.advance(0)
    expect(counts(writes)).toEqual([5])
    await clock.advance(3_600_000)
    expect(writes).toHaveLength(1)
    expect(clock.pending).toBe(0)
  })

  it('is a series from the first repetition on, by a patch of nothing else', async () => {
    const { clock, writes, events } = world()
    events.record(pod('a'), started)
    await clock.advance(1_000)
    events.record(pod('a'), started)
    await clock.advance(30_000)
    expect(writes).toHaveLength(2)
    const [created, patched] = writes
    expect(patched?.method).toBe('PATCH')
    expect(patched?.path).toBe(`/apis/events.k8s.io/v1/namespaces/ns/events/${created?.body.metadata.name}`)
    expect(patched?.body).toEqual({ series: { count: 2, lastObservedTime: '2026-01-01T00:00:01.000000Z' } })
    expect(clock.pending).toBe(0)
  })

  it('is written at most every 30 s, then ever more rarely, to once in ten minutes', async () => {
    const { clock, writes, events } = world()
    for (let second = 0; second < 3_600; second++) {
      events.record(pod('a'), started)
      await clock.advance(1_000)
    }
    expect(writes.map(({ at }) => at / 1000)).toEqual([0, 30, 90, 210, 450, 930, 1530, 2130, 2730, 3330])
    expect(counts(writes)).toEqual([1, 30, 90, 210, 450, 930, 1530, 2130, 2730, 3330])
  })

  it('is written at once after a pause', async () => {
    const { clock, writes, events } = world()
    events.record(pod('a'), started)
    await clock.advance(45_000)
    events.record(pod('a'), started)
    await clock.advance(0)
    expect(writes).toHaveLength(2)
  })

  it('is another event when anything about it differs', async () => {
    const { clock, writes, events } = world()
    events.record(pod('a'), started)
    events.record(pod('b'), started)
    events.record({ ...pod('a'), metadata: { ...pod('a').metadata, uid: 'another' } }, started)
    for (const other of [
      { type: 'Warning' as const },
      { reason: 'B' },
      { action: 'B' },
      { note: 'b' },
      { related: pod('r') },
    ]) {
      events.record(pod('a'), { ...started, ...other })
    }
    await clock.advance(0)
    expect(writes).toHaveLength(8)
    expect(new Set(writes.map(({ body }) => body.metadata.name)).size).toBe(8)
  })

  it('is a new event when the server has forgotten the old one, counted from then', async () => {
    const our = world()
    const { clock, writes, events } = our
    for (let time = 0; time < 3; time++) events.record(pod('a'), started)
    await clock.advance(7_200_000)
    our.answer = request => (request.method === 'PATCH' ? refusal(404, 'NotFound') : undefined)
    for (let time = 0; time < 2; time++) events.record(pod('a'), started)
    await clock.advance(0)
    our.answer = () => undefined
    events.record(pod('a'), started)
    await clock.advance(30_000)
    expect(writes.map(({ method }) => method)).toEqual(['POST', 'POST', 'PATCH'])
    expect(counts(writes)).toEqual([3, 2, 3])
    expect(writes[1]?.body.eventTime).toBe('2026-01-01T02:00:00.000000Z')
    expect(writes[2]?.path).toContain(writes[1]?.body.metadata.name)
  })
})

describe('an object that has much to say', () => {
  const say = (events: ReturnType<typeof world>['events'], from: number, to: number) => {
    for (let number = from; number < to; number++) events.record(pod('a'), { ...started, note: `number ${number}` })
  }

  it('has 25 events at once, then one in five minutes; others are not affected', async () => {
    const { clock, writes, events } = world()
    say(events, 0, 100)
    events.record(pod('b'), started)
    await clock.advance(0)
    expect(writes).toHaveLength(26)
    expect(events.stats().dropped.limited).toBe(75)
    await clock.advance(300_000)
    say(events, 100, 110)
    await clock.advance(0)
    expect(writes).toHaveLength(27)
    expect(events.stats()).toMatchObject({ recorded: 111, written: 27 })
  })

  it('costs no more when all of it repeats for hours, and still can say something new', async () => {
    const { clock, writes, events } = world()
    for (let minute = 0; minute < 600; minute++) {
      say(events, 0, 20)
      await clock.advance(60_000)
    }
    expect(writes.length).toBeLessThanOrEqual(25 + 120)
    const before = writes.length
    events.record(pod('a'), { ...started, note: 'the disk is full' })
    await clock.advance(0)
    expect(writes.slice(before).map(({ body }) => body.note)).toEqual(['the disk is full'])
  })

  it('has the count of what repeats written when it may be written again', async () => {
    const { clock, writes, events } = world({ burst: 2, refill: 100_000 })
    say(events, 0, 2)
    await clock.advance(1_000)
    say(events, 0, 1)
    await clock.advance(100_000)
    expect(counts(writes)).toEqual([1, 1])
    await clock.advance(200_000)
    expect(counts(writes)).toEqual([1, 1, 2])
    expect(clock.pending).toBe(0)
  })
})

describe('a server that does not take it', () => {
  it('is not asked again about a namespace that is going or a right that is missing: dropped, counted, said at debug', async () => {
    for (const [code, reason] of [
      [403, 'Forbidden'],
      [404, 'NotFound'],
      [422, 'Invalid'],
      [400, 'BadRequest'],
    ] as const) {
      let asked = 0
      const { clock, logged, events } = world({}, () => {
        asked++
        return refusal(code, reason)
      })
      events.record(pod('a'), started)
      await clock.advance(3_600_000)
      expect(asked).toBe(1)
      expect(events.stats().dropped.refused).toBe(1)
      expect(clock.pending).toBe(0)
      expect(logged.some(({ level }) => level === 'warn')).toBe(code === 422 || code === 400)
    }
  })

  it('is asked again while it cannot answer, and gets each event once', async () => {
    const our = world({}, () => refusal(503, 'ServiceUnavailable'))
    const { clock, writes, logged, events } = our
    events.record(pod('a'), started)
    events.record(pod('b'), started)
    await clock.advance(5_000)
    events.record(pod('a'), started)
    our.answer = () => undefined
    await clock.advance(60_000)
    expect(counts(writes).toSorted()).toEqual([1, 2])
    expect(logged.filter(({ level }) => level === 'warn')).toHaveLength(1)
  })

  it('is taken at its word that the event exists: an earlier try came through', async () => {
    const { clock, events } = world({}, () => refusal(409, 'AlreadyExists'))
    events.record(pod('a'), started)
    await clock.advance(0)
    expect(events.stats()).toMatchObject({ written: 1, dropped: { refused: 0, failed: 0 } })
  })

  it('is given up after six tries', async () => {
    let asked = 0
    const { clock, events } = world({}, () => {
      asked++
      return refusal(500, 'InternalError')
    })
    events.record(pod('a'), started)
    await clock.advance(600_000)
    expect(asked).toBe(6)
    expect(events.stats().dropped.failed).toBe(1)
    expect(clock.pending).toBe(0)
  })

  it('does not make memory grow: what waits is bounded, and what is more is dropped', async () => {
    const { clock, events } = world({ capacity: 10 }, () => refusal(503, 'ServiceUnavailable'))
    for (let number = 0; number < 1_000; number++) events.record(pod(`p${number}`), started)
    await clock.advance(0)
    expect(events.stats().dropped.full).toBe(990)
  })

  it('does not keep more in memory than told; what is forgotten and repeats is a new event', async () => {
    const { clock, writes, events } = world({ memory: 10 })
    for (let round = 0; round < 2; round++) {
      for (let number = 0; number < 11; number++) {
        events.record(pod(`p${number}`), started)
        await clock.advance(0)
      }
    }
    expect(writes.every(({ method }) => method === 'POST')).toBe(true)
    expect(writes).toHaveLength(22)
  })
})

describe('a flush', () => {
  it('writes the counts that wait, and resolves when they are written', async () => {
    const { clock, writes, events } = world()
    events.record(pod('a'), started)
    await clock.advance(0)
    events.record(pod('a'), started)
    await events.flush()
    expect(counts(writes)).toEqual([1, 2])
    expect(clock.pending).toBe(0)
    await events.flush()
    expect(writes).toHaveLength(2)
  })

  it('resolves when its signal is aborted, or the recorder is stopped', async () => {
    const { clock, events } = world({}, () => refusal(503, 'ServiceUnavailable'))
    events.record(pod('a'), started)
    const control = new AbortController()
    const bounded = events.flush(control.signal)
    const unbounded = events.flush()
    await clock.advance(100)
    control.abort()
    await bounded
    await events.flush(control.signal)
    events.stop()
    await unbounded
    await clock.advance(0)
    expect(clock.pending).toBe(0)
  })
})

describe('a stop', () => {
  it('leaves no timer, writes nothing more and counts what it drops', async () => {
    const { clock, writes, events } = world()
    events.record(pod('a'), started)
    await clock.advance(0)
    for (let time = 0; time < 3; time++) events.record(pod('a'), started)
    expect(clock.pending).toBe(1)
    events.stop()
    events.stop()
    events.record(pod('b'), started)
    await clock.advance(3_600_000)
    expect(clock.pending).toBe(0)
    expect(writes).toHaveLength(1)
    expect(events.stats().dropped.stopped).toBe(4)
  })
})

describe('the name of an event', () => {
  const name = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

  it('is valid and short enough for any name of an object', () => {
    for (const of of [
      'web-0',
      'system:node',
      'a.b.c',
      'x'.repeat(253),
      `${'y'.repeat(235)}.z`,
      `${'y'.repeat(235)}-z`,
      ':',
      '',
      'ÄÖ',
      undefined,
    ]) {
      const made = eventName(of, 1_800_000_000_000, 1, () => 0.999999)
      expect(made).toMatch(name)
      expect(made.length).toBeLessThanOrEqual(253)
    }
    expect(eventName('web-0', 0xabc, 1, () => 0)).toBe('web-0.00000000abc000100000000')
  })
})

describe('a cut', () => {
  it('keeps what fits', () => {
    expect(cut('abc', 3)).toBe('abc')
    expect(cut('abc', 2)).toBe('ab')
    expect(cut('a🚢', 4)).toBe('a')
    expect(cut('', 4)).toBe('')
  })
})
