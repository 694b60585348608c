/**
 * What a process keeps of runs that are under way, to ask and write less often. Nothing is decided from it but when: it may be lost at any time.
 */
import { nextDelay } from './pacing.ts'
import type { OpStatus } from './view.ts'

export interface RunMemory {
  /** When verify may be asked about a run again. */
  verifyAt(runId: string): number
  verified(runId: string, now: number): void
  isProgressDue(runId: string, now: number): boolean
  /** That a status of an Operation was written: whose progress stands there. */
  wrote(before: OpStatus | undefined, status: OpStatus, now: number): void
  /** How long to wait until the app is looked at again though nothing has happened: longer each time. */
  patience(appUid: string, sign: string): number
  forgetApp(appUid: string): void
  forgetRun(runId: string): void
}

/** Progress is written no more often, in milliseconds. */
const progressEvery = 10_000

export function createMemory(): RunMemory {
  const verifies = new Map<string, { times: number; at: number }>()
  const progress = new Map<string, number>()
  const waits = new Map<string, { sign: string; times: number }>()
  return {
    verifyAt: id => verifies.get(id)?.at ?? 0,
    verified(id, now) {
      const times = (verifies.get(id)?.times ?? 0) + 1
      verifies.set(id, { times, at: now + nextDelay(times) })
    },
    isProgressDue: (id, now) => now - (progress.get(id) ?? 0) >= progressEvery,
    wrote(before, { runs = [] }, now) {
      for (const { id, progress: told } of runs) {
        const last = before?.runs?.find(run => run.id === id)?.progress
        if (told && JSON.stringify(told) !== JSON.stringify(last)) progress.set(id, now)
      }
    },
    patience(uid, sign) {
      const before = waits.get(uid)
      const times = before?.sign === sign ? before.times + 1 : 1
      waits.set(uid, { sign, times })
      return nextDelay(times)
    },
    forgetApp: uid => void waits.delete(uid),
    forgetRun(id) {
      verifies.delete(id)
      progress.delete(id)
    },
  }
}
