import { Agent } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { backup, call, codeOf } from '../../fixtures/sidecar-client.ts'
import { call as callPlainly, start } from '../../fixtures/sidecar-server.ts'
import { VirtualClock } from '../../fixtures/virtual-clock.ts'

describe('held calls', () => {
  it('a state is held until there is a newer one', async () => {
    const clock = new VirtualClock()
    const { port, agent } = await start({ clock })
    const held = call(port, 'GET', '/v1/state?since=boot-1.0&wait=30s')
    await expect.poll(() => clock.pending).toBe(1)
    agent.change('Stopping')
    const { json } = await held
    expect([json.state, json.cursor]).toEqual(['Stopping', 'boot-1.1'])
    expect(clock.pending).toBe(0)
  })

  it('a state is held until the time is up, 60 s at most', async () => {
    for (const [wait, ms] of [
      ['30s', 30_000],
      ['5m', 60_000],
      ['999999h', 60_000],
    ] as const) {
      const clock = new VirtualClock()
      const { port } = await start({ clock })
      const held = call(port, 'GET', `/v1/state?since=boot-1.0&wait=${wait}`)
      await expect.poll(() => clock.pending).toBe(1)
      await clock.advance(ms - 1)
      expect(clock.pending).toBe(1)
      await clock.advance(1)
      expect((await held).json.cursor).toBe('boot-1.0')
    }
  })

  it.each([
    'since=boot-0.0&wait=30s',
    'since=&wait=30s',
    'since=boot-1.7&wait=30s',
    'since=boot-1.0',
    'wait=30s',
    'since=boot-1.0&wait=0s',
  ])('a state with %s is answered at once', async query => {
    const { port } = await start({ clock: new VirtualClock() })
    expect((await call(port, 'GET', `/v1/state?${query}`)).status).toBe(200)
  })

  it('a state is answered at once when there is something newer already', async () => {
    const { port, agent } = await start({ clock: new VirtualClock() })
    agent.change('Stopping')
    expect((await call(port, 'GET', '/v1/state?since=boot-1.0&wait=30s')).json.seq).toBe(1)
  })

  it('a run is held until it has ended', async () => {
    const clock = new VirtualClock()
    const { port, agent } = await start({ clock })
    await call(port, 'PUT', '/v1/runs/a', { body: backup })
    const held = call(port, 'GET', '/v1/runs/a?wait=30s')
    await expect.poll(() => clock.pending).toBe(1)
    agent.change('Servicing')
    expect(clock.pending).toBe(1)
    agent.finish('a', 'Unknown')
    expect((await held).json.phase).toBe('Unknown')
    expect((await call(port, 'GET', '/v1/runs/a?wait=30s')).json.phase).toBe('Unknown')
    expect(codeOf(await call(port, 'GET', '/v1/runs/b?wait=30s'))).toEqual([404, 'UnknownRun'])
  })

  it('a hold ends when its caller goes away', async () => {
    const clock = new VirtualClock()
    const { port } = await start({ clock })
    const gone = new AbortController()
    const held = callPlainly(port, 'GET', '/v1/state?since=boot-1.0&wait=30s', { signal: gone.signal })
    await expect.poll(() => clock.pending).toBe(1)
    gone.abort()
    await expect(held).rejects.toThrow()
    await expect.poll(() => clock.pending).toBe(0)
  })

  it('draining answers what is held, closes its connections and takes no new ones', async () => {
    const clock = new VirtualClock()
    const { port, servers, publicPort } = await start({ clock })
    const agent = new Agent({ keepAlive: true })
    onTestFinished(() => agent.destroy())
    expect((await call(port, 'GET', '/v1/state', { agent })).headers.connection).toBe('keep-alive')
    const held = call(port, 'GET', '/v1/state?since=boot-1.0&wait=30s', { agent })
    await expect.poll(() => clock.pending).toBe(1)
    const drained = servers.drain()
    const came = await held
    expect([came.status, came.headers.connection]).toEqual([200, 'close'])
    await drained
    await expect(callPlainly(port, 'GET', '/v1/state')).rejects.toThrow(/ECONNREFUSED/)
    expect((await callPlainly(publicPort, 'GET', '/livez')).status).toBe(200)
  })
})
