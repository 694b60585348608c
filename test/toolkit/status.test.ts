/**
 * What is told in the status, beside what others tell there, and while a custom resource goes.
 */
import { describe, expect, it } from 'vitest'
import { NotFound } from '../../controller/kube/errors.ts'
import { ConfigMap, Deployment, Pod } from '../../controller/kube/kinds.ts'
import { mutable } from '../../controller/toolkit/index.ts'
import { bench } from './bench.ts'

const { at, ref, widget, conditions, operate, isReady, quiet } = bench()
const theirs = { type: 'Theirs', status: 'True', reason: 'X', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }
const hold = { finalizers: ['theirs.example.com/hold'] }

describe('conditions', () => {
  it('of others are not lost, also if they are written at the same time', async () => {
    const operator = operate()
    let isFirst = true
    operator.meddle = async (request, next) => {
      if (request.target.subresource === 'status' && isFirst) {
        isFirst = false
        const merge = { status: { conditions: [theirs] } }
        await at.world.client.patch(at.world.widgets, ref, { merge }, { subresource: 'status' })
      }
      return next(request)
    }
    await at.world.widget('a')
    await at.world.until('a ready Widget', isReady)
    expect(conditions().Theirs?.status).toBe('True')
  })

  it("of the toolkit's own types are refused", async () => {
    operate({
      SuccessManager: ({ condition }) => condition({ type: 'Stalled', status: 'True', reason: 'X', message: '' }),
    })
    await at.world.widget('a')
    await at.world.until('that it is told', () => conditions().Ready?.message.includes("the toolkit's own") ?? false)
  })

  it('of an operator go when it drops them', async () => {
    operate({
      SuccessManager({ cr, condition, dropCondition }) {
        if (cr.spec.value === 'one') condition({ type: 'Counted', status: 'True', reason: 'X', message: '' })
        else dropCondition('Counted')
      },
    })
    await at.world.widget('a', 'one')
    await at.world.until('the condition', () => conditions().Counted !== undefined)
    await at.world.change(ref, 'two')
    await at.world.until('none', () => conditions().Counted === undefined)
    expect(isReady()).toBe(true)
  })
})

it('a condition that is not said again tells of which generation it was said', async () => {
  operate({
    SuccessManager({ cr, condition }) {
      if (cr.spec.value === 'one') condition({ type: 'Counted', status: 'True', reason: 'X', message: '' })
    },
  })
  await at.world.widget('a', 'one')
  await at.world.until('the condition', () => conditions().Counted !== undefined)
  await at.world.change(ref, 'two')
  await at.world.until('the new generation', () => conditions().Ready?.observedGeneration === 2)
  // By metav1.Condition: out of date with respect to the current state, until somebody says it anew.
  expect(conditions().Counted).toMatchObject({ status: 'True', observedGeneration: 1 })
})

describe('a custom resource that is being deleted and cannot go', () => {
  it.each([
    ['without a finalizer of ours', {}],
    ['with one', { CRFinalizer() {} }],
  ])("is not Ready, and names somebody else's finalizer, %s", async (_, hooks) => {
    const operator = operate(hooks)
    await at.world.widget('a', 'x', hold)
    await at.world.until('a ready Widget', isReady)
    await at.world.client.delete(at.world.widgets, ref)
    await at.world.until('that it is told', () => conditions().Deleting?.reason === 'Held')
    expect(conditions().Ready?.message).toContain('theirs.example.com/hold')
    await at.world.until('that ours is gone', () => widget()?.metadata.finalizers?.length === 1)
    const written = operator.writes.length
    await quiet()
    expect(operator.writes.slice(written)).toEqual([])
  })

  it('names a child that somebody else holds', async () => {
    operate()
    await at.world.widget('a', 'x', hold)
    await at.world.until('a ready Widget', isReady)
    await at.world.client.patch(ConfigMap, ref, { merge: { metadata: hold } })
    await at.world.client.delete(at.world.widgets, ref)
    await at.world.client.delete(ConfigMap, ref)
    await at.world.until('that it is told', () => conditions().Deleting?.reason === 'ChildHeld')
    expect(conditions().Deleting?.message).toContain('ConfigMap a is being deleted')
  })
})

it('a status that the server does not serve is an error that says so', async () => {
  const operator = operate()
  operator.meddle = (request, next) => {
    if (request.target.subresource === 'status') throw new NotFound('NotFound', 'never', 404, request.target, {})
    return next(request)
  }
  await at.world.widget('a')
  await at.world.until('that it is logged', () =>
    operator.complaints.some(({ msg }) => msg.includes('no status subresource')),
  )
})

it('pods and exec are for operators that say so, since their rules follow from that', async () => {
  const said: string[] = []
  const child = mutable(ConfigMap, at.world.widgets, { mutateWithInitialData: () => ({ data: {} }) })
  operate(
    {
      async SuccessManager({ pods, exec }) {
        for (const ask of [() => pods(child), () => exec(child, 'web', ['true'])])
          await ask().catch((error: Error) => said.push(error.message))
      },
    },
    { resources: [child] },
  )
  await at.world.widget('a')
  await at.world.until('both', () => said.length >= 2)
  expect(said.slice(0, 2)).toEqual([
    "`pods` is not among the operator's options: true watches pods, 'list' asks for them",
    "`exec: true` is not among the operator's options",
  ])
})

it('a pod of a workload without an owner is news to its custom resource', async () => {
  const labels = { app: 'a' }
  const workload = mutable(Deployment, at.world.widgets, {
    owner: false,
    mutateWithInitialData: () => ({
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'web' }] } },
      },
    }),
    ready: () => true,
  })
  let count = -1
  operate(
    {
      async SuccessManager({ pods }) {
        count = (await pods(workload)).length
      },
    },
    { resources: [workload], pods: true },
  )
  await at.world.widget('a')
  await at.world.until('a ready Widget', isReady)
  await quiet()
  const pod = (name: string, metadata: object = {}) =>
    at.world.client.create(Pod, {
      metadata: { name, namespace: 'default', labels, ...metadata },
      spec: { containers: [{ name: 'web', image: 'web' }] },
    })
  const controller = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'a', uid: 'x', controller: true }
  await pod('somebody-elses')
  await pod('a-0', { ownerReferences: [controller] })
  await at.world.until('that it is counted', () => count === 1)
  await quiet()
  expect(count, 'as listPods counts').toBe(1)
})
