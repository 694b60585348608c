import { expect, onTestFinished, test } from 'vitest'
import { type Api, type ApiOptions, createApi } from '../../../devcluster/api/server.ts'
import { ask } from './ask.ts'

const maps = '/api/v1/namespaces/default/configmaps'

function start(options?: ApiOptions): Api {
  const api = createApi(options)
  onTestFinished(() => api.close())
  return api
}

async function withMaps(...names: string[]): Promise<Api> {
  const api = start()
  for (const name of names) await ask(api, `POST ${maps}`, { metadata: { name, labels: { name } } })
  return api
}

const names = (list: { items: { metadata: { name: string } }[] }) => list.items.map(({ metadata }) => metadata.name)

test('what is not there is 404, as Status or as text', async () => {
  const api = start()
  const missing = await ask(api, `GET ${maps}/nope`)
  expect([missing.status, missing.body.message]).toEqual([404, 'configmaps "nope" not found'])
  expect((await ask(api, 'GET /api/v1/namespaces/default/nopes/x')).body.message).toBe(
    'the server could not find the requested resource',
  )
  expect((await ask(api, 'GET /apis/foo/v1/namespaces/default/nopes')).body).toBe('404 page not found\n')
})

test.each([
  ['PUT', maps],
  ['POST', `${maps}/a`],
  ['DELETE', '/api/v1/namespaces'],
])('%s %s is 405', async (method, path) => {
  expect((await ask(start(), `${method} ${path}`)).status).toBe(405)
})

test.each([
  ['labelSelector=a%20in', "unable to parse requirement: found '' expected: '('"],
  ['labelSelector=a%3D%21b', "unable to parse requirement: found '!', expected: identifier"],
  ['labelSelector=a%20in%20(b', "unable to parse requirement: found '', expected: ',' or ')'"],
  ['labelSelector=a%20foo%20b', "unable to parse requirement: found 'foo', expected: in, notin, =, ==, !=, gt, lt"],
  ['labelSelector=a%3E%3Db', "unable to parse requirement: found '=', expected: identifier"],
  ['fieldSelector=spec.x', "invalid selector: 'spec.x'; can't understand 'spec.x'"],
  [
    'resourceVersion=abc',
    'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
  ],
  ['limit=abc', 'strconv.ParseInt: parsing "abc": invalid syntax'],
])('a list with %s is refused in the words of a server', async (query, message) => {
  const { status, body } = await ask(start(), `GET ${maps}?${query}`)
  expect([status, body.message]).toEqual([400, message])
})

test.each([
  [
    'resourceVersionMatch=Exact',
    'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
  ],
  [
    'resourceVersionMatch=Foo&resourceVersion=1',
    'resourceVersionMatch: Unsupported value: "Foo": supported values: "Exact", "NotOlderThan", ""',
  ],
  ['sendInitialEvents=true', 'sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list'],
  [
    'watch=true&sendInitialEvents=true',
    'resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
  ],
])('options that do not fit together (%s) are 422', async (query, message) => {
  const { status, body } = await ask(start(), `GET ${maps}?${query}`)
  expect([status, body.message]).toEqual([422, `ListOptions.meta.k8s.io "" is invalid: ${message}`])
})

test.each([
  ['name=a', ['a']],
  ['name!=a', ['b', 'c']],
  ['name in (a,b)', ['a', 'b']],
  ['name notin (a,b)', ['c']],
  ['name', ['a', 'b', 'c']],
  ['!name', []],
  ['name,name!=b', ['a', 'c']],
])('labels %s', async (selector, expected) => {
  const api = await withMaps('a', 'b', 'c')
  expect(names((await ask(api, `GET ${maps}?labelSelector=${encodeURIComponent(selector)}`)).body)).toEqual(expected)
})

test('a page leads to the next, over writes; after compaction the rest can be had as of now', async () => {
  const api = await withMaps('a', 'b', 'c', 'd')
  const first = (await ask(api, `GET ${maps}?limit=2`)).body
  expect([names(first), first.metadata.remainingItemCount]).toEqual([['a', 'b'], 2])
  await ask(api, `DELETE ${maps}/c`)
  const token = encodeURIComponent(first.metadata.continue)
  const second = (await ask(api, `GET ${maps}?limit=2&continue=${token}`)).body
  expect([names(second), second.metadata.resourceVersion]).toEqual([['c', 'd'], first.metadata.resourceVersion])
  api.store.compact()
  const expired = await ask(api, `GET ${maps}?limit=2&continue=${token}`)
  expect([expired.status, expired.body.reason]).toEqual([410, 'Expired'])
  const rest = await ask(api, `GET ${maps}?limit=2&continue=${encodeURIComponent(expired.body.metadata.continue)}`)
  expect(names(rest.body)).toEqual(['d'])
})

test('a version that nobody has written yet is 504', async () => {
  const { status, body } = await ask(start(), `GET ${maps}?resourceVersion=100000`)
  expect([status, body.reason, body.details.causes[0].reason]).toEqual([504, 'Timeout', 'ResourceVersionTooLarge'])
})

test('metadata alone, as a list and as a Table', async () => {
  const api = await withMaps('a')
  const as = (what: string) => ({ accept: `application/json;as=${what};g=meta.k8s.io;v=v1` })
  expect((await ask(api, `GET ${maps}/a`, undefined, as('PartialObjectMetadata'))).body.kind).toBe(
    'PartialObjectMetadata',
  )
  expect((await ask(api, `GET ${maps}`, undefined, as('PartialObjectMetadataList'))).body.kind).toBe(
    'PartialObjectMetadataList',
  )
  const table = (await ask(api, `GET ${maps}`, undefined, as('Table'))).body
  expect([table.kind, table.rows[0].cells[0]]).toEqual(['Table', 'a'])
  expect((await ask(api, `GET ${maps}`, undefined, { accept: 'application/foo' })).status).toBe(406)
})

test('a watch begins with what is there, then tells changes; a selection is all that exists', async () => {
  const api = await withMaps('a', 'b')
  const events = ask(api, `GET ${maps}?watch=true&labelSelector=name&timeoutSeconds=1`)
  await ask(api, `PATCH ${maps}/a`, { metadata: { labels: null } }, { type: 'application/merge-patch+json' })
  await ask(api, `PATCH ${maps}/a`, { metadata: { labels: { name: 'x' } } }, { type: 'application/merge-patch+json' })
  await ask(api, `DELETE ${maps}/b`)
  const seen = (await events).body.map((event: { type: string; object: { metadata: { name: string } } }) => [
    event.type,
    event.object.metadata.name,
  ])
  expect(seen).toEqual([
    ['ADDED', 'a'],
    ['ADDED', 'b'],
    ['DELETED', 'a'],
    ['ADDED', 'a'],
    ['DELETED', 'b'],
  ])
})

test('a watch with sendInitialEvents says where the start ends', async () => {
  const api = await withMaps('a')
  const query =
    'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1'
  const { body } = await ask(api, `GET ${maps}?${query}`)
  expect(body.map((event: { type: string }) => event.type)).toEqual(['ADDED', 'BOOKMARK'])
  expect(body[1].object.metadata.annotations).toEqual({ 'k8s.io/initial-events-end': 'true' })
})

test('a watch from what is forgotten is an ERROR with 410', async () => {
  const api = await withMaps('a', 'b')
  const from = api.store.revision - 1
  api.store.compact()
  const { body } = await ask(api, `GET ${maps}?watch=true&resourceVersion=${from}`)
  expect([body[0].type, body[0].object.code, body[0].object.message]).toEqual([
    'ERROR',
    410,
    `too old resource version: ${from} (${api.store.revision})`,
  ])
})

test('health and version', async () => {
  const api = start()
  expect((await ask(api, 'GET /readyz')).body).toBe('ok')
  expect((await ask(api, 'GET /livez?verbose')).body).toMatch(/\[\+\]ping ok\n.*livez check passed\n$/s)
  expect((await ask(api, 'GET /version')).body.gitVersion).toMatch(/^v1\.36\.\d+$/)
})
