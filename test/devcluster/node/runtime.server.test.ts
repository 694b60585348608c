import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { createLog } from '../../../devcluster/node/log.ts'
import { patience, startWorld, type World } from './world.ts'

let world: World
const place = { namespace: '', name: 'talker', uid: '' }
beforeAll(async () => {
  world = await startWorld()
  const script = `
    console.log('listening')
    require('net').createServer(s => s.pipe(s)).listen(7000, process.env.HOST)
    process.on('SIGTERM', () => process.exit(0))`
  const ports = [{ containerPort: 7000 }]
  await world.pod('talker', {
    containers: [{ name: 'main', image: 'x', command: [process.execPath, '-e', script], ports }],
  })
  const { metadata } = await world.until('talker', ({ status }) => status?.containerStatuses?.[0]?.ready === true)
  Object.assign(place, { namespace: world.namespace, uid: metadata.uid })
})
afterAll(() => world[Symbol.asyncDispose]())

it('connects to a port of the pod', async () => {
  await vi.waitFor(async () => expect(await world.log('talker')).toBe('listening\n'), patience)
  const socket = await vi.waitFor(() => world.nodes.runtime.connect(place, 7000), patience)
  socket.end('hello')
  let text = ''
  for await (const piece of socket) text += piece
  expect(text).toBe('hello')
})

it('runs a command with its input, its outputs and its code', async () => {
  const command = ['sh', '-c', 'cat; echo err >&2; exit 4']
  const session = await world.nodes.runtime.exec(place, { container: 'main', command, stdin: true, tty: false })
  session.stdin?.end('in')
  const texts = await Promise.all(
    [session.stdout, session.stderr].map(async stream => (await stream?.toArray())?.join('')),
  )
  expect(texts).toEqual(['in', 'err\n'])
  expect(await session.exit).toBe(4)
})

it('runs a command at a terminal that can be resized', async () => {
  const script = 'test -t 0 && test -t 1 && echo tty; until [ "$(stty size)" = "42 101" ]; do sleep 0.05; done; exit 5'
  const command = ['sh', '-c', script]
  const session = await world.nodes.runtime.exec(place, { container: 'main', command, stdin: true, tty: true })
  let text = ''
  session.stdout.on('data', piece => {
    text += piece
  })
  await vi.waitFor(() => expect(text).toContain('tty'), patience)
  session.resize(101, 42)
  expect(await session.exit).toBe(5)
})

it('refuses what is not there', async () => {
  const { runtime } = world.nodes
  const options = { command: ['true'], stdin: false, tty: false }
  await expect(runtime.exec(place, { ...options, container: 'other' })).rejects.toThrow(
    'container other is not valid for pod talker',
  )
  await expect(world.log('talker', 'main', { previous: true })).rejects.toThrow(
    'previous terminated container "main" in pod "talker" not found',
  )
})

it('keeps the newest of a log, in whole lines, and follows it to its end', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'shipmate-log-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  let time = Date.UTC(2026, 0, 1)
  const log = createLog(join(folder, 'log'), 4000, () => time)
  const plain = { follow: false, timestamps: false }
  const { signal } = new AbortController()
  const read = async (options: object) => {
    let text = ''
    for await (const piece of log.read({ ...plain, ...options }, signal)) text += Buffer.from(piece).toString()
    return text
  }
  for (let line = 0; line < 500; line++) log.write('stdout', Buffer.from(`line ${line}\n`))
  const kept = (await read({})).trim().split('\n')
  expect(kept.at(-1)).toBe('line 499')
  expect(kept.length).toBeLessThan(120)
  expect(kept).toEqual(kept.map((_, index) => `line ${500 - kept.length + index}`))
  expect(await read({ tailLines: 2 })).toBe('line 498\nline 499\n')
  expect(await read({ tailLines: 2, limitBytes: 4 })).toBe('line')
  time += 10_000
  const following = read({ follow: true, tailLines: 0 })
  log.write('stderr', Buffer.from('late '))
  log.write('stderr', Buffer.from('words\nno end'))
  expect(await read({ sinceSeconds: 5, timestamps: true })).toBe('2026-01-01T00:00:10.000000000Z late words\n')
  log.close()
  expect(await following).toBe('late words\nno end')
})
