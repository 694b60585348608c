/**
 * What can be tested: an operator, as far as whoever hosts it has to know it. What `advancedReconciler` and `basicReconciler` answer is one; controllers on the
 * runtime alone become one by these few lines.
 */
import type { Manager } from '../../controller/runtime/manager.ts'

export interface PolicyRule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
  readonly resourceNames?: readonly string[] | undefined
}

export interface Operator {
  /** Of its account, its roles and its lease. */
  readonly name: string
  /** Declares its controllers. Called anew for each start. */
  addTo(manager: Manager): void
  /** What it may do: everywhere, and in its own namespace. Absent: it may everything, and no missing rule is found. */
  rbac?(): { readonly rules: readonly PolicyRule[]; readonly own?: readonly PolicyRule[] | undefined }
  /** The definitions of its kinds. Absent: they are applied like anything else. */
  crds?(): readonly object[]
}

/** One or several in a process; as a function, so that each start has its own, with nothing remembered. */
export type Operators = Operator | readonly Operator[] | (() => Operator | readonly Operator[])

export function operatorsOf(given: Operators | undefined): readonly Operator[] {
  if (given === undefined) return []
  const made = typeof given === 'function' ? given() : given
  return Array.isArray(made) ? made : [made as Operator]
}
