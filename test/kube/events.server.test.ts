import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { authenticated } from '../../controller/kube/auth.ts'
import { Client } from '../../controller/kube/client.ts'
import { createConnection } from '../../controller/kube/connection.ts'
import { createEventRecorder, type Regarded } from '../../controller/kube/events.ts'
import { ConfigMap, Event, Namespace, Role } from '../../controller/kube/kinds.ts'
import { credentialsFrom } from '../../controller/kube/kubeconfig.ts'
import { intercept, type Request, type Send } from '../../controller/kube/transport.ts'

const kubeconfig = inject('kubeconfig')
const started = { type: 'Normal', reason: 'Started', action: 'Start', note: 'it runs' } as const

describe.skipIf(!kubeconfig)('events on a real server', () => {
  const connection = createConnection()
  const component = 'shipmate.dev/test'
  let send: Send
  let namespace: string
  let client: Client

  beforeAll(async () => {
    send = authenticated(connection, credentialsFrom({ file: kubeconfig }))
    const made = await new Client(send).create(Namespace, { metadata: { generateName: 'events-' } })
    namespace = made.metadata.name
    client = new Client(send, { namespace })
  })
  afterAll(() => connection.close())

  const eventsOf = (object: Regarded, where = namespace) =>
    client.list(Event, { namespace: where, fields: { 'regarding.uid': object.metadata.uid ?? '' } })

  it('are there for the object, and what repeats is one of them', async () => {
    const events = createEventRecorder(client, { component })
    const object = await client.create(ConfigMap, { metadata: { name: 'talkative' } })
    for (let round = 1; round <= 3; round++) {
      events.record(object, started)
      await events.flush()
    }
    events.record(object, { ...started, type: 'Warning', note: 'it fell' })
    await events.flush()
    events.stop()
    const all = await eventsOf(object)
    expect(all.map(({ type, note, series }) => ({ type, note, count: series?.count }))).toEqual(
      expect.arrayContaining([
        { type: 'Normal', note: 'it runs', count: 3 },
        { type: 'Warning', note: 'it fell', count: undefined },
      ]),
    )
    expect(all).toHaveLength(2)
    expect(all[0]).toMatchObject({
      reportingController: component,
      regarding: { kind: 'ConfigMap', name: 'talkative', namespace },
    })
    expect(events.stats()).toMatchObject({ recorded: 4, written: 4 })
  })

  it('are taken with the longest note, with odd names, and of objects without a namespace', async () => {
    const events = createEventRecorder(client, { component, instance: 'ü'.repeat(200) })
    const role = await client.create(Role, { metadata: { name: 'system:odd:Name' }, rules: [] })
    const long = await client.create(ConfigMap, { metadata: { name: 'x'.repeat(253) } })
    const space = await client.get(Namespace, { name: namespace })
    for (const object of [role, long, space])
      events.record(object, { ...started, note: '🚢'.repeat(1000), related: role })
    await events.flush()
    events.stop()
    expect(events.stats()).toMatchObject({ written: 3, dropped: { refused: 0 } })
    expect(await eventsOf(role)).toHaveLength(1)
    expect(await eventsOf(long)).toHaveLength(1)
    expect(await eventsOf(space, 'default')).toHaveLength(1)
  })

  it('are made anew when somebody has deleted them', async () => {
    const events = createEventRecorder(client, { component })
    const object = await client.create(ConfigMap, { metadata: { name: 'cleaned' } })
    events.record(object, started)
    await events.flush()
    await client.deleteCollection(Event, { namespace })
    events.record(object, started)
    await events.flush()
    events.stop()
    expect(await eventsOf(object)).toHaveLength(1)
    expect(events.stats()).toMatchObject({ written: 2, dropped: { refused: 0 } })
  })

  it('are dropped, after one request, in a namespace that is going and without the right to write them', async () => {
    const asked: Request[] = []
    const watched = intercept(send, next => request => {
      asked.push(request)
      return next(request)
    })
    const asNobody = intercept(
      watched,
      next => request => next({ ...request, headers: { ...request.headers, 'impersonate-user': 'nobody' } }),
    )
    const { metadata } = await client.create(Namespace, { metadata: { generateName: 'events-' } })
    const object = await client.create(ConfigMap, { metadata: { name: 'last', namespace: metadata.name } })
    await client.delete(Namespace, { name: metadata.name })
    for (const as of [watched, asNobody]) {
      const events = createEventRecorder(new Client(as), { component })
      events.record(object, started)
      await events.flush()
      events.stop()
      expect(events.stats()).toMatchObject({ written: 0, dropped: { refused: 1 } })
    }
    expect(asked).toHaveLength(2)
  })
})
