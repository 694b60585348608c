/**
 * What can be asked of a sidecar, one function a call of the protocol.
 *
 * Guarantee: a state is that of the pod that was meant, or `WrongPod`.
 */
import { longestPiece } from '../../../shared/protocol/routes.ts'
import {
  type PodState,
  type PutRun,
  podState,
  type Run,
  run as runSchema,
  type Settle,
  type Verdict,
  type VerifyRun,
  verdict,
} from '../../../shared/protocol/schemas.ts'
import type { PodAddress } from './address.ts'
import type { Call, Calls } from './calls.ts'
import { AgentError } from './errors.ts'

export interface LogPiece {
  /** Where the piece begins, in bytes. */
  readonly offset: number
  /** Where to go on. */
  readonly next: number
  readonly text: string
}

const ofRun = (id: string, part = '') => `/v1/runs/${encodeURIComponent(id)}${part}`

export function createAsking(calls: Calls, limits: { readonly call: number; readonly verify: number }) {
  const plain = (name: string, method: Call['method'], path: string, signal?: AbortSignal, body?: object): Call => ({
    ...{ name, method, path, signal, body },
    deadline: limits.call,
  })

  /** @param code what is answered with undefined instead of an error */
  const unless = async <T>(code: string, asked: Promise<T>): Promise<T | undefined> => {
    try {
      return await asked
    } catch (error) {
      if (error instanceof AgentError && error.code === code) return undefined
      throw error
    }
  }

  return {
    async state(pod: PodAddress, signal?: AbortSignal): Promise<PodState> {
      const state = await calls.ask(pod, plain('state', 'GET', '/v1/state', signal), podState)
      if (state.pod.uid === pod.pod.uid) return state
      throw new AgentError('WrongPod', pod, `WrongPod: this is pod ${state.pod.name} with uid ${state.pod.uid}`, {
        isSent: true,
        status: 200,
      })
    },
    put: (pod: PodAddress, id: string, body: PutRun, signal?: AbortSignal): Promise<Run> =>
      calls.ask(pod, plain('put', 'PUT', ofRun(id), signal, body), runSchema),
    run: (pod: PodAddress, id: string, signal?: AbortSignal): Promise<Run | undefined> =>
      unless('UnknownRun', calls.ask(pod, plain('run', 'GET', ofRun(id), signal), runSchema)),
    cancel: (pod: PodAddress, id: string, signal?: AbortSignal): Promise<Run> =>
      calls.ask(pod, plain('cancel', 'POST', ofRun(id, '/cancel'), signal), runSchema),
    settle: (pod: PodAddress, id: string, word: Settle, signal?: AbortSignal): Promise<Run> =>
      calls.ask(pod, plain('settle', 'POST', ofRun(id, '/settle'), signal, word), runSchema),
    verify: (pod: PodAddress, body: VerifyRun, signal?: AbortSignal): Promise<Verdict> =>
      calls.ask(
        pod,
        { ...plain('verify', 'POST', '/v1/verify', signal, body), deadline: limits.verify, isLong: true },
        verdict,
      ),
    async drop(pod: PodAddress, id: string, signal?: AbortSignal): Promise<void> {
      await unless('UnknownRun', calls.send(pod, plain('drop', 'DELETE', ofRun(id), signal)))
    },
    async log(
      pod: PodAddress,
      id: string,
      { offset = 0, limit = longestPiece }: { offset?: number | undefined; limit?: number | undefined } = {},
      signal?: AbortSignal,
    ): Promise<LogPiece> {
      const path = ofRun(id, `/log?offset=${offset}&limit=${limit}`)
      const { headers, bytes } = await calls.send(pod, plain('log', 'GET', path, signal))
      const place = (name: string) => Number(headers[name] ?? Number.NaN)
      const piece = { offset: place('shipmate-log-offset'), next: place('shipmate-log-next'), text: bytes.toString() }
      if (Number.isSafeInteger(piece.offset) && Number.isSafeInteger(piece.next)) return piece
      throw new AgentError('Garbled', pod, 'the answer does not say which piece of the log it is', {
        isSent: true,
        status: 200,
      })
    },
  }
}
