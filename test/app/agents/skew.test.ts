/**
 * Peers that say more, less, or something else than the protocol has.
 */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { app, clientOf, control, credentialsFrom, newAuthorities, until } from './rig.ts'
import { numbered, reset, type StandInOptions, say, standIn, stateOf } from './stand-in.ts'

async function facing(options: StandInOptions, limits = {}) {
  const trust = newAuthorities()
  const peer = await standIn(trust, options)
  const controller = control(credentialsFrom(clientOf(trust)), {
    limits: { firstRetry: 20, longestRetry: 20, ...limits },
  })
  return { ...peer, ...controller, follow: () => controller.agents.follow(app, [peer.address], { isUrgent: true }) }
}

describe('a peer of another version', { timeout: 60_000 }, () => {
  it('may say more than is known here, and use messages that are not', async () => {
    const { agents, follow, told } = await facing({
      features: { protocol: 1, features: ['new'], more: true },
      read: socket =>
        say(
          socket,
          { ...reset(1), more: 1, state: { ...stateOf(1), more: { deep: true } } },
          { ...numbered(2), type: 'weather', sky: 'blue' },
          { ...numbered(3), type: 'state', state: stateOf(3, { reason: 'Three' }) },
        ),
    })
    follow()
    await until(() => agents.seen('pod-uid')?.state?.reason === 'Three' && agents.seen('pod-uid')?.isReachable)
    expect(agents.seen('pod-uid')?.features).toEqual(['new'])
    expect(told).toEqual(['reachable'])
  })

  it('goes on from its cursor, and tells what it missed once', async () => {
    const { agents, follow, told, cursors } = await facing({
      read(socket, number) {
        if (number === 1) {
          say(socket, reset(1))
          socket.once('ping', () => void setImmediate().then(() => socket.terminate()))
        } else {
          say(socket, { ...numbered(2), type: 'state', state: stateOf(2, { reason: 'Two' }) })
        }
      },
    })
    follow()
    await until(() => agents.seen('pod-uid')?.state?.reason === 'Two' && agents.seen('pod-uid')?.isReachable)
    expect(cursors).toEqual([null, 'b.1'])
    expect(told.at(-1)).toBe('reachable')
    expect(told).not.toContain('state')
  })

  it('is read anew when a message is missing', async () => {
    const { agents, follow, cursors } = await facing({
      read(socket, number) {
        if (number > 1) return say(socket, reset(9))
        say(socket, reset(1), { ...numbered(3), type: 'state', state: stateOf(3, { reason: 'Three' }) })
      },
    })
    follow()
    await until(() => agents.seen('pod-uid')?.state?.seq === 9)
    expect(cursors).toEqual([null, null])
  })

  const garbage: [string, string | object, RegExp][] = [
    ['no JSON', '{"seq":', /no JSON/],
    ['no message', { hello: 'you' }, /"seq" is not as the protocol says/],
    ['a state without a pod', { ...reset(1), state: { ...stateOf(1), pod: undefined } }, /"state.pod"/],
    [
      'a run in no phase that there is',
      { ...numbered(1), type: 'run', run: { id: 'r', phase: 'Dancing' } },
      /is not as the protocol says/,
    ],
  ]
  it.each(garbage)('is given up when it sends %s', async (_what, message, error) => {
    const { agents, follow } = await facing({
      read: socket => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    })
    follow()
    await until(() => agents.seen('pod-uid'))
    expect(agents.seen('pod-uid')).toMatchObject({
      isReachable: false,
      state: undefined,
      error: expect.stringMatching(error),
    })
  })

  it('is not up before it has said its state', async () => {
    const { agents, follow } = await facing({ read: () => {} })
    follow()
    await until(() => agents.seen('pod-uid'))
    expect(agents.seen('pod-uid')).toMatchObject({ isReachable: false, error: 'it did not say its state' })
  })
})

describe('a call', { timeout: 60_000 }, () => {
  const failing = async (answer: StandInOptions['answer'], limits = {}) => {
    const { agents, address } = await facing({ ...(answer && { answer }) }, limits)
    return agents.state(address).catch(error => error)
  }

  it('ends by its deadline, however slowly the answer comes', async () => {
    const slowly: StandInOptions['answer'] = (_request, response) => {
      response.write('{')
      const timer = setInterval(() => response.write(' '), 10)
      response.once('close', () => clearInterval(timer))
    }
    expect(await failing(slowly, { call: 200 })).toMatchObject({
      code: 'DeadlineExceeded',
      isSent: true,
      status: undefined,
    })
  })

  it('fails when the answer is not the protocol, or without end', async () => {
    expect(await failing((_request, response) => void response.end('hello'))).toMatchObject({
      code: 'Garbled',
      isSent: true,
    })
    expect(await failing((_request, response) => void response.end('{}'))).toMatchObject({
      code: 'Garbled',
      status: 200,
    })
    expect(await failing((_request, response) => void response.writeHead(500).end('<html>'))).toMatchObject({
      code: 'Garbled',
      status: 500,
    })
    const endless: StandInOptions['answer'] = (_request, response) => {
      const pour = () => {
        while (!response.destroyed && response.write('x'.repeat(65536))) {}
      }
      response.on('drain', pour)
      pour()
    }
    expect(await failing(endless)).toMatchObject({ code: 'Garbled', detail: 'the answer is too long' })
  })

  it('knows a refusal that is newer than itself', async () => {
    const refused = { type: 'x', title: 'x', status: 409, detail: 'not today', code: 'Tired', hours: 8 }
    expect(
      await failing((_request, response) => void response.writeHead(409).end(JSON.stringify(refused))),
    ).toMatchObject({
      ...{ code: 'Tired', status: 409, detail: 'Tired: not today', more: { hours: 8 } },
    })
  })

  it('may have been sent when the connection breaks, and cannot have been when there was none', async () => {
    expect(await failing(request => void request.socket.destroy())).toMatchObject({ code: 'Unavailable', isSent: true })
    const { agents, address } = await facing({})
    const nowhere = { ...address, port: 1 }
    await expect(agents.state(nowhere)).rejects.toMatchObject({ code: 'Unavailable', isSent: false })
  })
})
