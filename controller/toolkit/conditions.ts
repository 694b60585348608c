/**
 * Conditions of a custom resource (metav1.Condition), and those that kstatus reads, derived from how a reconciliation ended. Pure.
 *
 * Guarantees: `lastTransitionTime` changes only when `status` does; Ready is always there; Reconciling and Stalled are there only while they are True, never
 * both, and never beside Ready=True; conditions of others are left as they are.
 */
export interface Condition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  /** One CamelCase word. */
  readonly reason: string
  readonly message: string
  readonly lastTransitionTime: string
  readonly observedGeneration?: number | undefined
}

/** A condition as somebody wants it. */
export type Wanted = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

/** How things stand at the end of a reconciliation. */
export type Standing =
  | { readonly is: 'ready' }
  /** Nothing failed, but something takes its time. */
  | { readonly is: 'waiting'; readonly reason: string; readonly message: string }
  /** Failed, and tried again. */
  | { readonly is: 'failing'; readonly reason: string; readonly message: string }
  /** Failed, and only a person can mend it. */
  | { readonly is: 'stalled'; readonly reason: string; readonly message: string }
  | { readonly is: 'givenUp'; readonly reason: string; readonly message: string }
  /** Being deleted. `failed`: so far in vain. */
  | { readonly is: 'deleting'; readonly failed: boolean; readonly reason: string; readonly message: string }

/** The types that the toolkit writes. */
export const ownTypes = ['Ready', 'ReconciliationSuccess', 'Reconciling', 'Stalled', 'Deleting'] as const

/** The toolkit's own conditions for a standing; those that are not in the list are to be absent. */
export function conditionsFor(standing: Standing): Wanted[] {
  const ok = { reason: 'Succeeded', message: 'Everything is as it should be.' }
  const said = standing.is === 'ready' ? ok : { reason: standing.reason, message: standing.message }
  const is = (type: (typeof ownTypes)[number], status: Condition['status'], words = said): Wanted => ({
    type,
    status,
    ...words,
  })
  switch (standing.is) {
    case 'ready':
      return [is('Ready', 'True'), is('ReconciliationSuccess', 'True')]
    case 'waiting': {
      const done = { reason: 'Succeeded', message: 'What is wished has been written.' }
      return [is('Ready', 'False'), is('ReconciliationSuccess', 'True', done), is('Reconciling', 'True')]
    }
    case 'failing':
      return [is('Ready', 'False'), is('ReconciliationSuccess', 'False'), is('Reconciling', 'True')]
    case 'stalled':
      return [is('Ready', 'False'), is('ReconciliationSuccess', 'False'), is('Stalled', 'True')]
    case 'givenUp':
      return [is('Ready', 'Unknown'), is('ReconciliationSuccess', 'Unknown')]
    case 'deleting': {
      const success = is('ReconciliationSuccess', standing.failed ? 'False' : 'Unknown')
      return [is('Ready', 'False'), success, is('Reconciling', 'True'), is('Deleting', 'True')]
    }
  }
}

/**
 * `before` with the toolkit's own conditions as wanted, and others as `more` says. Sorted by type, so that the same conditions are the same list.
 *
 * @param now RFC 3339, in whole seconds
 * @param dropped types that are to go, unless they are wanted
 */
export function withConditions(
  before: readonly Condition[],
  wanted: readonly Wanted[],
  {
    now,
    generation,
    dropped = [],
  }: { readonly now: string; readonly generation: number | undefined; readonly dropped?: readonly string[] },
): Condition[] {
  const own: readonly string[] = ownTypes
  const given = new Map(wanted.map(one => [one.type, one]))
  const kept = before.filter(({ type }) => !own.includes(type) && !given.has(type) && !dropped.includes(type))
  const made = [...given.values()].map((one): Condition => {
    const old = before.find(({ type }) => type === one.type)
    const since = old?.status === one.status ? old.lastTransitionTime : now
    return {
      type: one.type,
      status: one.status,
      reason: one.reason,
      message: one.message.slice(0, longestMessage),
      lastTransitionTime: since,
      ...(generation !== undefined && { observedGeneration: generation }),
    }
  })
  return [...kept, ...made].sort((a, b) => (a.type < b.type ? -1 : a.type > b.type ? 1 : 0))
}

/** As metav1.Condition has it. */
const longestMessage = 32_768
