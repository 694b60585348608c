/**
 * How failures are told and tried again, where several things go wrong at once.
 */
import { describe, expect, it } from 'vitest'
import { Aborted, Conflict, Forbidden, Invalid } from '../../controller/kube/errors.ts'
import { ConfigMap, Secret } from '../../controller/kube/kinds.ts'
import { immutableFields } from '../../controller/toolkit/immutable.ts'
import { mutable } from '../../controller/toolkit/index.ts'
import { consolidate } from '../../controller/toolkit/results.ts'
import { bench } from './bench.ts'

const { at, ref, find, map, conditions, settings, operate, isReady, quiet } = bench()
const target = { verb: 'patch', group: '', resource: 'configmaps' }

describe('of several errors', () => {
  it('the first that is for a person is told, though a Conflict came before it', () => {
    const conflict = {
      code: 'UpdateFailed',
      on: 'a',
      error: new Conflict('Conflict', 'fresh', 409, target, {}),
    } as const
    const refused = { code: 'UpdateFailed', on: 'b', error: new Error('quota exceeded') } as const
    expect(consolidate([conflict, refused]).because).toBe(refused)
    expect(consolidate([conflict]).because).toBe(conflict)
  })

  it("another child's is told while one meets Conflicts", async () => {
    const second = mutable(Secret, at.world.widgets, {
      mutateWithInitialData: cr => ({ data: { value: btoa(cr.spec.value) } }),
    })
    const operator = operate({}, { resources: [settings(), second] })
    await at.world.widget('a', 'one')
    await at.world.until('a ready Widget', isReady)
    operator.meddle = (request, next) => {
      if (request.method !== 'PATCH') return next(request)
      if (request.target.resource === 'configmaps') throw new Conflict('Conflict', 'fresh', 409, request.target, {})
      if (request.target.resource === 'secrets') throw new Forbidden(403, request.target, { message: 'quota exceeded' })
      return next(request)
    }
    await at.world.change(ref, 'two')
    await at.world.until('that it is told', () => conditions().Ready?.message.includes('quota exceeded') ?? false)
  })

  it('a Conflict of a creation counts, where nothing is there that it could be about', async () => {
    const codes: string[] = []
    const operator = operate({ ErrorManager: ({ results }) => void codes.push(...Object.keys(results.counters())) })
    operator.meddle = (request, next) => {
      const isMaking = request.target.resource === 'configmaps' && request.method === 'PATCH'
      if (isMaking) throw new Conflict('Conflict', 'fresh', 409, request.target, { message: 'no room in the quota' })
      return next(request)
    }
    await at.world.widget('a')
    await at.world.until('that it is told', () => conditions().Ready?.message.includes('no room in the quota') ?? false)
    expect(conditions().ReconciliationSuccess).toMatchObject({ status: 'False', reason: 'Conflict' })
    expect(codes).toContain('CreateFailed')
  })
})

it('a wish to come back does not make a failure be tried again sooner', async () => {
  const operator = operate({ CRChecker: ({ comeBack }) => comeBack(100) }, { throttle: { jitter: 0 } })
  let attempts = 0
  operator.meddle = (request, next) => {
    if (request.target.resource !== 'configmaps' || request.method !== 'PATCH') return next(request)
    attempts++
    throw new Forbidden(403, request.target, { message: 'quota exceeded' })
  }
  await at.world.widget('a')
  await quiet()
  // At 0, 1, 3, 7, 15 seconds, and once for the news of its own status.
  expect(attempts).toBeLessThan(8)
})

it('what a hook has called off itself is a failure, and told', async () => {
  operate({
    SuccessManager() {
      throw new Aborted(target, new Error('it took too long'))
    },
  })
  await at.world.widget('a')
  await at.world.until('that it is told', () => conditions().ReconciliationSuccess?.status === 'False')
  expect(conditions().Stalled).toBeUndefined()
})

it('a child that an Updater deletes does not keep the custom resource from being ready', async () => {
  const child = settings()
  operate({ Updater: ({ deleteResource }) => deleteResource(child) }, { resources: [child] })
  await at.world.widget('a')
  await at.world.until('a ready Widget', isReady)
})

describe('a refusal', () => {
  const refusal = (...causes: { field: string; message: string }[]) =>
    new Invalid('Invalid', 'never', 422, target, { message: 'is invalid', details: { causes } })

  it('about a field that cannot change names it, in whatever words', () => {
    const fieldsOf = (message: string) => immutableFields(refusal({ field: 'x', message }), {}, {})
    expect(fieldsOf('Invalid value: field is immutable')).toEqual(['x'])
    expect(fieldsOf('Invalid value: {}: cannot change roleRef')).toEqual(['x'])
    expect(fieldsOf('Forbidden: may not be changed in an update.')).toEqual(['x'])
    expect(fieldsOf('Invalid value: must be positive')).toEqual([])
  })

  it('that is about something else too does not delete what is there', async () => {
    const operator = operate({}, { resources: [settings({ recreate: true })] })
    await at.world.widget('a', 'one')
    await at.world.until('a ready Widget', isReady)
    const { uid } = map()?.metadata ?? {}
    operator.meddle = (request, next) => {
      if (request.target.resource !== 'configmaps' || request.method !== 'PATCH') return next(request)
      throw refusal(
        { field: 'data', message: 'Invalid value: field is immutable' },
        { field: 'data.value', message: 'Invalid value: -1: must be greater than or equal to 0' },
      )
    }
    await at.world.change(ref, 'two')
    await at.world.until('that it is told', () => conditions().ReconciliationSuccess?.status === 'False')
    await quiet()
    expect(find(ConfigMap)?.metadata.uid).toBe(uid)
  })
})

it('a custom resource whose child has no namespace is told to say one', async () => {
  const child = settings({ namespace: () => undefined as unknown as string })
  operate({}, { resources: [child] })
  await at.world.widget('a')
  await at.world.until('a Stalled Widget', () => conditions().Stalled?.status === 'True')
  expect(conditions().Stalled?.message).toContain('say `namespace`')
  expect(map()).toBeUndefined()
})

it('one whose name cannot be worked out does not keep news from the others', async () => {
  const free = settings({
    owner: false,
    name: cr => {
      if (cr.spec.value === 'broken') throw new Error('no such name')
      return cr.metadata.name
    },
  })
  operate({}, { resources: [free] })
  await at.world.widget('0', 'broken')
  await at.world.widget('a', 'one')
  await at.world.until('a ready Widget', isReady)
  await at.world.client.delete(ConfigMap, ref)
  await at.world.until('a new one', () => map() !== undefined)
})
