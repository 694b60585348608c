/**
 * Refuses a body that is too large while it may still be on its way.
 *
 * Guarantee: the client can read the answer, as what it still sends is taken for a while (bounded by size and time) before the connection closes:
 * closing at once would reset the connection and lose the answer.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../shared/clock.ts'
import type { Problem } from '../../shared/protocol/problems.ts'
import { refuse, usualHeaders } from './answer.ts'

const mostTaken = 4 * 1024 * 1024
const longestTime = 2_000

export function refuseUpload(request: IncomingMessage, response: ServerResponse, problem: Problem, clock: Clock): void {
  // Who asked whether to send the body has not sent it.
  if (request.headers.expect !== undefined) return refuse(response, problem, { connection: 'close' })
  const body = Buffer.from(JSON.stringify(problem))
  response.writeHead(problem.status, {
    ...usualHeaders,
    'content-type': 'application/problem+json',
    'content-length': body.length,
    connection: 'close',
  })
  response.write(body)
  let taken = 0
  const end = () => {
    timer.cancel()
    request.off('data', take).off('end', end).off('close', end).pause()
    response.end()
  }
  const take = (chunk: Buffer) => {
    taken += chunk.length
    if (taken > mostTaken) end()
  }
  const timer = clock.after(longestTime, end)
  request.on('data', take).on('end', end).on('close', end)
  request.resume()
}
