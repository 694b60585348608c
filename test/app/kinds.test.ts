/**
 * Shipmate's own kinds, without a server.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Lifecycle, Operation, OperationSchedule, StatefulApp } from '../../controller/app/kinds.ts'
import type { CustomResource } from '../../controller/toolkit/definition.ts'
import { defaults } from '../../shared/lifecycle/model.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/api.md'), 'utf8')

function schemaOf(kind: CustomResource) {
  const schema = kind.crd().spec.versions[0]?.schema.openAPIV3Schema
  return { spec: schema?.properties?.spec?.properties ?? {}, status: schema?.properties?.status?.properties ?? {} }
}

describe.each([
  ['Lifecycle', Lifecycle],
  ['StatefulApp', StatefulApp],
  ['Operation', Operation],
  ['OperationSchedule', OperationSchedule],
] as const)('%s', (name, kind) => {
  const section = (page.split(`\n## ${name}`)[1] ?? '').split('\n## ')[0] ?? ''
  const { spec, status } = schemaOf(kind as CustomResource)

  test('docs/api.md names every field', () => {
    const known = ['observedGeneration', ...(name === 'Lifecycle' ? Object.keys(spec) : [])]
    const missing = [...Object.keys(spec), ...Object.keys(status)].filter(
      field => !known.includes(field) && !new RegExp(`\`${field}\\b`).test(section),
    )
    expect(missing).toEqual([])
  })

  test('kubectl explain has a sentence for every field', () => {
    const silent = Object.entries({ ...spec, ...status }).filter(([, { description }]) => !description)
    expect(silent.map(([field]) => field)).toEqual([])
  })
})

test('what the server fills into a Lifecycle is what the sidecar does where nothing is written', () => {
  const { probes, actions } = schemaOf(Lifecycle as CustomResource).spec
  const filled = (fields: object = {}) =>
    Object.fromEntries(
      Object.entries(fields).flatMap(([field, { default: value }]) => (value === undefined ? [] : [[field, value]])),
    )
  const { initialDelay: _none, ...probe } = defaults.probe
  expect(filled(probes?.items?.properties)).toEqual(probe)
  expect(filled(actions?.items?.properties)).toEqual({ ...defaults.action, cancel: {} })
  expect(filled(actions?.items?.properties?.cancel?.properties)).toEqual(defaults.cancel)
})
