/**
 * `pods/binding`: a scheduler says which node a pod is for. Once.
 */
import { timeOf } from '../../../../shared/clock.ts'
import { badRequest, conflict, invalid } from '../../problems.ts'
import type { ApiResponse, Asked, Obj } from '../../types.ts'
import { statusAnswer } from '../answer.ts'
import { retried } from '../change.ts'
import type { Context } from '../context.ts'
import { parseBody } from '../decode.ts'
import { stored } from '../read.ts'

export async function bind(context: Context, asked: Asked): Promise<ApiResponse> {
  const binding = (await parseBody(asked.request, 'Binding')).value as Obj
  const { name = '', type } = asked
  if (binding.metadata?.name !== name) throw badRequest('name in URL does not match name in Binding object')
  const { kind = '', name: node = '' } = binding.target ?? {}
  if ((kind !== '' && kind !== 'Node') || node === '') {
    const detail = 'supported values: "Node", "<empty>"'
    throw invalid({ group: '', kind: 'Binding' }, name, [
      node === ''
        ? { mistake: 'FieldValueRequired', field: 'target.name' }
        : { mistake: 'FieldValueNotSupported', field: 'target.kind', value: kind, detail },
    ])
  }
  await retried(asked, true, async () => {
    const pod = stored(context, asked)
    if (pod.metadata.deletionTimestamp)
      throw conflict(
        { group: '', resource: 'pods/binding' },
        name,
        `pod ${name} is being deleted, cannot be assigned to a host`,
      )
    if (pod.spec?.nodeName) {
      const why = `pod ${name} is already assigned to node ${JSON.stringify(pod.spec.nodeName)}`
      throw conflict({ group: '', resource: 'pods/binding' }, name, why)
    }
    const others = (pod.status?.conditions ?? []).filter((one: Obj) => one.type !== 'PodScheduled')
    const scheduled = {
      type: 'PodScheduled',
      status: 'True',
      lastProbeTime: null,
      lastTransitionTime: timeOf(context.clock.now()),
    }
    const next = {
      ...pod,
      metadata: {
        ...pod.metadata,
        ...(binding.metadata.annotations
          ? { annotations: { ...pod.metadata.annotations, ...binding.metadata.annotations } }
          : {}),
        ...(pod.metadata.generation ? { generation: pod.metadata.generation + 1 } : {}),
      },
      spec: { ...pod.spec, nodeName: node },
      status: { ...pod.status, conditions: [...others, scheduled] },
    }
    if (!asked.request.query.has('dryRun')) context.store.write(`${type.group}/pods`, next, pod)
  })
  return statusAnswer({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 })
}
