/**
 * Each route of the protocol as a function from a checked call to a reply.
 *
 * Guarantee: there is one for every route of the table and none beside it; all but `getEvents` know nothing of connections.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { parseDuration } from '../../shared/duration.ts'
import { type BodyOf, longestPiece, type Query, type RouteName, usualPiece } from '../../shared/protocol/routes.ts'
import { longestWait, type Run } from '../../shared/protocol/schemas.ts'
import type { Agent } from '../api.ts'
import type { Reply } from './answer.ts'
import type { Holds } from './holds.ts'

export interface Call<Name extends RouteName> {
  /** The run's id, where the path has one. */
  readonly id: string
  readonly query: Query
  readonly body: BodyOf<Name>
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** Undefined: the connection has been taken over, and there is nothing to answer. */
export type Calls = { readonly [Name in RouteName]: (call: Call<Name>) => Promise<Reply | undefined> }

export interface CallsOptions {
  readonly agent: Agent
  readonly holds: Holds
  /** Makes a connection a reader of events. Throws a Problem, before it has begun, if that cannot be. */
  readonly read: (call: Call<'getEvents'>) => Promise<undefined>
}

export function createCalls({ agent, holds, read }: CallsOptions): Calls {
  return {
    async getState({ query: { since, wait }, response }) {
      if (since !== undefined && since === agent.events.cursor) {
        await holds.hold(response, waitOf(wait), wake => agent.events.subscribe(wake))
      }
      return json(agent.state())
    },
    getActions: async () => json({ actions: agent.actions() }),
    getFeatures: async () => json(agent.features()),
    getRuns: async () => json({ runs: agent.runs() }),
    async getRun({ id, query: { wait }, response }) {
      if (!hasEnded(agent.run(id))) {
        await holds.hold(response, waitOf(wait), wake =>
          agent.events.subscribe(message => {
            if (message.type === 'run' && message.run.id === id && hasEnded(message.run)) wake()
          }),
        )
      }
      return json(agent.run(id))
    },
    async putRun({ id, body }) {
      const { started, run } = await agent.put(id, body)
      return json(run, started ? 201 : 200)
    },
    async deleteRun({ id }) {
      await agent.drop(id)
      return { status: 204 }
    },
    async cancelRun({ id }) {
      const { ended, run } = await agent.cancel(id)
      return json(run, ended ? 200 : 202)
    },
    settleRun: async ({ id, body }) => json(await agent.settle(id, body)),
    verify: async ({ body }) => json(await agent.verify(body)),
    async getLog({ id, query: { offset = 0, limit = usualPiece } }) {
      const piece = await agent.log(id, offset, Math.min(limit, longestPiece))
      const headers = {
        'content-type': 'text/plain; charset=utf-8',
        'shipmate-log-offset': piece.offset,
        'shipmate-log-next': piece.next,
      }
      return { status: 200, bytes: piece.bytes, headers }
    },
    getEvents: read,
    async getOpenapi() {
      // Seldom asked for, so it costs no memory until then, nor afterwards.
      const { openapi } = await import('../../shared/protocol/openapi.ts')
      return json(openapi(agent.state().version))
    },
  }
}

/** Whether nothing more happens to it by itself. */
export const hasEnded = ({ phase }: Run) => phase !== 'Accepted' && phase !== 'Running'

const json = (value: unknown, status = 200): Reply => ({ status, json: value })

const waitOf = (wait: string | undefined) => Math.min(parseDuration(wait ?? '0s') ?? longestWait, longestWait)
