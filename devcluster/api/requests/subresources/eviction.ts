/**
 * `pods/eviction`: a deletion that a disruption budget may refuse.
 */
import { selects } from '../../../../controller/kube/labelselector.ts'
import { timeOf } from '../../../../shared/clock.ts'
import { ApiError, badRequest, internal } from '../../problems.ts'
import type { ApiResponse, Asked, Obj } from '../../types.ts'
import { statusAnswer } from '../answer.ts'
import { retried } from '../change.ts'
import type { Context } from '../context.ts'
import { parseBody } from '../decode.ts'
import { deleteObject } from '../delete.ts'
import { optionsOf } from '../delete-options.ts'
import { stored } from '../read.ts'

const budgets = 'policy/poddisruptionbudgets'

export async function evict(context: Context, asked: Asked): Promise<ApiResponse> {
  const eviction = (await parseBody(asked.request, 'Eviction')).value as Obj
  if (eviction.metadata?.name !== asked.name) throw badRequest('name in URL does not match name in Eviction object')
  const options = optionsOf({
    ...eviction.deleteOptions,
    dryRun: eviction.deleteOptions?.dryRun ?? asked.request.query.getAll('dryRun'),
  })
  const pod = stored(context, asked)
  if (!needsNoBudget(pod)) await retried(asked, true, async () => spend(context, pod, options.dryRun))
  await deleteObject(context, { ...asked, subresource: undefined, verb: 'delete' }, options)
  return statusAnswer({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 })
}

/** Nothing that a budget protects is lost with it. */
function needsNoBudget({ metadata, status }: Obj): boolean {
  return metadata.deletionTimestamp !== undefined || ['Succeeded', 'Failed', 'Pending'].includes(status?.phase)
}

function spend({ store, clock }: Context, pod: Obj, dryRun: boolean): void {
  const { namespace, labels = {}, name } = pod.metadata
  const all = store.page(budgets, { namespace }).items.filter(({ spec }) => selects(spec?.selector, labels))
  if (all.length > 1) {
    throw internal('This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.')
  }
  const [budget] = all
  if (!budget) return
  const { status = {}, spec, metadata } = budget
  const isReady = pod.status?.conditions?.some((one: Obj) => one.type === 'Ready' && one.status === 'True')
  if (!isReady) {
    const enough = status.currentHealthy >= status.desiredHealthy && status.desiredHealthy > 0
    if (spec.unhealthyPodEvictionPolicy === 'AlwaysAllow' || enough) return
  }
  if ((status.observedGeneration ?? 0) < (metadata.generation ?? 0)) {
    throw refused(`The disruption budget ${metadata.name} is still being processed by the server.`, 10)
  }
  if ((status.disruptionsAllowed ?? 0) <= 0) {
    const { desiredHealthy = 0, currentHealthy = 0 } = status
    throw refused(
      `The disruption budget ${metadata.name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`,
    )
  }
  if (dryRun) return
  const now = timeOf(clock.now())
  const disruptionsAllowed = status.disruptionsAllowed - 1
  const conditions = disruptionsAllowed > 0 ? status.conditions : withRefusal(status.conditions ?? [], metadata, now)
  store.write(
    budgets,
    {
      ...budget,
      status: {
        ...status,
        disruptionsAllowed,
        disruptedPods: { ...status.disruptedPods, [name]: now },
        ...(conditions ? { conditions } : {}),
      },
    },
    budget,
  )
}

function withRefusal(conditions: Obj[], { generation }: Obj['metadata'], now: string): unknown[] {
  return [
    ...conditions.filter(one => one.type !== 'DisruptionAllowed'),
    {
      type: 'DisruptionAllowed',
      status: 'False',
      observedGeneration: generation,
      lastTransitionTime: now,
      reason: 'InsufficientPods',
      message: '',
    },
  ]
}

function refused(message: string, retryAfterSeconds?: number): ApiError {
  return new ApiError(429, 'TooManyRequests', "Cannot evict pod as it would violate the pod's disruption budget.", {
    causes: [{ reason: 'DisruptionBudget', message }],
    ...(retryAfterSeconds ? { retryAfterSeconds } : {}),
  })
}
