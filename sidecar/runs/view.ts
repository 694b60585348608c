/**
 * A run as others see it, and the arithmetic of how much of its log is kept. Pure.
 */
import type { Action } from '../../shared/lifecycle/model.ts'
import { defaults } from '../../shared/lifecycle/model.ts'
import type { Run } from '../../shared/protocol/schemas.ts'
import type { RunRecord } from '../journal/records.ts'

const sizes = { Ki: 1024, Mi: 1024 * 1024 }
const most = 5 * sizes.Mi

/** How many bytes of an action's log are kept. */
export function logKeptOf(action: Action): number {
  const text = action.limits?.output ?? defaults.limits.output
  return Math.min(Number(text.slice(0, -2)) * sizes[text.slice(-2) as keyof typeof sizes], most)
}

/** How much from the beginning, and how much from the end. */
export function logShares(kept: number): { head: number; tail: number } {
  const head = Math.floor(kept / 5)
  return { head, tail: kept - head }
}

export function viewOf(run: RunRecord): Run {
  const { head, tail } = logShares(run.logKept)
  const keptHead = Math.min(run.logSize, head)
  const params: Record<string, unknown> = { ...run.params }
  for (const name of run.secretsGiven) params[name] = '***'
  return {
    id: run.id,
    action: run.action,
    params,
    phase: run.phase,
    attempt: run.attempt,
    startedAt: timeOf(run.startedAt),
    finishedAt: timeOf(run.finishedAt),
    exitCode: run.exitCode,
    progress: run.progress,
    result: run.result ?? null,
    error: run.error,
    log: { size: run.logSize, keptHead, tailFrom: Math.max(keptHead, run.logSize - tail) },
  }
}

function timeOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
