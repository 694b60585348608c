/**
 * What a run has answered: a line that it printed, or a file that it wrote.
 *
 * Guarantees: never waits for a pipe or a device, and never reads more than a result may have. A file that was there before is no result of this run.
 */
import { stat } from 'node:fs/promises'
import { expand } from '../../shared/params/template.ts'
import { openRegular, readStart } from '../calls/file.ts'
import type { RunRecord } from '../journal/records.ts'
import type { Params } from './environment.ts'
import { claimFile, readLine } from './folder.ts'
import { jsonOrText, longestResult, resultIn } from './progress.ts'

export interface Answered {
  readonly run: RunRecord
  /** The run's own folder. */
  readonly runFolder: string
  /** Where the wrapper of its last step has written. */
  readonly folder: string
  /** Undefined where secrets that were given are not known any more. */
  readonly params: Params | undefined
}

/** Undefined if there is none. Throws if there is one that cannot be taken. */
export async function resultOf({ run, runFolder, folder, params }: Answered): Promise<unknown> {
  const { file, lastLine } = run.declaration?.result ?? {}
  if (file !== undefined) {
    if (!params && run.secretsGiven.length > 0)
      throw new Error('the secrets of the run are not known any more, and the file may repeat them')
    return jsonOrText(await contentOf(expand(file, params?.values ?? run.params, 'argument'), runFolder))
  }
  const line = await readLine(folder, lastLine ? 'last' : 'result')
  if (line === undefined) return undefined
  return lastLine ? jsonOrText(line.trimEnd()) : resultIn(line)
}

async function contentOf(path: string, runFolder: string): Promise<string> {
  await using file = await openRegular(path)
  if (!file) throw new TypeError(`${path} is no regular file`)
  // Of the same clock as the claim, which stands before anything is executed. A file that was moved into its place has been changed by that.
  const changed = (await file.stat({ bigint: true })).ctimeNs
  if (changed < (await stat(claimFile(runFolder), { bigint: true })).mtimeNs)
    throw new Error(`${path} is older than the run, which has not written it`)
  const bytes = await readStart(file, longestResult + 1)
  if (bytes.length > longestResult)
    throw new RangeError(`${path} has more than ${longestResult} bytes, and no result may`)
  return bytes.toString('utf8')
}
