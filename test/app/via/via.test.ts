/**
 * An app without a sidecar that is asked by commands, over a WebSocket as the API server speaks it.
 */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { WebSocket } from 'ws'
import type { PodAddress } from '../../../controller/app/agents/address.ts'
import { createVia } from '../../../controller/app/via/via.ts'
import type { App, LifecycleView } from '../../../controller/app/view.ts'
import { exec } from '../../../controller/kube/exec.ts'
import { systemClock } from '../../../shared/clock.ts'
import { graphOf } from '../../../shared/lifecycle/graph.ts'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import type { PutRun } from '../../../shared/protocol/schemas.ts'
import { frame, startChannelServer } from '../../fixtures/channel-server.ts'

const success = JSON.stringify({ metadata: {}, status: 'Success' })
const exit = (code: number) =>
  JSON.stringify({
    status: 'Failure',
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
  })
const app = { namespace: 'ns', name: 'orders' }
const address: PodAddress = { app, pod: { name: 'orders-0', uid: 'uid-0' }, ip: '192.0.2.1', port: 7443 }
const hash = 'hash'

const spec: LifecycleSpec = {
  states: [
    { name: 'Start', next: ['Running'] },
    { name: 'Running', when: 'probes.ready.ok', next: ['Servicing', 'End'] },
    { name: 'Servicing', actions: ['backup', 'restore'], next: ['Running'] },
    { name: 'End', verb: 'Delete' },
  ],
  probes: [{ name: 'ready', exec: { command: ['db', 'ready'] }, every: '100ms', failureThreshold: 1 }],
  actions: [
    {
      name: 'backup',
      exec: { command: ['db', 'backup', '$(params.to)'] },
      params: { to: { type: 'string' } },
      verify: { exec: { command: ['db', 'verify'] } },
    },
    { name: 'restore', exec: { command: ['db', 'restore'] }, env: { A: 'b' } },
    { name: 'load', steps: [{ exec: { command: ['db', 'one'] } }, { exec: { command: ['db', 'two'] } }] },
  ],
}
const lifecycle: LifecycleView = { spec, graph: graphOf(spec), hash, problems: [] }

type Play = (command: readonly string[], socket: WebSocket) => void

/** A pod in whose container commands do as `play` says; `db ready` says what `ready` does. */
async function pod(play: Play = (_, socket) => socket.send(frame(3, success))) {
  let ready = 0
  const commands: string[] = []
  const server = await startChannelServer({
    onSocket(socket, request) {
      const query = new URL(request.url ?? '', 'http://server').searchParams
      const command = query.getAll('command')
      if (command[1] === 'ready') return socket.send(frame(3, ready === 0 ? success : exit(ready)))
      commands.push(`${command.join(' ')} in ${query.get('container')}`)
      play(command, socket)
    },
  })
  const changes: string[] = []
  const via = createVia({
    exec: (ref, options) => exec(server.source, ref, options),
    onChange: (_, why) => void changes.push(why),
    clock: systemClock,
  })
  onTestFinished(async () => {
    await via.close()
    await server[Symbol.asyncDispose]()
  })
  const agents = via.agentsOf({ spec: { via: { exec: { container: 'main' } } } } as App, lifecycle)
  agents.follow(app, [address])
  const state = () => agents.seen('uid-0')?.state
  await vi.waitFor(() => expect(state()).toBeDefined(), { timeout: 5000, interval: 10 })
  const body = (more: Partial<PutRun> = {}): PutRun => ({
    ...{ action: 'backup', params: { to: 'a; b' }, attempt: 1, podUid: 'uid-0', configHash: hash, fence: 65_537 },
    journalId: state()?.journalId ?? '',
    ...more,
  })
  const ended = (id: string) =>
    vi.waitFor(
      () => {
        const run = agents.seen('uid-0')?.runs?.get(id)
        expect(run?.phase).not.toBe('Running')
        return run
      },
      { timeout: 5000, interval: 10 },
    )
  const fail = (code: number) => {
    ready = code
  }
  return { agents, state, body, ended, commands, via, fail }
}

describe('an app that is asked by commands in its container', () => {
  it('is in the state that its probes tell', async () => {
    const { state, fail } = await pod()
    expect(state()).toMatchObject({ state: 'Running', reason: 'GuardHolds', configHash: hash })
    fail(1)
    await vi.waitFor(() => expect(state()).toMatchObject({ state: 'Start', reason: 'GuardLost' }), { timeout: 5000 })
  })

  it('runs an action once for its id, and no other under it', async () => {
    let finish = () => {}
    const { agents, body, ended, state, commands } = await pod((_, socket) => {
      finish = () => {
        socket.send(frame(1, '3 files\n'))
        socket.send(frame(3, success))
      }
    })
    expect(await agents.put(address, 'r1', body())).toMatchObject({ phase: 'Running' })
    await vi.waitFor(() => expect(commands).toHaveLength(1))
    expect(state()).toMatchObject({ state: 'Servicing', run: { id: 'r1', action: 'backup' }, fence: 65_537 })
    expect(await agents.put(address, 'r1', body())).toMatchObject({ phase: 'Running' })
    await expect(agents.put(address, 'r1', body({ params: { to: 'c' } }))).rejects.toMatchObject({ code: 'IdReused' })
    await expect(agents.put(address, 'r2', body({ fence: 65_538 }))).rejects.toMatchObject({ code: 'Locked' })
    finish()
    expect(await ended('r1')).toMatchObject({ phase: 'Succeeded', exitCode: 0 })
    expect(await agents.log(address, 'r1')).toMatchObject({ text: '3 files\n' })
    expect(commands).toEqual(['db backup a; b in main'])
    expect(state()?.state).toBe('Running')
  })

  it('says what it failed with, and takes no step after one that failed', async () => {
    const { agents, body, ended, commands } = await pod((_, socket) => {
      socket.send(frame(2, 'disk full'))
      socket.send(frame(3, exit(7)))
    })
    await agents.put(address, 'r1', body({ action: 'load', params: {} }))
    expect(await ended('r1')).toMatchObject({ phase: 'Failed', exitCode: 7, error: { message: 'disk full' } })
    expect(commands).toEqual(['db one in main'])
  })

  it.each([
    ['its connection is cut', 'cut'],
    ['it is cancelled', 'cancel'],
  ])('does not know how an action ended when %s', async (_, how) => {
    const { agents, body, ended, commands } = await pod((_, socket) => {
      if (how === 'cut') socket.terminate()
    })
    await agents.put(address, 'r1', body())
    await vi.waitFor(() => expect(commands).toHaveLength(1))
    if (how === 'cancel') await agents.cancel(address, 'r1')
    expect(await ended('r1')).toMatchObject({ phase: 'Unknown', error: { code: 'Lost' } })
    expect(commands).toHaveLength(1)
    const settled = await agents.settle(address, 'r1', { outcome: 'Failed', reason: 'I looked' })
    expect(settled).toMatchObject({ phase: 'Failed', error: { code: 'Settled', message: 'I looked' } })
  })

  it.each([
    [0, 'Succeeded'],
    [1, 'Failed'],
    [2, 'Unknown'],
  ])('takes exit %i of verify for %s', async (code, outcome) => {
    const { agents } = await pod((_, socket) => socket.send(frame(3, code === 0 ? success : exit(code))))
    const verdict = agents.verify(address, { runId: 'r1', action: 'backup', params: { to: 'a' } })
    expect(await verdict).toEqual({ outcome })
  })

  it('begins nothing for another journal, an old fence, another lifecycle, nor what was called off', async () => {
    const { agents, body, commands } = await pod()
    const refused = (id: string, more: Partial<PutRun>) =>
      agents.put(address, id, body(more)).then(
        () => 'accepted',
        (error: { code: string }) => error.code,
      )
    expect(await agents.put(address, 'off', body({ cancelled: true }))).toMatchObject({ phase: 'Cancelled' })
    expect(await agents.put(address, 'off', body())).toMatchObject({ phase: 'Cancelled' })
    const later = { fence: 65_540 }
    expect(await refused('a', { ...later, journalId: 'that of the process before' })).toBe('WrongJournal')
    expect(await refused('b', { fence: 65_537 })).toBe('Fenced')
    expect(await refused('c', { ...later, configHash: 'other' })).toBe('WrongConfig')
    expect(await refused('d', { ...later, action: 'restore', params: {} })).toBe('UnknownAction')
    expect(await refused('e', { ...later, params: { from: 'a' } })).toBe('InvalidParams')
    expect(await refused('f', { ...later, podUid: 'uid-1' })).toBe('WrongPod')
    expect(commands).toEqual([])
  })

  it('is left alone once it is not followed any more', async () => {
    const { agents, via } = await pod()
    via.unfollow(app)
    expect(agents.seen('uid-0')).toBeUndefined()
    await expect(agents.state(address)).rejects.toMatchObject({ code: 'Unavailable' })
  })
})
