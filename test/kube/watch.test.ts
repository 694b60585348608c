import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  BadRequest,
  Conflict,
  Expired,
  Forbidden,
  NotFound,
  TooManyRequests,
  Unauthorized,
  Unavailable,
} from '../../controller/kube/errors.ts'
import { decodeWatch, type WatchEvent } from '../../controller/kube/watch.ts'

const target = { verb: 'watch', group: '', resource: 'configmaps' }

async function* pieces(...parts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield typeof part === 'string' ? new TextEncoder().encode(part) : part
}

/** The events, and the error that ended them if one did. */
async function decode(chunks: AsyncIterable<Uint8Array>): Promise<{ events: WatchEvent[]; error?: unknown }> {
  const events: WatchEvent[] = []
  try {
    for await (const batch of decodeWatch(target, chunks)) events.push(...batch)
  } catch (error) {
    return { events, error }
  }
  return { events }
}

const object = (name: string, resourceVersion: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'a', uid: `uid-${name}`, resourceVersion },
  ...more,
})
const line = (event: object) => `${JSON.stringify(event)}\n`
const added = (name: string, version = '1', more = {}) => line({ type: 'ADDED', object: object(name, version, more) })

const eventArbitrary = fc.oneof(
  fc.record({
    type: fc.constantFrom('ADDED', 'MODIFIED', 'DELETED'),
    object: fc
      .tuple(fc.string({ minLength: 1, unit: 'grapheme' }), fc.nat(), fc.jsonValue())
      .map(([name, version, data]) => object(name, String(version), { data })),
  }),
  fc.record({
    type: fc.constant('BOOKMARK'),
    object: fc.nat().map(version => ({ kind: 'ConfigMap', metadata: { resourceVersion: String(version) } })),
  }),
)

/** `bytes` cut at the given places. */
function cut(bytes: Uint8Array, places: number[]): Uint8Array[] {
  const sorted = [...new Set(places.map(place => place % (bytes.length + 1)))].sort((a, b) => a - b)
  const ends = [...sorted, bytes.length]
  return ends.map((end, i) => bytes.subarray(i === 0 ? 0 : ends[i - 1], end)).filter(piece => piece.length > 0)
}

describe('a watch, decoded', () => {
  it('gives the same events wherever the network cuts it', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(eventArbitrary, { maxLength: 8 }),
        fc.array(fc.nat(), { maxLength: 40 }),
        async (events, places) => {
          const bytes = new TextEncoder().encode(events.map(line).join(''))
          const whole = await decode(pieces(bytes))
          const split = await decode(pieces(...cut(bytes, places)))
          expect(whole.error).toBeUndefined()
          expect(split).toEqual(whole)
          expect(whole.events).toEqual(
            events.map(event =>
              event.type === 'BOOKMARK'
                ? {
                    type: 'BOOKMARK',
                    resourceVersion: event.object.metadata.resourceVersion,
                    initialEventsEnd: false,
                  }
                : JSON.parse(JSON.stringify(event)),
            ),
          )
        },
      ),
      { numRuns: 200 },
    )
  })

  it('keeps characters whole that are cut in the middle', async () => {
    const bytes = new TextEncoder().encode(added('a', '1', { data: { text: 'żółw 🐢 水' } }))
    const { events } = await decode(pieces(...Array.from(bytes, byte => Uint8Array.of(byte))))
    expect(events).toMatchObject([{ object: { data: { text: 'żółw 🐢 水' } } }])
  })

  it('reads lines of megabytes', async () => {
    const text = 'ü'.repeat(2_500_000)
    const bytes = new TextEncoder().encode(added('big', '7', { data: { text } }) + added('small', '8'))
    expect(bytes.length).toBeGreaterThan(5_000_000)
    const parts: Uint8Array[] = []
    for (let at = 0; at < bytes.length; at += 16_383) parts.push(bytes.subarray(at, at + 16_383))
    const { events, error } = await decode(pieces(...parts))
    expect(error).toBeUndefined()
    expect(events.map(event => event.type === 'ADDED' && event.object.metadata.name)).toEqual(['big', 'small'])
    expect(events[0]).toHaveProperty(['object', 'data', 'text', 'length'], text.length)
  })

  it('gives up on a line longer than any object', async () => {
    async function* endless(): AsyncGenerator<Uint8Array> {
      const piece = new Uint8Array(1 << 22).fill(0x20)
      for (;;) yield piece
    }
    const { error } = await decode(endless())
    expect(error).toMatchObject({ code: 'Garbled', retry: 'later' })
  })

  it('keeps together what arrived together', async () => {
    const batches: number[] = []
    for await (const batch of decodeWatch(target, pieces(added('a') + added('b'), added('c')))) {
      batches.push(batch.length)
    }
    expect(batches).toEqual([2, 1])
  })

  it('never believes a line that was cut off, even if it looks complete', async () => {
    expect(await decode(pieces(added('a') + added('b').trimEnd()))).toMatchObject({ events: [{ type: 'ADDED' }] })
  })

  it('reports every piece before it is understood', async () => {
    let heard = 0
    const garbage = pieces(added('a'), '{"half', 'nonsense\n')
    const read = (async () => {
      for await (const _ of decodeWatch(target, garbage, () => heard++)) void _
    })()
    await expect(read).rejects.toBeInstanceOf(Unavailable)
    expect(heard).toBe(3)
  })

  it.each([
    ['not JSON', 'hello\n'],
    ['half JSON', '{"type":"ADDED","object":{"metadata"\n'],
    ['a number', '5\n'],
    ['null', 'null\n'],
    ['an array', '[]\n'],
    ['no type', line({ object: object('a', '1') })],
    ['an unknown type', line({ type: 'RENAMED', object: object('a', '1') })],
    ['no object', line({ type: 'ADDED' })],
    ['a null object', line({ type: 'ADDED', object: null })],
    ['an object without metadata', line({ type: 'MODIFIED', object: { kind: 'ConfigMap' } })],
    ['an object without a name', line({ type: 'DELETED', object: { metadata: { resourceVersion: '1' } } })],
    ['an object without a version', line({ type: 'ADDED', object: { metadata: { name: 'a' } } })],
    ['a bookmark without a version', line({ type: 'BOOKMARK', object: { metadata: {} } })],
    ['bytes that are no text', Uint8Array.of(0x7b, 0xff, 0xfe, 0x7d, 0x0a)],
    [
      'a broken character inside good JSON',
      Buffer.concat([
        Buffer.from('{"type":"ADDED","object":{"metadata":{"name":"'),
        Uint8Array.of(0xff),
        Buffer.from('","resourceVersion":"1"}}}\n'),
      ]),
    ],
  ])('calls it garbled when there is %s, after what was good', async (_what, bad) => {
    const { events, error } = await decode(pieces(Buffer.concat([Buffer.from(added('a')), Buffer.from(bad)])))
    expect(events).toMatchObject([{ type: 'ADDED', object: { metadata: { name: 'a' } } }])
    expect(error).toBeInstanceOf(Unavailable)
    expect(error).toMatchObject({ code: 'Garbled', mayHaveActed: false })
  })

  it('throws nothing but its own errors, whatever bytes come', async () => {
    const anything = fc.array(fc.oneof(fc.uint8Array({ maxLength: 60 }), fc.constant(Uint8Array.of(0x0a))), {
      maxLength: 20,
    })
    await fc.assert(
      fc.asyncProperty(anything, async parts => {
        const { error } = await decode(pieces(...parts))
        if (error !== undefined) expect(error).toBeInstanceOf(Unavailable)
      }),
    )
  })

  it('closes the stream when it gives up', async () => {
    let closed = false
    async function* stream() {
      try {
        yield new TextEncoder().encode('nonsense\n')
        yield new TextEncoder().encode('never read\n')
      } finally {
        closed = true
      }
    }
    await decode(stream())
    expect(closed).toBe(true)
  })

  it('marks the bookmark that ends the initial events', async () => {
    const annotations = { 'k8s.io/initial-events-end': 'true' }
    const bookmark = line({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '9', annotations } } })
    expect(await decode(pieces(bookmark))).toEqual({
      events: [{ type: 'BOOKMARK', resourceVersion: '9', initialEventsEnd: true }],
    })
  })

  it.each([
    [410, 'Expired', Expired],
    [404, 'NotFound', NotFound],
    [400, 'BadRequest', BadRequest],
    [401, 'Unauthorized', Unauthorized],
    [403, 'Forbidden', Forbidden],
    [409, 'Conflict', Conflict],
    [429, 'TooManyRequests', TooManyRequests],
    [500, 'InternalError', Unavailable],
    [504, 'Timeout', Unavailable],
  ])("turns the server's own error %i %s into its class, after what was good", async (code, reason, errorClass) => {
    const status = { kind: 'Status', status: 'Failure', code, reason, message: 'too old resource version: 1 (5)' }
    const { events, error } = await decode(pieces(added('a') + line({ type: 'ERROR', object: status }) + added('b')))
    expect(events).toHaveLength(1)
    expect(error).toBeInstanceOf(errorClass)
    expect((error as Error).message).toContain('watch configmaps')
    expect((error as Error).message).toContain('too old resource version')
  })

  it('takes an error without a word for a passing one', async () => {
    for (const bad of [{ type: 'ERROR' }, { type: 'ERROR', object: null }, { type: 'ERROR', object: {} }]) {
      expect((await decode(pieces(line(bad)))).error).toBeInstanceOf(Unavailable)
    }
  })
})
