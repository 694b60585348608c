/**
 * What was asked of a sidecar, what it has said since, and what really happened; and whether they agree.
 *
 * Guarantee: a run that is lost, executed twice, said to have done what it has not, or that changes its mind, throws with the run in the message.
 */
import type { Run } from '../../../shared/protocol/schemas.ts'
import { isTerminal } from '../../../shared/run.ts'
import type { Sidecar } from '../../fixtures/sidecar.ts'
import type { Effects } from './actions.ts'

export interface Wish {
  readonly id: string
  readonly action: string
  readonly params: Readonly<Record<string, string>>
  readonly fence: number
  readonly timeout?: string
}

export type Reader = 'calls' | 'events'

export interface Ledger {
  /** PUT until it is answered. */
  put(wish: Wish): Promise<Run>
  /** What any reader was told of a run. */
  note(run: Run, reader?: Reader): void
  /** Everything that was answered is known, fence and journal are the same; all of it is noted. */
  compare(): Promise<void>
  /** Every run is settled, and is what really happened. */
  conclude(): Promise<void>
  /** The run may be gone from now on, and stays gone. */
  drop(id: string): Promise<void>
  readonly phases: Readonly<Record<string, number>>
}

const ranks = { Accepted: 0, Running: 1, Unknown: 2, Succeeded: 3, Failed: 3, Cancelled: 3, TimedOut: 3 } as const

export function createLedger(sidecar: Sidecar, effects: Effects): Ledger {
  const answered = new Map<string, Wish>()
  const dropped = new Set<string>()
  const last: Record<Reader, Map<string, Run>> = { calls: new Map(), events: new Map() }
  const ends = new Map<string, string>()
  /** How many signals there were when a run began, and when the next one did. */
  const signals = new Map<string, { before: number; after: number }>()
  const phases: Record<string, number> = {}
  let journalId: string | undefined
  let heard = 0
  let current: string | undefined

  async function countSignals(): Promise<void> {
    heard = await effects.signalled()
    const entry = signals.get(current ?? '')
    if (entry) entry.after = heard
  }

  function note(run: Run, reader: Reader = 'calls'): void {
    const seen = last[reader].get(run.id)
    if (seen && ranks[run.phase] < ranks[seen.phase])
      throw new Error(`${run.id} went from ${seen.phase} back to ${run.phase}`)
    last[reader].set(run.id, run)
    if (!isTerminal(run.phase)) return
    const { phase, exitCode, error, result, startedAt, finishedAt, params } = run
    const end = JSON.stringify({ phase, exitCode, error, result, startedAt, finishedAt, params })
    const known = ends.get(run.id) ?? end
    if (known !== end) throw new Error(`${run.id} had ended as ${known}, now as ${end}`)
    ends.set(run.id, end)
  }

  async function put(wish: Wish): Promise<Run> {
    await countSignals()
    if (!signals.has(wish.id)) {
      signals.set(wish.id, { before: heard, after: heard })
      current = wish.id
    }
    const { id, ...body } = wish
    const { status, text, body: run } = await sidecar.ask<Run>('PUT', `/v1/runs/${id}`, body)
    if (status !== 201 && status !== 200) throw new Error(`PUT ${id} was answered with ${status}: ${text}`)
    if (status === 201 && answered.has(id)) throw new Error(`PUT ${id} was answered with 201 twice`)
    answered.set(id, wish)
    note(run)
    return run
  }

  async function compare(): Promise<void> {
    const state = await sidecar.state()
    journalId ??= state.journalId
    if (state.journalId !== journalId) throw new Error(`the journal was ${journalId}, now it is ${state.journalId}`)
    const fence = Math.max(0, ...[...answered.values()].map(wish => wish.fence))
    if (state.fence < fence) throw new Error(`the fence went back from ${fence} to ${state.fence}`)
    const { body } = await sidecar.ask<{ runs: Run[] }>('GET', '/v1/runs')
    for (const run of body.runs) note(run)
    for (const id of answered.keys()) {
      if (!dropped.has(id)) note(await sidecar.run(id))
      else if (body.runs.some(run => run.id === id)) throw new Error(`${id} was dropped, and is back`)
    }
  }

  async function settle(wish: Wish, run: Run): Promise<Run> {
    const { id, action, params } = wish
    const happened = hasHappened(wish)
    if (action.endsWith('-verified')) {
      const { status, text, body } = await sidecar.ask<{ outcome: string }>('POST', '/v1/verify', {
        runId: id,
        action,
        params,
      })
      if (status !== 200) throw new Error(`verify of ${id} was answered with ${status}: ${text}`)
      const truth = happened ? 'Succeeded' : 'Failed'
      if (body.outcome !== truth) throw new Error(`verify of ${id} says ${body.outcome}; in truth it is ${truth}`)
    } else {
      const { status, text } = await sidecar.ask('POST', `/v1/runs/${id}/settle`, {
        outcome: happened ? 'Succeeded' : 'Failed',
        reason: 'looked',
      })
      // 409: the answer to the first one was lost.
      if (status !== 200 && status !== 409) throw new Error(`settle of ${id} was answered with ${status}: ${text}`)
    }
    if (run.phase !== 'Unknown') throw new Error(`${id} was ${run.phase}`)
    return sidecar.run(id)
  }

  /** By what its verify would look at. */
  function hasHappened({ id, action }: Wish): boolean {
    if (action.startsWith('steps')) return effects.done(id, 2) > 0
    return effects.begun(id) + effects.called(id) > 0
  }

  function counts({ id, action }: Wish): number[] {
    const { before = 0, after = 0 } = signals.get(id) ?? {}
    if (action === 'signal') return [after - before]
    if (action.startsWith('steps')) return [effects.begun(id, 0), effects.called(id), effects.begun(id, 2)]
    return action.startsWith('exec') ? [effects.begun(id)] : [effects.called(id)]
  }

  /** Why what is said of a run is not what happened; undefined if it is. */
  function lie(wish: Wish, { phase, error }: Run): string | undefined {
    const each = counts(wish)
    const isVerified = wish.action.endsWith('-verified')
    if (each.some(count => count > 1)) return 'was executed twice'
    if (each.some((count, step) => count > 0 && each.slice(0, step).includes(0))) return 'has left out a step'
    if (['NotStarted', 'NotSent', 'NotExecuted'].includes(error?.code ?? '') && each.includes(1)) return 'had an effect'
    if (error?.code === 'NotApplied' && hasHappened(wish)) return 'had an effect'
    if (isVerified && (phase === 'Cancelled' || phase === 'TimedOut') && hasHappened(wish)) return 'had an effect'
    if (phase === 'Succeeded' && each.includes(0)) return 'had no effect'
    if (error?.code === 'ExitCode' && each[0] === 0) return 'was not executed'
    return undefined
  }

  async function checkLog({ id, log }: Run): Promise<void> {
    const { status, text } = await sidecar.ask('GET', `/v1/runs/${id}/log?offset=0`)
    if (status !== 200 || Buffer.byteLength(text) !== log.size)
      throw new Error(`the log of ${id} has ${log.size} bytes; ${status} with ${text.length} were answered`)
  }

  return {
    put,
    note,
    compare,
    phases,
    async conclude() {
      await sidecar.quiet()
      await countSignals()
      for (const [id, wish] of answered) {
        if (dropped.has(id)) continue
        let run = await sidecar.run(id)
        note(run)
        phases[run.phase] = (phases[run.phase] ?? 0) + 1
        const said = lie(wish, run)
        if (said) throw new Error(`${id} ${said}: ${counts(wish)} times ${JSON.stringify(run)}`)
        // Its own verify, after a recovery, may just be settling it.
        if (run.phase === 'Unknown') run = await settle(wish, run)
        note(run)
        if (!isTerminal(run.phase)) throw new Error(`${id} is ${run.phase}`)
        const settled = lie(wish, run)
        if (settled) throw new Error(`${id} ${settled}: ${counts(wish)} times ${JSON.stringify(run)}`)
        await checkLog(run)
      }
      const all = JSON.stringify([...answered.values()].map(counts))
      const total = heard
      for (const [id, wish] of answered) if (!dropped.has(id)) await put(wish)
      await sidecar.quiet()
      await countSignals()
      if (heard !== total) throw new Error('asking again has sent a signal')
      const now = JSON.stringify([...answered.values()].map(counts))
      if (now !== all) throw new Error(`asking again has executed something: ${all}, then ${now}`)
    },
    async drop(id) {
      const { status, text } = await sidecar.ask('DELETE', `/v1/runs/${id}`)
      if (status !== 204 && status !== 404) throw new Error(`DELETE ${id} was answered with ${status}: ${text}`)
      dropped.add(id)
    },
  }
}
