import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Clock, systemClock } from '../../../shared/clock.ts'
import type { Probe } from '../../../shared/lifecycle/model.ts'
import type { ProbeState } from '../../../shared/protocol/schemas.ts'
import { createProbes, type Probes } from '../../../sidecar/probes/scheduler.ts'
import { VirtualClock } from '../../fixtures/virtual-clock.ts'

/** An application that is asked over HTTP, and answers when the test says so. */
async function startApp() {
  const asked: { path: string; at: number; response: ServerResponse }[] = []
  const server = createServer((request, response) => {
    asked.push({ path: request.url ?? '', at: clock.monotonic(), response })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    asked,
    url: (path: string) => `http://127.0.0.1:${port}/${path}`,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

let clock: VirtualClock
let app: Awaited<ReturnType<typeof startApp>>
let answers: { name: string; view: ProbeState; changed: boolean }[]
let probes: Probes
const log = { error: vi.fn(), debug: vi.fn() }

beforeEach(async () => {
  clock = new VirtualClock()
  app = await startApp()
  answers = []
  probes = create(clock)
})
afterEach(async () => {
  probes.stop()
  await app.close()
  expect(clock.pending).toBe(0)
})

const create = (clock: Clock) =>
  createProbes({
    clock,
    log,
    onAnswer: (name, view, changed) => void answers.push({ name, view, changed }),
  })

const probe = (name: string, more: Partial<Probe> = {}): Probe => ({
  name,
  http: { url: app.url(name) },
  every: '10s',
  timeout: '3s',
  ...more,
})

const isAsked = (count: number) => vi.waitFor(() => expect(app.asked).toHaveLength(count))
const isAnswered = (count: number) => vi.waitFor(() => expect(answers).toHaveLength(count))

/** Resolves when who asked has hung up. */
async function closed(index: number): Promise<void> {
  const response = app.asked[index]?.response
  if (response) await once(response, 'close')
}

/** Waits for the next question, and answers it. */
async function answer(status = 200, body = '') {
  const number = answers.length + 1
  await vi.waitFor(() => expect(app.asked.at(-1)?.response.writableEnded).toBe(false))
  app.asked.at(-1)?.response.writeHead(status).end(body)
  await isAnswered(number)
}

describe('a probe', () => {
  it('begins at once, and again at every period from then, however long its answers take', async () => {
    probes.set([probe('a')])
    expect(probes.view()).toEqual({ a: { ok: null, value: null, error: null, at: null, failures: 0 } })
    for (const [turn, takes] of [0, 1500, 2999, 1, 700].entries()) {
      await clock.advance(turn * 10_000 - clock.monotonic())
      await isAsked(turn + 1)
      await clock.advance(takes)
      await answer()
    }
    expect(app.asked.map(({ at }) => at)).toEqual([0, 10_000, 20_000, 30_000, 40_000])
    expect(probes.view()).toMatchObject({ a: { ok: true, at: new Date(clock.now()).toISOString() } })
  })

  it('waits for its initial delay', async () => {
    probes.set([probe('a', { initialDelay: '5s' })])
    await clock.advance(4999)
    expect(clock.pending).toBe(1)
    await clock.advance(1)
    await isAsked(1)
    expect(app.asked[0]?.at).toBe(5000)
  })

  it('leaves out what would begin while it is still under way', async () => {
    probes.set([probe('a', { every: '2s', timeout: '7s' })])
    await clock.advance(0)
    await isAsked(1)
    await clock.advance(5000)
    expect(app.asked).toHaveLength(1)
    await answer()
    await clock.advance(999)
    expect(app.asked).toHaveLength(1)
    await clock.advance(1)
    await isAsked(2)
    expect(app.asked[1]?.at).toBe(6000)
  })

  it('that does not answer in time has no answer, and is asked again in its turn', async () => {
    probes.set([probe('a', { failureThreshold: 1 })])
    await clock.advance(0)
    await answer()
    await clock.advance(10_000)
    await isAsked(2)
    await clock.advance(3000)
    await isAnswered(2)
    expect(probes.view()['a']).toMatchObject({ ok: null, error: 'no answer within 3s', failures: 1 })
    await clock.advance(7000)
    await isAsked(3)
    expect(app.asked[2]?.at).toBe(20_000)
  })

  it('whose time-out is its period has one failure for each attempt', async () => {
    probes.set([probe('a', { every: '1s', timeout: '1s' })])
    for (let turn = 1; turn <= 3; turn++) {
      await clock.advance(turn === 1 ? 0 : 1000)
      await isAsked(turn)
    }
    await clock.advance(1000)
    await isAnswered(3)
    expect(answers.map(({ view }) => view.error)).toEqual(Array(3).fill('no answer within 1s'))
    expect(probes.view()['a']?.failures).toBe(3)
  })

  it('tells each answer, and whether it is news', async () => {
    probes.set([probe('a')])
    const replies: [number, string][] = [
      [200, 'x'],
      [200, 'x'],
      [200, 'y'],
      [500, 'y'],
      [500, 'y'],
      [500, 'y'],
      [500, 'y'],
      [200, 'y'],
    ]
    for (const [turn, [status, body]] of replies.entries()) {
      await clock.advance(turn === 0 ? 0 : 10_000)
      await isAsked(turn + 1)
      await answer(status, body)
    }
    const told = answers.map(({ view, changed }) => [view.ok, view.value, view.failures, changed])
    expect(told).toEqual([
      [true, 'x', 0, true],
      [true, 'x', 0, false],
      [true, 'y', 0, true],
      [true, 'y', 1, true],
      [true, 'y', 2, false],
      [false, 'y', 3, true],
      [false, 'y', 4, false],
      [true, 'y', 0, true],
    ])
    expect(answers[5]?.name).toBe('a')
  })

  it('goes on when who listens fails', async () => {
    const failing = createProbes({
      clock,
      log,
      onAnswer: () => {
        throw new Error('listener')
      },
    })
    failing.set([probe('a')])
    await clock.advance(0)
    await isAsked(1)
    app.asked[0]?.response.end()
    await vi.waitFor(() => expect(log.error).toHaveBeenCalledOnce())
    await clock.advance(10_000)
    await isAsked(2)
    failing.stop()
  })

  it('keeps to the monotonic clock when the wall clock jumps', async () => {
    probes.set([probe('a')])
    await clock.advance(0)
    await answer()
    clock.jumpWall(-86_400_000)
    await clock.advance(10_000)
    await isAsked(2)
    clock.jumpWall(7 * 86_400_000)
    await answer()
    await clock.advance(9999)
    expect(app.asked).toHaveLength(2)
  })
})

describe('several probes', () => {
  it('do not begin all at once, but for the first', async () => {
    probes.set(['a', 'b', 'c', 'd', 'e'].map(name => probe(name)))
    for (let number = 1; number <= 5; number++) {
      await clock.advance(number === 1 ? 0 : 20)
      await isAsked(number)
    }
    expect(app.asked.map(({ path, at }) => [path, at])).toEqual([
      ['/a', 0],
      ['/b', 20],
      ['/c', 40],
      ['/d', 60],
      ['/e', 80],
    ])
  })

  it('are awaited until each has answered or failed to, and have answered only by an answer', async () => {
    expect(probes.awaited()).toEqual([])
    probes.set([probe('a', { failureThreshold: 1 }), probe('b')])
    expect(probes.awaited()).toEqual(['a', 'b'])
    await clock.advance(0)
    await answer(500)
    expect(probes.awaited()).toEqual(['b'])
    await clock.advance(20)
    await isAsked(2)
    await clock.advance(3000)
    await isAnswered(2)
    expect(probes.awaited()).toEqual([])
    expect([probes.answered('a'), probes.answered('b'), probes.answered('c')]).toEqual([true, false, false])
  })
})

describe('another declaration', () => {
  it('leaves alone the probe that is as it was, its schedule and what is known of it', async () => {
    probes.set([probe('a'), probe('b')])
    await clock.advance(0)
    await answer(200, 'x')
    await clock.advance(4000)
    const { name, ...rest } = probe('a')
    probes.set([{ ...rest, name }])
    expect(Object.keys(probes.view())).toEqual(['a'])
    expect(probes.view()['a']).toMatchObject({ ok: true, value: 'x' })
    await clock.advance(5999)
    const before = app.asked.length
    await clock.advance(1)
    await isAsked(before + 1)
    expect(app.asked.at(-1)).toMatchObject({ path: '/a', at: 10_000 })
  })

  it('begins a changed probe anew, and ends the attempt that was under way', async () => {
    probes.set([probe('a')])
    await clock.advance(0)
    await isAsked(1)
    const ended = closed(0)
    probes.set([probe('a', { every: '20s' })])
    await ended
    await clock.advance(0)
    await isAsked(2)
    await answer(200, 'new')
    expect(answers).toHaveLength(1)
    expect(probes.view()['a']).toMatchObject({ ok: true, value: 'new' })
  })

  it('ends a probe that is no longer there', async () => {
    probes.set([probe('a')])
    await clock.advance(0)
    await isAsked(1)
    const ended = closed(0)
    probes.set([])
    await ended
    expect(probes.view()).toEqual({})
    expect(clock.pending).toBe(0)
    expect(answers).toEqual([])
  })
})

describe('real commands and files', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'shipmate-probes-'))
    probes.stop()
    probes = create(systemClock)
  })
  afterEach(() => rm(folder, { recursive: true }))
  const shell = (script: string) => ({ exec: { command: ['sh', '-c', script] } })

  it('never run twice at once, although each is killed for taking too long', async () => {
    const file = join(folder, 'runs')
    // mkdir is a lock: who finds it taken says so. It is given back by the next one, once who held it is gone.
    const script = `
      if ! mkdir ${folder}/lock 2>/dev/null; then
        kill -0 $(cat ${folder}/pid) 2>/dev/null && echo twice >> ${file}
      fi
      echo $$ > ${folder}/pid; echo run >> ${file}; exec sleep 600`
    probes.set([{ name: 'slow', ...shell(script), every: '20ms', timeout: '20ms' }])
    await vi.waitFor(() => expect(answers.length).toBeGreaterThan(10), 20_000)
    probes.stop()
    const lines = (await readFile(file, 'utf8')).trim().split('\n')
    expect(new Set(lines)).toEqual(new Set(['run']))
    // On a busy machine one that was killed may be there a moment longer, and then the next is not begun.
    const late = ['no answer within 20ms', 'the attempt before this one has not ended']
    for (const { view } of answers) expect(late).toContain(view.error)
  })

  it('are ended by stop, and nobody is told', async () => {
    const file = join(folder, 'pid')
    probes.set([{ name: 'slow', ...shell(`echo $$ > ${file}; exec sleep 600`), timeout: '1h' }])
    const pid = await vi.waitFor(async () => {
      const text = await readFile(file, 'utf8')
      expect(text).toMatch(/^\d+\n$/)
      return Number(text)
    }, 10_000)
    probes.stop()
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'), 10_000)
    expect(answers).toEqual([])
    expect(probes.view()).toEqual({})
  })

  it('remember how a file was first seen when the probe is declared anew', async () => {
    const path = join(folder, 'config')
    await writeFile(path, 'one')
    probes.set([{ name: 'f', file: { path, changed: true }, every: '10ms' }])
    await vi.waitFor(() => expect(probes.view()['f']?.ok).toBe(false))
    await writeFile(path, 'two')
    probes.set([{ name: 'f', file: { path, changed: true }, every: '11ms' }])
    await vi.waitFor(() => expect(probes.view()['f']?.ok).toBe(true))
  })
})

it('one that cannot be ended is not joined by another, and has no answer meanwhile', async () => {
  // A killed process that stays, as one in an endless system call does.
  const kill = vi.spyOn(process, 'kill').mockReturnValue(true)
  const folder = await mkdtemp(join(tmpdir(), 'shipmate-probes-'))
  const file = join(folder, 'pids')
  const script = `echo $$ >> ${file}; exec sleep 600`
  probes.set([{ name: 'stuck', exec: { command: ['sh', '-c', script] }, every: '10s', timeout: '1s' }])
  const pids = async () => (await readFile(file, 'utf8')).trim().split('\n').map(Number)
  await clock.advance(0)
  await vi.waitFor(async () => expect(await pids()).toHaveLength(1), 10_000)
  await clock.advance(1000)
  await isAnswered(1)
  await clock.advance(10_000)
  await isAnswered(2)
  await clock.advance(10_000)
  await isAnswered(3)
  expect(answers.map(({ view }) => view.error)).toEqual([
    'no answer within 1s',
    'the attempt before this one has not ended',
    'the attempt before this one has not ended',
  ])
  expect(await pids()).toHaveLength(1)
  kill.mockRestore()
  const [first = 0] = await pids()
  await clock.advance(9000)
  process.kill(first, 'SIGKILL')
  // The one that is due begins as soon as the other has ended.
  await vi.waitFor(async () => expect(await pids()).toHaveLength(2), 10_000)
  probes.stop()
  // The timer that would tell that it lingers goes when it has ended.
  await vi.waitFor(() => expect(clock.pending).toBe(0), 10_000)
  await rm(folder, { recursive: true })
})
