/**
 * A child whose state says something in its custom resource, and whose finalizer waits.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Kind, resourceOf, type Snapshot } from '../../controller/kube/kind.ts'
import { ConfigMap } from '../../controller/kube/kinds.ts'
import {
  addTo,
  advancedReconciler,
  type Condition,
  mutable,
  type ResourceOptions,
} from '../../controller/toolkit/index.ts'
import type { Widget } from '../fixtures/widget.ts'
import { type Operator, World } from '../fixtures/world.ts'

let world: World
beforeEach(() => {
  world = new World()
})
afterEach(() => world.end())

const ref = { name: 'a', namespace: 'default' }
const find = <T extends object>(kind: Kind<T>) =>
  world.server.list(resourceOf(kind)).find(({ metadata }) => metadata.name === 'a') as Snapshot<T> | undefined
const status = () => (find(world.widgets)?.status ?? {}) as { conditions?: Condition[]; observedValue?: string }
const condition = (type: string) => status().conditions?.find(one => one.type === type)
const isReady = () => condition('Ready')?.status === 'True'

type Options = Partial<ResourceOptions<Widget, { data?: Record<string, string> }>>

function operate(options: Options): Operator {
  const child = mutable(ConfigMap, world.widgets, {
    mutateWithInitialData: () => ({ data: {} }),
    ...(options as object),
  })
  return world.start(manager => addTo(manager, advancedReconciler(world.widgets, { resources: [child] })), {
    name: 'widgets',
  })
}

describe('what a child says in its custom resource', () => {
  const reflect: Options['reflect'] = live => ({
    conditions: [{ type: 'Full', status: live?.data?.['full'] ? 'True' : 'False', reason: 'Looked', message: '' }],
    status: { observedValue: live?.data?.['full'] },
  })

  it('is there, changes with it, and goes with it', async () => {
    operate({ reflect })
    await world.widget('a')
    await world.until('a ready Widget', isReady)
    expect(condition('Full')?.status).toBe('False')
    await world.client.patch(ConfigMap, ref, { merge: { data: { full: 'yes' } } })
    await world.until('that it is told', () => condition('Full')?.status === 'True')
    expect(status().observedValue).toBe('yes')
    await world.client.patch(ConfigMap, ref, { merge: { data: { full: null } } })
    await world.until('that it is told', () => condition('Full')?.status === 'False')
    expect(status()).not.toHaveProperty('observedValue')
  })

  it('is an error where it fails, and that is told', async () => {
    operate({
      reflect() {
        throw new Error('cannot say')
      },
    })
    await world.widget('a')
    await world.until('that it is told', () => condition('Ready')?.status === 'False')
    expect(condition('Ready')?.message).toContain('cannot say')
  })
})

describe('a finalizer of a child that waits', () => {
  it('keeps child and custom resource, without an error, until nothing is waited for', async () => {
    const operator = operate({
      finalizer({ object, waitFor, condition }) {
        const isOver = object.data?.['over'] === 'yes'
        condition({ type: 'Over', status: isOver ? 'True' : 'False', reason: 'Looked', message: '' })
        if (!isOver) waitFor('Emptying', 'it is being emptied')
      },
    })
    await world.widget('a')
    await world.until('a ready Widget', isReady)
    await world.client.delete(world.widgets, ref)
    await world.until('that it is told', () => condition('Deleting')?.reason === 'Emptying')
    expect(condition('Deleting')?.message).toBe('it is being emptied')
    expect(condition('ReconciliationSuccess')?.status).not.toBe('False')
    expect(condition('Over')?.status).toBe('False')
    const written = operator.writes.length
    await world.clock.advance(30_000)
    expect(operator.writes.slice(written), 'what it writes while it waits').toEqual([])
    expect(find(ConfigMap)?.metadata.finalizers).toHaveLength(1)
    await world.client.patch(ConfigMap, ref, { merge: { data: { over: 'yes' } } })
    await world.until('that it is gone', () => !find(world.widgets))
    expect(find(ConfigMap)?.metadata.finalizers ?? []).toEqual([])
  })
})
