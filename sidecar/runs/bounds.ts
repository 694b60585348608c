/**
 * Which finished runs are dropped. Pure.
 *
 * Guarantee: a run in progress and an Unknown one are never among them; the oldest go first.
 */
import { isTerminal } from '../../shared/run.ts'
import type { RunRecord } from '../journal/records.ts'

export interface Bounds {
  /** Most finished runs. */
  readonly count: number
  /** How long a finished run is kept, in milliseconds. */
  readonly age: number
  /** Most bytes of logs of finished runs. */
  readonly bytes: number
  /** Most bytes of the records of finished runs: parameters, results, errors. They are in memory and in the journal. */
  readonly records: number
}

const MiB = 1024 * 1024
export const bounds: Bounds = { count: 1000, age: 7 * 24 * 3_600_000, bytes: 512 * MiB, records: 8 * MiB }

/** @param runs in the order in which they were accepted */
export function toDrop(runs: Iterable<RunRecord>, now: number, { count, age, bytes, records }: Bounds): string[] {
  const finished = [...runs].filter(run => isTerminal(run.phase)).reverse()
  let kept = 0
  let keptBytes = 0
  let keptRecords = 0
  const dropped = finished.filter(run => {
    keptBytes += Math.min(run.logSize, run.logKept)
    keptRecords += sizeOf(run)
    kept++
    return kept > count || keptBytes > bytes || keptRecords > records || now - (run.finishedAt ?? now) > age
  })
  return dropped.map(run => run.id).reverse()
}

/** A record never changes, so it is measured once. */
const sizes = new WeakMap<RunRecord, number>()

function sizeOf(run: RunRecord): number {
  const size = sizes.get(run) ?? Buffer.byteLength(JSON.stringify(run))
  sizes.set(run, size)
  return size
}
