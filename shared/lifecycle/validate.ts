/**
 * Whether a value is a lifecycle that can be used, as admission, `shipmate lint` and the sidecar ask. Pure.
 *
 * Guarantees: never throws, whatever the value; a lifecycle without errors compiles (compile.ts). What is returned is the value itself, as written.
 */
import { jsonProblem } from '../canonical.ts'
import { actionFindings, preStopFindings, probeFindings } from './calls.ts'
import { type LifecycleSpec, lifecycleSpec } from './model.ts'
import { error, type Finding, shapeFindings } from './shape.ts'
import { duplicates, stateFindings } from './states.ts'

export type { Finding } from './shape.ts'

export interface ValidateOptions {
  /** Whether it must have states, as a Lifecycle must; the sidecar's configuration need not. Default false. */
  readonly requireStates?: boolean
}

export interface Validated {
  /** Undefined if there is an error. */
  readonly spec?: LifecycleSpec
  /** Everything that was found; warnings do not hinder its use. If the shape is wrong, that alone. */
  readonly problems: Finding[]
}

export function validateLifecycle(value: unknown, { requireStates = false }: ValidateOptions = {}): Validated {
  const unfit = jsonProblem(value)
  if (unfit) return { problems: [error(unfit.path, unfit.message)] }
  const { success, error: wrong } = lifecycleSpec.safeParse(value)
  if (!success) return { problems: shapeFindings(lifecycleSpec, value, wrong?.issues ?? []) }
  const spec = value as LifecycleSpec
  const { states = [], probes = [], actions = [] } = spec
  const problems = [
    ...(requireStates && states.length === 0 ? [error(['states'], 'missing; a lifecycle has at least one state')] : []),
    ...stateFindings(spec),
    ...duplicates(
      probes.map(probe => probe.name),
      ['probes'],
    ),
    ...probes.flatMap((probe, index) => probeFindings(probe, ['probes', index])),
    ...duplicates(
      actions.map(action => action.name),
      ['actions'],
    ),
    ...actions.flatMap((action, index) => actionFindings(action, ['actions', index])),
    ...preStopFindings(spec),
  ]
  return problems.some(problem => problem.severity === 'error') ? { problems } : { spec, problems }
}
