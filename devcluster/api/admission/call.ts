/**
 * A call of a webhook: JSON over HTTPS, to a URL or to a Service, checked against the bundle of its configuration.
 */
import { request } from 'node:https'
import type { ClientConfig } from './match.ts'

/** Where a Service's port is reached: the address of one of its ready pods. */
export type Locate = (namespace: string, name: string, port: number) => { host: string; port: number } | undefined

export interface Call {
  readonly config: ClientConfig
  readonly body: unknown
  /** Milliseconds. */
  readonly timeout: number
  readonly signal: AbortSignal
}

/** Rejects with what a person should read. */
export function call({ config, body, timeout, signal }: Call, locate: Locate): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>()
  const { path, ...target } = targetOf(config, locate)
  const text = JSON.stringify(body)
  const deadline = AbortSignal.timeout(timeout)
  const outgoing = request(
    {
      ...target,
      // The webhook is told how long it is waited for.
      path: `${path}${path.includes('?') ? '&' : '?'}timeout=${timeout / 1000}s`,
      method: 'POST',
      agent: false,
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        'content-length': Buffer.byteLength(text),
      },
      ...(config.caBundle ? { ca: Buffer.from(config.caBundle, 'base64') } : {}),
      signal: AbortSignal.any([signal, deadline]),
    },
    response => {
      let answer = ''
      response.setEncoding('utf8').on('data', piece => (answer += piece))
      response.on('error', reject)
      response.on('end', () => {
        if (response.statusCode !== 200)
          return reject(new Error(`the server answered with ${response.statusCode}: ${answer.slice(0, 200)}`))
        try {
          resolve(JSON.parse(answer))
        } catch {
          reject(new Error('the answer is not JSON'))
        }
      })
    },
  )
  outgoing.on('error', error => reject(deadline.aborted ? new Error('context deadline exceeded') : error))
  outgoing.end(text)
  return promise
}

function targetOf(
  config: ClientConfig,
  locate: Locate,
): { host: string; port: number; path: string; servername?: string } {
  if (config.url) {
    const url = new URL(config.url)
    return { host: url.hostname, port: Number(url.port || 443), path: `${url.pathname}${url.search}` }
  }
  const { service } = config
  if (!service) throw new Error('neither a url nor a service is given')
  const { namespace, name, path = '/', port = 443 } = service
  const found = locate(namespace, name, port)
  if (!found) throw new Error(`no endpoints available for service "${name}"`)
  return { ...found, path: path.startsWith('/') ? path : `/${path}`, servername: `${name}.${namespace}.svc` }
}
