/** Requests to an API server of the test's own, as a program would send them. */

import { admin } from '../../../devcluster/api/send.ts'
import type { Api } from '../../../devcluster/api/server.ts'
import type { User } from '../../../devcluster/api/types.ts'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[]>>
  // biome-ignore lint/suspicious/noExplicitAny: tests read what the server answers, whatever it is.
  readonly body: any
}

export interface Asking {
  readonly type?: string
  readonly accept?: string
  readonly user?: User
  readonly signal?: AbortSignal
}

export async function ask(api: Api, line: string, body?: unknown, options: Asking = {}): Promise<Answer> {
  const response = await raw(api, line, body, options)
  let text = ''
  if (typeof response.body === 'string' || response.body instanceof Uint8Array) text = response.body.toString()
  else for await (const piece of response.body) text += piece.toString()
  const isJson = response.headers['content-type'] === 'application/json'
  return { status: response.status, headers: response.headers, body: isJson ? jsonOf(text) : text }
}

/** One object, or the list of lines that a watch is. */
function jsonOf(text: string): unknown {
  return text.endsWith('\n') || text === ''
    ? text
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line))
    : JSON.parse(text)
}

function raw(api: Api, line: string, body?: unknown, { type, accept, user = admin, signal }: Asking = {}) {
  const [method = '', target = ''] = line.split(' ')
  const [path = '', query = ''] = target.split('?')
  const sent = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
  return api.handle({
    method,
    path,
    query: new URLSearchParams(query),
    headers: { 'content-type': type ?? 'application/json', accept, 'user-agent': 'test/1' },
    body: Buffer.from(sent),
    user,
    signal: signal ?? new AbortController().signal,
  })
}

export const merge = { type: 'application/merge-patch+json' }
