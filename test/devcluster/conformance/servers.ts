/**
 * A server under test, asked without a client's help: what it answers, whatever that is. The embedded one and a real one are asked alike.
 */
import type { Request, Send } from '../../../controller/kube/transport.ts'

export interface Answer {
  readonly status: number
  /** Texts of the Warning headers. */
  readonly warnings: readonly string[]
  // biome-ignore lint/suspicious/noExplicitAny: tests read what the server answers, whatever it is.
  readonly body: any
}

export interface AskOptions {
  /** Of the body. Default JSON. */
  readonly type?: string | undefined
  readonly accept?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly signal?: AbortSignal | undefined
}

export interface WatchEvent {
  readonly type: string
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly object: any
}

export interface Server {
  /** `POST /api/v1/namespaces`; a body that is a string is sent as it is. */
  ask(line: string, body?: unknown, options?: AskOptions): Promise<Answer>
  /** The events of a watch as they come; leaving the loop ends it. */
  watch(path: string, options?: AskOptions): AsyncGenerator<WatchEvent, void, undefined>
}

export const patches = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

const target = { verb: 'get', group: '', resource: '' }

export function serverOver(send: Send): Server {
  return {
    async ask(line, body, options = {}) {
      const [method = 'GET', path = '/'] = line.split(/ (.*)/s)
      const { status, headers, text } = await send({
        method: method as Request['method'],
        path,
        headers: headersOf(options),
        body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
        target,
        signal: options.signal,
      })
      return { status, warnings: warningsOf(headers.warning), body: text.startsWith('{') ? JSON.parse(text) : text }
    },
    async *watch(path, options = {}) {
      const { status, text, chunks } = await send({
        method: 'GET',
        path,
        headers: headersOf(options),
        target,
        stream: true,
        signal: options.signal,
      })
      if (!chunks) throw new Error(`${status}: ${text}`)
      const decoder = new TextDecoder()
      let rest = ''
      for await (const chunk of chunks) {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) if (line !== '') yield JSON.parse(line)
      }
    },
  }
}

function headersOf({ type = 'application/json', accept = 'application/json', headers = {} }: AskOptions) {
  return { 'content-type': type, accept, 'user-agent': 'conformance/1', ...headers }
}

/** `299 - "text"`, several in one line or in several. */
function warningsOf(header: string | string[] | undefined): string[] {
  const lines = [header ?? []].flat().join(', ')
  return [...lines.matchAll(/299 - "((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) => text.replace(/\\(.)/g, '$1'))
}
