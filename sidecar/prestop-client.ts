/**
 * `shipmate sidecar prestop`: asks the agent to do what is to be done before the pod ends, and waits for it. What `shipmate-init prestop` does.
 *
 * Guarantee: whoever looks on is told what is waited for, unless it is the agent's answer.
 */
import { request } from 'node:http'
import { sleep, systemClock } from '../shared/clock.ts'
import { messageOf } from '../shared/errors.ts'
import { socketOf } from './server/socket.ts'

/** How long an agent that is away is waited for, in milliseconds. */
const patience = 10_000
const retryEvery = 250

/** Answers the exit code. */
export async function askPreStop(stateDir: string): Promise<number> {
  let lost = systemClock.monotonic()
  let isTold = false
  for (;;) {
    const answer = await ask(socketOf(stateDir))
    if (answer === 200) return 0
    if (typeof answer === 'number') {
      process.stderr.write(`shipmate sidecar prestop: the agent answered with ${answer}\n`)
      return 1
    }
    if (answer.connected) lost = systemClock.monotonic()
    if (systemClock.monotonic() - lost > patience) {
      process.stderr.write(`shipmate sidecar prestop: no agent answers on ${socketOf(stateDir)}: ${answer.reason}\n`)
      return 1
    }
    if (!isTold) {
      process.stderr.write(
        `shipmate sidecar prestop: no agent answers on ${socketOf(stateDir)} yet: ${answer.reason}; waiting ${patience / 1000} s for one\n`,
      )
      isTold = true
    }
    await sleep(systemClock, retryEvery)
  }
}

function ask(socketPath: string): Promise<number | { connected: boolean; reason: string }> {
  return new Promise(resolve => {
    let connected = false
    const call = request({ socketPath, path: '/prestop', method: 'POST' }, response => {
      response.resume()
      response.on('end', () => resolve(response.statusCode ?? 0))
    })
    call.on('socket', socket =>
      socket.on('connect', () => {
        connected = true
      }),
    )
    call.on('error', error => resolve({ connected, reason: messageOf(error) }))
    call.end()
  })
}
