import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { buffer, text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { Aborted, Forbidden, NotFound, Unavailable } from '../../controller/kube/errors.ts'
import { type ForwardedPort, forwardPort, portForward } from '../../controller/kube/portforward.ts'
import { type Cluster, useCluster } from '../fixtures/pods.ts'

const kubeconfig = inject('kubeconfig')

/** 8080: HTTP, answers with the sum of what was sent. 8081: TCP, sends back what it gets. 8082: sends 10 MB and closes. */
const program = `
  const { createHash, randomBytes } = require('node:crypto')
  const http = require('node:http'), net = require('node:net')
  http.createServer((request, response) => {
    const hash = createHash('sha256')
    request.on('data', piece => hash.update(piece)).on('end', () => response.end(request.url + ' ' + hash.digest('hex')))
  }).listen(8080)
  net.createServer(socket => socket.on('error', () => {}).pipe(socket)).listen(8081)
  const data = randomBytes(10e6)
  const sum = createHash('sha256').update(data).digest()
  net.createServer(socket => {
    socket.on('error', () => {}).write(sum)
    socket.end(data)
  }).listen(8082, () => console.log('ready'))`

const sha256 = (data: Uint8Array) => createHash('sha256').update(data).digest('hex')

/** What an HTTP server on a local port says. */
async function post(local: ForwardedPort, path: string, body: Uint8Array): Promise<string> {
  const asking = request({ host: local.host, port: local.port, path, method: 'POST', agent: false })
  asking.end(body)
  const [answer] = await once(asking, 'response')
  return text(answer)
}

describe.skipIf(!kubeconfig)('port-forward on a real node', () => {
  let cluster: Cluster
  let pod: { name: string; namespace: string }

  beforeAll(async () => {
    cluster = await useCluster(kubeconfig)
    const readinessProbe = { tcpSocket: { port: 8082 }, periodSeconds: 1 }
    pod = await cluster.run('server', { main: { command: ['node', '-e', program], readinessProbe } })
    await cluster.until('server', pod => pod.status?.containerStatuses?.every(status => status.ready))
  }, 120_000)
  afterAll(() => cluster?.[Symbol.asyncDispose]())

  it('carries HTTP', async () => {
    await using local = await forwardPort(cluster.source, pod, 8080)
    expect(await post(local, '/hello', Buffer.from('world'))).toBe(`/hello ${sha256(Buffer.from('world'))}`)
  })

  it('carries twenty connections at once', async () => {
    await using local = await forwardPort(cluster.source, pod, 8080)
    const bodies = Array.from({ length: 20 }, () => randomBytes(100_000))
    const answers = await Promise.all(bodies.map((body, i) => post(local, `/${i}`, body)))
    expect(answers).toEqual(bodies.map((body, i) => `/${i} ${sha256(body)}`))
  })

  it('carries ten megabytes there', async () => {
    await using local = await forwardPort(cluster.source, pod, 8080)
    const body = randomBytes(10e6)
    expect(await post(local, '/', body)).toBe(`/ ${sha256(body)}`)
  })

  it('carries ten megabytes back, to the last byte before the pod closes', async () => {
    await using local = await forwardPort(cluster.source, pod, 8082)
    const all = await buffer(connect(local.port, local.host))
    expect(all.length).toBe(10e6 + 32)
    expect(sha256(all.subarray(32))).toBe(all.subarray(0, 32).toString('hex'))
  })

  it('carries ten megabytes both ways at once', async () => {
    const stream = await portForward(cluster.source, pod, 8081)
    const data = randomBytes(10e6)
    stream.write(data)
    const hash = createHash('sha256')
    let length = 0
    for await (const piece of stream) {
      hash.update(piece)
      length += piece.length
      if (length === data.length) break
    }
    expect(hash.digest('hex')).toBe(sha256(data))
  })

  it('fails where nobody listens', async () => {
    const error = await text(await portForward(cluster.source, pod, 9999)).catch(error => error)
    expect(error).toBeInstanceOf(Unavailable)
    expect(error.message).toMatch(/port 9999 of the pod: .*connection refused/)

    const errors: Error[] = []
    await using local = await forwardPort(cluster.source, pod, 9999, { onError: error => errors.push(error) })
    await expect(text(connect(local.port, local.host))).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(errors).toMatchObject([{ message: expect.stringContaining('connection refused') }])
  })

  it('ends at once when aborted', async () => {
    const stop = new AbortController()
    const stream = await portForward(cluster.source, pod, 8081, { signal: stop.signal })
    stream.write('hello')
    await once(stream, 'readable')
    stop.abort('enough')
    await expect(text(stream)).rejects.toBeInstanceOf(Aborted)
  })

  it('says so when there is no such pod', async () => {
    await expect(portForward(cluster.source, { ...pod, name: 'nope' }, 8080)).rejects.toBeInstanceOf(NotFound)
  })

  it('names the rule that whoever may not is missing', async () => {
    const error = await portForward(await cluster.as('nobody'), pod, 8080).catch(error => error)
    expect(error).toBeInstanceOf(Forbidden)
    expect(error.rule).toMatchObject({ apiGroups: [''], resources: ['pods/portforward'] })
  })
})
