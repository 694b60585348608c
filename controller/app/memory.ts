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
  /** That a status of an Operation of the app was written: whose progress stands there. */
  wrote(appUid: string, before: OpStatus | undefined, status: OpStatus, now: number): void
  /** How long to wait until the app is looked at again though nothing has happened: longer each time. */
  patience(appUid: string, sign: string): number
  /** How many steps of runs have been stored for the app: each is taken once. */
  steps(appUid: string): number
  /** Nothing is waited for. */
  rests(appUid: string): void
  forgetApp(appUid: string): void
  forgetRun(runId: string): void
}

/** @param progressEvery progress is written no more often, in milliseconds */
export function createMemory(progressEvery = 10_000): RunMemory {
  const verifies = new Map<string, { times: number; at: number }>()
  const progress = new Map<string, number>()
  const waits = new Map<string, { sign: string; times: number }>()
  const steps = new Map<string, number>()
  return {
    verifyAt: id => verifies.get(id)?.at ?? 0,
    verified(id, now) {
      const times = (verifies.get(id)?.times ?? 0) + 1
      verifies.set(id, { times, at: now + nextDelay(times) })
    },
    isProgressDue: (id, now) => now - (progress.get(id) ?? 0) >= progressEvery,
    wrote(uid, before, { runs = [] }, now) {
      if (phasesOf(before?.runs) !== phasesOf(runs)) steps.set(uid, (steps.get(uid) ?? 0) + 1)
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
    steps: uid => steps.get(uid) ?? 0,
    rests: uid => void waits.delete(uid),
    forgetApp(uid) {
      waits.delete(uid)
      steps.delete(uid)
    },
    forgetRun(id) {
      verifies.delete(id)
      progress.delete(id)
    },
  }
}

function phasesOf(runs: OpStatus['runs'] = []): string {
  return runs.map(({ id, phase }) => `${id} ${phase}`).join()
}
