/**
 * What the journal says: its records, and the memory that they add up to. Pure.
 *
 * Guarantee: folding the records of a journal, or those of its compaction, gives the same memory.
 */
import type { Action } from '../../shared/lifecycle/model.ts'
import type { Phase, Progress } from '../../shared/protocol/schemas.ts'
import { advance, isInProgress, isTerminal } from '../../shared/run.ts'

/** A run, as it is remembered. */
export interface RunRecord {
  readonly id: string
  readonly action: string
  /** As sent, without secrets. */
  readonly params: Readonly<Record<string, unknown>>
  /** The names of all secret parameters of the action. */
  readonly secretNames: readonly string[]
  /** Those that were given; their values are nowhere. */
  readonly secretsGiven: readonly string[]
  /** The hash of action and params as sent, without what `declaration` calls secret: the same body has the same. Empty: not known. */
  readonly bodyHash: string
  readonly attempt: number
  readonly fence: number | null
  /** The action as declared when it was accepted. Kept until the run is terminal. */
  readonly declaration: Action | null
  /** Whether that was what the pod runs when it ends: its success is a preStop's. */
  readonly stops: boolean
  readonly timeoutMs: number
  readonly acceptedAt: number
  readonly phase: Phase
  /** The step that is, or was, carried out, from 0. */
  readonly step: number
  readonly startedAt: number | null
  readonly finishedAt: number | null
  readonly exitCode: number | null
  readonly progress: Progress | null
  readonly result: unknown
  readonly error: { readonly code: string; readonly message: string } | null
  /** Bytes of log that it has had, and how many of them are kept: a fifth from the beginning, the rest from the end. */
  readonly logSize: number
  readonly logKept: number
}

/** How a run ended, or was settled. */
export type Ending = Pick<
  RunRecord,
  'phase' | 'startedAt' | 'exitCode' | 'progress' | 'result' | 'error' | 'logSize'
> & {
  readonly finishedAt: number
}

/** What is remembered besides runs. */
export interface Memo {
  /** Whether a guard has ever held. */
  readonly everHeld: boolean
  /** How many preStop runs there were. */
  readonly preStops: number
  /** The preStop action, if a run of it has succeeded and no guard has turned true since. */
  readonly stopped: string | null
  /** While `stopped`: the states whose guards still hold since then; null if that was not known yet when it ended. */
  readonly held: readonly string[] | null
  /** The hash of each reloaded file, at its last reload or when it was first seen; '' for one that was not there. */
  readonly files: Readonly<Record<string, string>>
}

export type JournalRecord =
  | {
      readonly t: 'journal'
      readonly v: 1
      readonly id: string
      readonly at: number
      readonly fence: number
      readonly memo: Memo
    }
  | { readonly t: 'accepted'; readonly run: RunRecord }
  | {
      readonly t: 'running'
      readonly id: string
      readonly step: number
      readonly at: number
      readonly boot: string
      readonly mono: number
    }
  | {
      readonly t: 'ended' | 'settled'
      readonly id: string
      readonly ending: Ending
      /** What this end means beyond the run. It counts if the end does. */
      readonly memo?: Partial<Memo>
    }
  | { readonly t: 'dropped'; readonly id: string }
  | { readonly t: 'memo'; readonly memo: Partial<Memo> }

export interface Memory {
  journalId: string
  /** The highest fence ever accepted. */
  fence: number
  memo: Memo
  /** In the order in which they were accepted. */
  readonly runs: Map<string, RunRecord>
}

const noMemo: Memo = { everHeld: false, preStops: 0, stopped: null, held: [], files: {} }

export function emptyMemory(journalId: string): Memory {
  return { journalId, fence: 0, memo: noMemo, runs: new Map() }
}

/** Applies a record to the memory, in place. What would change an outcome that stands is passed over: the first word counts. Throws if it speaks of what is not known. */
export function fold(memory: Memory, record: JournalRecord): void {
  switch (record.t) {
    case 'journal':
      memory.journalId = record.id
      memory.fence = Math.max(memory.fence, record.fence)
      memory.memo = { ...noMemo, ...record.memo }
      return
    case 'accepted':
      memory.fence = Math.max(memory.fence, record.run.fence ?? 0)
      memory.runs.set(record.run.id, record.run)
      return
    case 'running': {
      const run = known(memory, record.id)
      if (!isInProgress(run.phase)) return
      memory.runs.set(run.id, { ...run, phase: 'Running', step: record.step, startedAt: run.startedAt ?? record.at })
      return
    }
    case 'ended': {
      const run = known(memory, record.id)
      if (!isInProgress(run.phase)) return
      // That a wrapper has begun is not journaled: its claim says so.
      memory.runs.set(run.id, ended({ ...run, phase: 'Running' }, record.ending))
      memory.memo = { ...memory.memo, ...record.memo }
      return
    }
    case 'settled': {
      const run = known(memory, record.id)
      if (run.phase !== 'Unknown') return
      memory.runs.set(run.id, ended(run, record.ending))
      memory.memo = { ...memory.memo, ...record.memo }
      return
    }
    case 'dropped':
      memory.runs.delete(record.id)
      return
    case 'memo':
      memory.memo = { ...memory.memo, ...record.memo }
      return
    default:
      throw new TypeError(
        `the journal has a record "${(record as { t: unknown }).t}", which this version does not know`,
      )
  }
}

/** The fewest records that add up to this memory. */
export function* compacted(memory: Memory, at: number): Generator<JournalRecord> {
  yield { t: 'journal', v: 1, id: memory.journalId, at, fence: memory.fence, memo: memory.memo }
  for (const run of memory.runs.values()) yield { t: 'accepted', run }
}

function ended(run: RunRecord, ending: Ending): RunRecord {
  const phase = advance(run.phase, ending.phase)
  return { ...run, ...ending, phase, declaration: isTerminal(phase) ? null : run.declaration }
}

function known(memory: Memory, id: string): RunRecord {
  const run = memory.runs.get(id)
  if (!run) throw new TypeError(`the journal speaks of the run ${id}, which it does not know`)
  return run
}

/** A run of which there is a claim and no record: it may have done anything, and whose it is nobody knows, as its hash says. */
export function lostRun(id: string, at: number): RunRecord {
  return {
    id,
    action: '',
    params: {},
    secretNames: [],
    secretsGiven: [],
    bodyHash: '',
    attempt: 1,
    fence: null,
    declaration: null,
    stops: false,
    timeoutMs: 0,
    acceptedAt: at,
    phase: 'Unknown',
    step: 0,
    startedAt: null,
    finishedAt: at,
    exitCode: null,
    progress: null,
    result: null,
    error: { code: 'RecordLost', message: 'The journal was damaged, and its record of this run is lost.' },
    logSize: 0,
    logKept: 0,
  }
}
