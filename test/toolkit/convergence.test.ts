/**
 * What random schedules have found, each in its shortest form.
 */
import { describe, expect, it } from 'vitest'
import { ConfigMap } from '../../controller/kube/kinds.ts'
import { bench } from './bench.ts'

const { at, ref, map, conditions, settings, operate, isReady, widget } = bench()
const isStalled = () => conditions().Stalled?.status === 'True'

describe("somebody else's object in a child's place", () => {
  it('is not written while the cache still shows the child', async () => {
    operate()
    await at.world.widget('a', 'one')
    await at.world.until('a ready Widget', isReady)
    at.world.server.lag = () => 5000
    await at.world.client.delete(ConfigMap, ref)
    await at.world.client.create(ConfigMap, { metadata: ref, data: { theirs: 'x' } })
    at.world.server.lag = () => 1
    await at.world.change(ref, 'two')
    await at.world.until('a Stalled Widget', isStalled)
    expect(map()?.data).toEqual({ theirs: 'x' })
  })

  it('is not written though it is made at the last moment, and has no field in common with the child', async () => {
    const operator = operate()
    operator.meddle = async (request, next) => {
      const isMaking = request.target.resource === 'configmaps' && request.method === 'PATCH'
      if (isMaking && !map()) await at.world.client.create(ConfigMap, { metadata: ref, data: { theirs: 'x' } })
      return next(request)
    }
    await at.world.widget('a')
    await at.world.until('a Stalled Widget', isStalled)
    expect(map()?.data).toEqual({ theirs: 'x' })
  })
})

it('a child without an owner is let go under a name that it no longer has', async () => {
  const released: string[] = []
  operate(
    {},
    {
      resources: [
        settings({
          owner: false,
          name: cr => `of-${cr.spec.value}`,
          finalizer: ({ object }) => void released.push(object.metadata.name),
        }),
      ],
    },
  )
  await at.world.widget('a', 'one')
  await at.world.until('a ready Widget', isReady)
  await at.world.change(ref, 'two')
  await at.world.until('another child', () => map('of-two') !== undefined)
  await at.world.client.delete(at.world.widgets, ref)
  await at.world.until('that it is gone', () => widget() === undefined)
  expect(released.sort()).toEqual(['of-one', 'of-two'])
  expect([map('of-one'), map('of-two')].map(one => one?.metadata.finalizers ?? [])).toEqual([[], []])
})
