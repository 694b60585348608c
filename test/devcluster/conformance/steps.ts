/**
 * Random requests. A step follows from chance alone; what it sends to a server may also follow from what that server answered before.
 */
import { type Dice, maybe, one, rarely } from './dice.ts'
import { type Kind, pathOf } from './kinds.ts'
import { labels } from './pod-parts.ts'
import { patches } from './servers.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a server answered.
type Any = any

export interface Sent {
  readonly line: string
  readonly body?: unknown
  readonly type?: string | undefined
  readonly accept?: string | undefined
}

export interface Step {
  readonly what: string
  /** @param known what the server last showed of each object, by name */
  make(namespace: string, known: ReadonlyMap<string, Any>): Sent
}

const names = ['a', 'b']
const managers = ['one', 'two']

export function randomStep(dice: Dice, kind: Kind): Step {
  const name = one(dice, ...names)
  const make = one(
    dice,
    create,
    create,
    update,
    update,
    jsonPatch,
    mergePatch,
    strategicPatch,
    applyPatch,
    applyPatch,
    remove,
    list,
    get,
    status,
    scale,
  )
  return make(dice, kind, name)
}

type Make = (dice: Dice, kind: Kind, name: string) => Step

const meta = (dice: Dice): Record<string, unknown> =>
  maybe(dice, {
    labels: () => one<unknown>(dice, labels(dice), labels(dice), rarely(dice, 8) ? { 'a b': '1' } : {}),
    annotations: () => labels(dice),
    finalizers: () => (rarely(dice, 3) ? ['example.com/hold'] : []),
  })

function query(dice: Dice, more: Record<string, string> = {}): string {
  const given = new URLSearchParams({ fieldManager: one(dice, ...managers), ...more })
  if (rarely(dice, 6)) given.set('fieldValidation', one(dice, 'Strict', 'Ignore', 'Warn'))
  if (rarely(dice, 10)) given.set('dryRun', one(dice, 'All', 'All', 'Some'))
  return `?${given}`
}

const create: Make = (dice, kind, name) => {
  const { apiVersion, kind: of } = kind
  const body = spoiled(dice, {
    apiVersion,
    kind: of,
    metadata: { name: rarely(dice, 15) ? one(dice, 'A_', '', 'x.y') : name, ...meta(dice) },
    ...kind.whole(dice),
  })
  const asked = query(dice)
  return { what: 'create', make: namespace => ({ line: `POST ${pathOf(kind, namespace)}${asked}`, body }) }
}

/** Now and then with a field that is wrong in itself. */
function spoiled(dice: Dice, object: Any): Any {
  if (!rarely(dice, 8)) return object
  const out = structuredClone(JSON.parse(JSON.stringify(object)))
  let at = out
  for (let depth = 0; depth < 6; depth++) {
    const keys = Object.keys(at).filter(key => !['apiVersion', 'kind', 'name', 'metadata'].includes(key))
    if (keys.length === 0) break
    const key = one(dice, ...keys)
    const below = at[key]
    if (below === null || typeof below !== 'object' || rarely(dice, 4)) {
      at[key] = one<unknown>(dice, null, '', -1, 'wrong', {}, [])
      return out
    }
    at = below
  }
  at.unknown = 1
  return out
}

const update: Make = (dice, kind, name) => {
  const asked = query(dice)
  const isFresh = rarely(dice, 3)
  const whole = { apiVersion: kind.apiVersion, kind: kind.kind, metadata: { name, ...meta(dice) }, ...kind.whole(dice) }
  const part = kind.part(dice)
  const change = meta(dice)
  const version = one(dice, 'known', 'known', 'known', 'none', 'old')
  const below = kind.status && rarely(dice, 6) ? '/status' : ''
  return {
    what: `update with ${version} version`,
    make(namespace, known) {
      const live = known.get(name)
      const object =
        isFresh || !live ? structuredClone(whole) : merged(structuredClone(live), { metadata: change, ...part })
      const metadata: Any = object.metadata
      delete metadata.resourceVersion
      if (version === 'known' && live) metadata.resourceVersion = live.metadata.resourceVersion
      if (version === 'old') metadata.resourceVersion = '1'
      return { line: `PUT ${pathOf(kind, namespace)}/${name}${below}${asked}`, body: object }
    },
  }
}

function merged(target: Any, part: Any): Any {
  for (const [key, value] of Object.entries(part as object)) {
    if (value === null) delete target[key]
    else if (typeof value === 'object' && !Array.isArray(value) && target[key] && typeof target[key] === 'object')
      merged(target[key], value)
    else target[key] = value
  }
  return target
}

const patched = (dice: Dice, kind: Kind, name: string, type: string, body: unknown): Step => {
  const asked = query(dice)
  return { what: type, make: namespace => ({ line: `PATCH ${pathOf(kind, namespace)}/${name}${asked}`, body, type }) }
}

const mergePatch: Make = (dice, kind, name) =>
  patched(dice, kind, name, patches.merge, spoiled(dice, { metadata: meta(dice), ...kind.part(dice) }))

const strategicPatch: Make = (dice, kind, name) =>
  patched(dice, kind, name, patches.strategic, { metadata: meta(dice), ...kind.part(dice) })

const jsonPatch: Make = (dice, kind, name) =>
  patched(
    dice,
    kind,
    name,
    patches.json,
    one<unknown>(
      dice,
      [{ op: 'add', path: '/metadata/labels', value: labels(dice) }],
      [{ op: 'remove', path: '/metadata/labels/a' }],
      [{ op: 'replace', path: '/metadata/annotations', value: labels(dice) }],
      [
        { op: 'test', path: '/metadata/name', value: one(dice, 'a', 'b') },
        { op: 'add', path: '/metadata/finalizers', value: [] },
      ],
      [{ op: 'add', path: '/spec/replicas', value: dice(4) }],
      [{ op: 'copy', from: '/metadata/name', path: '/metadata/annotations/b' }],
      [{ op: 'remove', path: '/metadata/finalizers' }],
    ),
  )

const applyPatch: Make = (dice, kind, name) => {
  const { apiVersion, kind: of } = kind
  const body = {
    apiVersion,
    kind: of,
    metadata: { name, ...meta(dice) },
    ...(rarely(dice, 2) ? kind.whole(dice) : kind.part(dice)),
  }
  const asked = query(dice, rarely(dice, 3) ? { force: 'true' } : {})
  return {
    what: 'apply',
    make: namespace => ({ line: `PATCH ${pathOf(kind, namespace)}/${name}${asked}`, body, type: patches.apply }),
  }
}

const remove: Make = (dice, kind, name) => {
  const body = one<unknown>(
    dice,
    undefined,
    { propagationPolicy: one(dice, 'Background', 'Foreground', 'Orphan', 'Wrong') },
    { gracePeriodSeconds: one(dice, 0, 5) },
    { preconditions: { resourceVersion: '1' } },
    { dryRun: ['All'] },
  )
  return { what: 'delete', make: namespace => ({ line: `DELETE ${pathOf(kind, namespace)}/${name}`, body }) }
}

const list: Make = (dice, kind) => {
  const asked = one(
    dice,
    '',
    '?labelSelector=a%3D1',
    '?labelSelector=a%20in%20(1,2),!b',
    '?labelSelector=a%20%20in',
    '?fieldSelector=metadata.name%3Da',
    '?fieldSelector=spec.x%3Da',
    '?limit=1',
    '?limit=1&continue=wrong',
  )
  const accept = one(
    dice,
    'application/json',
    'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
    'application/json;as=Table;g=meta.k8s.io;v=v1',
  )
  return { what: 'list', make: namespace => ({ line: `GET ${pathOf(kind, namespace)}${asked}`, accept }) }
}

const get: Make = (_dice, kind, name) => ({
  what: 'get',
  make: namespace => ({ line: `GET ${pathOf(kind, namespace)}/${name}` }),
})

const status: Make = (dice, kind, name) => {
  const asked = query(dice)
  const type = one(dice, patches.merge, patches.apply, patches.merge)
  const isApply = type === patches.apply
  const head = isApply ? { apiVersion: kind.apiVersion, kind: kind.kind, metadata: { name } } : {}
  const body = { ...head, ...(rarely(dice, 4) ? kind.part(dice) : {}), status: kind.status?.(dice) ?? {} }
  return {
    what: 'status',
    make: namespace => ({ line: `PATCH ${pathOf(kind, namespace)}/${name}/status${asked}`, body, type }),
  }
}

const scale: Make = (dice, kind, name) => {
  const body = { spec: { replicas: one(dice, 0, 1, 4, -1) } }
  const asked = query(dice)
  return {
    what: 'scale',
    make: namespace => ({ line: `PATCH ${pathOf(kind, namespace)}/${name}/scale${asked}`, body, type: patches.merge }),
  }
}
