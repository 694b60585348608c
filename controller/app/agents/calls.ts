/**
 * Calls to sidecars, over connections that last a few seconds beyond the last call: an idle sidecar costs no second connection.
 *
 * Guarantees: every call ends by its deadline or its signal; an answer is as the protocol says, or an AgentError; an error says whether the request
 * may have reached the sidecar. New credentials are used by the next call, those under way finish with the old.
 */
import { type Dispatcher, Pool } from 'undici'
import type * as z from 'zod/mini'
import type { Clock, Timer } from '../../../shared/clock.ts'
import { messageOf } from '../../../shared/errors.ts'
import { type PodAddress, serverNameOf } from './address.ts'
import { Garbled, parsed } from './answers.ts'
import type { AgentCredentials, AgentCredentialsSource } from './credentials.ts'
import { dial } from './dial.ts'
import { AgentError } from './errors.ts'
import type { Pace } from './pace.ts'
import { podHeader } from './stream.ts'

export interface Call {
  /** What it is called in metrics. */
  readonly name: string
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  readonly path: string
  readonly body?: object | undefined
  readonly signal?: AbortSignal | undefined
  /** Milliseconds for all of it. */
  readonly deadline: number
  /** It may take long, and holds up no other: it has a connection of its own. Default false. */
  readonly isLong?: boolean | undefined
}

export interface Answer {
  readonly status: number
  readonly headers: Dispatcher.ResponseData['headers']
  readonly bytes: Buffer
}

export interface Calls {
  /** An answer with a status below 300; others reject with the sidecar's code. */
  send(address: PodAddress, call: Call): Promise<Answer>
  /** The same, as what the schema says. */
  ask<Schema extends z.core.$ZodType>(address: PodAddress, call: Call, schema: Schema): Promise<z.infer<Schema>>
  /** Ends every call under way and every connection. */
  close(): Promise<void>
}

export interface CallsOptions {
  readonly credentials: AgentCredentialsSource
  readonly clock: Clock
  /** How long a connection is kept after a call, in milliseconds. */
  readonly idle: number
  /** Milliseconds to connect, once it is its turn. */
  readonly connectWithin: number
  /** Who may connect when. Calls are urgent. */
  readonly pace: Pace
  observe(call: string, code: string, ms: number): void
}

interface Kept {
  readonly pool: Pool
  readonly credentials: AgentCredentials
  readonly place: string
  calls: number
  timer: Timer | undefined
}

/** Longer answers are none of the protocol's: a run has its parameters and its result, a piece of a log 1 MiB. */
const longestAnswer = 4 << 20

export function createCalls({ credentials, clock, idle, connectWithin, pace, observe }: CallsOptions): Calls {
  const kept = new Map<string, Kept>()
  const retired = new Set<Pool>()
  let isClosed = false

  const keep = (key: string, address: PodAddress, current: AgentCredentials): Kept => {
    const place = `${address.ip} ${address.port}`
    const old = kept.get(key)
    if (old?.credentials === current && old.place === place) return old
    if (old) retire(key, old)
    const pool = new Pool(`https://${serverNameOf(address.app)}`, {
      // Calls follow one another: a second connection would cost a handshake, and be idle.
      connections: 1,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      // The server says how long it would keep them: longer than we want them.
      keepAliveTimeout: idle,
      keepAliveMaxTimeout: idle,
      connect: (_options, callback) =>
        connect(address, current).then(
          socket => callback(null, socket),
          error => callback(error, null),
        ),
    })
    const next = { pool, credentials: current, place, calls: 0, timer: undefined }
    kept.set(key, next)
    return next
  }

  const connect = async (address: PodAddress, current: AgentCredentials) => {
    const turn = {}
    await new Promise<void>(begin => pace.ask(turn, 'urgent', begin))
    const late = new AbortController()
    const timer = clock.after(connectWithin, () => late.abort(new Error(`not connected within ${connectWithin} ms`)))
    try {
      return await dial(address, current, late.signal)
    } finally {
      timer.cancel()
      pace.leave(turn)
    }
  }

  /** No new calls; closes when the last one under way is done. */
  const retire = (key: string, old: Kept) => {
    if (kept.get(key) === old) kept.delete(key)
    old.timer?.cancel()
    retired.add(old.pool)
    old.pool.close().finally(() => retired.delete(old.pool))
  }

  const send = async (address: PodAddress, call: Call): Promise<Answer> => {
    const began = clock.monotonic()
    const done = (code: string) => observe(call.name, code, clock.monotonic() - began)
    try {
      const answer = await exchange(address, call)
      done(String(answer.status))
      if (answer.status >= 300) throw refusal(address, answer)
      return answer
    } catch (error) {
      if (error instanceof AgentError && error.status === undefined) done(error.code)
      throw error
    }
  }

  const exchange = async (address: PodAddress, call: Call): Promise<Answer> => {
    const current = credentials.current()
    const unsent = (code: string, why: string) => new AgentError(code, address, why, { isSent: false })
    if (isClosed) throw unsent('Aborted', 'nobody is asked any more')
    if (call.signal?.aborted) throw unsent('Aborted', 'no longer wanted')
    if (!current) throw unsent('Unavailable', 'there are no credentials yet')
    const key = `${address.pod.uid}${call.isLong ? ' long' : ''}`
    const entry = keep(key, address, current)
    entry.calls++
    entry.timer?.cancel()
    entry.timer = undefined
    try {
      return await dispatch(entry.pool, address, call, clock)
    } finally {
      if (--entry.calls === 0 && kept.get(key) === entry) {
        entry.timer = clock.after(idle, () => retire(key, entry))
      }
    }
  }

  return {
    send,
    async ask(address, call, schema) {
      const { bytes, status } = await send(address, call)
      try {
        return parsed(schema, bytes.toString())
      } catch (error) {
        if (!(error instanceof Garbled)) throw error
        throw new AgentError('Garbled', address, `the answer is not understood: ${error.message}`, {
          isSent: true,
          status,
          cause: error,
        })
      }
    },
    async close() {
      isClosed = true
      const pools = [...[...kept.values()].map(({ pool }) => pool), ...retired]
      for (const { timer } of kept.values()) timer?.cancel()
      kept.clear()
      await Promise.all(pools.map(pool => pool.destroy()))
    },
  }
}

function dispatch(pool: Pool, address: PodAddress, call: Call, clock: Clock): Promise<Answer> {
  const { signal, deadline, body } = call
  return new Promise((resolve, reject) => {
    let control: Dispatcher.DispatchController | undefined
    let isSettled = false
    let status = 0
    let headers: Answer['headers'] = {}
    let length = 0
    const pieces: Buffer[] = []

    const fail = (code: string, why: string, cause?: unknown) => {
      if (isSettled) return
      settle()
      const error = new AgentError(code, address, why, { isSent: control !== undefined, cause })
      reject(error)
      control?.abort(error)
    }
    const settle = () => {
      isSettled = true
      timer.cancel()
      signal?.removeEventListener('abort', abort)
    }
    const abort = () => fail('Aborted', 'no longer wanted', signal?.reason)
    const timer = clock.after(deadline, () => fail('DeadlineExceeded', `no complete answer within ${deadline} ms`))
    signal?.addEventListener('abort', abort, { once: true })

    const text = body === undefined ? null : JSON.stringify(body)
    pool.dispatch(
      {
        method: call.method,
        path: call.path,
        headers: { [podHeader]: address.pod.uid, ...(text !== null && { 'content-type': 'application/json' }) },
        body: text,
      },
      {
        onRequestStart(controller) {
          // It was given up while it waited for a connection: nothing of it is ever sent.
          if (isSettled) return controller.abort(new Error('no longer wanted'))
          control = controller
        },
        onResponseStart(_controller, code, received) {
          if (code < 200) return
          status = code
          headers = received
        },
        onResponseData(_controller, piece) {
          length += piece.length
          if (length > longestAnswer) fail('Garbled', 'the answer is too long')
          else pieces.push(piece)
        },
        onResponseEnd() {
          if (isSettled) return
          settle()
          resolve({ status, headers, bytes: Buffer.concat(pieces) })
        },
        onResponseError(_controller, error) {
          const isGarbled = error.name === 'HTTPParserError' || error.name === 'ResponseContentLengthMismatchError'
          fail(isGarbled ? 'Garbled' : 'Unavailable', messageOf(error), error)
        },
      },
    )
  })
}

/** The sidecar's own words, where it has them. */
function refusal(address: PodAddress, { status, bytes }: Answer): AgentError {
  try {
    const { code, detail, type: _type, title: _title, status: _status, ...more } = JSON.parse(bytes.toString())
    if (typeof code === 'string' && typeof detail === 'string') {
      return new AgentError(code, address, `${code}: ${detail}`, { isSent: true, status, more })
    }
  } catch {
    // Somebody else's.
  }
  return new AgentError('Garbled', address, `HTTP status ${status}, without a code`, { isSent: true, status })
}
