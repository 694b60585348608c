/**
 * The disruption gate: while an exclusive run is in progress no pod of the app is evicted.
 *
 * Guarantees: the gate is a PodDisruptionBudget `shipmate-APP` that the app owns, so it never outlives the app; one that is not wanted any more goes, whoever left it. Where another
 * budget selects these pods there is none: two budgets on one pod make every eviction an error.
 */
import type { CachedClient } from '../../kube/cached.ts'
import type { Applied, ShapeOf, Snapshot } from '../../kube/kind.ts'
import { PodDisruptionBudget } from '../../kube/kinds.ts'
import type { App } from '../view.ts'
import { livePodsOf, type Workload } from './gather.ts'
import { appMark, appUidLabel, madeLabels } from './marks.ts'
import { byNamespace } from './places.ts'
import { budgetSelects } from './selector.ts'

type LiveBudget = Snapshot<ShapeOf<typeof PodDisruptionBudget>>
type Labels = Readonly<Record<string, string>>

export interface GateView {
  readonly workload: Workload | undefined
  /** Of the pods that are there, and of those to come as far as the selector tells. */
  readonly podLabels: readonly Labels[]
  /** Every budget of the namespace. */
  readonly budgets: readonly LiveBudget[]
}

/** What the condition `Gated` says; undefined where it says nothing. */
export interface Gated {
  readonly status: 'True' | 'False'
  readonly reason: 'Gated' | 'OtherBudget'
  readonly message: string
}

export interface GateStep {
  readonly is: 'nothing' | 'hold' | 'remove'
  /** To be applied, or removed. */
  readonly budget?: Applied<ShapeOf<typeof PodDisruptionBudget>> | LiveBudget | undefined
  readonly gated: Gated | undefined
}

function gateName({ metadata }: App): string {
  return `shipmate-${metadata.name}`
}

export function gatherGate(client: CachedClient, app: App, workload: Workload | undefined): GateView {
  return {
    workload,
    podLabels: workload
      ? [
          workload.selector.matchLabels ?? {},
          ...livePodsOf(client, workload).map(({ metadata }) => metadata.labels ?? {}),
        ]
      : [],
    budgets: client.by(PodDisruptionBudget, byNamespace, app.metadata.namespace ?? ''),
  }
}

/** @param isWanted that an exclusive run is in progress */
export function decideGate(app: App, { workload, podLabels, budgets }: GateView, isWanted: boolean): GateStep {
  const name = gateName(app)
  const gate = budgets.find(one => one.metadata.name === name && one.metadata.labels?.[appUidLabel] !== undefined)
  const isGoing = gate?.metadata.deletionTimestamp !== undefined
  const gone = gate && !isGoing ? { is: 'remove' as const, budget: gate } : { is: 'nothing' as const }
  if (!isWanted || !workload) return { ...gone, gated: undefined }
  const other = budgets.find(one => one !== gate && isInTheWay(one, name, podLabels))
  if (other) {
    const message = `the budget ${other.metadata.name} governs evictions; none is held back for a run`
    return { ...gone, gated: { status: 'False', reason: 'OtherBudget', message } }
  }
  // Dependents of what is deleted in the foreground are taken away as they come.
  if (app.metadata.finalizers?.includes('foregroundDeletion')) return { ...gone, gated: undefined }
  // One of an earlier app of the same name.
  if (gate && gate.metadata.labels?.[appUidLabel] !== app.metadata.uid) return { ...gone, gated: undefined }
  const gated = { status: 'True', reason: 'Gated', message: 'no pod is evicted while a run is in progress' } as const
  return { is: 'hold', budget: gateOf(app, workload), gated }
}

function isInTheWay({ metadata, spec }: LiveBudget, name: string, podLabels: readonly Labels[]): boolean {
  return metadata.name === name || podLabels.some(labels => budgetSelects(spec?.selector, labels))
}

function gateOf(app: App, { selector }: Workload): Applied<ShapeOf<typeof PodDisruptionBudget>> {
  const { name, namespace, uid } = app.metadata
  const labels = { ...madeLabels, [appMark]: name, [appUidLabel]: uid }
  return { metadata: { name: gateName(app), namespace, labels }, spec: { maxUnavailable: 0, selector } }
}

/** Does what was decided; sends nothing for a gate that is there as it should be. */
export async function gate(client: CachedClient, app: App, { is, budget }: GateStep): Promise<void> {
  if (is === 'hold') await client.apply(PodDisruptionBudget, budget as never, { owner: app as Snapshot })
  if (is === 'remove') await client.delete(PodDisruptionBudget, budget as LiveBudget)
}
