/**
 * Gives memory back after a burst of work. V8 keeps what it once needed; beside a database that is the database's memory.
 *
 * Does nothing unless Node was started with --expose-gc, as the image does. An idle agent collects nothing: only growth is a reason.
 */
import type { Clock } from '../shared/clock.ts'

/** How often it is looked at. Under steady load a collection (20 to 40 ms) is made no more often than this. */
const every = 5_000
/** The first time, when what the start alone needed can go. */
const afterStart = 1_500
/** Less growth than this is left alone: five probes make as much garbage between two of V8's own collections. */
const growth = 1.5 * 1024 * 1024

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void

export interface MemoryOptions {
  readonly clock: Clock
  /** Default: V8's own, where it can be had. */
  readonly collect?: Collect | undefined
  /** Bytes that V8 holds for objects. Default: what V8 says. */
  readonly held?: (() => number) | undefined
}

/** Answers how to stop it. */
export function keepSmall({
  clock,
  collect = (globalThis as { gc?: Collect }).gc,
  held = () => process.memoryUsage().heapTotal,
}: MemoryOptions): () => void {
  if (!collect) return () => {}
  let floor = 0
  const look = () => {
    if (held() > floor + growth) {
      // The last resort also shrinks the young generation and drops caches; the others leave both as they are.
      collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
      floor = held()
    }
    timer = clock.after(every, look)
  }
  let timer = clock.after(afterStart, look)
  return () => timer.cancel()
}
