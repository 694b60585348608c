import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { isAlive, killGroup, ownIdentity, startOf } from '../../../sidecar/init/identity.ts'
import { lives, shell, until } from './wrappers.ts'

async function command(script: string): Promise<{ pid: number; ended: Promise<unknown>; output: () => string }> {
  const [file = '', ...args] = shell(script)
  const child = spawn(file, args, { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
  const ended = once(child, 'exit')
  let output = ''
  child.stdout?.on('data', data => {
    output += data
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  await once(child, 'spawn')
  return { pid: child.pid ?? 0, ended, output: () => output }
}

describe.runIf(process.platform === 'linux')('the identity of a process', () => {
  it('is that of this one', () => {
    const own = ownIdentity()
    expect(own.pid).toBe(process.pid)
    expect(own.boot).toBe(readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim())
    expect(own.pidns).toBeGreaterThan(0)
    expect(isAlive(own)).toBe(true)
  })

  it('is nobody else: of another boot, namespace, number or time', () => {
    const own = ownIdentity()
    expect(isAlive({ ...own, boot: 'another' })).toBe(false)
    expect(isAlive({ ...own, boot: '' })).toBe(false)
    expect(isAlive({ ...own, pidns: own.pidns + 1 })).toBe(false)
    expect(isAlive({ ...own, pid: process.ppid })).toBe(false)
    expect(isAlive({ ...own, start: own.start + 1 })).toBe(false)
    expect(isAlive({ ...own, start: 0, pid: 2 ** 22 })).toBe(false)
  })

  it('ends with the process, even if nobody has buried it', async () => {
    // Its parent never waits for it.
    const { pid, output } = await command('sleep 1000 & echo $!; exec sleep 1000')
    const child = Number(await until(() => output() || undefined))
    const identity = { ...ownIdentity(), pid: child, start: startOf(child) }
    expect(isAlive(identity)).toBe(true)
    process.kill(child, 'SIGKILL')
    await until(() => !lives(child))
    expect(readFileSync(`/proc/${child}/stat`, 'latin1')).toContain(') Z')
    expect(isAlive(identity)).toBe(false)
    expect(lives(pid)).toBe(true)
  })
})

describe.runIf(process.platform === 'linux')('what is left of a command', () => {
  it('is killed by its process group, though its leader is gone', async () => {
    const { pid, ended, output } = await command('sleep 1000 > /dev/null & echo $!; exec sleep 1000')
    const start = startOf(pid)
    const child = Number(await until(() => output() || undefined))
    process.kill(pid, 'SIGKILL')
    await ended
    expect(lives(child)).toBe(true)
    expect(killGroup({ pid, start })).toBe(1)
    await until(() => !lives(child))
    expect(killGroup({ pid, start })).toBe(0)
  })

  it('is nobody who came to its number later', async () => {
    const { pid } = await command('exec sleep 1000')
    expect(killGroup({ pid, start: startOf(pid) - 1 })).toBe(0)
    expect(killGroup({ pid, start: 0 })).toBe(0)
    expect(killGroup({ pid: 1, start: startOf(1) })).toBe(0)
    expect(lives(pid)).toBe(true)
  })
})
