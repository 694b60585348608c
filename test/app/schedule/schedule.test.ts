/**
 * Schedules in virtual time: when they wake, and what they do meanwhile.
 */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Operation, OperationSchedule } from '../../../controller/app/kinds.ts'
import { addSchedules } from '../../../controller/app/schedule/operator.ts'
import type { Draft, Live } from '../../../controller/kube/kind.ts'
import type { Manager } from '../../../controller/runtime/manager.ts'
import { World } from '../../fixtures/world.ts'

const day = 86_400_000
const ref = { name: 's', namespace: 'default' }
// Hours of watching, with a bookmark every minute.
vi.setConfig({ testTimeout: 60_000 })
let world: World

beforeEach(() => {
  world = new World()
  world.server.serve(Operation)
  world.server.serve(OperationSchedule)
})
afterEach(() => world.end())

const operations = () => world.server.list('operations.shipmate.dev') as unknown as Live<Operation>[]
const schedule = () => world.server.list('operationschedules.shipmate.dev')[0] as unknown as Live<OperationSchedule>

async function make(spec: object): Promise<void> {
  const template = { app: 'db', action: 'backup', priority: 0, ttlSecondsAfterFinished: 60, suspend: false }
  const usual = { timeZone: 'Etc/UTC', jitter: '0s', catchUp: 1, overlap: 'Forbid', suspend: false }
  const whole = { ...usual, successfulHistory: 1, failedHistory: 1, template, ...spec }
  await world.client.create(OperationSchedule, { metadata: ref, spec: whole } as unknown as Draft<OperationSchedule>)
}

it('wakes at its tick, weeks ahead, also if the clock was set meanwhile, and writes nothing until then', async () => {
  await make({ schedule: '30 6 26 * *' })
  const { clock } = world
  const operator = world.start(addSchedules)
  await world.until('its next tick', () => schedule().status?.nextTick === '2026-01-26T06:30:00Z')
  await clock.advance(1000)
  const written = operator.writes.length
  await clock.advance(3_600_000)
  clock.jumpWall(25 * day)
  await clock.advance(5 * 3_600_000)
  expect(operator.writes.slice(written)).toEqual([])
  await world.until('its Operation', () => operations().length === 1, day)
  expect(clock.now() - Date.parse('2026-01-26T06:30:00Z')).toBeLessThan(100)
})

it('notices by itself that its Operation has ended, though its own process wrote that', async () => {
  await make({ schedule: '0 * * * *' })
  const app = (manager: Manager) =>
    manager.controller(Operation, { name: 'app' }).reconcile(async ({ object, client }) => {
      if (object.metadata.finalizers?.length || object.status?.phase) return
      await client.status(Operation, object, {
        phase: 'Succeeded',
        finishedAt: new Date(manager.clock.now()).toISOString(),
      })
    })
  world.start(manager => {
    addSchedules(manager)
    app(manager)
  })
  await world.until('one that ended', () => operations()[0]?.status?.phase === 'Succeeded', day)
  await world.until('that none is active', () => schedule().status?.active?.length === 0, 5000)
  await world.clock.advance(3 * 3_600_000)
  expect(operations()).toHaveLength(1)
  expect(operations()[0]?.metadata.name).toBe(`s-${Date.parse('2026-01-01T04:00:00Z') / 60_000}`)
})

it('says that the clock is behind, and makes nothing until it has caught up', async () => {
  await make({ schedule: '0 * * * *', overlap: 'Allow' })
  world.start(addSchedules)
  await world.until('an Operation', () => operations().length === 1, day)
  world.clock.jumpWall(-5 * 3_600_000)
  const reasonOf = () => schedule().status?.conditions?.find(({ type }) => type === 'Ready')?.reason
  await world.until('that it is told', () => reasonOf() === 'ClockBehind', 3_600_000)
  await world.clock.advance(4 * 3_600_000)
  expect(operations()).toHaveLength(1)
  await world.until('the next one', () => operations().length === 2, 3 * 3_600_000)
})

it('says what the server does not take of its template, and goes on with the next tick', async () => {
  await make({ schedule: '0 * * * *' })
  const operator = world.start(addSchedules)
  let refuses = true
  operator.meddle = (request, next) => {
    if (!refuses || request.target.verb !== 'create' || request.target.resource !== 'operations') return next(request)
    const text = JSON.stringify({ kind: 'Status', code: 422, reason: 'Invalid', message: 'spec.action: not that' })
    return Promise.resolve({ status: 422, headers: {}, text })
  }
  const stalled = () => schedule().status?.conditions?.find(({ type }) => type === 'Stalled')
  await world.until('that it is told', () => stalled()?.message.includes('not that') ?? false, day)
  expect(schedule().status?.lastTick).toBeUndefined()
  refuses = false
  await world.until('its Operation', () => operations().length === 1, day)
  await world.until('that all is well', () => stalled() === undefined, day)
})
