/**
 * What may change in a pod's spec: images, its deadline if it comes nearer, and tolerations that are added.
 */
import type { FieldError } from '../../problems.ts'
import type { Obj } from '../../types.ts'
import { list } from '../strategies/lists.ts'
import { same } from '../strategies/status.ts'
import { forbidden, invalid } from './mistakes.ts'

export function validatePodChange(object: Obj, old: Obj): FieldError[] {
  for (const field of ['containers', 'initContainers']) {
    if (list(object.spec[field]).length !== list(old.spec[field]).length)
      return [forbidden(`spec.${field}`, 'pod updates may not add or remove containers')]
  }
  const deadline = validateDeadline(object.spec.activeDeadlineSeconds, old.spec.activeDeadlineSeconds)
  // One that is put off ends the check.
  if (deadline.length > 0 && object.spec.activeDeadlineSeconds !== undefined) return deadline
  return [...deadline, ...tolerationsKept(object, old), ...frozenParts(object, old)]
}

function validateDeadline(next: number | undefined, before: number | undefined): FieldError[] {
  const field = 'spec.activeDeadlineSeconds'
  if (next === undefined)
    return before === undefined ? [] : [invalid(field, null, 'must not update from a positive integer to nil value')]
  if (next < 0 || next > 2 ** 31 - 1) return [invalid(field, next, 'must be between 0 and 2147483647, inclusive')]
  if (before !== undefined && before < next)
    return [invalid(field, next, 'must be less than or equal to previous value')]
  return []
}

/** New ones may come; the others stay, but for their time. */
function tolerationsKept(object: Obj, old: Obj): FieldError[] {
  const plain = ({ tolerationSeconds: _, ...rest }: Record<string, unknown>) => rest
  const now = list(object.spec.tolerations).map(plain)
  if (list(old.spec.tolerations).every(one => now.some(other => same(other, plain(one))))) return []
  const detail = 'existing toleration can not be modified except its tolerationSeconds'
  return [forbidden('spec.tolerations', detail)]
}

function frozenParts(object: Obj, old: Obj): FieldError[] {
  const frozen = (spec: Obj) => {
    const { activeDeadlineSeconds: _1, tolerations: _2, ephemeralContainers: _3, ...rest } = spec
    const plain = (containers: unknown) => list(containers).map(({ image: _, ...container }) => container)
    return { ...rest, containers: plain(rest.containers), initContainers: plain(rest.initContainers) }
  }
  if (same(frozen(object.spec), frozen(old.spec))) return []
  return [
    forbidden(
      'spec',
      'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
    ),
  ]
}
