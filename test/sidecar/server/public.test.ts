import { chmod, mkdir, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { turnOf } from '../../../sidecar/server/socket.ts'
import { call, raw, start, temporary } from '../../fixtures/sidecar-server.ts'
import { VirtualClock } from '../../fixtures/virtual-clock.ts'

describe('the public port', () => {
  it('is alive at once, and ready when nothing is missing', async () => {
    const { agent, publicPort, servers } = await start({ opened: false })
    agent.lacks = ['the configuration /etc/x is not there', 'probe accepting has not answered']
    expect(await call(publicPort, 'GET', '/livez')).toMatchObject({ status: 200, text: 'ok\n' })
    const early = await call(publicPort, 'GET', '/readyz')
    expect(early).toMatchObject({ status: 503, text: `${agent.lacks.join('\n')}\n` })
    expect(early.headers['content-type']).toBe('text/plain; charset=utf-8')
    expect(servers.api).toBeUndefined()
    agent.lacks = []
    expect((await call(publicPort, 'GET', '/readyz')).status).toBe(200)
  })

  it('has metrics', async () => {
    const { publicPort } = await start()
    const came = await call(publicPort, 'GET', '/metrics')
    expect([came.status, came.headers['content-type']]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
    expect(came.text).toContain('shipmate_up 1')
  })

  it('answers HEAD without a body', async () => {
    const { publicPort } = await start()
    expect(await call(publicPort, 'HEAD', '/livez')).toMatchObject({ status: 200, text: '' })
  })

  it.each([
    ['GET', '/', 404],
    ['GET', '/v1/state', 404],
    ['GET', '/openapi.json', 404],
    ['GET', '/livez/', 404],
    ['GET', '/__proto__', 404],
    ['GET', '/%zz', 404],
    ['POST', '/prestop', 405],
    ['HEAD', '/prestop', 405],
    ['PUT', '/livez', 405],
  ])('%s %s is %i', async (method, path, status) => {
    const { publicPort } = await start()
    expect((await call(publicPort, method, path)).status).toBe(status)
  })

  it('holds GET /prestop as long as the agent does, and forgets a caller that goes away', async () => {
    const { agent, publicPort } = await start()
    const { promise, resolve } = Promise.withResolvers<void>()
    agent.gate = promise
    const gone = new AbortController()
    const left = call(publicPort, 'GET', '/prestop', { signal: gone.signal })
    await expect.poll(() => agent.awaited.length).toBe(1)
    gone.abort()
    await expect(left).rejects.toThrow()
    await expect.poll(() => agent.awaited[0]?.aborted).toBe(true)
    const held = call(publicPort, 'GET', '/prestop')
    await expect.poll(() => agent.awaited.length).toBe(2)
    resolve()
    expect((await held).status).toBe(200)
  })

  it('closes a connection that is no HTTP', async () => {
    const { publicPort } = await start()
    expect(await raw(publicPort, 'nonsense\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /)
  })
})

describe('the control socket', () => {
  const socketOf = (stateDir: string) => join(stateDir, 'control.sock')

  it('is for its owner alone, and serves POST /prestop and GET /livez', async () => {
    const { stateDir } = await start()
    const socket = socketOf(stateDir)
    expect((await stat(socket)).mode & 0o777).toBe(0o600)
    expect((await call(socket, 'GET', '/livez')).status).toBe(200)
    expect((await call(socket, 'POST', '/prestop')).status).toBe(200)
    expect((await call(socket, 'GET', '/prestop')).status).toBe(405)
    expect((await call(socket, 'GET', '/metrics')).status).toBe(404)
  })

  it('answers POST /prestop when the agent has served it', async () => {
    const { agent, stateDir } = await start()
    const { promise, resolve } = Promise.withResolvers<void>()
    agent.gate = promise
    let answered = false
    const held = call(socketOf(stateDir), 'POST', '/prestop').then(came => {
      answered = true
      return came
    })
    expect((await call(socketOf(stateDir), 'GET', '/livez')).status).toBe(200)
    expect(answered).toBe(false)
    resolve()
    expect((await held).status).toBe(200)
  })

  it('keeps a second agent out of the folder, and leaves the first alone', async () => {
    const { stateDir } = await start()
    await expect(start({ stateDir })).rejects.toThrow(/another agent is running on --state-dir/)
    expect((await call(socketOf(stateDir), 'GET', '/livez')).status).toBe(200)
  })

  it('lets one of many that start at once have the folder', async () => {
    const stateDir = await temporary()
    const tries = await Promise.allSettled([1, 2, 3, 4].map(() => start({ stateDir })))
    expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect((await call(socketOf(stateDir), 'GET', '/livez')).status).toBe(200)
  })

  it.runIf(process.platform === 'linux')(
    'is had by turns: who starts waits until another has had its own',
    async () => {
      const stateDir = await temporary()
      const turn = createServer(socket => socket.destroy())
      const path = await turnOf(stateDir)
      await new Promise<void>(resolve => turn.listen({ path }, resolve))
      onTestFinished(() => void turn.close())
      const clock = new VirtualClock()
      const starting = start({ stateDir, clock })
      await expect.poll(() => clock.pending).toBe(1)
      // What the other has bound by the end of its turn is its own.
      const other = createServer(() => undefined)
      await new Promise<void>(resolve => other.listen(socketOf(stateDir), resolve))
      onTestFinished(() => void other.close())
      await new Promise(resolve => turn.close(resolve))
      const refused = expect(starting).rejects.toThrow(/another agent is running/)
      await clock.advance(1000)
      await refused
    },
  )

  it('goes with its agent, so that the next can start', async () => {
    const { stateDir, servers } = await start()
    await servers.close()
    await start({ stateDir })
    expect((await call(socketOf(stateDir), 'GET', '/livez')).status).toBe(200)
  })

  it('replaces what a dead agent left', async () => {
    const stateDir = await temporary()
    await writeFile(socketOf(stateDir), '')
    await start({ stateDir })
    expect((await call(socketOf(stateDir), 'GET', '/livez')).status).toBe(200)
  })

  it('is not taken from an agent that is too busy to answer', async () => {
    const stateDir = await temporary()
    const busy = createServer(() => undefined)
    await new Promise<void>(resolve => busy.listen(socketOf(stateDir), resolve))
    onTestFinished(() => void busy.close())
    await expect(start({ stateDir })).rejects.toThrow(/another agent/)
  })

  it('cannot be where a path is too long, and says so', async () => {
    const stateDir = join(await temporary(), 'x'.repeat(120))
    await mkdir(stateDir)
    await expect(start({ stateDir })).rejects.toThrow(/--state-dir is too long/)
  })

  it('cannot be where there is no folder, and leaves nothing open', async () => {
    const stateDir = join(await temporary(), 'none')
    await expect(start({ stateDir })).rejects.toThrow(/ENOENT|EACCES/)
    await mkdir(stateDir)
    await chmod(stateDir, 0o700)
    await start({ stateDir })
  })
})
