/**
 * A connection of one's own to the API server, for what is no exchange of messages: through the proxy where there is
 * one, with TLS where the server has it.
 *
 * Guarantee: it stands, certificates checked, or it is an Unavailable that certainly did nothing; the signal ends it at once.
 */
import { once } from 'node:events'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { messageOf } from '../../shared/errors.ts'
import { Unavailable } from './errors.ts'
import type { Credentials } from './kubeconfig.ts'
import type { Target } from './transport.ts'

/** Connects. Rejects with the signal's reason when it is aborted. */
export async function dial(credentials: Credentials, target: Target, stop: AbortSignal): Promise<Socket> {
  const server = new URL(credentials.server)
  try {
    stop.throwIfAborted()
    const tunnel = credentials.proxy ? await throughProxy(new URL(credentials.proxy), server, stop) : undefined
    return tunnel && server.protocol === 'http:' ? tunnel : await connect(server, credentials.tls, tunnel, stop)
  } catch (error) {
    if (stop.aborted) throw stop.reason
    throw new Unavailable('Unavailable', target, messageOf(error), { mayHaveActed: false, cause: error })
  }
}

async function connect(
  server: URL,
  tls: Credentials['tls'],
  tunnel: Socket | undefined,
  stop: AbortSignal,
): Promise<Socket> {
  const { host, port } = placeOf(server)
  const isSecure = server.protocol === 'https:'
  const socket = isSecure
    ? connectTls({
        ...tls,
        // A name for the certificate is never an address.
        servername: tls.servername ?? (isIP(host) ? undefined : host),
        ALPNProtocols: ['http/1.1'],
        ...(tunnel ? { socket: tunnel, host } : { host, port }),
      })
    : connectTcp({ host, port })
  try {
    await once(socket, isSecure ? 'secureConnect' : 'connect', { signal: stop })
  } catch (error) {
    socket.on('error', () => {}).destroy()
    throw error
  }
  return socket.setNoDelay(true).setKeepAlive(true, 30_000)
}

/** A tunnel by CONNECT. */
async function throughProxy(proxy: URL, server: URL, stop: AbortSignal): Promise<Socket> {
  const { port } = placeOf(server)
  const request = { 'http:': requestHttp, 'https:': requestHttps }[proxy.protocol]
  if (!request) throw new Error(`an HTTP proxy is needed, which ${proxy.protocol}//${proxy.host} is not`)
  const password = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`
  const login = { 'proxy-authorization': `Basic ${Buffer.from(password).toString('base64')}` }
  const path = `${server.hostname}:${port}`
  const asking = request({
    ...placeOf(proxy),
    method: 'CONNECT',
    path,
    headers: { host: path, ...(proxy.username && login) },
    agent: false,
  })
  // Whoever waits for it gets its error; afterwards nobody does.
  asking.on('error', () => {}).end()
  try {
    const [answer, socket] = (await once(asking, 'connect', { signal: stop })) as [IncomingMessage, Socket]
    if (answer.statusCode === 200) return socket
    socket.on('error', () => {}).destroy()
    throw new Error(`the proxy ${proxy.host} answered with HTTP status ${answer.statusCode}`)
  } catch (error) {
    asking.destroy()
    throw error
  }
}

function placeOf(url: URL): { host: string; port: number } {
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || (url.protocol === 'http:' ? 80 : 443)) }
}
