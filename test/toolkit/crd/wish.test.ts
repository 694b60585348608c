/**
 * What a lifecycle adds to a definition.
 */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineCustomResource } from '../../../controller/toolkit/definition.ts'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import { postgres } from '../../shared/lifecycle/postgres.ts'

const define = (more: object = {}) =>
  defineCustomResource({
    ...{ group: 'example.com', version: 'v1', kind: 'Database', spec: z.object({ size: z.int().optional() }) },
    lifecycle: { spec: postgres as LifecycleSpec },
    ...more,
  })
const desiredOf = (kind: ReturnType<typeof define>) =>
  kind.crd().spec.versions[0]?.schema.openAPIV3Schema.properties?.spec?.properties?.desired

describe('a definition with a lifecycle', () => {
  test('has the wish of its states and actions, beside its own fields', () => {
    const { properties, required } = desiredOf(define()) ?? {}
    expect(properties?.state?.enum).toEqual(['Start', 'Running', 'Servicing', 'Stopping', 'End'])
    expect(properties?.action?.enum).toEqual(['backup', 'reload', 'stop'])
    expect(Object.keys(properties ?? {})).toEqual(['state', 'action', 'params', 'paramsFrom', 'request'])
    expect(required).toEqual(['state'])
    expect(define().crd().spec.versions[0]?.schema.openAPIV3Schema.properties?.spec?.properties).toHaveProperty('size')
  })

  test('takes only what may be wished', () => {
    const { properties } = desiredOf(define({ lifecycle: { spec: postgres, wishable: ['Running', 'End'] } })) ?? {}
    expect(properties?.state?.enum).toEqual(['Running', 'End'])
    expect(Object.keys(properties ?? {})).toEqual(['state', 'request'])
  })

  test('what is entered by observation alone cannot be wished', () => {
    const states = [...postgres.states, { name: 'Healing', when: 'true', next: ['Running'] }]
    const kind = define({ lifecycle: { spec: { ...postgres, states } } })
    expect(desiredOf(kind)?.properties?.state?.enum).not.toContain('Healing')
  })

  test('has columns for the wish and the state, beside its own', () => {
    const columns = define({ columns: { Size: '.spec.size' } }).crd().spec.versions[0]?.additionalPrinterColumns
    expect(columns?.map(({ name }) => name)).toEqual(['Desired', 'State', 'Size', 'Waiting For', 'Age'])
  })

  test('validates an object without a server, too', () => {
    const object = (desired: object) => ({ metadata: { name: 'a' }, spec: { desired } })
    expect(define().validate(object({ state: 'Running' }))).toEqual([])
    expect(define().validate(object({ state: 'Runing' }))[0]).toContain('spec.desired.state is "Runing"')
  })

  test('keeps rules and words that were said of the spec', () => {
    const spec = z.object({ size: z.int() }).meta({ rules: [{ rule: 'self.size > 0' }], id: 'spec' })
    const made = define({ spec }).crd().spec.versions[0]?.schema.openAPIV3Schema.properties?.spec
    expect(made?.['x-kubernetes-validations']).toEqual([{ rule: 'self.size > 0' }])
  })

  test.each<[string, object, string]>([
    ['a wish of its own', { spec: z.object({ desired: z.string() }) }, 'Database: spec.desired: the lifecycle adds it'],
    [
      'a status.app of its own',
      { status: z.object({ app: z.string() }) },
      'Database: status.app: the lifecycle adds it',
    ],
    [
      'a wish for what is no state',
      { lifecycle: { spec: postgres, wishable: ['Runing'] } },
      'Database: lifecycle.wishable: "Runing" is no state; did you mean "Running"?',
    ],
    ['nothing to wish for', { lifecycle: { spec: postgres, wishable: [] } }, 'Database: lifecycle.wishable: is empty'],
    ['no states', { lifecycle: { spec: {} } }, 'Database: lifecycle.spec.states: a lifecycle has at least one state'],
    [
      'a lifecycle of another shape',
      { lifecycle: { spec: { states: [{ name: 'Start', nxt: [] }] } } },
      'Database: lifecycle.spec.states[0].nxt: no such field; did you mean "next"?',
    ],
  ])('is refused with %s', (_, more, words) => {
    expect(() => define(more)).toThrow(words)
  })
})
