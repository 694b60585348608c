/**
 * The control socket of a state folder, which is also the proof that one agent owns it.
 *
 * Guarantees: one that is answered on, be it slowly, is never taken away; what a dead agent left is replaced. At most one agent has it: where there is Linux, those that
 * start in one network namespace, as a pod's containers do, look one after the other; elsewhere two that start in the same millisecond may both.
 */
import { chmod, rm, stat } from 'node:fs/promises'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type Clock, sleep } from '../../shared/clock.ts'
import type { Logger } from '../../shared/log.ts'
import { closeAtOnce, createSmallServer, listen } from './listen.ts'

/** As long as the kernel takes the path of a socket. */
const longestPath = process.platform === 'linux' ? 107 : 103
/** How often, and how many times, one that starts asks whether it is its turn; in milliseconds. */
const askEvery = 50
const mostAsked = 200

export const socketOf = (stateDir: string) => join(stateDir, 'control.sock')

export interface SocketOptions {
  readonly clock: Clock
  readonly log: Logger
}

export async function listenOnSocket(server: Server, stateDir: string, { clock, log }: SocketOptions): Promise<void> {
  const path = socketOf(stateDir)
  if (Buffer.byteLength(path) > longestPath) {
    throw new Error(
      `--state-dir is too long: ${path} has more than the ${longestPath} bytes that a socket's path may have`,
    )
  }
  const letNextOne = await takeTurn(stateDir, clock, log)
  try {
    if (!(await isBound(server, path, log))) {
      if (await isAnswered(path)) throw owned(stateDir)
      await rm(path, { force: true })
      // Whoever has it now did not wait for its turn.
      if (!(await isBound(server, path, log))) throw owned(stateDir)
    }
    await chmod(path, 0o600)
  } finally {
    await letNextOne()
  }
}

/** False if there is a file already. Binding creates it or fails: of two that try, one gets it. */
async function isBound(server: Server, path: string, log: Logger): Promise<boolean> {
  try {
    await listen(server, { path }, log)
    return true
  } catch (error) {
    if (isInUse(error)) return false
    throw error
  }
}

/** The name by which those who start on a folder take turns: one that the kernel gives to one process at a time, and takes back at its end. */
export async function turnOf(stateDir: string): Promise<string> {
  const { dev, ino } = await stat(stateDir)
  return `\0shipmate-sidecar-${dev}-${ino}`
}

/** Answers how to end the turn. */
async function takeTurn(stateDir: string, clock: Clock, log: Logger): Promise<() => Promise<void>> {
  if (process.platform !== 'linux') return async () => {}
  const path = await turnOf(stateDir)
  for (let asked = 0; asked < mostAsked; asked++) {
    const turn = createSmallServer(1)
    try {
      await listen(turn, { path }, log)
      return () => closeAtOnce(turn)
    } catch (error) {
      if (!isInUse(error)) {
        log.debug({ err: error }, 'no turn can be had; it is done without')
        return async () => {}
      }
    }
    await sleep(clock, askEvery)
  }
  throw new Error(`other agents are being started on --state-dir ${stateDir}, and none gets further. Stop them`)
}

const isInUse = (error: unknown) => (error as NodeJS.ErrnoException).code === 'EADDRINUSE'

const owned = (stateDir: string) =>
  new Error(
    `another agent is running on --state-dir ${stateDir}: it answers on control.sock. Stop it, or choose another folder`,
  )

/** Whether a process listens there. One that is busy or stopped does, too: the kernel answers for it. */
function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = connect(path)
    probe.on('connect', () => {
      probe.destroy()
      resolve(true)
    })
    probe.on('error', (error: NodeJS.ErrnoException) => {
      if (['ECONNREFUSED', 'ENOENT', 'ENOTSOCK'].includes(error.code ?? '')) resolve(false)
      // A full queue of connections: somebody is there.
      else if (error.code === 'EAGAIN') resolve(true)
      else reject(error)
    })
  })
}
