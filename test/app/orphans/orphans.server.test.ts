/**
 * Operations that no app looks after, on a real server, under an account that may do no more than that needs.
 */
import { afterAll, beforeAll, expect, inject, it, vi } from 'vitest'
import { Operation, StatefulApp } from '../../../controller/app/kinds.ts'
import type { Draft } from '../../../controller/kube/kind.ts'
import { Namespace } from '../../../controller/kube/kinds.ts'
import { type Office, openOffice } from '../schedule/office.ts'

const file = inject('kubeconfig')
const patience = { timeout: 20_000, interval: 50 }
const finalizers = ['shipmate.dev/operation']

let office: Office
let serial = 0
beforeAll(async () => {
  office = await openOffice(file, 'orphans')
})
afterAll(() => office?.close())

const at = (name: string) => ({ name, namespace: office.namespace })
const find = (name: string) => office.access.client.find(Operation, at(name))
const until = (check: () => Promise<void>) => vi.waitFor(check, patience)
const stalled = async (name: string) => (await find(name))?.status?.conditions?.find(({ type }) => type === 'Stalled')

async function make(spec: object, metadata: object = {}): Promise<string> {
  const name = `o${++serial}`
  const object = { metadata: { ...at(name), ...metadata }, spec: { app: 'orders-bd', action: 'backup', ...spec } }
  await office.access.client.create(Operation, object as unknown as Draft<Operation>)
  return name
}
async function makeApp(name: string): Promise<void> {
  const spec = { lifecycle: 'x', workload: { kind: 'StatefulSet', name } }
  await office.access.client.create(StatefulApp, { metadata: at(name), spec } as unknown as Draft<StatefulApp>)
}
const end = (name: string, phase: string, finishedAt = new Date(office.now()).toISOString()) =>
  office.access.client.patch(
    Operation,
    at(name),
    { merge: { status: { phase, finishedAt } } },
    { subresource: 'status' },
  )

it('names the nearest app, and takes that back when the app is there', async () => {
  await makeApp('orders-db')
  const name = await make({})
  await until(async () =>
    expect(await stalled(name)).toMatchObject({
      ...{ status: 'True', reason: 'UnknownApp' },
      message: expect.stringContaining('did you mean "orders-db"?'),
    }),
  )
  await makeApp('orders-bd')
  await until(async () => expect(await stalled(name)).toBeUndefined())
})

it('lets go at once what is held for an app that is gone, and nothing that is held for one that is there', async () => {
  await makeApp('brief')
  const held = await make({ app: 'brief' }, { finalizers })
  const other = await make({ app: 'orders-db' }, { finalizers })
  for (const name of [held, other]) await office.access.client.delete(Operation, at(name))
  await office.access.client.delete(StatefulApp, at('brief'))
  await until(async () => expect(await find(held)).toBeUndefined())
  expect((await find(other))?.metadata.finalizers).toEqual(finalizers)
})

it('lets go what a schedule holds that is not there', async () => {
  const name = await make({ app: 'orders-db' }, { finalizers: ['shipmate.dev/schedule'] })
  await until(async () => expect((await find(name))?.metadata.finalizers ?? []).toEqual([]))
})

it('deletes what is finished when its time is over, and never an Unknown one', async () => {
  const [soon, later, unknown] = await Promise.all([
    make({ app: 'orders-db', ttlSecondsAfterFinished: 1 }),
    make({ app: 'orders-db', ttlSecondsAfterFinished: 3600 }),
    make({ app: 'orders-db', ttlSecondsAfterFinished: 0 }),
  ])
  await end(unknown, 'Unknown')
  await end(later, 'Succeeded')
  await end(soon, 'Failed')
  await until(async () => expect(await find(soon)).toBeUndefined())
  expect(await find(later)).toBeDefined()
  expect(await find(unknown)).toBeDefined()
  await end(unknown, 'Succeeded')
  await until(async () => expect(await find(unknown)).toBeUndefined())
})

it('lets everything go in a namespace that goes', async () => {
  const name = await make({ app: 'orders-db' }, { finalizers: [...finalizers, 'shipmate.dev/schedule'] })
  const { access, namespace } = office
  await access.client.delete(Namespace, { name: namespace })
  await access.client.delete(Operation, at(name))
  await until(async () => expect(await find(name)).toBeUndefined())
  expect(office.complaints).toEqual([])
})
