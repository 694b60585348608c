/**
 * A TLS connection to a sidecar: to the pod's address, under the app's name.
 *
 * Guarantee: it stands, with TLS 1.3, by an authority of ours and under exactly that name, or it is an error and nothing was sent. The signal ends
 * it at once. No session is kept: sidecars resume none.
 */
import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'
import { type PodAddress, serverNameOf } from './address.ts'
import { type AgentCredentials, contextOf } from './credentials.ts'

export async function dial(address: PodAddress, credentials: AgentCredentials, stop: AbortSignal): Promise<TLSSocket> {
  stop.throwIfAborted()
  const servername = serverNameOf(address.app)
  const socket = connect({
    host: address.ip,
    port: address.port,
    servername,
    secureContext: contextOf(credentials),
    // No ALPN: HTTP/1.1 is all that is spoken, and Node would keep a Buffer of its name, with the pool that it is cut from, for each connection: 8 KB.
    checkServerIdentity: (_host, { subjectaltname = '' }) =>
      subjectaltname.split(', ').includes(`DNS:${servername}`)
        ? undefined
        : new Error(`the certificate is for ${subjectaltname || 'nobody'}, not for ${servername}`),
  })
  try {
    await once(socket, 'secureConnect', { signal: stop })
  } catch (error) {
    socket.on('error', () => {}).destroy()
    throw stop.aborted ? stop.reason : error
  }
  return socket.setNoDelay(true).setKeepAlive(true, 30_000)
}
