/**
 * What the agent can be asked, without HTTP: the server translates calls into these, and a Problem thrown here into an answer.
 *
 * Guarantee: everything answered is a copy or immutable, so that a slow reader cannot see half a change.
 */
import type {
  ActionView,
  Features,
  Message,
  PodState,
  PutRun,
  Run,
  Settle,
  Verdict,
  VerifyRun,
} from '../shared/protocol/schemas.ts'

export interface Agent {
  state(): PodState
  actions(): ActionView[]
  features(): Features
  /** Newest first. */
  runs(): Run[]
  /** Throws `UnknownRun`. */
  run(id: string): Run
  /** Checks in the protocol's order from `WrongPod` on. Resolves once the run is journaled; `started` is false for a known id with the same body. */
  put(id: string, body: PutRun): Promise<{ started: boolean; run: Run }>
  /** `UnknownRun`, `InProgress`. */
  drop(id: string): Promise<void>
  /** Begins the cancel contract; `ended` if there is nothing left to cancel. */
  cancel(id: string): Promise<{ ended: boolean; run: Run }>
  settle(id: string, body: Settle): Promise<Run>
  /** Aborted when the caller goes away, which stops waiting, not the verify. */
  verify(body: VerifyRun): Promise<Verdict>
  /** A piece of the log from the first kept byte at or after `offset`, of at most `limit` bytes. */
  log(id: string, offset: number, limit: number): Promise<LogPiece>
  readonly events: Events
  /** Serves one POST /prestop; resolves when it may be answered. Never rejects. */
  preStop(): Promise<void>
  /** Resolves as GET /prestop is to be answered: when a POST that is being served ends, or 2 s after the call if none has come. */
  awaitPreStop(signal: AbortSignal): Promise<void>
  /** What is still missing before it is ready, each a sentence; none: ready. */
  missing(): string[]
  /** The page of `/metrics`, in Prometheus' text format. */
  metrics(): string
}

export interface LogPiece {
  /** Where `bytes` begins. */
  readonly offset: number
  /** Where to go on. */
  readonly next: number
  readonly bytes: Buffer
}

/** The stream of numbered messages, with a bounded memory of the last ones. */
export interface Events {
  /** The number of the last message. */
  readonly seq: number
  /** The same as a cursor of this boot: `BOOTID.SEQ`. */
  readonly cursor: string
  /** Everything after the cursor, or undefined if it is too old, of another boot, or no cursor at all. */
  since(cursor: string): Message[] | undefined
  /** Calls for every message from now on, in order, synchronously; answers how to stop. Log messages are not among them: see `followLog`. */
  subscribe(listener: (message: Message) => void): () => void
  /** Calls whenever the log of a run has grown, or it has ended, until stopped. */
  followLog(id: string, grown: () => void): () => void
}
