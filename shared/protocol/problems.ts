/**
 * What the sidecar answers when it refuses: one table of codes, and the error that carries one. Pure.
 *
 * Guarantee: a code means the same status everywhere, and `order` is the order in which a PUT is checked: the first that applies is the answer.
 */
export const problems = {
  Unauthorized: { status: 401, title: 'Who is asking is not known' },
  Forbidden: { status: 403, title: 'Who is asking may not' },
  NotFound: { status: 404, title: 'No such route' },
  MethodNotAllowed: { status: 405, title: 'The route has no such method' },
  TooLarge: { status: 413, title: 'The body is too large' },
  InvalidBody: { status: 400, title: 'The request is not what the protocol says' },
  UnknownField: { status: 422, title: 'The body has a field that the protocol does not know' },
  WrongPod: { status: 409, title: 'This is another pod' },
  IdReused: { status: 409, title: 'The id belongs to another run' },
  Draining: { status: 503, title: 'The sidecar is stopping and takes no new runs' },
  WrongJournal: { status: 409, title: 'The journal is another one' },
  Fenced: { status: 409, title: 'The fence is not above the highest one seen' },
  WrongConfig: { status: 409, title: 'The configuration is another one' },
  UnknownAction: { status: 404, title: 'No such action' },
  InvalidParams: { status: 422, title: 'The parameters are not what the action declares' },
  Locked: { status: 409, title: 'Another run is in progress' },
  TooManyRequests: { status: 429, title: 'Too many at once' },
  JournalFull: { status: 507, title: 'The journal cannot be written' },
  UnknownRun: { status: 404, title: 'No such run' },
  NotUnknown: { status: 409, title: 'The run is not Unknown' },
  InProgress: { status: 409, title: 'The run is in progress, or Unknown' },
  Unavailable: { status: 503, title: 'Not possible at this moment' },
} as const satisfies Record<string, { status: number; title: string }>

export type ProblemCode = keyof typeof problems

/** A refusal. `detail` is for the person who reads it; `more` is added to the answer's members. */
export class Problem extends Error {
  readonly code: ProblemCode
  readonly more: Readonly<Record<string, unknown>>

  constructor(code: ProblemCode, detail: string, more: Record<string, unknown> = {}) {
    super(detail)
    this.name = 'Problem'
    this.code = code
    this.more = more
  }

  get status(): number {
    return problems[this.code].status
  }

  /** As RFC 9457 has it. */
  toJSON(): Record<string, unknown> {
    const { status, title } = problems[this.code]
    return {
      type: `urn:shipmate:problem:${this.code}`,
      title,
      status,
      detail: this.message,
      code: this.code,
      ...this.more,
    }
  }
}
