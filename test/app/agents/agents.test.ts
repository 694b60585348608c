import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createTcpServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createAgentMetrics } from '../../../controller/app/agents/metrics.ts'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import { closedPort } from '../../fixtures/https-server.ts'
import { runAgent } from '../../fixtures/running-agent.ts'
import { type Sidecar, startSidecar } from '../../fixtures/sidecar.ts'
import { VirtualClock } from '../../fixtures/virtual-clock.ts'
import { addressOf, aimed, app, clientOf, control, credentialsFrom, newAuthorities, prepare, until } from './rig.ts'

const spec: LifecycleSpec = {
  actions: [
    {
      name: 'count',
      exec: { command: ['sh', '-c', 'echo ran >> "$SHIPMATE_PARAM_TO"; echo hello'] },
      params: { to: { type: 'string' } },
    },
    { name: 'wait', exec: { command: ['sleep', '60'] } },
    { name: 'check', exec: { command: ['true'] }, verify: { exec: { command: ['true'] } } },
  ],
}
const podUid = 'pod-uid'
const pod = { name: 'orders-0', namespace: 'shop', uid: podUid }

/** An agent in this process. */
async function sidecar(trust = newAuthorities(), uid = podUid, more: Parameters<typeof prepare>[2] = undefined) {
  const { folder, tlsDir, put } = prepare(trust, spec, more)
  const agent = await runAgent({ spec, folder, auth: 'mtls', tlsDir, pod: { ...pod, uid } })
  const { api } = await agent.listening
  return { trust, folder, put, agent, address: addressOf(api, uid) }
}

async function followed() {
  const started = await sidecar()
  const credentials = credentialsFrom(clientOf(started.trust))
  const registry = new Registry()
  const controller = control(credentials, { metrics: createAgentMetrics(registry) })
  controller.agents.follow(app, [started.address], { isUrgent: true })
  await until(() => controller.agents.seen(podUid)?.isReachable)
  return { ...started, ...controller, credentials, registry }
}

describe('a sidecar that is followed', { timeout: 60_000 }, () => {
  it('is shown with its state, runs and features, and tells of each change', async () => {
    const { agents, told, address, folder, registry } = await followed()
    expect(told).toEqual(['reachable'])
    expect(agents.seen(podUid)).toMatchObject({
      error: undefined,
      state: { pod },
      features: expect.arrayContaining(['adopt']),
    })
    expect(agents.seen(podUid)?.runs?.size).toBe(0)
    const to = join(folder, 'ledger')
    const body = await aimed(agents, address, { action: 'count', params: { to } })
    expect(await agents.put(address, 'r1', body)).toMatchObject({ id: 'r1' })
    await until(() => agents.seen(podUid)?.runs?.get('r1')?.phase === 'Succeeded')
    expect(told).toContain('run')
    expect(await agents.put(address, 'r1', body), 'the same again').toMatchObject({ phase: 'Succeeded' })
    expect(readFileSync(to, 'utf8')).toBe('ran\n')
    expect(await agents.run(address, 'r1')).toMatchObject({ exitCode: 0 })
    expect(await agents.run(address, 'nobody')).toBeUndefined()
    expect(await agents.log(address, 'r1', { offset: 1 })).toEqual({ offset: 1, next: 6, text: 'ello\n' })
    await agents.drop(address, 'r1')
    await agents.drop(address, 'r1')
    expect(agents.seen(podUid)?.runs?.size).toBe(0)
    const counted = await registry.metrics()
    expect(counted).toContain('shipmate_agents_connected 1')
    expect(counted).toContain('shipmate_agent_call_seconds_count{call="put",code="201"} 1')
    expect(counted).toContain('shipmate_agent_call_seconds_count{call="run",code="404"} 1')
  })

  it('cancels, verifies and settles', async () => {
    const { agents, address } = await followed()
    await agents.put(address, 'w', await aimed(agents, address, { action: 'wait' }))
    await expect(agents.put(address, 'x', await aimed(agents, address, { action: 'wait' }))).rejects.toMatchObject({
      code: 'Locked',
      status: 409,
      isSent: true,
      more: { run: 'w' },
    })
    await agents.cancel(address, 'w')
    await until(() => agents.seen(podUid)?.runs?.get('w')?.phase === 'Cancelled')
    expect(await agents.verify(address, { runId: 'gone', action: 'check' })).toEqual({ outcome: 'Succeeded' })
    await expect(agents.settle(address, 'w', { outcome: 'Failed', reason: 'so' })).rejects.toMatchObject({
      code: 'NotUnknown',
    })
  })

  it('hears thousands of messages, each once', async () => {
    const { agents, agent, told } = await followed()
    const before = agent.agent.events.seq
    const state = agent.agent.state()
    // As the agent itself publishes them.
    const { publish } = agent.agent.events as unknown as { publish(news: object): void }
    for (let count = 0; count < 3000; count++) {
      publish({ type: 'state', state: { ...state, reason: `n${count}` } })
      if (count % 100 === 0) await until(() => agents.seen(podUid)?.state?.reason === `n${count}`)
    }
    await until(() => agents.seen(podUid)?.state?.reason === 'n2999')
    expect(agents.seen(podUid)?.state?.seq).toBe(before + 3000)
    expect(told.filter(why => why === 'state')).toHaveLength(3000)
    // More at once than the sidecar keeps for anybody: we are cut off as too slow, and read anew.
    for (let count = 0; count < 5000; count++) publish({ type: 'state', state: { ...state, reason: `m${count}` } })
    await until(() => agents.seen(podUid)?.state?.seq === before + 8000 && agents.seen(podUid)?.isReachable)
    expect(told).toContain('unreachable')
  })

  it('refuses what is too large', async () => {
    const { agents, address } = await followed()
    const body = await aimed(agents, address, { action: 'count', params: { to: 'x'.repeat(300_000) } })
    await expect(agents.put(address, 'big', body)).rejects.toMatchObject({ code: 'TooLarge', status: 413 })
    expect(await agents.state(address)).toMatchObject({ pod })
  })

  it('is not connected any more once it is not followed', async () => {
    const { agents, registry } = await followed()
    agents.unfollow(app)
    expect(agents.seen(podUid)).toBeUndefined()
    const counted = await registry.metrics()
    expect(counted).toContain('shipmate_agents_connected 0')
    expect(counted).toContain('shipmate_agents_followed 0')
    // It resolves when the sockets are closed.
    await agents.close()
  })
})

describe('trust', { timeout: 60_000 }, () => {
  it('does not believe a sidecar of another authority, nor is it sent anything', async () => {
    const { address } = await sidecar()
    const { agents, told } = control(credentialsFrom(clientOf(newAuthorities())))
    agents.follow(app, [address], { isUrgent: true })
    await until(() => agents.seen(podUid))
    expect(agents.seen(podUid)).toMatchObject({
      isReachable: false,
      state: undefined,
      error: expect.stringMatching(/certificate/),
    })
    expect(told).toEqual(['unreachable'])
    await expect(agents.state(address)).rejects.toMatchObject({ code: 'Unavailable', isSent: false })
  })

  it('does not believe a sidecar of another app', async () => {
    const { address, trust } = await sidecar()
    const { agents } = control(credentialsFrom(clientOf(trust)))
    const other = { ...address, app: { namespace: 'shop', name: 'billing' } }
    await expect(agents.state(other)).rejects.toMatchObject({
      isSent: false,
      detail: expect.stringContaining('not for billing.shop'),
    })
  })

  it('finds out that another pod has the address', async () => {
    const { address, trust } = await sidecar(newAuthorities(), 'another')
    const { agents } = control(credentialsFrom(clientOf(trust)))
    const stale = addressOf(address.port, podUid)
    agents.follow(app, [stale], { isUrgent: true })
    await until(() => agents.seen(podUid))
    expect(agents.seen(podUid)).toMatchObject({
      isReachable: false,
      state: undefined,
      error: expect.stringContaining('WrongPod'),
    })
    await expect(agents.state(stale)).rejects.toMatchObject({ code: 'WrongPod' })
    await expect(
      agents.put(stale, 'r', { action: 'count', podUid, configHash: '', journalId: '', fence: 1 }),
    ).rejects.toMatchObject({ code: 'WrongPod' })
  })

  it('waits for credentials, and uses them at once', async () => {
    const { address, trust } = await sidecar()
    const credentials = credentialsFrom(undefined)
    const { agents } = control(credentials, { limits: { firstRetry: 1e9, longestRetry: 1e9 } })
    agents.follow(app, [address], { isUrgent: true })
    await until(() => agents.seen(podUid)?.error === 'there are no credentials yet')
    credentials.use(clientOf(trust))
    await until(() => agents.seen(podUid)?.isReachable)
  })

  it('rotates both ends while calls run, and none fails', async () => {
    const old = newAuthorities()
    const next = newAuthorities()
    const { address, put, agent } = await sidecar(old)
    const both = [old.authority, next.authority]
    const credentials = credentialsFrom(clientOf(old))
    const { agents, told } = control(credentials, { limits: { idle: 50 } })
    agents.follow(app, [address], { isUrgent: true })
    await until(() => agents.seen(podUid)?.isReachable)
    let calls = 0
    let isOver = false
    const caller = async () => {
      while (!isOver) {
        await agents.state(address)
        calls++
      }
    }
    const callers = [caller(), caller(), caller()]
    const reloaded = async (renew: () => void) => {
      const before = agent.lines.filter(({ msg }) => msg === 'the certificates have changed and are in use').length
      renew()
      await until(
        () => agent.lines.filter(({ msg }) => msg === 'the certificates have changed and are in use').length > before,
      )
      const since = calls
      await until(() => calls > since + 20)
    }
    // As the root goes on: both are believed, then the new one issues, then the old one is dropped.
    await reloaded(() => put(old, both))
    credentials.use(clientOf(old, both))
    await reloaded(() => put(next, both))
    credentials.use(clientOf(next, both))
    const last = calls
    await until(() => calls > last + 20)
    credentials.use(clientOf(next))
    await reloaded(() => put(next, [next.authority]))
    isOver = true
    await Promise.all(callers)
    expect(told).toEqual(['reachable'])
  })
})

describe('a sidecar as a process', { timeout: 60_000 }, () => {
  async function process(): Promise<{
    sidecar: Sidecar
    controller: ReturnType<typeof control>
    address: ReturnType<typeof addressOf>
    folder: string
  }> {
    const trust = newAuthorities()
    const { folder, tlsDir } = prepare(trust, spec)
    const port = await closedPort()
    const flags = ['--auth', 'mtls', '--tls-dir', tlsDir, '--listen', `127.0.0.1:${port}`]
    const sidecar = await startSidecar({ config: spec, folder, flags, env: { SHIPMATE_LIFECYCLE: 'postgres' } })
    onTestFinished(() => sidecar.stop())
    await sidecar.listening()
    const controller = control(credentialsFrom(clientOf(trust)))
    const address = addressOf(port)
    controller.agents.follow(app, [address], { isUrgent: true })
    await until(() => controller.agents.seen(podUid)?.isReachable)
    return { sidecar, controller, address, folder }
  }

  it('is told to be unreachable when it is killed, and is read anew when it is back; what it ran is known', async () => {
    const { sidecar, controller, address, folder } = await process()
    const { agents, told } = controller
    const to = join(folder, 'ledger')
    await agents.put(address, 'r1', await aimed(agents, address, { action: 'count', params: { to } }))
    await until(() => agents.seen(podUid)?.runs?.get('r1')?.phase === 'Succeeded')
    const bootId = agents.seen(podUid)?.state?.bootId
    await sidecar.kill()
    await until(() => told.includes('unreachable'))
    expect(agents.seen(podUid)?.runs?.get('r1'), 'what it said last stays').toBeDefined()
    await until(() => agents.seen(podUid)?.isReachable)
    expect(agents.seen(podUid)?.state?.bootId).not.toBe(bootId)
    expect(agents.seen(podUid)?.runs?.get('r1')?.phase).toBe('Succeeded')
    expect(told.filter(why => why === 'reachable' || why === 'unreachable')).toEqual([
      'reachable',
      'unreachable',
      'reachable',
    ])
  })

  it('runs once although the reply to the first PUT is lost', async () => {
    const { sidecar, controller, address, folder } = await process()
    const { agents } = controller
    const to = join(folder, 'ledger')
    const body = await aimed(agents, address, { action: 'count', params: { to } })
    sidecar.signal('SIGSTOP')
    const given = AbortSignal.timeout(300)
    await expect(agents.put(address, 'r1', body, given)).rejects.toMatchObject({
      code: 'Aborted',
      isSent: true,
      status: undefined,
    })
    sidecar.signal('SIGCONT')
    expect(await agents.put(address, 'r1', body)).toMatchObject({ id: 'r1' })
    await until(() => agents.seen(podUid)?.runs?.get('r1')?.phase === 'Succeeded')
    expect(readFileSync(to, 'utf8')).toBe('ran\n')
  })
})

it('is unreachable when nothing was heard of it for longer than it may be silent', async () => {
  const { address, trust, agent } = await sidecar()
  const clock = new VirtualClock(Date.now())
  const { agents, told } = control(credentialsFrom(clientOf(trust)), { clock })
  agents.follow(app, [address], { isUrgent: true })
  await until(() => agents.seen(podUid)?.isReachable)
  await clock.advance(30_000)
  const { publish } = agent.agent.events as unknown as { publish(news: object): void }
  publish({ type: 'state', state: { ...agent.agent.state(), reason: 'Heard' } })
  await until(() => agents.seen(podUid)?.state?.reason === 'Heard')
  await clock.advance(39_000)
  expect(told).toEqual(['reachable', 'state'])
  await clock.advance(6_000)
  expect(told).toContain('unreachable')
}, 60_000)

describe('a peer that is no sidecar', { timeout: 60_000 }, () => {
  async function peer(serve: (socket: Socket) => void) {
    const sockets = new Set<Socket>()
    const server = createTcpServer(socket => {
      sockets.add(socket)
      socket.on('error', () => {})
      serve(socket)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    return addressOf((server.address() as { port: number }).port)
  }

  it('is given up when it says nothing', async () => {
    const address = await peer(() => {})
    const { agents } = control(credentialsFrom(clientOf(newAuthorities())), { limits: { upWithin: 100, call: 5_000 } })
    agents.follow(app, [address], { isUrgent: true })
    await until(() => agents.seen(podUid))
    expect(agents.seen(podUid)).toMatchObject({ isReachable: false, error: 'not up within 100 ms' })
    await expect(agents.state(address)).rejects.toMatchObject({ code: 'Unavailable', isSent: false })
  })

  it('is given up when it speaks something else', async () => {
    const address = await peer(socket => socket.write('220 mail.example ESMTP\r\n'))
    const { agents } = control(credentialsFrom(clientOf(newAuthorities())))
    agents.follow(app, [address], { isUrgent: true })
    await until(() => agents.seen(podUid))
    expect(agents.seen(podUid)?.isReachable).toBe(false)
    await expect(agents.state(address)).rejects.toMatchObject({ isSent: false })
  })
})
