/**
 * How the API answers: JSON, problem+json or text, always with its length, never cached, never a stack.
 *
 * Guarantee: who does not read an answer is cut off; it is not kept for ever.
 */
import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { Problem } from '../../shared/protocol/problems.ts'

export type Headers = Readonly<Record<string, string | number>>

/** What a call comes to. */
export type Reply =
  | { readonly status: number; readonly json: unknown; readonly headers?: Headers }
  | { readonly status: number; readonly bytes: Buffer; readonly headers: Headers }
  | { readonly status: 204 }

/** In milliseconds: how long a connection may take nothing of its answer. */
const patience = 30_000

export const usualHeaders: Headers = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
}

export function reply(response: ServerResponse, answer: Reply): void {
  if (response.headersSent || response.destroyed) return
  response.setTimeout(patience)
  if ('bytes' in answer) return write(response, answer.status, answer.bytes, answer.headers)
  if (!('json' in answer)) return write(response, answer.status, undefined, {})
  const body = Buffer.from(JSON.stringify(answer.json))
  write(response, answer.status, body, { 'content-type': 'application/json', ...answer.headers })
}

export function refuse(response: ServerResponse, problem: Problem, headers: Headers = {}): void {
  reply(response, {
    status: problem.status,
    json: problem,
    headers: { 'content-type': 'application/problem+json', ...headers },
  })
}

function write(response: ServerResponse, status: number, body: Buffer | undefined, headers: Headers): void {
  const length = body ? { 'content-length': body.length } : {}
  response.writeHead(status, { ...usualHeaders, ...headers, ...length })
  response.end(body)
}

/** The same on a bare connection, which is closed by it: for what Node gives up before there is a response. */
export function refuseRaw(connection: Duplex, status: number, text: string, problem?: Problem): void {
  if (!connection.writable) return void connection.destroy()
  const body = problem ? JSON.stringify(problem) : ''
  const lines = [
    `HTTP/1.1 ${status} ${text}`,
    'connection: close',
    ...Object.entries(usualHeaders).map(([name, value]) => `${name}: ${value}`),
    ...(problem ? ['content-type: application/problem+json'] : []),
    `content-length: ${Buffer.byteLength(body)}`,
  ]
  connection.end(`${lines.join('\r\n')}\r\n\r\n${body}`, () => connection.destroy())
}

/** Whatever was thrown, as a refusal; `unexpected` hears of what is no refusal. */
export function problemOf(thrown: unknown, unexpected: (error: unknown) => void): Problem {
  if (thrown instanceof Problem) return thrown
  unexpected(thrown)
  return new Problem('Unavailable', "The sidecar failed at this by a mistake of its own. The sidecar's log says which.")
}
