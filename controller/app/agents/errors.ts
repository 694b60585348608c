/**
 * What a call to a sidecar fails with: the sidecar's own refusal, or the reason why there is no answer.
 */
import type { ProblemCode } from '../../../shared/protocol/problems.ts'
import type { PodAddress } from './address.ts'

/** The sidecar's codes, a newer one's that is not known here included; and ours, when no answer came that can be used. */
export type AgentCode =
  | ProblemCode
  | 'Unavailable'
  | 'DeadlineExceeded'
  | 'Garbled'
  | 'Aborted'
  // Any other text, without losing the names above.
  | (string & {})

export class AgentError extends Error {
  readonly code: AgentCode
  /** The HTTP status; undefined if no answer came. */
  readonly status: number | undefined
  /** The sidecar's own words, or what happened. */
  readonly detail: string
  /** False: the request certainly did not reach the sidecar. True: it may have. */
  readonly isSent: boolean
  /** Other members of the sidecar's answer, as `fence` of `Fenced`, or `run` of `Locked`. */
  readonly more: Readonly<Record<string, unknown>>

  constructor(
    code: AgentCode,
    { app, pod }: PodAddress,
    detail: string,
    options: { isSent: boolean; status?: number; more?: Record<string, unknown>; cause?: unknown },
  ) {
    super(
      `pod ${pod.name} of ${app.namespace}/${app.name}: ${detail}`,
      options.cause === undefined ? undefined : { cause: options.cause },
    )
    this.name = 'AgentError'
    this.code = code
    this.status = options.status
    this.detail = detail
    this.isSent = options.isSent
    this.more = options.more ?? {}
  }
}
