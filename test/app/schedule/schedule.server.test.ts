/**
 * Schedules on the server that has the last word: its names, its finalizers, its record of who set what and when; under an account of their own.
 */
import { afterAll, beforeAll, expect, inject, it, vi } from 'vitest'
import { Operation, OperationSchedule, StatefulApp } from '../../../controller/app/kinds.ts'
import { childName, scheduleFinalizer } from '../../../controller/app/schedule/child.ts'
import type { Draft } from '../../../controller/kube/kind.ts'
import { Event } from '../../../controller/kube/kinds.ts'
import { type Office, openOffice } from './office.ts'

const file = inject('kubeconfig')
const patience = { timeout: 20_000, interval: 50 }
const minute = 60_000
const template = { app: 'db', action: 'backup' }

let office: Office
let serial = 0
beforeAll(async () => {
  office = await openOffice(file, 'schedules')
  const app = { metadata: at('db'), spec: { lifecycle: 'x', workload: { kind: 'StatefulSet', name: 'db' } } }
  await office.access.client.create(StatefulApp, app as unknown as Draft<StatefulApp>)
})
afterAll(() => office?.close())

const at = (name: string) => ({ name, namespace: office.namespace })
const find = (name: string) => office.access.client.find(Operation, at(name))
const read = (name: string) => office.access.client.get(OperationSchedule, at(name))
const until = (check: () => Promise<void>) => vi.waitFor(check, patience)

const isFree = async (name: string) => {
  const there = await find(name)
  expect(there).toBeDefined()
  expect(there?.metadata.finalizers ?? []).toEqual([])
}

/** The first whole five minutes after a moment. */
const tickAfter = (time: number) => (Math.floor(time / (5 * minute)) + 1) * 5 * minute

async function make(spec: object, name = `s${++serial}`): Promise<string> {
  // The server's time, of which its creation is.
  office.setClock(Date.now())
  const object = { metadata: at(name), spec: { schedule: '*/5 * * * *', template, ...spec } }
  await office.access.client.create(OperationSchedule, object as unknown as Draft<OperationSchedule>)
  await until(async () => expect((await read(name)).status?.observedGeneration).toBe(1))
  return name
}
/** It is that late, and something happens that makes the schedule look. */
async function itIs(time: number, name: string): Promise<void> {
  office.setClock(time)
  const annotations = { 'example.com/look': String(time) }
  await office.access.client.patch(OperationSchedule, at(name), { merge: { metadata: { annotations } } })
}
async function told(name: string): Promise<string[]> {
  const events = await office.access.client.list(Event, { namespace: office.namespace })
  return events.filter(({ regarding }) => regarding?.name === name).map(({ reason, note }) => `${reason}: ${note}`)
}
const end = (name: string, phase: string) =>
  office.access.client.patch(
    Operation,
    at(name),
    { merge: { status: { phase, finishedAt: new Date(office.now()).toISOString() } } },
    { subresource: 'status' },
  )

it('makes the Operation of a tick, lets it go when the tick is written down, and then writes nothing', async () => {
  const name = await make({})
  const tick = tickAfter(office.now())
  expect((await read(name)).status?.nextTick).toBe(new Date(tick).toISOString().replace('.000', ''))
  await itIs(tick + 100, name)
  const child = childName(name, tick)
  await until(async () => {
    const made = await find(child)
    expect(made?.metadata.finalizers ?? []).toEqual([])
    expect(made?.spec).toMatchObject(template)
    expect(made?.metadata.ownerReferences).toMatchObject([{ kind: 'OperationSchedule', name, controller: true }])
    const { status } = await read(name)
    expect(Date.parse(status?.lastTick ?? '')).toBe(tick)
    expect(status?.active).toEqual([{ name: child, uid: made?.metadata.uid }])
    expect(status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True')
  })
  const order = office.writes.filter(one => one.includes(name) || one.startsWith('create operations '))
  expect(order.slice(-3)).toEqual([
    expect.stringMatching(/^create operations/),
    `patch operationschedules/status ${name}`,
    `patch operations ${child}`,
  ])
  const written = office.writes.length
  await itIs(tick + 200, name)
  await until(async () => expect((await read(name)).metadata.annotations).toBeDefined())
  await new Promise(resolve => setTimeout(resolve, 500))
  expect(office.writes.slice(written)).toEqual([])
})

it('does not make again what a person has deleted', async () => {
  const name = await make({})
  const tick = tickAfter(office.now())
  await itIs(tick, name)
  await until(() => isFree(childName(name, tick)))
  await office.access.client.delete(Operation, at(childName(name, tick)))
  await itIs(tick + minute, name)
  await until(async () => expect((await read(name)).status?.active ?? []).toEqual([]))
  expect(await find(childName(name, tick))).toBeUndefined()
})

it('takes a child that is there, of a process that died, for the one of its tick', async () => {
  const name = await make({})
  const { metadata } = await read(name)
  const tick = tickAfter(office.now())
  const owner = {
    apiVersion: 'shipmate.dev/v1alpha1',
    kind: 'OperationSchedule',
    name,
    uid: metadata.uid,
    controller: true,
  }
  const child = { ...at(childName(name, tick)), finalizers: [scheduleFinalizer], ownerReferences: [owner] }
  const { metadata: made } = await office.access.client.create(Operation, {
    metadata: child,
    spec: template,
  } as unknown as Draft<Operation>)
  await office.access.client.delete(Operation, at(made.name))
  await itIs(tick, name)
  await until(async () => {
    expect(Date.parse((await read(name)).status?.lastTick ?? '')).toBe(tick)
    expect(await find(made.name)).toBeUndefined()
  })
})

it("passes over a tick whose name is somebody else's, says so, and goes on", async () => {
  const name = await make({})
  const tick = tickAfter(office.now())
  await office.access.client.create(Operation, {
    metadata: at(childName(name, tick)),
    spec: template,
  } as unknown as Draft<Operation>)
  await itIs(tick, name)
  await until(async () => expect(Date.parse((await read(name)).status?.lastTick ?? '')).toBe(tick))
  await until(async () => expect((await told(name)).join()).toContain(`NameTaken: the tick of`))
  await itIs(tick + 5 * minute, name)
  await until(async () => expect(await find(childName(name, tick + 5 * minute))).toBeDefined())
})

it('keeps to its overlap and its history, as its Operations end', async () => {
  const name = await make({ successfulHistory: 1, failedHistory: 0 })
  const first = tickAfter(office.now())
  const nth = (n: number) => first + n * 5 * minute
  await itIs(nth(0), name)
  await until(async () => expect(await find(childName(name, nth(0)))).toBeDefined())
  await itIs(nth(1), name)
  await until(async () => expect((await told(name)).join()).toContain(`Overlap: the tick of`))
  expect(await find(childName(name, nth(1)))).toBeUndefined()
  await end(childName(name, nth(0)), 'Succeeded')
  await until(async () => expect((await read(name)).status?.active ?? []).toEqual([]))
  await itIs(nth(2), name)
  await until(() => isFree(childName(name, nth(2))))
  await end(childName(name, nth(2)), 'Succeeded')
  await until(async () => expect(await find(childName(name, nth(0)))).toBeUndefined())
  await itIs(nth(3), name)
  await until(() => isFree(childName(name, nth(3))))
  await end(childName(name, nth(3)), 'Failed')
  await until(async () => expect(await find(childName(name, nth(3)))).toBeUndefined())
  expect(await find(childName(name, nth(2)))).toBeDefined()
})

it('cancels the running one first, if it is to be replaced', async () => {
  const name = await make({ overlap: 'Replace' })
  const tick = tickAfter(office.now())
  await itIs(tick, name)
  await until(async () => expect(await find(childName(name, tick))).toBeDefined())
  await itIs(tick + 5 * minute, name)
  await until(async () => expect(await find(childName(name, tick + 5 * minute))).toBeDefined())
  expect((await find(childName(name, tick)))?.spec.cancel).toBe(true)
})

it('makes nothing from before a change, by what the server knows of when it was made', async () => {
  const name = await make({ schedule: '0 0 1 1 *', catchUp: 10, overlap: 'Allow' })
  const changed = Date.now()
  await office.access.client.patch(OperationSchedule, at(name), { merge: { spec: { schedule: '* * * * *' } } })
  await until(async () => expect((await read(name)).status?.plan?.schedule).toBe('* * * * *'))
  await itIs(changed + 2 * minute, name)
  const next = Math.floor(changed / minute + 1) * minute
  await until(async () => expect(await find(childName(name, next))).toBeDefined())
  const all = await office.access.client.list(Operation, { namespace: office.namespace })
  const ours = all.filter(({ metadata }) => metadata.ownerReferences?.some(one => one.name === name))
  for (const { metadata } of ours) expect(metadata.name >= childName(name, next)).toBe(true)
})

it('says what is wrong with a schedule, and takes it up when it is mended', async () => {
  const name = await make({ timeZone: 'Europe/Berln' })
  await until(async () =>
    expect((await read(name)).status?.conditions?.find(({ type }) => type === 'Stalled')?.message).toContain(
      '"Europe/Berln" is no time zone; did you mean "Europe/Berlin"?',
    ),
  )
  await office.access.client.patch(OperationSchedule, at(name), { merge: { spec: { timeZone: 'Europe/Berlin' } } })
  await until(async () => {
    const { status } = await read(name)
    expect(status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True')
    expect(status?.nextTick).toBeDefined()
  })
})

it('goes when it is deleted, and holds no child', async () => {
  const name = await make({})
  const tick = tickAfter(office.now())
  await itIs(tick, name)
  await until(async () => expect(await find(childName(name, tick))).toBeDefined())
  await office.access.client.delete(OperationSchedule, at(name))
  await until(async () => expect(await office.access.client.find(OperationSchedule, at(name))).toBeUndefined())
  expect((await find(childName(name, tick)))?.metadata.finalizers ?? []).toEqual([])
})
