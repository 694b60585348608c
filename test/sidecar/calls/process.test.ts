import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { findProcesses, signalProcess } from '../../../sidecar/calls/process.ts'

let folder: string
/** A name that nobody else on this machine uses. */
const name = `sm-${process.pid}`

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'shipmate-process-'))
  await copyFile('/bin/sleep', join(folder, name))
})
afterAll(() => rm(folder, { recursive: true }))

async function start(program: string, options: { argv0?: string } = {}): Promise<ChildProcess & { pid: number }> {
  const child = spawn(program, ['600'], { stdio: 'ignore', ...options })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'spawn')
  return child as ChildProcess & { pid: number }
}

const pids = (called: string) => findProcesses(called).map(({ pid }) => pid)

describe('a process', () => {
  it('is found by the name of its program', async () => {
    const one = await start(join(folder, name))
    const other = await start(join(folder, name), { argv0: 'something else' })
    expect(pids(name)).toEqual([one.pid, other.pid].sort((a, b) => a - b))
  })

  it("is found by its first argument's last part", async () => {
    const called = `${name}-with-a-name-that-the-kernel-cuts`
    const child = await start('/bin/sleep', { argv0: `/usr/lib/${called}` })
    expect(pids(called)).toEqual([child.pid])
    expect(pids(called.slice(0, -1))).toEqual([])
  })

  it('is found by a name with spaces and brackets', async () => {
    const called = `a) (${process.pid}`
    await symlink('/bin/sleep', join(folder, called))
    const child = await start(join(folder, called))
    const [found] = findProcesses(called)
    expect(found?.pid).toBe(child.pid)
    expect(found?.start).toBeGreaterThan(0)
  })

  it('is not found once it has ended, even before it is reaped', async () => {
    const zombie = spawn('sh', ['-c', `'${join(folder, name)}' 600 & echo $!; exec sleep 600`], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    onTestFinished(() => void zombie.kill('SIGKILL'))
    const [line] = await once(zombie.stdout, 'data')
    const pid = Number(String(line))
    await vi.waitFor(() => expect(pids(name)).toContain(pid))
    process.kill(pid, 'SIGKILL')
    await vi.waitFor(() => expect(pids(name)).not.toContain(pid))
    // Its parent, which has become another program, never reaps it.
    expect(() => process.kill(pid, 0)).not.toThrow()
  })

  it('that we are is not found', () => {
    const everybody = ['node', 'MainThread', 'node-MainThread', process.title]
    for (const called of everybody) expect(pids(called)).not.toContain(process.pid)
  })
})

describe('a signal', () => {
  it('is sent to the process that was found', async () => {
    const child = await start(join(folder, name))
    const ended = once(child, 'exit')
    const found = findProcesses(name).find(({ pid }) => pid === child.pid)
    expect(found && signalProcess(found, 'SIGUSR1')).toBe('sent')
    expect(await ended).toEqual([null, 'SIGUSR1'])
    expect(found && signalProcess(found, 'SIGUSR1')).toBe('gone')
  })

  it('is not sent to another that has the same pid', async () => {
    const child = await start(join(folder, name))
    const found = findProcesses(name).find(({ pid }) => pid === child.pid)
    expect(signalProcess({ pid: child.pid, start: (found?.start ?? 0) - 1 }, 'SIGKILL')).toBe('gone')
    expect(pids(name)).toContain(child.pid)
  })
})
