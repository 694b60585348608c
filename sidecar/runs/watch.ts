/**
 * Looks at the files of a run in progress: what it says of its progress, and how far its log has grown.
 *
 * Guarantee: one look costs a few system calls and at most 64 KiB of memory, whatever the command prints.
 */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Progress } from '../../shared/protocol/schemas.ts'
import { logSize, readLog } from '../logs.ts'
import { readLine } from './folder.ts'
import { percentIn, progressIn } from './progress.ts'
import { logFolder } from './wrapper.ts'

const piece = 64 * 1024
const longestLine = 4096

export interface Look {
  readonly logSize: number
  /** What is new since the last look, if something is. */
  readonly progress: Progress | undefined
}

export interface Watched {
  /** The run's own folder. */
  readonly runFolder: string
  /** Where the wrapper of its current step writes. */
  readonly folder: () => string
  readonly log: { readonly head: number; readonly tail: number }
  /** `progress.pattern`, if it is declared. */
  readonly pattern: string | undefined
}

/** Answers a function that looks once. Looks of one run never overlap: whoever calls waits for the last one. */
export function watch({ runFolder, folder, log, pattern }: Watched): () => Promise<Look> {
  const expression = pattern === undefined ? undefined : new RegExp(pattern)
  const logs = logFolder(runFolder)
  let seen: number | undefined
  let readTo = 0
  let half = ''

  async function told(): Promise<Progress | undefined> {
    const at = folder()
    const changed = await stat(join(at, 'progress')).then(
      file => file.mtimeMs + file.ino,
      () => undefined,
    )
    if (changed === undefined || changed === seen) return undefined
    seen = changed
    return progressIn((await readLine(at, 'progress')) ?? '')
  }

  async function matched(size: number): Promise<Progress | undefined> {
    if (!expression || size <= readTo) return undefined
    const { offset, next, bytes } = await readLog(logs, {
      offset: Math.max(readTo, size - piece),
      limit: piece,
      ...log,
    })
    if (offset !== readTo) half = ''
    readTo = next
    // Progress bars are drawn over and over with carriage returns.
    const lines = (half + bytes.toString('utf8')).split(/[\r\n]/)
    half = (lines.pop() ?? '').slice(-longestLine)
    return percentIn(
      [...lines, half].map(line => line.slice(0, longestLine)),
      expression,
    )
  }

  return async () => {
    const { size } = await logSize(logs, log)
    const progress = (await told()) ?? (await matched(size))
    return { logSize: size, progress }
  }
}
