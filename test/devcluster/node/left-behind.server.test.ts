import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { type Access, connect } from '../../../controller/kube/access.ts'
import { Namespace, Node, Pod } from '../../../controller/kube/kinds.ts'
import { processesWith, signal, startOf } from '../../../devcluster/node/identity.ts'
import { sweep } from '../../../devcluster/node/keeper.ts'
import { patience } from './world.ts'

const host = join(import.meta.dirname, 'host.ts')

describe.each(['the best', 'none'])('what a node leaves, isolation %s', isolation => {
  let access: Access
  let folder: string
  const name = `left-${isolation === 'none' ? 'none' : 'best'}-${process.pid}`
  beforeAll(async () => {
    access = connect({ kubeconfig: { file: inject('kubeconfig') } })
    await access.client.create(Namespace, { metadata: { name } })
    folder = mkdtempSync(join(tmpdir(), 'shipmate-left-'))
  })
  afterAll(async () => {
    for (const { metadata } of await access.client.list(Pod, { namespace: name }))
      await access.client.delete(Pod, metadata, { gracePeriodSeconds: 0 })
    await access.client.delete(Node, { name })
    await access.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const left = () => processesWith(`SHIPMATE_NODE=${folder}`)

  async function startHost(): Promise<ChildProcess> {
    const child = spawn(process.execPath, [host, inject('kubeconfig'), folder, name, isolation], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    return child
  }
  async function running(pod: string): Promise<void> {
    const command = [
      'sh',
      '-c',
      '(trap "" TERM HUP; setsid sleep 1000) & trap "" TERM HUP; while :; do sleep 0.1; done',
    ]
    const spec = {
      nodeName: name,
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'main', image: 'x', command }],
    }
    await access.client.create(Pod, { metadata: { namespace: name, name: pod }, spec })
    await ready(pod, 0)
  }
  const ready = (pod: string, restarts: number) =>
    vi.waitFor(async () => {
      const [container] = (await access.client.get(Pod, { namespace: name, name: pod })).status?.containerStatuses ?? []
      expect(container).toMatchObject({ ready: true, restartCount: restarts })
    }, patience)

  it('is nothing after SIGKILL, SIGTERM, or SIGKILL of it and its keeper once it is back', async () => {
    const first = await startHost()
    await running('stubborn')
    expect(left().length).toBeGreaterThan(2)
    first.kill('SIGKILL')
    await once(first, 'exit')
    await vi.waitFor(() => expect(left()).toEqual([]), patience)

    // The same pod runs again on the node that is back; what was there before is known to be lost.
    const second = await startHost()
    await ready('stubborn', 1)
    const keepers = keepersOf(folder)
    expect(keepers).toHaveLength(1)
    for (const pid of keepers) signal(pid, 'SIGKILL')
    second.kill('SIGKILL')
    await once(second, 'exit')
    expect(left().length).toBeGreaterThan(2)
    const orphans = left()

    const third = await startHost()
    expect(left().filter(pid => orphans.includes(pid))).toEqual([])
    await ready('stubborn', 2)
    third.kill('SIGTERM')
    await once(third, 'exit')
    expect(left()).toEqual([])
    expect(existsSync(join(folder, 'pods'))).toBe(false)
    expect(readdirSync(folder)).toEqual([])
    await vi.waitFor(() => expect(keepersOf(folder)).toEqual([]), patience)
  })
})

it('never kills a process that only has the id of one of a node', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'shipmate-left-'))
  const bystander = spawn('sleep', ['100'])
  onTestFinished(() => {
    bystander.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  const { pid = 0 } = bystander
  const entry = join(folder, 'processes', String(pid))
  writeLedger(entry, `${pid} some other start`)
  await sweep(folder)
  expect(startOf(pid)).toBeDefined()
  expect(bystander.exitCode).toBeNull()
  expect(bystander.signalCode).toBeNull()
  // The same entry with its own start is one of the node's.
  writeLedger(entry, `${pid} ${startOf(pid)}`)
  const exit = once(bystander, 'exit')
  await sweep(folder)
  expect(await exit).toEqual([null, 'SIGKILL'])
})

function writeLedger(path: string, text: string): void {
  rmSync(join(path, '..'), { recursive: true, force: true })
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, text)
}

/** The shells that wait for the end of a host. */
function keepersOf(folder: string): number[] {
  const pids = readdirSync('/proc').filter(one => /^\d+$/.test(one))
  return pids.map(Number).filter(pid => {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')
      return words.includes('keeper') && words.includes(folder)
    } catch {
      return false
    }
  })
}
