/**
 * Whether a Lifecycle can be used. Pure.
 */
import type { Finding } from '../../../shared/lifecycle/shape.ts'
import { validateLifecycle } from '../../../shared/lifecycle/validate.ts'
import { isSame } from '../../app/decide/app.ts'
import { taken, type Verdict } from './verdict.ts'

/** @param old what it was, if it was there. Who leaves the spec alone is told nothing of it. */
export function reviewLifecycle(spec: unknown, old?: unknown): Verdict {
  if (old !== undefined && isSame(spec, old)) return taken
  const { problems } = validateLifecycle(spec, { requireStates: true })
  const told = (severity: Finding['severity']) =>
    problems.flatMap(one => (one.severity === severity ? `${fieldOf(one.path)}: ${one.message}` : []))
  return { problems: told('error'), warnings: told('warning') }
}

/** `spec.states[2].next`. */
function fieldOf(path: Finding['path']): string {
  return path.reduce<string>((field, part) => field + (typeof part === 'number' ? `[${part}]` : `.${part}`), 'spec')
}
