/**
 * Who may use the API. One gate per mode of `--auth`: it looks at a request, and throws `Unauthorized` or `Forbidden`.
 */
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { Problem } from '../../shared/protocol/problems.ts'
import { isLoopback } from './address.ts'

export type AuthMode = 'mtls' | 'token' | 'none'

export interface Gate {
  admit(request: IncomingMessage): void
  /** Whether each request must name the pod it is meant for, by header. */
  readonly namesPod: boolean
  /** Whether a PUT must say which pod, configuration, journal and fence it is meant for. */
  readonly requiresAims: boolean
  /** Headers of a 401. */
  readonly challenge: Readonly<Record<string, string>>
}

/** The name in the controller's certificate. */
const controllerName = 'controller.shipmate.dev'
const clientAuth = '1.3.6.1.5.5.7.3.2'

/**
 * For development: everybody on this machine, but no page in a browser on it. A page can reach a loopback address, by its own name (rebinding)
 * or as a foreign origin; both are seen in the headers that browsers send.
 */
export const openGate: Gate = {
  admit({ headers }) {
    const host = headers.host ?? ''
    if (host !== '' && !isLoopback(hostOf(`http://${host}`))) {
      throw new Problem(
        'Forbidden',
        `Host is "${host.slice(0, 80)}"; with --auth none it must be localhost or a loopback address.`,
      )
    }
    const { origin } = headers
    if (origin !== undefined && !isLoopback(hostOf(origin))) {
      throw new Problem(
        'Forbidden',
        `Origin is "${origin.slice(0, 80)}"; with --auth none only pages of this machine may ask.`,
      )
    }
  },
  namesPod: false,
  requiresAims: false,
  challenge: {},
}

const hostOf = (url: string) => URL.parse(url)?.hostname ?? ''

/** Who knows the token of the moment. `digest` is its SHA-256. */
export function tokenGate(digest: () => Buffer | undefined): Gate {
  return {
    admit({ headers }) {
      const { createHash, timingSafeEqual } = process.getBuiltinModule('node:crypto')
      const given = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1]
      if (given === undefined) throw new Problem('Unauthorized', 'There is no header "Authorization: Bearer TOKEN".')
      const expected = digest()
      // Digests are of one length, and say nothing about where the tokens differ.
      const same = expected && timingSafeEqual(createHash('sha256').update(given).digest(), expected)
      if (!same) throw new Problem('Unauthorized', 'The token is not the one in the token file.')
    },
    namesPod: false,
    requiresAims: true,
    challenge: { 'www-authenticate': 'Bearer realm="shipmate"' },
  }
}

/** The controller, by its certificate. What a connection has shown is looked at once. */
export function certificateGate(now: () => number): Gate {
  const seen = new WeakMap<object, { problem: Problem | undefined; until: number }>()
  return {
    admit({ socket }) {
      let verdict = seen.get(socket)
      if (!verdict) {
        verdict = judge(socket as TLSSocket)
        seen.set(socket, verdict)
      }
      if (verdict.problem) throw verdict.problem
      if (now() > verdict.until) throw new Problem('Unauthorized', 'The client certificate has expired.')
    },
    namesPod: true,
    requiresAims: true,
    challenge: {},
  }
}

function judge(socket: TLSSocket): { problem: Problem | undefined; until: number } {
  const certificate = socket.getPeerX509Certificate()
  const refused = (code: 'Unauthorized' | 'Forbidden', detail: string) => ({
    problem: new Problem(code, detail),
    until: 0,
  })
  if (!certificate)
    return refused('Unauthorized', `There is no client certificate; it must be that of ${controllerName}.`)
  if (!socket.authorized) {
    return refused('Unauthorized', `The client certificate is not accepted: ${String(socket.authorizationError)}.`)
  }
  if (!certificate.keyUsage?.includes(clientAuth)) {
    return refused('Unauthorized', 'The client certificate is not for clients (extended key usage clientAuth).')
  }
  if (!certificate.checkHost(controllerName, { subject: 'never', wildcards: false })) {
    return refused('Forbidden', `The client certificate is not that of ${controllerName}.`)
  }
  return { problem: undefined, until: Date.parse(certificate.validTo) }
}
