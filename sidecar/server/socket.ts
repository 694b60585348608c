/**
 * The control socket of a state folder, which is also the proof that one agent owns it.
 *
 * Guarantees: at most one agent has it; one that is answered on, be it slowly, is never taken away; what a dead agent left is replaced.
 */
import { chmod, rename, rm } from 'node:fs/promises'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { Logger } from '../../shared/log.ts'
import { listen } from './listen.ts'

/** As long as the kernel takes the path of a socket. */
const longestPath = process.platform === 'linux' ? 107 : 103

export const socketOf = (stateDir: string) => join(stateDir, 'control.sock')

export async function listenOnSocket(server: Server, stateDir: string, log: Logger): Promise<void> {
  const path = socketOf(stateDir)
  if (Buffer.byteLength(path) > longestPath) {
    throw new Error(
      `--state-dir is too long: ${path} has more than the ${longestPath} bytes that a socket's path may have`,
    )
  }
  for (let attempts = 3; ; attempts--) {
    try {
      // Binding creates the file or fails: of two that try, one gets it.
      await listen(server, { path }, log)
      return await chmod(path, 0o600)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || attempts === 0) throw error
    }
    if (await isAnswered(path)) throw owned(stateDir)
    await takeAway(path, stateDir)
  }
}

/** Moves it aside first, so that one that an agent bound in this very moment can be put back. */
async function takeAway(path: string, stateDir: string): Promise<void> {
  const aside = `${path}.${process.pid}`
  try {
    await rename(path, aside)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  if (await isAnswered(aside)) {
    await rename(aside, path)
    throw owned(stateDir)
  }
  await rm(aside, { force: true })
}

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
