import { describe, expect, test } from 'vitest'
import { World } from './sim.ts'

const status = (world: World) => world.app.object.status ?? {}

describe('a wish', () => {
  test('for a transient state is carried out once, and then the state that follows is held', async () => {
    const world = new World({ replicas: 2 })
    world.wish({ state: 'Servicing', action: 'backup', request: '1' })
    await world.converge()
    expect(world.effects).toHaveLength(2)
    expect(status(world)).toMatchObject({ state: 'Running', wish: { outcome: 'Succeeded', serial: 1 } })
    expect(status(world).operation).toBeUndefined()
    for (const { object } of world.operations.values()) expect(object.metadata.finalizers).toEqual([])
    await world.converge()
    expect(world.effects).toHaveLength(2)
  })

  test('that comes again after another is another one', async () => {
    const world = new World()
    for (const request of ['a', 'b', 'a']) {
      world.wish({ state: 'Servicing', action: 'backup', request })
      await world.converge()
    }
    expect(world.effects).toHaveLength(3)
    expect(status(world).wish?.serial).toBe(3)
  })

  test('for End stops, ends, and starts again', async () => {
    const world = new World({ replicas: 3 })
    world.wish({ state: 'End' })
    await world.converge()
    expect(world.effects).toHaveLength(3)
    expect(status(world)).toMatchObject({ state: 'End', wish: { outcome: 'Succeeded' } })
    expect(world.replicas).toBe(0)
    world.wish({ state: 'Running' })
    await world.converge()
    expect(world.replicas).toBe(3)
    expect(status(world)).toMatchObject({ state: 'Running' })
    expect(world.effects).toHaveLength(3)
  })

  test('that failed keeps that outcome, and is never carried out again', async () => {
    const world = new World()
    world.wish({ state: 'Servicing', action: 'backup' })
    await world.converge({ end: 'Failed' })
    expect(status(world)).toMatchObject({ wish: { outcome: 'Failed' } })
    await world.converge()
    expect(world.effects).toHaveLength(1)
    world.wish({ state: 'Servicing', action: 'backup', request: 'again' })
    await world.converge()
    expect(world.effects).toHaveLength(2)
    expect(status(world)).toMatchObject({ wish: { outcome: 'Succeeded' } })
  })

  test('waits while an operation made by hand is carried out', async () => {
    const world = new World()
    world.addOperation('mine', { action: 'backup' })
    await world.converge()
    expect(world.effects).toHaveLength(1)
    expect(world.operations.get('mine')?.object.status).toMatchObject({ phase: 'Succeeded' })
  })
})
