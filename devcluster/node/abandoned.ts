/**
 * Folders of nodes whose process was killed together with the shell that waits for its end: nobody else would ever remove them.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sweep } from './keeper.ts'

/** What the name of a node's own folder begins with, in the folder for temporary files. */
export const prefix = 'shipmate-node-'

/** Ends what is left of them, and removes them. One whose process lives, and one that is just being made, stay. */
export async function sweepAbandoned(): Promise<void> {
  for (const name of readdirSync(tmpdir()).filter(one => one.startsWith(prefix))) {
    const folder = join(tmpdir(), name)
    if (!existsSync(join(folder, 'owner'))) continue
    try {
      await sweep(folder)
      rmSync(folder, { recursive: true, force: true })
    } catch {
      // It is in use, or somebody else's.
    }
  }
}
