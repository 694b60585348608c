import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Client } from '../../controller/kube/client.ts'
import { BadRequest } from '../../controller/kube/errors.ts'
import { linesOf, logLines, logs } from '../../controller/kube/logs.ts'
import type { Request } from '../../controller/kube/transport.ts'

async function* pieces(...all: Uint8Array[]) {
  yield* all
}

/** Cuts bytes at the given places. */
function cut(bytes: Uint8Array, places: number[]): Uint8Array[] {
  const sorted = [0, ...places.map(place => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return sorted.slice(1).map((end, i) => bytes.subarray(sorted[i], end))
}

async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of source) items.push(item)
  return items
}

const text = fc.string({ unit: fc.constantFrom('a', 'ä', '€', '🚢', '\n', '\r', '\u{feff}') })

/** A server that answers with a log. */
function serving(...log: string[]) {
  const requests: Request[] = []
  const client = new Client(async request => {
    requests.push(request)
    return { status: 200, headers: {}, text: '', chunks: pieces(...log.map(piece => Buffer.from(piece))) }
  })
  return { client, requests }
}

describe('lines', () => {
  it('come out whole wherever the network cuts them', async () => {
    await fc.assert(
      fc.asyncProperty(text, fc.array(fc.nat()), async (text, places) => {
        const lines = text.split('\n')
        if (lines.at(-1) === '') lines.pop()
        expect(await all(linesOf(pieces(...cut(Buffer.from(text), places)), 1 << 20))).toEqual(lines)
      }),
    )
  })

  it('that are too long come in several, between characters, with nothing lost', async () => {
    await fc.assert(
      fc.asyncProperty(text, fc.array(fc.nat()), fc.integer({ min: 1, max: 9 }), async (text, places, longest) => {
        const lines = await all(linesOf(pieces(...cut(Buffer.from(text), places)), longest))
        expect(lines.join('')).toBe(text.replaceAll('\n', ''))
        // A character that began before the cut comes after it, so up to three bytes more.
        for (const line of lines) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(longest + 3)
      }),
    )
  })

  it('that are just as long as allowed are one', async () => {
    expect(await all(linesOf(pieces(Buffer.from('12345'), Buffer.from('\n67890\n')), 5))).toEqual(['12345', '67890'])
  })

  it('may be empty, and the last may have no end', async () => {
    expect(await all(linesOf(pieces(Buffer.from('a\n\nb')), 10))).toEqual(['a', '', 'b'])
  })

  it('leave out a character that the end cuts, and mark one that is none', async () => {
    expect(await all(linesOf(pieces(Buffer.from('ship 🚢').subarray(0, -1)), 100))).toEqual(['ship '])
    expect(await all(linesOf(pieces(Buffer.of(0x61, 0xff, 0x0a, 0x62, 0xc3, 0x0a)), 100))).toEqual([
      'a\u{fffd}',
      'b\u{fffd}',
    ])
  })
})

describe('a log', () => {
  it('is asked for as the options say', async () => {
    const { client, requests } = serving('one\ntwo\n')
    const options = {
      ...{ container: 'main', previous: true, sinceTime: new Date(0), tailLines: 5, timestamps: true, limitBytes: 99 },
      ...{ sinceSeconds: undefined, deadline: 7 },
    }
    expect(await all(logLines(client, { name: 'pod', namespace: 'ns' }, options))).toEqual(['one', 'two'])
    expect(requests).toMatchObject([{ method: 'GET', stream: true, deadline: 7 }])
    const url = new URL(requests[0]?.path ?? '', 'http://server')
    expect(url.pathname).toBe('/api/v1/namespaces/ns/pods/pod/log')
    expect(Object.fromEntries(url.searchParams)).toEqual({
      ...{
        container: 'main',
        previous: 'true',
        sinceTime: '1970-01-01T00:00:00.000Z',
        tailLines: '5',
        timestamps: 'true',
      },
      limitBytes: '99',
    })
  })

  it('that is refused is a class', async () => {
    const body = { kind: 'Status', message: 'container "main" in pod "pod" is waiting to start: ContainerCreating' }
    const client = new Client(async () => ({ status: 400, headers: {}, text: JSON.stringify(body) }))
    const reading = all(logs(client, { name: 'pod' }))
    await expect(reading).rejects.toBeInstanceOf(BadRequest)
  })
})
