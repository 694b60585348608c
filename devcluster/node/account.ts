/**
 * What a pod's processes need to speak with the API server: tokens of its service account, kept fresh, and where the server is.
 */
import type { Client } from '../../controller/kube/client.ts'
import { NotFound } from '../../controller/kube/errors.ts'
import type { Clock, Timer } from '../../shared/clock.ts'
import type { Files, TokenWish } from './payload.ts'
import type { Pod } from './spec.ts'

/** Where processes find the API server. */
export interface ApiServer {
  readonly host: string
  readonly port: number
  /** Its certificate's authority, PEM. */
  readonly ca: string
}

export const accountPath = '/var/run/secrets/kubernetes.io/serviceaccount'

export interface Tokens {
  get(wish: TokenWish): string | undefined
  /** Asks for all that are wished. Resolves when they are there; rejects with why not. */
  fetch(wishes: readonly TokenWish[], signal: AbortSignal): Promise<void>
  stop(): void
}

const keyOf = ({ audience, seconds }: TokenWish) => `${seconds} ${audience ?? ''}`

/** @param onChange a token was replaced by a fresh one */
export function createTokens(client: Client, pod: Pod, clock: Clock, onChange: () => void): Tokens {
  const tokens = new Map<string, string>()
  const timers = new Map<string, Timer>()
  const { name, namespace, uid } = pod.metadata
  const account = { namespace, name: pod.spec?.serviceAccountName || 'default' }

  async function ask(wish: TokenWish, signal: AbortSignal): Promise<void> {
    const spec = {
      ...(wish.audience && { audiences: [wish.audience] }),
      expirationSeconds: wish.seconds,
      boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
    }
    const { token, expirationTimestamp } = await client.token(account, spec, { signal })
    tokens.set(keyOf(wish), token)
    later(wish, (Date.parse(expirationTimestamp) - clock.now()) * 0.8, signal)
  }
  function later(wish: TokenWish, ms: number, signal: AbortSignal): void {
    timers.get(keyOf(wish))?.cancel()
    if (signal.aborted) return
    const timer = clock.after(Math.max(ms, 1000), () => {
      // The old one serves on until it expires.
      ask(wish, signal).then(onChange, () => later(wish, 10_000, signal))
    })
    timers.set(keyOf(wish), timer)
  }
  return {
    get: wish => tokens.get(keyOf(wish)),
    async fetch(wishes, signal) {
      for (const wish of wishes) if (!tokens.has(keyOf(wish))) await ask(wish, signal)
    },
    stop() {
      for (const timer of timers.values()) timer.cancel()
    },
  }
}

/** Whether the account is not there at all, which only matters to who must have it. */
export const isWithoutAccount = (error: unknown) => error instanceof NotFound

/** The variables by which clients find the server. */
export function serverVariables({ host, port }: ApiServer): Record<string, string> {
  return {
    KUBERNETES_SERVICE_HOST: host,
    KUBERNETES_SERVICE_PORT: String(port),
    KUBERNETES_SERVICE_PORT_HTTPS: String(port),
    KUBERNETES_PORT: `tcp://${host}:${port}`,
  }
}

/** The files that every pod has at `accountPath` where its spec does not say so itself. */
export function accountFiles(token: string, ca: string, namespace: string): Files {
  const file = (text: string, mode = 0o644) => ({ content: Buffer.from(text), mode })
  return new Map([
    ['token', file(token, 0o600)],
    ['ca.crt', file(ca)],
    ['namespace', file(namespace)],
  ])
}

/** For clients that look for a file, where the paths of the account cannot be what they expect. */
export function accountKubeconfig({ host, port, ca }: ApiServer, tokenFile: string, namespace: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'pod',
    contexts: [{ name: 'pod', context: { cluster: 'pod', user: 'pod', namespace } }],
    clusters: [
      {
        name: 'pod',
        cluster: {
          server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
          'certificate-authority-data': Buffer.from(ca).toString('base64'),
        },
      },
    ],
    users: [{ name: 'pod', user: { tokenFile } }],
  })
}
