import { existsSync, readFileSync, readlinkSync } from 'node:fs'
import { chmod, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { systemClock } from '../../../shared/clock.ts'
import { type CommandOptions, runCommand } from '../../../sidecar/calls/command.ts'
import { VirtualClock } from '../../fixtures/virtual-clock.ts'

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'shipmate-command-'))
})
afterAll(() => rm(folder, { recursive: true }))

const run = (command: string[], options: Partial<CommandOptions> = {}) =>
  runCommand({ command, clock: systemClock, timeoutMs: 20_000, outputLimit: 4096, ...options })
const shell = (script: string, options: Partial<CommandOptions> = {}) => run(['sh', '-c', script], options)

/** Whether a process is there and not merely waiting to be reaped. */
function lives(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

async function written(file: string): Promise<string> {
  await vi.waitFor(() => expect(existsSync(file) && readFileSync(file, 'utf8').endsWith('\n')).toBe(true), 10_000)
  return (await readFile(file, 'utf8')).trim()
}

const group = (pid: number) =>
  readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')[2]

describe('a command that ends', () => {
  it('is told by its exit code and both outputs', async () => {
    expect(await shell('echo out; echo err >&2; exit 3')).toEqual({
      exit: { code: 3 },
      stdout: 'out\n',
      stderr: 'err\n',
      dropped: { stdout: 0, stderr: 0 },
    })
  })

  it('is told by the signal that ended it', async () => {
    expect((await shell('kill -TERM $$')).exit).toEqual({ signal: 'SIGTERM' })
  })

  it('is given its arguments as they are, not by way of a shell', async () => {
    const { stdout } = await run(['printf', '%s|', '$HOME', '$(id)', 'a b', '*', ''])
    expect(stdout).toBe('$HOME|$(id)|a b|*||')
  })

  it('has what it is given on its standard input, and else nothing', async () => {
    expect((await run(['cat'], { stdin: 'question' })).stdout).toBe('question')
    expect(await run(['cat'])).toMatchObject({ exit: { code: 0 }, stdout: '' })
  })

  it('may leave its standard input unread', async () => {
    expect((await run(['true'], { stdin: Buffer.alloc(1 << 20) })).exit).toEqual({ code: 0 })
  })

  it('runs where and as whom it is told', async () => {
    expect((await run(['pwd'])).stdout).toBe('/\n')
    expect((await run(['pwd'], { workingDir: '/usr' })).stdout).toBe('/usr\n')
    const user = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
    expect((await shell('id -u; id -g', { user })).stdout).toBe(`${user.uid}\n${user.gid}\n`)
  })

  it.runIf(process.getuid?.() === 0)('as another user has no groups of ours', async () => {
    const { stdout } = await shell('id -u; id -G', { user: { uid: 12345, gid: 23456 } })
    expect(stdout).toBe('12345\n23456\n')
  })
})

describe('the environment of a command', () => {
  it('is what is declared and PATH, and nothing of ours', async () => {
    vi.stubEnv('SHIPMATE_TOKEN', 'secret')
    try {
      const { stdout } = await run(['env'], { env: { A: '1', B: 'x y' } })
      expect(stdout.trim().split('\n').sort()).toEqual(['A=1', 'B=x y', `PATH=${process.env['PATH']}`])
    } finally {
      vi.unstubAllEnvs()
    }
  })

  it('has the declared PATH where there is one, by which the program is found', async () => {
    await writeFile(join(folder, 'greet'), '#!/bin/sh\necho $PATH\n')
    await chmod(join(folder, 'greet'), 0o755)
    expect((await run(['greet'], { env: { PATH: folder } })).stdout).toBe(`${folder}\n`)
  })

  it('has no file that we have open', async () => {
    await using file = await open(join(folder, 'ours'), 'w')
    expect(readlinkSync(`/proc/self/fd/${file.fd}`)).toBe(join(folder, 'ours'))
    expect((await run(['ls', '-l', '/proc/self/fd'])).stdout).not.toContain('ours')
  })
})

describe('a command that cannot be executed', () => {
  it.each([
    { command: ['no-such-program'], reason: 'spawn ENOENT: there is no program "no-such-program"' },
    { command: ['/etc/passwd'], reason: 'spawn EACCES: "/etc/passwd"' },
    {
      command: ['true'],
      workingDir: '/no/such',
      reason: 'spawn ENOENT: the working directory "/no/such" does not exist',
    },
    { command: [''], reason: 'spawn ERR_INVALID_ARG_VALUE' },
    { command: ['true', 'a\0b'], reason: 'spawn ERR_INVALID_ARG_VALUE' },
  ])('says $reason', async ({ command, workingDir, reason }) => {
    expect(await run(command, { workingDir })).toMatchObject({
      exit: { failed: expect.stringContaining(reason) },
      stdout: '',
      stderr: '',
    })
  })

  it('because its arguments are too long says so', async () => {
    const { exit } = await run(['true', 'x'.repeat(3_000_000)])
    expect(exit).toEqual({ failed: 'spawn E2BIG: "true": spawn E2BIG' })
  })
})

describe('output', () => {
  it('beyond the limit is read and dropped, so that the command goes on', async () => {
    const { exit, stdout, dropped } = await shell('head -c 3000000 /dev/zero; echo done >&2', { outputLimit: 1000 })
    expect(exit).toEqual({ code: 0 })
    expect(stdout).toHaveLength(1000)
    expect(dropped).toEqual({ stdout: 2_999_000, stderr: 0 })
  })

  it('is not cut within a character', async () => {
    const { stdout, dropped } = await run(['printf', '%s', 'aé€😀'], { outputLimit: 9 })
    expect(stdout).toBe('aé€')
    expect(dropped.stdout).toBe(1)
  })

  it('that is no UTF-8 is text nevertheless', async () => {
    expect((await run(['printf', 'a\\377b'])).stdout).toBe('a\ufffdb')
  })

  it('is complete although a grandchild keeps it open, which is neither waited for nor killed', async () => {
    const pid = join(folder, 'left')
    const { exit, stdout } = await shell(`sleep 600 & echo $! > ${pid}; head -c 100000 /dev/zero; exit 4`, {
      outputLimit: 1 << 20,
    })
    expect(exit).toEqual({ code: 4 })
    expect(stdout).toHaveLength(100_000)
    const left = Number(await written(pid))
    expect(lives(left)).toBe(true)
    process.kill(left, 'SIGKILL')
  })

  it('is complete when many end at once, each with a grandchild that keeps it open', async () => {
    const results = await Promise.all(
      Array.from({ length: 30 }, () => shell('sleep 3 & head -c 70000 /dev/zero', { outputLimit: 1 << 20 })),
    )
    expect(results.map(({ stdout }) => stdout.length)).toEqual(results.map(() => 70_000))
  })
})

describe('a command that takes too long', () => {
  it('is killed when its time is up, and what it wrote is kept', async () => {
    const clock = new VirtualClock()
    const file = join(folder, 'time-out')
    const result = shell(`trap '' TERM INT HUP; echo begun; echo $$ > ${file}; sleep 600`, { clock, timeoutMs: 5000 })
    const pid = Number(await written(file))
    await clock.advance(4999)
    expect(lives(pid)).toBe(true)
    await clock.advance(1)
    expect(await result).toMatchObject({ exit: { timedOut: true }, stdout: 'begun\n' })
    expect(lives(pid)).toBe(false)
    expect(clock.pending).toBe(0)
  })

  it('is killed with its whole process group, which is not ours', async () => {
    const clock = new VirtualClock()
    const file = join(folder, 'group')
    const result = shell(`sh -c 'sleep 600 & echo $! $$ > ${file}; sleep 600' & wait`, { clock, timeoutMs: 1 })
    const pids = (await written(file)).split(' ').map(Number)
    expect(pids.map(lives)).toEqual([true, true])
    expect(group(pids[0] ?? 0)).not.toBe(group(process.pid))
    await clock.advance(1)
    await result
    await vi.waitFor(() => expect(pids.map(lives)).toEqual([false, false]), 10_000)
  })

  it('is killed when the signal is aborted', async () => {
    const stop = new AbortController()
    const file = join(folder, 'aborted')
    const result = shell(`echo $$ > ${file}; sleep 600`, { signal: stop.signal })
    const pid = Number(await written(file))
    stop.abort()
    expect((await result).exit).toEqual({ aborted: true })
    expect(lives(pid)).toBe(false)
  })

  it('is not even begun when the signal was aborted before', async () => {
    const file = join(folder, 'never')
    expect((await run(['touch', file], { signal: AbortSignal.abort() })).exit).toEqual({ aborted: true })
    expect(existsSync(file)).toBe(false)
  })

  it('and cannot be killed is reported as lingering, until it ends', async () => {
    const clock = new VirtualClock()
    const kill = vi.spyOn(process, 'kill').mockImplementationOnce(() => {
      throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' })
    })
    const file = join(folder, 'lingers')
    const result = shell(`echo $$ > ${file}; exec sleep 600`, { clock, timeoutMs: 10 })
    const pid = Number(await written(file))
    await clock.advance(10)
    await clock.advance(1000)
    const { exit, lingering } = await result
    kill.mockRestore()
    expect(exit).toEqual({ timedOut: true })
    expect(lives(pid)).toBe(true)
    process.kill(pid, 'SIGKILL')
    await lingering
    expect(lives(pid)).toBe(false)
  })
})

it('leaves no handle, timer or listener behind', async () => {
  const clock = new VirtualClock()
  const stop = new AbortController()
  const added = vi.spyOn(stop.signal, 'addEventListener')
  const removed = vi.spyOn(stop.signal, 'removeEventListener')
  const handles = () => process.getActiveResourcesInfo().filter(kind => /Pipe|Process/.test(kind)).length
  const before = handles()
  for (const script of ['echo x', 'exit 1']) await shell(script, { clock, signal: stop.signal })
  const { stdout } = await shell('sleep 600 & echo $!', { clock, signal: stop.signal })
  onTestFinished(() => void process.kill(Number(stdout), 'SIGKILL'))
  await run(['no-such-program'], { clock, signal: stop.signal })
  await vi.waitFor(() => expect(handles()).toBe(before), 10_000)
  expect(clock.pending).toBe(0)
  expect(added).toHaveBeenCalledTimes(3)
  expect(removed.mock.calls.length).toBeGreaterThanOrEqual(3)
})
