// A client of one agent: puts runs, and knows from the stream of events when each has begun and ended.

import { Agent, type RequestOptions, request } from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import { WebSocket } from 'ws'
import type { Message, PodState, Run } from '../../shared/protocol/schemas.ts'
import { isInProgress } from '../../shared/run.ts'
import { type Program, pod } from './programs.ts'

/** Milliseconds from sending a PUT until the first event of the run, and until that of its end. */
export interface Timed {
  first: number
  end: number
}

export interface Client {
  /** Puts a run of the action and waits for its end; rejects if it is refused or does not succeed. */
  run(action: string): Promise<Timed>
  /** How many events were told since it began to read. */
  events(): number
  /** One more reader, which counts what it hears and does nothing with it. Answers how many that are, and how to stop. */
  addReader(): Promise<{ count(): number; stop(): void }>
  close(): void
}

interface Waiting {
  heard(run: Run, at: number): void
  failed(error: Error): void
}

export async function connect({ api, client }: Program): Promise<Client> {
  const headers = { 'shipmate-pod-uid': pod.uid }
  const agent = client ? new SecureAgent({ keepAlive: true, ...client }) : new Agent({ keepAlive: true })
  const waiting = new Map<string, Waiting>()
  const sockets = new Set<WebSocket>()
  let events = 0
  let runs = 0

  async function read(hear: (data: unknown, at: number) => void): Promise<WebSocket> {
    const socket = new WebSocket(`${client ? 'wss' : 'ws'}://${api}/v1/events`, { ...client, headers })
    sockets.add(socket)
    // The reset comes first, and is no event.
    let isReset = true
    await new Promise<void>((resolve, reject) => {
      socket.on('message', data => {
        const at = performance.now()
        if (!isReset) return hear(data, at)
        isReset = false
        resolve()
      })
      socket.once('error', reject)
      socket.once('close', code => {
        sockets.delete(socket)
        const error = new Error(`the stream of events was closed (${code})`)
        reject(error)
        for (const { failed } of waiting.values()) failed(error)
      })
    })
    return socket
  }

  await read((data, at) => {
    events++
    const message: Message = JSON.parse(String(data))
    if (message.type === 'run') waiting.get(message.run.id)?.heard(message.run, at)
  })
  const call = (method: string, path: string, body?: object) =>
    send(
      client ? secureRequest : request,
      { agent, host: '127.0.0.1', port: api.split(':')[1], headers, method, path },
      body,
    )
  // With mTLS each PUT must say for which pod, configuration and journal it is meant, and with which fence.
  const { configHash, journalId, fence } = JSON.parse((await call('GET', '/v1/state')).text) as PodState
  const aims = client && { podUid: pod.uid, configHash, journalId }

  return {
    run(action) {
      const id = `bench-${++runs}`
      const body = { action, ...(aims && { ...aims, fence: fence + runs }) }
      return new Promise<Timed>((resolve, reject) => {
        const sent = performance.now()
        let first: number | undefined
        waiting.set(id, {
          heard(run, at) {
            first ??= at - sent
            if (run.phase === 'Succeeded') resolve({ first, end: at - sent })
            else if (!isInProgress(run.phase)) reject(new Error(`run ${id} is ${run.phase}: ${run.error?.message}`))
          },
          failed: reject,
        })
        call('PUT', `/v1/runs/${id}`, body).then(({ status, text }) => {
          if (status !== 201) reject(new Error(`PUT was answered with ${status}: ${text}`))
        }, reject)
      }).finally(() => waiting.delete(id))
    },
    events: () => events,
    async addReader() {
      let count = 0
      const socket = await read(() => {
        count++
      })
      return { count: () => count, stop: () => socket.terminate() }
    },
    close() {
      for (const socket of sockets) socket.terminate()
      agent.destroy()
    },
  }
}

/** Calls a page of the bare server on a connection that is kept, and answers with its text. */
export function caller({ open }: Program): { get(path: string): Promise<string>; close(): void } {
  const agent = new Agent({ keepAlive: true })
  return {
    async get(path) {
      const options = { agent, host: '127.0.0.1', port: open.split(':')[1], method: 'GET', path }
      return (await send(request, options)).text
    },
    close: () => agent.destroy(),
  }
}

function send(
  by: typeof request | typeof secureRequest,
  options: RequestOptions,
  body?: object,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const call = by(options, response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', piece => {
        text += piece
      })
      response.once('error', reject)
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    call.once('error', reject)
    if (body !== undefined) call.setHeader('content-type', 'application/json')
    call.end(body && JSON.stringify(body))
  })
}
