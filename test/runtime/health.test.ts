import { once } from 'node:events'
import { request } from 'node:http'
import { createServer, connect as openSocket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Address, type Checks, type Served, type Serving, serve } from '../../controller/runtime/health.ts'
import { createLog, type Log } from '../../shared/log.ts'

let served: { health: Checks; ready: Checks }
let log: Log
let serving: Serving

beforeEach(async () => {
  served = { health: { ping: () => undefined }, ready: { first: () => undefined, second: () => undefined } }
  log = createLog({ level: 'silent' })
  serving = await start()
})
afterEach(() => serving.close())

function start(more: Partial<Served> = {}, address: Address = { host: '127.0.0.1', port: 0 }): Promise<Serving> {
  const metrics = { metrics: async () => 'up 1\n', contentType: 'text/plain; version=0.0.4' }
  return serve({ health: () => served.health, ready: () => served.ready, metrics, log, ...more }, address)
}

interface Asked {
  method?: string
  body?: string
  host?: string
  from?: string
}

/** Asks by the path as it is, which `fetch` would tidy up. */
function ask(path: string, { method = 'GET', body, host = '127.0.0.1', from }: Asked = {}) {
  return new Promise<{ status: number; text: string; headers: Record<string, string | string[] | undefined> }>(
    (resolve, reject) => {
      const asked = request(
        { host, port: serving.port, path, method, localAddress: from, agent: false },
        async response => {
          let text = ''
          for await (const chunk of response) text += chunk
          resolve({ status: response.statusCode ?? 0, text, headers: response.headers })
        },
      )
      asked.on('error', reject)
      asked.end(body)
    },
  )
}

describe('/healthz', () => {
  it('is ok', async () => {
    expect(await ask('/healthz')).toMatchObject({ status: 200, text: 'ok\n' })
    expect(await ask('/healthz/')).toMatchObject({ status: 200, text: 'ok\n' })
  })

  it('says more when asked', async () => {
    expect(await ask('/healthz?verbose')).toMatchObject({ status: 200, text: '[+]ping ok\nhealthz check passed\n' })
  })

  it('answers HEAD without a body', async () => {
    expect(await ask('/healthz', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' })
  })
})

describe('/readyz', () => {
  it('is ok when every check is', async () => {
    expect(await ask('/readyz')).toMatchObject({ status: 200, text: 'ok\n' })
  })

  it('names what failed and why', async () => {
    served.ready = { first: () => undefined, second: () => 'not read yet' }
    const text = '[+]first ok\n[-]second failed: not read yet\nreadyz check failed\n'
    expect(await ask('/readyz')).toMatchObject({ status: 500, text })
  })

  it('takes a check that throws for one that failed', async () => {
    served.ready = {
      first: () => {
        throw new Error('out of order')
      },
      second: () => {
        throw Object.create(null)
      },
    }
    const { status, text } = await ask('/readyz')
    expect(status).toBe(500)
    expect(text).toContain('[-]first failed: out of order\n')
    expect(text).toContain('[-]second failed: ')
  })

  it('tells of one check alone', async () => {
    served.ready = { first: () => undefined, second: () => 'broken' }
    expect(await ask('/readyz/first')).toMatchObject({ status: 200, text: 'ok\n' })
    expect(await ask('/readyz/second')).toMatchObject({ status: 500 })
  })

  it('does not know other checks, nor what every object has', async () => {
    expect(await ask('/readyz/third')).toMatchObject({ status: 404, text: 'no check "third"\n' })
    expect(await ask('/readyz/constructor')).toMatchObject({ status: 404 })
    expect(await ask('/readyz/__proto__')).toMatchObject({ status: 404 })
  })

  it('asks anew each time', async () => {
    expect((await ask('/readyz')).status).toBe(200)
    served.ready = { first: () => 'broken' }
    expect((await ask('/readyz')).status).toBe(500)
    served.ready = {}
    expect((await ask('/readyz')).status).toBe(200)
  })

  it('is an error when the checks cannot even be named', async () => {
    await serving.close()
    serving = await start({
      ready: () => {
        throw new Error('no checks today')
      },
    })
    expect(await ask('/readyz')).toMatchObject({ status: 500, text: 'no checks today\n' })
  })
})

describe('/metrics', () => {
  it('is what the registry says, in its own type', async () => {
    const answer = await ask('/metrics')
    expect(answer).toMatchObject({ status: 200, text: 'up 1\n' })
    expect(answer.headers['content-type']).toBe('text/plain; version=0.0.4')
  })

  it('that fail are an error', async () => {
    await serving.close()
    serving = await start({
      metrics: { metrics: () => Promise.reject(new Error('broken')), contentType: 'text/plain' },
    })
    expect(await ask('/metrics')).toMatchObject({ status: 500, text: 'broken\n' })
  })
})

describe('/log-level', () => {
  it('tells the level, and sets it', async () => {
    expect(await ask('/log-level')).toMatchObject({ status: 200, text: 'silent\n' })
    expect(await ask('/log-level', { method: 'PUT', body: ' fatal\n' })).toMatchObject({ status: 200, text: 'fatal\n' })
    expect(log.level).toBe('fatal')
  })

  it.each(['', 'loud', 'INFO', '{"level":"info"}'])('does not take %j for a level', async body => {
    const answer = await ask('/log-level', { method: 'PUT', body })
    expect(answer.status).toBe(400)
    expect(answer.text).toContain(`"${body}" is no log level; there are trace, debug, info`)
    expect(log.level).toBe('silent')
  })

  it('answers a body that is much too long', async () => {
    const answer = await ask('/log-level', { method: 'PUT', body: 'x'.repeat(1_000_000) })
    expect(answer.status).toBe(400)
    expect(answer.text.length).toBeLessThan(200)
  })

  it.each(['POST', 'DELETE', 'PATCH', 'HEAD'])('has no %s', async method => {
    const answer = await ask('/log-level', { method })
    expect(answer.status).toBe(405)
    expect(answer.headers['allow']).toBe('GET, PUT')
  })

  it('survives a caller who leaves in the middle of it', async () => {
    const socket = openSocket(serving.port, '127.0.0.1')
    await once(socket, 'connect')
    socket.write('PUT /log-level HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nin')
    const closed = once(socket, 'close')
    socket.destroy()
    await closed
    expect((await ask('/log-level')).status).toBe(200)
    expect(log.level).toBe('silent')
  })

  const foreign = Object.values(networkInterfaces())
    .flatMap(addresses => addresses ?? [])
    .find(address => !address.internal && address.family === 'IPv4')?.address

  it.skipIf(!foreign)('is not for callers from elsewhere, the rest is', async () => {
    await serving.close()
    serving = await start({}, { port: 0 })
    const elsewhere = { host: foreign as string, from: foreign as string }
    expect(await ask('/log-level', elsewhere)).toMatchObject({ status: 403, text: 'only from the same machine\n' })
    expect((await ask('/log-level', { ...elsewhere, method: 'PUT', body: 'trace' })).status).toBe(403)
    expect(log.level).toBe('silent')
    expect((await ask('/healthz', elsewhere)).status).toBe(200)
    expect((await ask('/log-level')).status).toBe(200)
  })
})

it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])('nothing else has a %s', async method => {
  for (const path of ['/healthz', '/readyz', '/metrics', '/']) {
    const answer = await ask(path, { method })
    expect(answer, path).toMatchObject({ status: 405 })
    expect(answer.headers['allow']).toBe('GET, HEAD')
  }
})

it.each(['/', '/nothing', '/metrics/', '/metrics/x', '/log-level/x', '/../etc/passwd', '/%2e%2e/', '/healthzz'])(
  'does not serve %s',
  async path => {
    expect((await ask(path)).status).toBe(404)
  },
)

it.each(['//', '//:', 'http://[', '/%'])('answers even %s', async path => {
  expect((await ask(path)).status).toBeGreaterThanOrEqual(400)
  expect((await ask(path)).status).toBeLessThan(500)
})

it('does not serve what it was not given', async () => {
  await serving.close()
  serving = await serve({}, { host: '127.0.0.1', port: 0 })
  for (const path of ['/healthz', '/readyz', '/metrics', '/log-level']) expect((await ask(path)).status, path).toBe(404)
})

it('says who it is: a text, and nothing to be guessed at', async () => {
  const { headers } = await ask('/readyz')
  expect(headers['content-type']).toBe('text/plain; charset=utf-8')
  expect(headers['x-content-type-options']).toBe('nosniff')
})

it('closes, with connections that are open', async () => {
  const socket = openSocket(serving.port, '127.0.0.1')
  await once(socket, 'connect')
  const closed = once(socket, 'close')
  await serving.close()
  await closed
  await expect(ask('/healthz')).rejects.toThrow('ECONNREFUSED')
  serving = await start()
})

it('says why it cannot listen', async () => {
  const other = createServer()
  await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
  const { port } = other.address() as { port: number }
  await expect(serve({}, { host: '127.0.0.1', port })).rejects.toThrow('EADDRINUSE')
  await new Promise(resolve => other.close(resolve))
})
