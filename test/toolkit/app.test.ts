import { expect, it } from 'vitest'
import { defineKind, type Snapshot } from '../../controller/kube/kind.ts'
import { appResource } from '../../controller/toolkit/app.ts'
import { expectedOf } from '../../controller/toolkit/expected.ts'
import { postgres } from '../shared/lifecycle/postgres.ts'

interface Database {
  spec: { state?: string; action?: string }
}
const Database = defineKind<Database>({ group: 'example.com', version: 'v1', kind: 'Database' })
const app = appResource(Database, {
  lifecycle: 'postgres',
  graph: postgres,
  desired: ({ spec }) => (spec.state === undefined ? undefined : { state: spec.state, action: spec.action }),
  workload: cr => ({ kind: 'StatefulSet', name: cr.metadata.name }),
})
const database = (spec: Database['spec']) =>
  ({
    apiVersion: 'example.com/v1',
    kind: 'Database',
    metadata: { name: 'orders', namespace: 'shop' },
    spec,
  }) as Snapshot<Database>
const wished = (spec: Database['spec']) =>
  expectedOf(app, database(spec), { childFinalizer: 'x/child', maker: 'x' }).object

it.each([
  ['Start', 'Create'],
  ['Running', 'Update'],
  ['Servicing', 'Update'],
  ['End', 'Delete'],
  [undefined, undefined],
])('the wished state %s asks for %s', (state, verb) => {
  expect(app.verb(database({ ...(state && { state }) }))).toBe(verb)
})

it('the app is a StatefulApp over the workload, with the wish in it', () => {
  expect(wished({ state: 'Servicing', action: 'backup' })).toMatchObject({
    kind: 'StatefulApp',
    metadata: { name: 'orders', namespace: 'shop' },
    spec: {
      lifecycle: 'postgres',
      workload: { kind: 'StatefulSet', name: 'orders' },
      desired: { state: 'Servicing', action: 'backup' },
    },
  })
})

it('without a wish it is only observed', () => {
  expect(wished({})).not.toHaveProperty('spec.desired')
})

it.each([
  [{ state: 'Runing' }, '"Runing" is no state of lifecycle postgres; did you mean "Running"?'],
  [
    { state: 'Servicing', action: 'backpu' },
    '"backpu" is no action of state Servicing in lifecycle postgres; did you mean "backup"?',
  ],
])('%j is refused, with the nearest that is right', (spec, message) => {
  expect(() => wished(spec)).toThrow(message)
})
