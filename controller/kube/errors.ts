/**
 * The API server's refusals as classes, one a reason, so that code says `catch NotFound` and never compares numbers.
 *
 * Each message names what was asked, of what, and what the server said.
 */
import { type Retry, ShipmateError } from '../../shared/errors.ts'
import type { ErrorCode } from '../../shared/reasons.ts'
import { describeTarget, type Request, type Response, type Target } from './transport.ts'

/** metav1.Status, as far as it is read. */
export interface Status {
  kind?: string
  status?: string
  code?: number
  reason?: string
  message?: string
  details?: { name?: string; group?: string; kind?: string; uid?: string; causes?: Cause[]; retryAfterSeconds?: number }
}

/** One thing that is wrong with an object, by field. */
export interface Cause {
  field?: string
  reason?: string
  message?: string
}

/** The API server answered, and the answer is no. */
export class KubeError extends ShipmateError {
  /** The HTTP status. */
  readonly status: number
  /** What was asked. */
  readonly target: Target
  /** The server's own words, whole. */
  readonly answer: Status

  constructor(code: ErrorCode, retry: Retry, status: number, target: Target, answer: Status, message?: string) {
    super(
      code,
      message ?? `${describeTarget(target)}: ${answer.message || answer.reason || `HTTP status ${status}`}`,
      retry,
    )
    this.status = status
    this.target = target
    this.answer = answer
  }

  /** What is wrong, by field; empty where the server names none. */
  get causes(): readonly Cause[] {
    return this.answer.details?.causes ?? []
  }
}

export class NotFound extends KubeError {}
export class AlreadyExists extends KubeError {}
export class Conflict extends KubeError {}
export class Invalid extends KubeError {}
export class BadRequest extends KubeError {}
export class Unauthorized extends KubeError {}
export class MethodNotAllowed extends KubeError {}
export class Expired extends KubeError {}

export class TooManyRequests extends KubeError {
  /** Milliseconds that the server asks to wait; undefined where it does not say. */
  readonly retryAfter: number | undefined

  constructor(status: number, target: Target, answer: Status, retryAfter?: number) {
    super('TooManyRequests', 'later', status, target, answer)
    const seconds = answer.details?.retryAfterSeconds
    this.retryAfter = seconds ? seconds * 1000 : retryAfter
  }
}

/** Names the verb, the resource and the rule that is missing. */
export class Forbidden extends KubeError {
  /** The rule that would allow it, as it stands in a Role. */
  readonly rule: { apiGroups: string[]; resources: string[]; verbs: string[] }

  constructor(status: number, target: Target, answer: Status) {
    const resource = target.subresource ? `${target.resource}/${target.subresource}` : target.resource
    // The server's own word: an apply that would create needs another verb than it was sent with.
    const refused = / cannot (\w+)/.exec(answer.message ?? '')?.[1]
    const verb = refused ?? target.verb
    const rule = { apiGroups: [target.group], resources: [resource], verbs: [verb] }
    const words = `{apiGroups: ["${target.group}"], resources: ["${resource}"], verbs: ["${verb}"]}`
    const missing = refused ? `; the missing rule is ${words}` : ''
    super(
      'Forbidden',
      'later',
      status,
      target,
      answer,
      `${describeTarget(target)}: ${answer.message ?? 'forbidden'}${missing}`,
    )
    this.rule = rule
  }
}

/** The server could not be reached, or could not answer (5xx). */
export class Unavailable extends ShipmateError {
  /** The HTTP status; undefined where none came. */
  readonly status: number | undefined
  readonly target: Target
  /** False: the server certainly did not act. True: it may have. */
  readonly mayHaveActed: boolean
  /** Milliseconds that the server asks to wait. */
  readonly retryAfter: number | undefined

  constructor(
    code: 'Unavailable' | 'DeadlineExceeded' | 'Garbled',
    target: Target,
    why: string,
    options: { status?: number | undefined; mayHaveActed: boolean; retryAfter?: number | undefined; cause?: unknown },
  ) {
    super(
      code,
      `${describeTarget(target)}: ${why}`,
      'later',
      options.cause === undefined ? undefined : { cause: options.cause },
    )
    this.status = options.status
    this.target = target
    this.mayHaveActed = options.mayHaveActed
    this.retryAfter = options.retryAfter
  }
}

/** The caller's signal was aborted. `cause` is the signal's reason. */
export class Aborted extends ShipmateError {
  constructor(target: Target, reason: unknown) {
    super('Aborted', `${describeTarget(target)}: no longer wanted`, 'never', { cause: reason })
  }
}

/** The error for an answer with a status of 400 or more. */
export function errorOf(request: Request, response: Response): KubeError | Unavailable {
  return errorOfStatus(request.target, response.status, statusOf(response), retryAfterOf(response))
}

/** The error for a Status object, as it also comes inside a watch. */
export function errorOfStatus(
  target: Target,
  code: number,
  answer: Status,
  retryAfter?: number,
): KubeError | Unavailable {
  switch (code) {
    case 400:
      return new BadRequest('BadRequest', 'never', code, target, answer)
    case 401:
      return new Unauthorized('Unauthorized', 'later', code, target, answer)
    case 403:
      return new Forbidden(code, target, answer)
    case 404:
      return new NotFound('NotFound', 'never', code, target, answer)
    case 405:
      return new MethodNotAllowed('MethodNotAllowed', 'never', code, target, answer)
    case 409:
      return answer.reason === 'AlreadyExists'
        ? new AlreadyExists('AlreadyExists', 'fresh', code, target, answer)
        : new Conflict('Conflict', 'fresh', code, target, answer)
    case 410:
      return new Expired('Expired', 'fresh', code, target, answer)
    case 422:
      // How the server says that a patch was meant for another object, which had this name before.
      if (answer.details?.causes?.length && answer.details.causes.every(({ field }) => field === 'metadata.uid'))
        return new Conflict('Conflict', 'fresh', code, target, answer)
      return new Invalid('Invalid', 'never', code, target, answer)
    case 429:
      return new TooManyRequests(code, target, answer, retryAfter)
  }
  const words = answer.message || answer.reason || 'no reason given'
  // How the server says that an object to be applied does not fit its kind: no trouble of its own, and no passing one.
  if (code === 500 && words.startsWith('failed to create typed patch object')) {
    return new Invalid('Invalid', 'never', code, target, answer)
  }
  if (code >= 500) {
    // A 503 with a Retry-After is the server's own word that it did not act; a 500 or 504 is not, with or without.
    const mayHaveActed = !(code === 503 && retryAfter !== undefined)
    return new Unavailable('Unavailable', target, `HTTP status ${code}: ${words}`, {
      status: code,
      mayHaveActed,
      retryAfter,
    })
  }
  return new BadRequest('BadRequest', 'never', code, target, answer)
}

/** Milliseconds of a Retry-After header in seconds; undefined without one. */
export function retryAfterOf(response: Response): number | undefined {
  const header = response.headers['retry-after']
  const seconds = Number(Array.isArray(header) ? header[0] : header)
  return header && Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : undefined
}

function statusOf(response: Response): Status {
  try {
    const parsed = JSON.parse(response.text) as Status
    if (parsed && typeof parsed === 'object' && parsed.kind === 'Status') return parsed
  } catch {
    // Not from the API server itself: a proxy's page, or nothing.
  }
  return { message: response.text.slice(0, 200).trim() }
}
