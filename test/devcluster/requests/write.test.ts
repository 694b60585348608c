import { expect, onTestFinished, test } from 'vitest'
import { type Api, createApi } from '../../../devcluster/api/server.ts'
import { ask, merge } from './ask.ts'

const maps = '/api/v1/namespaces/default/configmaps'
const pods = '/api/v1/namespaces/default/pods'
const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets'
const deployments = '/apis/apps/v1/namespaces/default/deployments'

function start(): Api {
  const api = createApi()
  onTestFinished(() => api.close())
  return api
}

const pod = (name: string, nodeName?: string) => ({
  metadata: { name, labels: { app: 'x' } },
  spec: { ...(nodeName ? { nodeName } : {}), containers: [{ name: 'a', image: 'x' }] },
})

test.each([
  ['{"metadata":{"name":"a"', 400, /couldn't get version\/kind; json parse error: unexpected end of JSON input/],
  ['', 400, /unexpected end of JSON input \(<empty>\)/],
  [
    '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}',
    400,
    /Pod in version "v1" cannot be handled as a ConfigMap: converting \(v1.Pod\) to \(core.ConfigMap\): unknown conversion/,
  ],
  [
    '{"metadata":{"name":"b","namespace":"other"}}',
    400,
    /the namespace of the provided object does not match the namespace sent on the request/,
  ],
  ['{"metadata":{}}', 422, /ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required/],
  [
    '{"metadata":{"name":"b","resourceVersion":"5"}}',
    500,
    /resourceVersion should not be set on objects to be created/,
  ],
  [
    '{"metadata":{"name":"b"},"data":{"a":1}}',
    400,
    /json: cannot unmarshal number into Go struct field ConfigMap.data of type string/,
  ],
])('a body that is no such object is refused: %s', async (body, status, message) => {
  const answer = await ask(start(), `POST ${maps}`, body)
  expect(answer.status).toBe(status)
  expect(answer.body.message).toMatch(message)
})

test('unknown and duplicate fields: ignored, told, refused', async () => {
  const api = start()
  const body = '{"metadata":{"name":"b","foo":1},"x":{"y":1},"data":{"a":"1","a":"2"}}'
  const told = ['unknown field "metadata.foo"', 'unknown field "x"', 'duplicate field "data.a"']
  const strict = await ask(api, `POST ${maps}?fieldValidation=Strict`, body)
  expect([strict.status, strict.body.message]).toEqual([
    400,
    `ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: ${told.join(', ')}`,
  ])
  const warned = await ask(api, `POST ${maps}?fieldValidation=Warn&dryRun=All`, body)
  expect(warned.headers.warning).toEqual(told.map(text => `299 - "${text.replaceAll('"', '\\"')}"`))
  expect(warned.body.data).toEqual({ a: '2' })
  expect(warned.body.metadata.resourceVersion).toBeUndefined()
  expect((await ask(api, `POST ${maps}?fieldValidation=Ignore`, body)).headers.warning).toBeUndefined()
})

test('a name is taken once; one that is made is not', async () => {
  const api = start()
  expect((await ask(api, `POST ${maps}`, { metadata: { name: 'a' } })).status).toBe(201)
  expect((await ask(api, `POST ${maps}`, { metadata: { name: 'a' } })).body.message).toBe(
    'configmaps "a" already exists',
  )
  const { body } = await ask(api, `POST ${maps}`, { metadata: { generateName: 'a-' } })
  expect(body.metadata.name).toMatch(/^a-[a-z0-9]{5}$/)
})

test('an update of another version is a conflict; one that changes nothing is none', async () => {
  const api = start()
  const made = (await ask(api, `POST ${maps}`, { metadata: { name: 'a' }, data: { x: '1' } })).body
  const same = (await ask(api, `PUT ${maps}/a`, made)).body
  expect(same.metadata.resourceVersion).toBe(made.metadata.resourceVersion)
  const next = (await ask(api, `PUT ${maps}/a`, { ...made, data: { x: '2' } })).body
  expect(Number(next.metadata.resourceVersion)).toBeGreaterThan(Number(made.metadata.resourceVersion))
  const late = await ask(api, `PUT ${maps}/a`, { ...made, data: { x: '3' } })
  expect([late.status, late.body.message]).toEqual([
    409,
    'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
  ])
  expect((await ask(api, `PUT ${maps}/a`, { metadata: { name: 'a', uid: '1' } })).body.message).toMatch(
    /Precondition failed: UID in precondition: 1/,
  )
  expect((await ask(api, `PUT ${maps}/zzz`, { metadata: { name: 'zzz' } })).status).toBe(404)
})

test('the four patches, and apply makes what is not there', async () => {
  const api = start()
  const applied = await ask(
    api,
    `PATCH ${maps}/a?fieldManager=me`,
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { x: '1' } },
    { type: 'application/apply-patch+yaml' },
  )
  expect([applied.status, applied.body.metadata.managedFields[0].operation]).toEqual([201, 'Apply'])
  expect((await ask(api, `PATCH ${maps}/a`, { data: { y: '2' } }, merge)).body.data).toEqual({ x: '1', y: '2' })
  const json = { type: 'application/json-patch+json' }
  expect((await ask(api, `PATCH ${maps}/a`, [{ op: 'remove', path: '/data/x' }], json)).body.data).toEqual({ y: '2' })
  const strategic = { type: 'application/strategic-merge-patch+json' }
  expect((await ask(api, `PATCH ${maps}/a`, { data: { y: null, z: '3' } }, strategic)).body.data).toEqual({ z: '3' })
  expect((await ask(api, `PATCH ${maps}/a`, {}, { type: 'application/json' })).status).toBe(415)
  expect((await ask(api, `PATCH ${maps}/b`, {}, merge)).status).toBe(404)
})

test('an apply that names a version makes what is not there, and changes nothing that is', async () => {
  const api = start()
  const object = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'a', resourceVersion: '1' },
    data: { x: '1' },
  }
  const apply = () => ask(api, `PATCH ${maps}/a?fieldManager=me`, object, { type: 'application/apply-patch+yaml' })
  expect((await apply()).status).toBe(201)
  expect((await apply()).status).toBe(409)
})

test('a deletion waits for finalizers, then is done by the last one that goes', async () => {
  const api = start()
  await ask(api, `POST ${maps}`, { metadata: { name: 'a', finalizers: ['x.io/y'] } })
  const marked = (await ask(api, `DELETE ${maps}/a`)).body
  expect(marked.metadata).toMatchObject({ deletionGracePeriodSeconds: 0, finalizers: ['x.io/y'] })
  expect((await ask(api, `POST ${maps}`, { metadata: { name: 'a' } })).body.message).toBe(
    'object is being deleted: configmaps "a" already exists',
  )
  expect((await ask(api, `PATCH ${maps}/a`, { metadata: { finalizers: null } }, merge)).status).toBe(200)
  expect((await ask(api, `GET ${maps}/a`)).status).toBe(404)
})

test('preconditions, and how dependents are treated', async () => {
  const api = start()
  const { uid } = (await ask(api, `POST ${maps}`, { metadata: { name: 'a' } })).body.metadata
  const refused = await ask(api, `DELETE ${maps}/a`, { preconditions: { uid: '1' } })
  expect([refused.status, refused.body.message]).toEqual([
    409,
    `Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (1) does not match the UID in record (${uid}). The object might have been deleted and then recreated`,
  ])
  const foreground = await ask(api, `DELETE ${maps}/a?propagationPolicy=Foreground`)
  expect(foreground.body.metadata.finalizers).toEqual(['foregroundDeletion'])
  const done = await ask(api, `DELETE ${maps}/a?propagationPolicy=Background`)
  expect(done.body).toMatchObject({ status: 'Success', details: { name: 'a', kind: 'configmaps', uid } })
})

test('a pod on a node has its time; a second deletion may shorten it', async () => {
  const api = start()
  await ask(api, `POST ${pods}`, pod('p', 'n1'))
  const first = (await ask(api, `DELETE ${pods}/p`)).body.metadata
  expect(first).toMatchObject({ deletionGracePeriodSeconds: 30, generation: 2 })
  const longer = (await ask(api, `DELETE ${pods}/p?gracePeriodSeconds=40`)).body.metadata
  expect(longer.resourceVersion).toBe(first.resourceVersion)
  const shorter = (await ask(api, `DELETE ${pods}/p?gracePeriodSeconds=10`)).body.metadata
  expect(shorter.deletionGracePeriodSeconds).toBe(10)
  expect(Date.parse(first.deletionTimestamp) - Date.parse(shorter.deletionTimestamp)).toBe(20_000)
  await ask(api, `DELETE ${pods}/p?gracePeriodSeconds=0`)
  expect((await ask(api, `GET ${pods}/p`)).status).toBe(404)
  await ask(api, `POST ${pods}`, pod('q'))
  await ask(api, `DELETE ${pods}/q`)
  expect((await ask(api, `GET ${pods}/q`)).status).toBe(404)
})

test('nothing new in a namespace that is not there or is going', async () => {
  const api = start()
  expect((await ask(api, 'POST /api/v1/namespaces/nope/configmaps', { metadata: { name: 'a' } })).body.message).toBe(
    'namespaces "nope" not found',
  )
  await ask(api, 'POST /api/v1/namespaces', { metadata: { name: 't' } })
  expect((await ask(api, 'DELETE /api/v1/namespaces/t')).body.status.phase).toBe('Terminating')
  const { status, body } = await ask(api, 'POST /api/v1/namespaces/t/configmaps', { metadata: { name: 'y' } })
  expect([status, body.details.causes[0].reason]).toEqual([403, 'NamespaceTerminating'])
  await ask(api, 'PUT /api/v1/namespaces/t/finalize', { metadata: { name: 't' }, spec: { finalizers: [] } })
  expect((await ask(api, 'GET /api/v1/namespaces/t')).status).toBe(404)
  expect((await ask(api, 'DELETE /api/v1/namespaces/default')).body.message).toBe(
    'namespaces "default" is forbidden: this namespace may not be deleted',
  )
})

test('scale reads and writes replicas', async () => {
  const api = start()
  const labels = { a: 'b' }
  const template = { metadata: { labels }, spec: { containers: [{ name: 'a', image: 'x' }] } }
  await ask(api, `POST ${deployments}`, {
    metadata: { name: 'd' },
    spec: { replicas: 2, selector: { matchLabels: labels }, template },
  })
  expect((await ask(api, `GET ${deployments}/d/scale`)).body).toMatchObject({
    kind: 'Scale',
    spec: { replicas: 2 },
    status: { replicas: 0, selector: 'a=b' },
  })
  expect((await ask(api, `PATCH ${deployments}/d/scale`, { spec: { replicas: 5 } }, merge)).body.spec.replicas).toBe(5)
  expect((await ask(api, `GET ${deployments}/d`)).body).toMatchObject({
    spec: { replicas: 5 },
    metadata: { generation: 2 },
  })
  expect((await ask(api, `PATCH ${deployments}/d/scale`, { spec: { replicas: -1 } }, merge)).body.message).toBe(
    'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
  )
})

test('an eviction asks the budget', async () => {
  const api = start()
  await ask(api, `POST ${pods}`, pod('p', 'n1'))
  await ask(
    api,
    `PATCH ${pods}/p/status`,
    { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } },
    merge,
  )
  await ask(api, `POST ${budgets}`, {
    metadata: { name: 'b' },
    spec: { minAvailable: 1, selector: { matchLabels: { app: 'x' } } },
  })
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p' } }
  const early = await ask(api, `POST ${pods}/p/eviction`, eviction)
  expect([early.status, early.body.details.causes[0].message]).toEqual([
    429,
    'The disruption budget b is still being processed by the server.',
  ])
  const status = { observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 }
  await ask(api, `PATCH ${budgets}/b/status`, { status }, merge)
  const refused = await ask(api, `POST ${pods}/p/eviction`, eviction)
  expect(refused.body.details.causes[0].message).toBe(
    'The disruption budget b needs 1 healthy pods and has 1 currently',
  )
  await ask(api, `PATCH ${budgets}/b/status`, { status: { ...status, disruptionsAllowed: 1 } }, merge)
  expect((await ask(api, `POST ${pods}/p/eviction`, eviction)).status).toBe(201)
  expect((await ask(api, `GET ${budgets}/b`)).body.status).toMatchObject({
    disruptionsAllowed: 0,
    disruptedPods: { p: expect.any(String) },
  })
  expect((await ask(api, `GET ${pods}/p`)).body.metadata.deletionTimestamp).toBeDefined()
})

test('a pod is bound once', async () => {
  const api = start()
  await ask(api, `POST ${pods}`, pod('p'))
  const binding = { metadata: { name: 'p' }, target: { kind: 'Node', name: 'n1' } }
  expect((await ask(api, `POST ${pods}/p/binding`, binding)).status).toBe(201)
  expect((await ask(api, `GET ${pods}/p`)).body.spec.nodeName).toBe('n1')
  expect((await ask(api, `POST ${pods}/p/binding`, binding)).status).toBe(409)
})

test('a token is known again while its account is there', async () => {
  const api = start()
  const accounts = '/api/v1/namespaces/default/serviceaccounts'
  await ask(api, `POST ${accounts}`, { metadata: { name: 's' } })
  const { status } = (await ask(api, `POST ${accounts}/s/token`, {})).body
  const now = api.clock.now()
  expect(api.tokens.check(status.token, now)?.name).toBe('system:serviceaccount:default:s')
  expect(api.tokens.check(status.token, now + 3601_000)).toBeUndefined()
  expect(api.tokens.check(`${status.token.slice(0, -4)}AAAA`, now)).toBeUndefined()
  await ask(api, `DELETE ${accounts}/s`)
  expect(api.tokens.check(status.token, now)).toBeUndefined()
  expect((await ask(api, `POST ${accounts}/s/token`, {})).status).toBe(404)
})

test('an event has two sets of names', async () => {
  const api = start()
  const about = { kind: 'Pod', name: 'p', namespace: 'default' }
  await ask(api, 'POST /api/v1/namespaces/default/events', {
    metadata: { name: 'e' },
    involvedObject: about,
    reason: 'R',
    message: 'm',
    type: 'Normal',
    count: 2,
  })
  const { body } = await ask(api, 'GET /apis/events.k8s.io/v1/namespaces/default/events/e')
  expect(body).toMatchObject({ apiVersion: 'events.k8s.io/v1', regarding: about, note: 'm', deprecatedCount: 2 })
})

test('who did what is told', async () => {
  const api = start()
  const seen: string[] = []
  api.onRequest(({ verb, resource, user, code }) => seen.push(`${user.name} ${verb} ${resource} ${code}`))
  await ask(api, `POST ${maps}`, { metadata: { name: 'a' } })
  await ask(api, `GET ${maps}/b`)
  expect(seen).toEqual(['kubernetes-admin create configmaps 201', 'kubernetes-admin get configmaps 404'])
})
