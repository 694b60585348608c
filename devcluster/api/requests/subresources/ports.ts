/**
 * portforward: the pod that is asked for, and connections to its ports.
 */
import type { Duplex } from 'node:stream'
import { badRequest } from '../../problems.ts'
import type { Asked } from '../../types.ts'
import type { Context } from '../context.ts'
import { running } from './pod-place.ts'

export interface Ports {
  /** Those named in the request. */
  readonly named: readonly number[]
  /** Rejects with the words that a caller is told. */
  connect(port: number): Promise<Duplex>
  /** The same of a connection that has failed later. */
  problem(port: number, error: unknown): string
}

const isPort = (port: number) => Number.isInteger(port) && port > 0 && port < 65536

/** Throws an ApiError where there is no such pod, or it runs nowhere. */
export function portsOf(context: Context, asked: Asked): Ports {
  const { place, runtime } = running(context, asked)
  const named = asked.request.query
    .getAll('ports')
    .flatMap(text => text.split(','))
    .map(Number)
  if (!named.every(isPort)) throw badRequest('query parameter "ports" must be a list of ports')
  const problem = (port: number, error: unknown) =>
    `error forwarding port ${port} to pod ${place.name}: ${(error as Error).message}`
  return {
    named,
    problem,
    async connect(port) {
      try {
        if (!isPort(port)) throw new Error('there is no such port')
        return await runtime.connect(place, port)
      } catch (error) {
        throw new Error(problem(port, error))
      }
    },
  }
}
