/**
 * What admission says of a write: why it is refused, if it is, and what its writer should know all the same.
 */
export interface Verdict {
  /** Each begins with the field. None: it is taken. */
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
}

export const taken: Verdict = { problems: [], warnings: [] }

export function refused(...problems: readonly string[]): Verdict {
  return { problems, warnings: [] }
}
