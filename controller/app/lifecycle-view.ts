/**
 * A Lifecycle as decisions are made from it: checked, as a graph, with its hash. Worked out once for each version of the object.
 */
import { graphOf } from '../../shared/lifecycle/graph.ts'
import { configHash } from '../../shared/lifecycle/hash.ts'
import type { LifecycleSpec } from '../../shared/lifecycle/model.ts'
import { validateLifecycle } from '../../shared/lifecycle/validate.ts'
import type { Snapshot } from '../kube/kind.ts'
import type { Lifecycle } from './kinds.ts'
import type { LifecycleView } from './view.ts'

const views = new WeakMap<object, LifecycleView>()

export function lifecycleView(lifecycle: Snapshot<Lifecycle>): LifecycleView {
  let view = views.get(lifecycle)
  if (!view) {
    const spec = lifecycle.spec as LifecycleSpec
    const { problems } = validateLifecycle(spec, { requireStates: true })
    view = {
      spec,
      graph: graphOf(spec),
      hash: configHash(spec),
      problems: problems.flatMap(({ severity, path, message }) =>
        severity === 'error' ? [`${path.join('.')}: ${message}`] : [],
      ),
    }
    views.set(lifecycle, view)
  }
  return view
}
