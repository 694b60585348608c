/**
 * The public port and the control socket: `/livez`, `/readyz`, `/metrics` and `/prestop`, in plain HTTP.
 *
 * Guarantees: a stranger can change nothing by them; nothing else is served; an answer waits for nothing but what `/prestop` is there to wait for.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { messageOf } from '../../shared/errors.ts'
import type { Logger } from '../../shared/log.ts'
import type { Agent } from '../api.ts'
import { usualHeaders } from './answer.ts'
import { createSmallServer } from './listen.ts'

interface Page {
  readonly status: number
  readonly text: string
  readonly type?: string
}

interface Served {
  readonly methods: readonly string[]
  page(signal: AbortSignal): Page | Promise<Page>
}

type Pages = Readonly<Record<string, Served>>

const ok: Page = { status: 200, text: 'ok\n' }
const reading = ['GET', 'HEAD']
const livez: Served = { methods: reading, page: () => ok }

/** @param missing what is still missing before the agent is ready, each a sentence */
export function createPublicServer(agent: Agent, missing: () => string[], log: Logger): Server {
  const pages: Pages = {
    '/livez': livez,
    '/readyz': {
      methods: reading,
      page() {
        const sentences = missing()
        return sentences.length === 0 ? ok : { status: 503, text: `${sentences.join('\n')}\n` }
      },
    },
    '/metrics': {
      methods: reading,
      page: () => ({ status: 200, text: agent.metrics(), type: 'text/plain; version=0.0.4; charset=utf-8' }),
    },
    '/prestop': {
      methods: ['GET'],
      async page(signal) {
        await agent.awaitPreStop(signal)
        return ok
      },
    },
  }
  return serving(createSmallServer(512), pages, log)
}

export function createControlServer(agent: Agent, log: Logger): Server {
  const pages: Pages = {
    '/livez': livez,
    '/prestop': {
      methods: ['POST'],
      async page() {
        await agent.preStop()
        return ok
      },
    },
  }
  return serving(createSmallServer(64), pages, log)
}

function serving(server: Server, pages: Pages, log: Logger): Server {
  server.on('request', (request, response) => {
    answer(pages, request, response).catch(error => {
      if (response.destroyed) return
      log.error({ err: error, url: request.url }, 'a call failed')
      send(response, { status: 503, text: `${messageOf(error)}\n` })
    })
  })
  return server
}

async function answer(pages: Pages, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = (request.url ?? '').split('?', 1)[0] ?? ''
  const served = Object.hasOwn(pages, path) ? pages[path] : undefined
  if (!served) return send(response, { status: 404, text: `there are ${Object.keys(pages).join(', ')}\n` })
  const { methods } = served
  if (!methods.includes(request.method ?? '')) {
    response.setHeader('allow', methods.join(', '))
    return send(response, { status: 405, text: `${path} has ${methods.join(', ')}\n` })
  }
  const gone = new AbortController()
  response.on('close', () => gone.abort())
  const page = await served.page(gone.signal)
  if (!response.destroyed) send(response, page)
}

function send(response: ServerResponse, { status, text, type = 'text/plain; charset=utf-8' }: Page): void {
  response.setTimeout(30_000)
  response.writeHead(status, { ...usualHeaders, 'content-type': type, 'content-length': Buffer.byteLength(text) })
  response.end(text)
}
