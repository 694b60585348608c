/**
 * Which pods a workload's label selector means. Pure.
 */
import { isEmpty, type LabelSelector, selects as selectsLabels } from '../kube/labelselector.ts'

/** An empty selector means none: that of a workload is never meant to be everything. */
export function selects(selector: unknown, labels: Readonly<Record<string, string>> = {}): boolean {
  const one = selector as LabelSelector
  return !isEmpty(one) && selectsLabels(one, labels)
}
