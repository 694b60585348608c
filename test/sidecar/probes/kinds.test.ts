import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { appendFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../../shared/clock.ts'
import type { Probe } from '../../../shared/lifecycle/model.ts'
import { attemptProbe } from '../../../sidecar/probes/kinds.ts'

let folder: string
let files = 0

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'shipmate-kinds-'))
})
afterAll(() => rm(folder, { recursive: true }))

const seen = new Map<string, string>()
const attempt = (probe: Omit<Probe, 'name'>, signal = new AbortController().signal) =>
  attemptProbe({ name: 'it', ...probe }, { clock: systemClock, signal, seen })
const newPath = () => join(folder, String(files++))
const shell = (script: string) => ({ exec: { command: ['sh', '-c', script] } })

async function portOf(server: ReturnType<typeof createTcpServer>): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

async function unusedPort(): Promise<number> {
  const server = createTcpServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

describe('exec', () => {
  it('says yes by exit 0, with what was written, without the end of the line', async () => {
    expect(await attempt(shell('echo primary'))).toEqual({ outcome: 'yes', value: 'primary', error: null })
  })

  it('says no by any other exit, with what was complained of', async () => {
    expect(await attempt(shell('echo starting; echo not yet >&2; exit 2'))).toEqual({
      outcome: 'no',
      value: 'starting',
      error: 'exit 2: not yet',
    })
    expect(await attempt(shell('exit 7'))).toEqual({ outcome: 'no', value: '', error: 'exit 7' })
  })

  it('has no answer when killed, not executed or stopped', async () => {
    expect(await attempt(shell('kill -9 $$'))).toEqual({ outcome: 'none', value: null, error: 'killed by SIGKILL' })
    expect(await attempt({ exec: { command: ['no-such-program'] } })).toMatchObject({
      outcome: 'none',
      error: expect.stringContaining('spawn ENOENT'),
    })
    const stop = new AbortController()
    const stopped = attempt(shell('sleep 600'), stop.signal)
    stop.abort()
    expect(await stopped).toMatchObject({ outcome: 'none' })
  })

  it('has the declared environment and folder', async () => {
    const probe = { ...shell('echo $A; pwd'), env: { A: 'b' }, workingDir: '/' }
    expect(await attempt(probe)).toMatchObject({ value: 'b\n/' })
  })

  it('keeps 4 KiB of the value, and says when it was cut', async () => {
    const whole = await attempt(shell('head -c 4096 /dev/zero | tr "\\0" x'))
    expect(whole.value).toBe('x'.repeat(4096))
    const cut = await attempt(shell('head -c 4097 /dev/zero | tr "\\0" x; echo'))
    expect(cut.value).toMatch(/^x{4000,}… \(cut\)$/)
    expect(Buffer.byteLength(cut.value ?? '')).toBe(4096)
  })

  it('keeps little of a long complaint', async () => {
    const { error } = await attempt(shell('head -c 4000 /dev/zero | tr "\\0" x >&2; exit 1'))
    expect(Buffer.byteLength(error ?? '')).toBe(512)
  })
})

describe('http', () => {
  async function serve(status: number, body = '') {
    const server = createServer((_request, response) => void response.writeHead(status).end(body))
    return `http://127.0.0.1:${await portOf(server)}`
  }

  it('says yes by 200 to 299, with the body', async () => {
    expect(await attempt({ http: { url: await serve(204) } })).toEqual({ outcome: 'yes', value: '', error: null })
    expect(await attempt({ http: { url: await serve(200, 'leader\n') } })).toMatchObject({ value: 'leader' })
  })

  it('says no by any other answer, and by a refusal', async () => {
    expect(await attempt({ http: { url: await serve(503, 'warming up') } })).toEqual({
      outcome: 'no',
      value: 'warming up',
      error: 'status 503',
    })
    expect(await attempt({ http: { url: await serve(302) } })).toMatchObject({ outcome: 'no', error: 'status 302' })
    const url = `http://127.0.0.1:${await unusedPort()}`
    expect(await attempt({ http: { url } })).toMatchObject({
      outcome: 'no',
      error: expect.stringContaining('ECONNREFUSED'),
    })
  })

  it('takes the status codes that are declared', async () => {
    const url = await serve(429)
    expect(await attempt({ http: { url, status: [429] } })).toMatchObject({ outcome: 'yes' })
    expect(await attempt({ http: { url, status: [200] } })).toMatchObject({ outcome: 'no' })
  })

  it('has no answer when the server is silent or hangs up', async () => {
    const silent = await portOf(createTcpServer(() => {}))
    const url = `http://127.0.0.1:${silent}`
    const answer = attempt({ http: { url, timeout: '20ms' } })
    expect(await answer).toEqual({ outcome: 'none', value: null, error: 'no answer within 20 ms' })
    const rude = await portOf(createTcpServer(socket => void socket.destroy()))
    expect(await attempt({ http: { url: `http://127.0.0.1:${rude}` } })).toMatchObject({ outcome: 'none' })
  })

  it('keeps 4 KiB of the body, and says when it was cut', async () => {
    const { outcome, value } = await attempt({ http: { url: await serve(200, 'é'.repeat(5000)) } })
    expect(outcome).toBe('yes')
    expect(value).toMatch(/^é+… \(cut\)$/)
    expect(Buffer.byteLength(value ?? '')).toBeLessThanOrEqual(4096)
  })
})

describe('tcp', () => {
  it('says yes by a connection, which it closes', async () => {
    const server = createTcpServer()
    const port = await portOf(server)
    const [[socket]] = await Promise.all([
      once(server, 'connection'),
      expect(attempt({ tcp: { port } })).resolves.toEqual({ outcome: 'yes', value: null, error: null }),
    ])
    if (!socket.closed) await once(socket.resume(), 'close')
  })

  it('says no by a refusal', async () => {
    const port = await unusedPort()
    for (const host of ['127.0.0.1', 'localhost']) {
      expect(await attempt({ tcp: { host, port } })).toMatchObject({
        outcome: 'no',
        error: expect.stringContaining('ECONNREFUSED'),
      })
    }
  })

  it('has no answer when it is stopped, or the address is none', async () => {
    const stop = new AbortController()
    const stopped = attempt({ tcp: { host: '192.0.2.1', port: 9 } }, stop.signal)
    stop.abort()
    expect(await stopped).toMatchObject({ outcome: 'none' })
    expect(await attempt({ tcp: { host: '256.0.0.1.invalid', port: 9 } })).toMatchObject({ outcome: 'none' })
  }, 60_000)
})

describe('file', () => {
  it('says whether it exists, as it is to', async () => {
    const path = newPath()
    expect(await attempt({ file: { path } })).toEqual({
      outcome: 'no',
      value: null,
      error: `"${path}" does not exist`,
    })
    expect(await attempt({ file: { path, exists: false } })).toMatchObject({ outcome: 'yes' })
    expect(await attempt({ file: { path: '/etc/passwd/x' } })).toMatchObject({ outcome: 'no' })
    await mkdir(path)
    expect(await attempt({ file: { path } })).toMatchObject({ outcome: 'yes' })
    expect(await attempt({ file: { path, exists: false } })).toMatchObject({
      outcome: 'no',
      error: `"${path}" exists`,
    })
  })

  it('says whether it matches, with the first group or the match', async () => {
    const path = newPath()
    expect(await attempt({ file: { path, pattern: 'x' } })).toMatchObject({ outcome: 'no' })
    await writeFile(path, 'a = 1\nrole = primary\n')
    expect(await attempt({ file: { path, pattern: '^role = (\\w+)$' } })).toMatchObject({ value: 'primary' })
    expect(await attempt({ file: { path, pattern: 'a = \\d' } })).toMatchObject({ outcome: 'yes', value: 'a = 1' })
    expect(await attempt({ file: { path, pattern: 'none' } })).toEqual({
      outcome: 'no',
      value: null,
      error: `"${path}" does not match none`,
    })
    expect(await attempt({ file: { path, pattern: '(' } })).toMatchObject({ outcome: 'none' })
  })

  it('looks for a pattern in the first 1 MiB', async () => {
    const path = newPath()
    await writeFile(path, `${'x'.repeat((1 << 20) - 3)}end`)
    expect(await attempt({ file: { path, pattern: 'end' } })).toMatchObject({ outcome: 'yes' })
    await appendFile(path, 'beyond')
    expect(await attempt({ file: { path, pattern: 'end' } })).toMatchObject({ outcome: 'yes' })
    expect(await attempt({ file: { path, pattern: 'b' } })).toMatchObject({
      outcome: 'no',
      error: `the first 1 MiB of "${path}" does not match b`,
    })
  })

  it('says whether it has changed since it was first seen, with its hash', async () => {
    const path = newPath()
    const probe = { file: { path, changed: true } }
    const hash = (text: string) => createHash('sha256').update(text).digest('hex')
    expect(await attempt(probe)).toMatchObject({ outcome: 'no', error: `"${path}" does not exist` })
    const long = 'one'.repeat(100_000)
    await writeFile(path, long)
    expect(await attempt(probe)).toMatchObject({ outcome: 'no', value: hash(long) })
    expect(await attempt({ file: { path, changed: false } })).toMatchObject({ outcome: 'yes' })
    await writeFile(path, 'two')
    expect(await attempt(probe)).toEqual({ outcome: 'yes', value: hash('two'), error: null })
    expect(await attempt({ file: { path, changed: false } })).toMatchObject({
      outcome: 'no',
      error: `"${path}" has changed`,
    })
    await writeFile(path, long)
    expect(await attempt(probe)).toMatchObject({ outcome: 'no' })
  })

  it('has no answer for what has no content: a folder, a pipe nobody writes into, a device without an end', async () => {
    const pipe = newPath()
    execFileSync('mkfifo', [pipe])
    for (const path of [folder, pipe, '/dev/zero']) {
      expect(await attempt({ file: { path, pattern: 'x' } })).toEqual({
        outcome: 'none',
        value: null,
        error: `"${path}" is no regular file`,
      })
      expect(await attempt({ file: { path } })).toMatchObject({ outcome: 'yes' })
    }
  })

  it('gives up when it is stopped', async () => {
    const path = newPath()
    await writeFile(path, 'x')
    const answer = await attempt({ file: { path, changed: true } }, AbortSignal.abort())
    expect(answer).toMatchObject({ outcome: 'none' })
  })
})

describe('process', () => {
  it('says whether such a process runs, with its pid', async () => {
    const name = `no-${process.pid}`
    expect(await attempt({ process: { name } })).toEqual({
      outcome: 'no',
      value: null,
      error: `no process is called "${name}"`,
    })
    const child = spawn('sleep', ['600'], { argv0: name, stdio: 'ignore' })
    onTestFinished(() => void child.kill('SIGKILL'))
    await once(child, 'spawn')
    expect(await attempt({ process: { name } })).toEqual({ outcome: 'yes', value: String(child.pid), error: null })
  })
})
