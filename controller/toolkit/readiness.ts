/**
 * Whether a live object does its work, by the rules of kstatus. Pure.
 *
 * Guarantees: what is being deleted is not ready; nor is one whose controller has not seen its newest generation yet, whatever its status says of the older one.
 * Messages name what is waited for, and no figure that changes meanwhile, so that a condition with them changes only when the matter does.
 *
 * It departs from kstatus where that would call ready what is not: a Job is ready only when all of it has succeeded, and a StatefulSet that is updated by
 * hand (OnDelete) only when its pods are ready.
 */
import type { Kind, Snapshot } from '../kube/kind.ts'
import {
  CustomResourceDefinition,
  DaemonSet,
  Deployment,
  Job,
  PersistentVolumeClaim,
  Pod,
  ReplicaSet,
  StatefulSet,
} from '../kube/kinds.ts'

export interface Readiness {
  readonly ready: boolean
  /** One CamelCase word. */
  readonly reason: string
  /** For a person. */
  readonly message: string
  /** It will not become ready unless somebody does something. Default false. */
  readonly failed?: boolean | undefined
}

/** Whether an object does its work; of what is not there: no. Kinds without rules of their own are judged by their conditions. */
export function readinessOf(kind: Kind, live: Snapshot | undefined): Readiness {
  if (!live) return waiting('NotFound', `there is no such ${kind.kind}`)
  const { metadata } = live
  if (metadata.deletionTimestamp !== undefined) return waiting('Terminating', 'it is being deleted')
  const rules = rulesOf.get(`${kind.group}/${kind.kind}`)
  const { observedGeneration } = statusOf(live)
  const isUnseen = metadata.generation !== undefined && observedGeneration !== metadata.generation
  if (isUnseen && (observedGeneration !== undefined || rules?.observes))
    return waiting('NotObserved', 'its controller has not seen its newest generation yet')
  return byConditions(live) ?? (rules ? rules.judge(live) : byReady(live))
}

/** A condition, as far as it is read. */
interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string | undefined
  readonly message?: string | undefined
}

interface Rules {
  /** Whether its controller always writes observedGeneration. */
  readonly observes: boolean
  judge(live: Snapshot): Readiness
}

const rulesOf = new Map<string, Rules>()

function rule<T extends object>(kind: Kind<T>, observes: boolean, judge: (live: Snapshot<T>) => Readiness): void {
  rulesOf.set(`${kind.group}/${kind.kind}`, { observes, judge: live => judge(live as Snapshot<T>) })
}

const ready = (message: string, reason = 'Ready'): Readiness => ({ ready: true, reason, message })
const waiting = (reason: string, message: string): Readiness => ({ ready: false, reason, message })
const failed = (reason: string, message: string): Readiness => ({ ready: false, reason, message, failed: true })

/** What conditions say of any kind: Reconciling and Stalled are there only while something is the matter. */
function byConditions(live: Snapshot): Readiness | undefined {
  const reconciling = trueCondition(live, 'Reconciling')
  if (reconciling) return waiting(wordOf(reconciling, 'Reconciling'), said(reconciling, 'it is being reconciled'))
  const stalled = trueCondition(live, 'Stalled')
  return stalled && failed(wordOf(stalled, 'Stalled'), said(stalled, 'it is stalled'))
}

/** A custom resource, or any kind without rules: by its condition Ready; without one, it is enough that it is there. */
function byReady(live: Snapshot): Readiness {
  const condition = conditionOf(live, 'Ready')
  if (!condition) return ready('it exists', 'Exists')
  if (condition.status === 'True') return ready(said(condition, 'it is ready'))
  const isKnown = condition.status === 'False'
  return waiting(wordOf(condition, isKnown ? 'NotReady' : 'Unknown'), said(condition, 'it is not ready'))
}

rule(Deployment, true, live => {
  const { replicas: wished = 1 } = live.spec ?? {}
  const { replicas = 0, updatedReplicas = 0, availableReplicas = 0, readyReplicas = 0 } = live.status ?? {}
  const progressing = conditionOf(live, 'Progressing')
  if (progressing?.reason === 'ProgressDeadlineExceeded')
    return failed('ProgressDeadlineExceeded', said(progressing, 'the roll-out takes too long'))
  const refused = trueCondition(live, 'ReplicaFailure')
  if (refused) return waiting('ReplicaFailure', said(refused, 'a pod cannot be created'))
  if (updatedReplicas < wished) return waiting('NotUpdated', `not all ${wished} pods are updated`)
  if (replicas > wished) return waiting('OldPods', 'old pods are still there')
  if (readyReplicas < wished) return waiting('PodsNotReady', `not all ${wished} pods are ready`)
  if (availableReplicas < wished) return waiting('PodsNotAvailable', `not all ${wished} pods are available`)
  return ready(`all ${wished} pods are available`)
})

rule(ReplicaSet, true, live => {
  const { replicas: wished = 1 } = live.spec ?? {}
  const { replicas = 0, availableReplicas = 0, readyReplicas = 0 } = live.status ?? {}
  const refused = trueCondition(live, 'ReplicaFailure')
  if (refused) return waiting('ReplicaFailure', said(refused, 'a pod cannot be created'))
  if (replicas > wished) return waiting('OldPods', 'more pods are there than wished')
  if (readyReplicas < wished) return waiting('PodsNotReady', `not all ${wished} pods are ready`)
  if (availableReplicas < wished) return waiting('PodsNotAvailable', `not all ${wished} pods are available`)
  return ready(`all ${wished} pods are available`)
})

rule(StatefulSet, true, live => {
  const { replicas: wished = 1, updateStrategy, minReadySeconds = 0 } = live.spec ?? {}
  const { replicas = 0, updatedReplicas = 0, readyReplicas = 0, availableReplicas = 0 } = live.status ?? {}
  const { currentRevision, updateRevision } = live.status ?? {}
  const { partition = 0 } = updateStrategy?.rollingUpdate ?? {}
  if (replicas > wished) return waiting('OldPods', 'more pods are there than wished')
  if (updateStrategy?.type !== 'OnDelete') {
    const updated = Math.max(wished - partition, 0)
    if (updatedReplicas < updated) {
      const which = partition > 0 ? `not all pods from number ${partition} on` : `not all ${wished} pods`
      return waiting('NotUpdated', `${which} are updated`)
    }
    if (partition === 0 && currentRevision !== updateRevision) return waiting('NotUpdated', 'the roll-out is not over')
  }
  if (readyReplicas < wished) return waiting('PodsNotReady', `not all ${wished} pods are ready`)
  if (minReadySeconds > 0 && availableReplicas < wished)
    return waiting('PodsNotAvailable', `not all ${wished} pods are available`)
  return ready(`all ${wished} pods are ready`)
})

rule(DaemonSet, true, live => {
  const { status, spec } = live
  if (status?.desiredNumberScheduled === undefined) return waiting('NotObserved', 'no node was counted yet')
  const { desiredNumberScheduled: wished, currentNumberScheduled = 0, updatedNumberScheduled = 0 } = status
  const { numberReady = 0, numberAvailable = 0 } = status
  if (currentNumberScheduled < wished) return waiting('NotScheduled', 'not every node has its pod')
  if (spec?.updateStrategy?.type !== 'OnDelete' && updatedNumberScheduled < wished)
    return waiting('NotUpdated', 'the pods of some nodes are not updated')
  if (numberReady < wished) return waiting('PodsNotReady', 'the pods of some nodes are not ready')
  if (numberAvailable < wished) return waiting('PodsNotAvailable', 'the pods of some nodes are not available')
  return ready('every node that should has a pod that is available')
})

rule(Job, false, live => {
  const { completions, suspend = false, successPolicy } = live.spec ?? {}
  const { succeeded = 0, active = 0 } = live.status ?? {}
  const broken = trueCondition(live, 'Failed')
  if (broken) return failed('JobFailed', said(broken, 'it failed'))
  if (completions === 0) return waiting('NothingToComplete', 'it has no completion to reach: nothing of it ever runs')
  if (!trueCondition(live, 'Complete'))
    return suspend ? waiting('Suspended', 'it is suspended') : waiting('JobRunning', 'it has not finished')
  // Without a number, or by a policy of its own, one success may be enough.
  const enough = successPolicy ? 1 : (completions ?? 1)
  if (succeeded < enough || active > 0)
    return waiting('JobRunning', `not all of its ${enough} completions are known to have succeeded`)
  return ready('all of it has succeeded', 'Completed')
})

rule(PersistentVolumeClaim, false, live => {
  const { phase } = live.status ?? {}
  if (phase === 'Bound') return ready('it is bound', 'Bound')
  if (phase === 'Lost') return failed('Lost', 'its volume is lost')
  return waiting('Pending', 'no volume is bound to it yet; some are bound only when a pod uses them')
})

rule(Pod, false, live => {
  const { phase, message, containerStatuses = [], initContainerStatuses = [] } = live.status ?? {}
  if (phase === 'Succeeded') return ready('all of its containers have succeeded', 'Succeeded')
  if (phase === 'Failed') return failed('PodFailed', message || 'it failed')
  if (phase === 'Running' && trueCondition(live, 'Ready')) return ready('it is ready')
  const scheduled = conditionOf(live, 'PodScheduled')
  if (scheduled?.status === 'False')
    return waiting(wordOf(scheduled, 'NotScheduled'), said(scheduled, 'no node was found for it'))
  for (const { name, state } of [...initContainerStatuses, ...containerStatuses]) {
    const { reason } = state?.waiting ?? {}
    if (!reason || /^(ContainerCreating|PodInitializing)$/.test(reason)) continue
    const message = `container ${name} waits: ${reason}`
    return reason === 'CrashLoopBackOff'
      ? failed(reason, message)
      : waiting(asWord(reason, 'ContainerWaiting'), message)
  }
  return waiting(phase === 'Running' ? 'NotReady' : 'Pending', 'not all of its containers are ready')
})

rule(CustomResourceDefinition, false, live => {
  const names = conditionOf(live, 'NamesAccepted')
  if (names?.status === 'False')
    return failed(wordOf(names, 'NamesNotAccepted'), said(names, 'its names are taken already'))
  if (trueCondition(live, 'Established')) return ready('it is served', 'Established')
  return waiting('NotEstablished', 'it is not served yet')
})

function statusOf(live: Snapshot) {
  const { status } = live as { status?: { observedGeneration?: number; conditions?: readonly Condition[] } | null }
  return status ?? {}
}

function conditionOf(live: Snapshot, type: string): Condition | undefined {
  const { conditions } = statusOf(live)
  return Array.isArray(conditions) ? conditions.find(condition => condition?.type === type) : undefined
}

function trueCondition(live: Snapshot, type: string): Condition | undefined {
  const condition = conditionOf(live, type)
  return condition?.status === 'True' ? condition : undefined
}

const said = ({ message }: Condition, otherwise: string) => message || otherwise
const wordOf = ({ reason }: Condition, otherwise: string) => asWord(reason, otherwise)

/** Reasons come from others: one that is no word is replaced. */
function asWord(reason: string | undefined, otherwise: string): string {
  return reason !== undefined && /^[A-Z][A-Za-z0-9]*$/.test(reason) ? reason : otherwise
}
