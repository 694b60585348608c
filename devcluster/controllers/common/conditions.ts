/**
 * Conditions in a status: one a type, the time of the last change of its status kept. Pure.
 */
export interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string | undefined
  readonly message?: string | undefined
  readonly lastTransitionTime?: string | undefined
}

export function conditionOf<C extends Condition>(conditions: readonly C[] | undefined, type: string): C | undefined {
  return conditions?.find(one => one.type === type)
}

export function isTrue(conditions: readonly Condition[] | undefined, type: string): boolean {
  return conditionOf(conditions, type)?.status === 'True'
}

/** The list with this condition in it; the time of its last transition is `now` only where its status changes. */
export function withCondition<C extends Condition>(
  conditions: readonly C[] | undefined,
  condition: Omit<C, 'lastTransitionTime'>,
  now: string,
): C[] {
  const list = [...(conditions ?? [])]
  const at = list.findIndex(one => one.type === condition.type)
  const old = list[at]
  const since = old && old.status === condition.status ? old.lastTransitionTime : now
  const next = { ...condition, lastTransitionTime: since } as C
  if (at < 0) list.push(next)
  else list[at] = next
  return list
}
