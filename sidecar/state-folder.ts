/**
 * STATE-DIR, made if it is not there.
 *
 * Guarantee: it is a folder when this resolves; if it cannot be, one sentence says which flag named it and why.
 */
import { chmod, mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { messageOf } from '../shared/errors.ts'
import type { Logger } from '../shared/log.ts'
import { OptionsError } from './server/servers.ts'

export async function openStateFolder(stateDir: string, log: Logger): Promise<void> {
  try {
    await makeWithParents(stateDir)
  } catch (error) {
    if (codeOf(error) === 'ENOTDIR')
      throw new OptionsError(`--state-dir is "${stateDir}", and a part of that is a file`)
    throw new Error(`--state-dir is "${stateDir}", which cannot be made: ${messageOf(error)}`)
  }
  if (!(await stat(stateDir)).isDirectory()) {
    throw new OptionsError(`--state-dir is "${stateDir}", which is a file; it must be a folder, or not there yet`)
  }
  // The root of a volume may be another's; then what is in it is ours alone, but its names are not.
  await chmod(stateDir, 0o700).catch(() =>
    log.warn({ stateDir }, 'the state folder is not ours; name a folder inside it, so that it can be kept from others'),
  )
}

/** Each is tried once: where nothing can be made, as in /proc, Node's own `recursive` tries for ever. */
async function makeWithParents(folder: string): Promise<void> {
  const make = (path: string) => mkdir(path, { mode: 0o700 })
  try {
    await make(folder)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return
    if (codeOf(error) !== 'ENOENT' || dirname(folder) === folder) throw error
    await makeWithParents(dirname(folder))
    await make(folder).catch(again => {
      if (codeOf(again) !== 'EEXIST') throw again
    })
  }
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code
