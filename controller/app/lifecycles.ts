/**
 * The Lifecycle's reconciler: what is declared reaches the pods as a signed ConfigMap; what is wrong with it stands in its conditions.
 *
 * Guarantees: a lifecycle with an error never reaches a pod: the last good one stays in force; nothing is written when nothing changed.
 */
import { validateLifecycle } from '../../shared/lifecycle/validate.ts'
import type { Ref, Snapshot } from '../kube/kind.ts'
import { ConfigMap } from '../kube/kinds.ts'
import type { Context } from '../toolkit/context.ts'
import { freeStyle } from '../toolkit/freestyle.ts'
import { advancedReconciler, type Reconciler, watched } from '../toolkit/reconciler.ts'
import { Lifecycle, StatefulApp } from './kinds.ts'
import { lifecycleView } from './lifecycle-view.ts'
import { configNameOf, lifecycleConfig } from './trust/lifecycle-config.ts'
import type { RootDocument } from './trust/root.ts'
import { madeLabels } from './workload/marks.ts'

export interface LifecycleSurroundings {
  /** Resolves once there is one. */
  root(signal: AbortSignal): Promise<RootDocument>
  readonly now: () => number
  /** How many apps use it. */
  appsOf(lifecycle: Snapshot): readonly unknown[]
  /** Whether this process looks after it. */
  isMine(lifecycle: Snapshot): boolean
  listen(wake: (ref: Ref, reason: string) => void): void
}

export function lifecycleReconciler(around: LifecycleSurroundings): Reconciler<Lifecycle> {
  return advancedReconciler(Lifecycle, {
    name: 'lifecycle',
    owns: [ConfigMap],
    watches: [watched(StatefulApp, app => [{ namespace: app.metadata.namespace, name: app.spec.lifecycle }])],
    engine: freeStyle(context => publish(context, around)),
    // Two that sign the same one by different keys, while keys are exchanged, would take turns.
    only: lifecycle => around.isMine(lifecycle as Snapshot),
    listen: wake => around.listen(wake),
  })
}

async function publish(context: Context<Lifecycle>, around: LifecycleSurroundings): Promise<void> {
  const { client, status, signal } = context
  const lifecycle = context.cr as Snapshot<Lifecycle>
  const { namespace = '', name } = lifecycle.metadata
  const { hash, problems, spec } = lifecycleView(lifecycle)
  const warnings = validateLifecycle(spec).problems.filter(({ severity }) => severity === 'warning')
  if (warnings.length > 0)
    context.condition({
      type: 'Sound',
      status: 'False',
      reason: 'Warnings',
      message: warnings.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; '),
    })
  else
    context.condition({
      type: 'Sound',
      status: 'True',
      reason: 'NothingFound',
      message: 'There is nothing to say against it.',
    })
  status.apps = around.appsOf(lifecycle as Snapshot).length
  if (problems.length > 0) return context.stall('InvalidLifecycle', problems.join('; '))
  const root = await around.root(signal)
  const stored = await client.find(ConfigMap, { namespace, name: configNameOf(name) })
  const wished = lifecycleConfig(around.now(), root, { namespace, name, spec }, stored)
  const metadata = { ...wished.metadata, labels: { ...madeLabels } }
  await client.apply(ConfigMap, { ...wished, metadata }, { owner: lifecycle as Snapshot })
  status.hash = hash
}
