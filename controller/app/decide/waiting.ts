/**
 * What is waited for, in one sentence. Pure.
 *
 * Guarantee: the sentence holds fixed times only, so that it changes when something does and not because time goes by.
 */
export interface Waiting {
  /** `orders-db-1 to finish backup`. */
  readonly what: string
  /** RFC 3339, or milliseconds since 1970. */
  readonly since?: string | number | undefined
  readonly until?: string | number | undefined
  /** What comes next, as `then Running`. */
  readonly next?: string | undefined
}

export function sentenceOf({ what, since, until, next }: Waiting): string {
  const parts = [
    what,
    ...(since === undefined ? [] : [`since ${minute(since)}`]),
    ...(until === undefined ? [] : [`until ${minute(until)}`]),
    ...(next === undefined ? [] : [next]),
  ]
  return parts.join(', ')
}

/** `2026-11-18 14:02Z`. */
function minute(at: string | number): string {
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')}Z`
}

/** The earlier of two times, of which either may be absent. */
export function earlier(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.min(a, b)
}
