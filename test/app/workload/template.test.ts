/**
 * What a template asks for.
 */
import { describe, expect, test } from 'vitest'
import { partOf, wishedOf } from '../../../controller/app/workload/template.ts'
import { anApp, templateApp } from './objects.ts'

const shapeOf = (app: Parameters<typeof wishedOf>[0]) =>
  Object.fromEntries(wishedOf(app).map(({ kind, object }) => [`${kind.kind} ${object.metadata.name}`, object]))

describe('a template', () => {
  test('is a StatefulSet with its Service, by the name of the app, and ConfigMaps with it in front', () => {
    const all = shapeOf(templateApp({ configMaps: { conf: { 'a.conf': 'x' } } }))
    expect(Object.keys(all)).toEqual(['ConfigMap orders-conf', 'Service orders', 'StatefulSet orders'])
    expect(all['ConfigMap orders-conf']).toMatchObject({ data: { 'a.conf': 'x' } })
    expect(all['Service orders']).toMatchObject({
      spec: {
        clusterIP: 'None',
        selector: { 'shipmate.dev/app': 'orders' },
        ports: [{ name: 'sql', port: 5432, protocol: 'TCP' }],
      },
    })
    expect(all['StatefulSet orders']).toMatchObject({
      metadata: { annotations: { 'shipmate.dev/claimed-by': 'shop/orders app-1' } },
      spec: {
        replicas: 3,
        serviceName: 'orders',
        selector: { matchLabels: { 'shipmate.dev/app': 'orders' } },
        template: {
          metadata: {
            labels: { 'shipmate.dev/app': 'orders', 'shipmate.dev/lifecycle': 'postgres' },
            annotations: { 'shipmate.dev/app': 'orders' },
          },
        },
      },
    })
    for (const object of Object.values(all)) {
      expect(object.metadata.labels).toMatchObject({ 'shipmate.dev/app-uid': 'app-1' })
      expect(object.metadata.ownerReferences).toBeUndefined()
    }
  })
  test('asks for no sidecar where the controller asks the application itself', () => {
    const app = templateApp()
    const set = shapeOf({ ...app, spec: { ...app.spec, via: { exec: {} } } })['StatefulSet orders']
    expect(set).toHaveProperty('spec.template.metadata.labels', { 'shipmate.dev/app': 'orders' })
  })
  test('keeps what it says itself', () => {
    const pods = { metadata: { labels: { a: 'b' }, annotations: { c: 'd' } }, spec: { containers: [] } }
    const spec = { serviceName: 'other', selector: { matchLabels: { a: 'b' } }, template: pods }
    const all = shapeOf(templateApp({ spec, service: { type: 'ClusterIP', ports: [{ port: 80 }] } }))
    expect(all['Service other']).toMatchObject({
      spec: { type: 'ClusterIP', selector: { a: 'b' }, ports: [{ port: 80 }] },
    })
    expect(all['Service other']).not.toHaveProperty('spec.clusterIP')
    expect(all['StatefulSet orders']).toMatchObject({
      spec: { serviceName: 'other', template: { metadata: { labels: { a: 'b' }, annotations: { c: 'd' } } } },
    })
  })
  test('of an app without one is nothing', () => expect(wishedOf(anApp())).toEqual([]))
  test('that makes no sense in a list or a map is left to the server, or refused by its field', () => {
    const odd = { containers: [null, { ports: 'x' }] }
    expect(() => wishedOf(templateApp({ spec: { template: { spec: odd } } }))).not.toThrow()
    const labelled = { metadata: { labels: 'x' }, spec: {} }
    expect(() => wishedOf(templateApp({ spec: { template: labelled } }))).toThrow('metadata.labels has to be an object')
  })
  test('that is no object is refused by its field', () => {
    expect(() => wishedOf(templateApp({ spec: { template: 'x' } }))).toThrow(
      'spec.template.spec.template has to be an object',
    )
    expect(() => wishedOf(templateApp({ spec: {} }))).toThrow('spec.template.spec.template has to be an object')
  })
})

test('what was there before, and what belongs to somebody, is not taken over', () => {
  const app = templateApp()
  const [, set] = wishedOf(app)
  const options = { manager: 'shipmate', isScaledDown: false }
  const live = (metadata: object) => ({ kind: 'StatefulSet', metadata: { name: 'orders', ...metadata } }) as never
  expect(partOf(app, set as never, live({}), options).foreign).toMatch(
    'StatefulSet orders was there before, and was not made for this app; name it in spec.workload',
  )
  const ownerReferences = [{ kind: 'Postgres', name: 'pg', controller: true }]
  expect(partOf(app, set as never, live({ ownerReferences }), options).foreign).toMatch('belongs to Postgres pg')
  const earlier = wishedOf(templateApp({}, { uid: 'app-0' }))[1]
  expect(partOf(app, set as never, live(earlier?.object.metadata ?? {}), options).foreign).toBeUndefined()
})
