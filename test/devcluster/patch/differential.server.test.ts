/**
 * The promise: every patch, and managedFields after every write, are as a real server makes them.
 *
 * Each schedule is a seed: a sequence of random writes to one object, sent to a real server and worked out here from what the object was before. Replay
 * one with SHIPMATE_SEED=N.
 */
import { uniformInt } from 'pure-rand/distribution/uniformInt'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { apply } from '../../../devcluster/api/patch/apply.ts'
import { jsonPatch } from '../../../devcluster/api/patch/json.ts'
import { updateManaged } from '../../../devcluster/api/patch/managed.ts'
import { mergePatch } from '../../../devcluster/api/patch/merge.ts'
import { strategicMerge } from '../../../devcluster/api/patch/strategic.ts'
import { ApiError, type Status } from '../../../devcluster/api/problems.ts'
import { prune } from '../../../devcluster/api/schema/prune.ts'
import type { ManagedFieldsEntry, Obj } from '../../../devcluster/api/types.ts'
import { type Answer, askReal, type Real } from './real.ts'
import { type Dice, gadgetDefinition, gadgets, meta, objectOf, type Subject, subjects } from './subjects.ts'

const kubeconfig = inject('kubeconfig')
const first = Number(process.env.SHIPMATE_SEED ?? 1)
const schedules = Number(process.env.SHIPMATE_SCHEDULES ?? 20)
const steps = 14
const managers = ['one', 'two', 'three']

describe.skipIf(!kubeconfig)('patches and managedFields', () => {
  let real: Real
  beforeAll(async () => {
    real = askReal(kubeconfig)
    await real.ask('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', gadgetDefinition)
    await vi.waitFor(async () => expect((await real.ask('GET', gadgets.v2.path('default'))).status).toBe(200), 30_000)
  })
  afterAll(() => real[Symbol.asyncDispose]())

  test(`are as on a real server, over ${schedules} sequences for each kind from seed ${first}`, {
    timeout: 3_600_000,
  }, async () => {
    const failures: string[] = []
    for (let seed = first; seed < first + schedules; seed++) {
      for (const subject of subjects) {
        const wrong = await play(seed, subject, real)
        if (wrong)
          failures.push(
            `seed ${seed}, ${subject.kind}: ${wrong}\n  replay: SHIPMATE_SEED=${seed} npx vitest run --project server test/devcluster/patch/differential.server.test.ts`,
          )
      }
    }
    expect(failures.length, failures.slice(0, 5).join('\n\n')).toBe(0)
  })
})

/** Plays one sequence; what differed first, if anything did. */
async function play(seed: number, subject: Subject, real: Real): Promise<string | undefined> {
  const generator = xoroshiro128plus(seed)
  const dice: Dice = n => uniformInt(generator, 0, n - 1)
  const name = `s${seed}-${Date.now().toString(36)}`
  const history: string[] = []
  let live: Obj | undefined
  for (let step = 0; step < steps; step++) {
    const write = randomWrite(dice, subject, name, live)
    history.push(`${write.what} ${JSON.stringify(write.body)}`)
    const wrong = await differs(real, subject, write, live)
    if (wrong) return `${wrong}\n  before: ${JSON.stringify(live)}\n  write: ${history.at(-1)}`
    const after = await real.ask('GET', `${subject.path('default')}/${name}`)
    live = after.problem ? undefined : after.object
  }
  if (live) await real.ask('DELETE', `${subject.path('default')}/${name}`)
  return undefined
}

interface RandomWrite {
  readonly what: string
  /** The kind in the version of the request. */
  readonly subject: Subject
  readonly method: 'POST' | 'PUT' | 'PATCH'
  readonly path: string
  readonly contentType: string
  readonly body: unknown
  readonly manager: string
  readonly force: boolean
  readonly subresource: string | undefined
}

function randomWrite(dice: Dice, given: Subject, name: string, live: Obj | undefined): RandomWrite {
  const subject = given === gadgets.v1 && dice(4) === 0 ? gadgets.v2 : given
  const manager = managers[dice(managers.length)] as string
  const subresource = live && subject.status && dice(5) === 0 ? 'status' : undefined
  const content = () => (subresource && subject.status ? { status: subject.status(dice) } : subject.part(dice))
  const base = { subject, manager, subresource, force: dice(3) === 0, method: 'PATCH' as const }
  const path = `${subject.path('default')}/${name}${subresource ? '/status' : ''}`
  const query = `fieldManager=${manager}`
  const kinds = live
    ? ['apply', 'apply', 'apply', 'merge', 'json', 'update', ...(subject.strategic ? ['strategic'] : [])]
    : ['apply', 'create']
  const kind = kinds[dice(kinds.length)]
  switch (kind) {
    case 'create':
      return {
        ...base,
        what: 'create',
        method: 'POST',
        path: `${subject.path('default')}?${query}`,
        contentType: 'application/json',
        body: objectOf(subject, name, meta(dice), subject.whole(dice)),
      }
    case 'update': {
      const draft = structuredClone(live as Obj)
      const changed = mergePatch(draft, { ...content(), metadata: meta(dice) })
      if (dice(8) === 0) changed.metadata.managedFields = dice(2) === 0 ? [] : [{}]
      return {
        ...base,
        what: 'update',
        method: 'PUT',
        path: `${path}?${query}`,
        contentType: 'application/json',
        body: { ...changed, apiVersion: subject.apiVersion },
      }
    }
    case 'merge':
      return {
        ...base,
        what: 'merge',
        path: `${path}?${query}`,
        contentType: 'application/merge-patch+json',
        body: { ...content(), metadata: meta(dice) },
      }
    case 'strategic':
      return {
        ...base,
        what: 'strategic',
        path: `${path}?${query}`,
        contentType: 'application/strategic-merge-patch+json',
        body: subresource ? { ...content(), metadata: meta(dice) } : subject.strategic?.(dice),
      }
    case 'json':
      return {
        ...base,
        what: 'json',
        path: `${path}?${query}`,
        contentType: 'application/json-patch+json',
        body: operations(dice, subject, live as Obj),
      }
    default:
      return {
        ...base,
        what: `apply${base.force ? ' by force' : ''} as ${manager}`,
        path: `${path}?${query}&force=${base.force}`,
        contentType: 'application/apply-patch+yaml',
        body: objectOf(subject, name, meta(dice), live || dice(2) === 0 ? content() : subject.whole(dice)),
      }
  }
}

/** A few operations on paths that there are, and some that there are not. */
function operations(dice: Dice, subject: Subject, live: Obj): unknown[] {
  const paths: string[] = ['/metadata/labels', '/metadata/labels/a', '/nope/x', '/metadata/labels/q~1r']
  const walk = (value: unknown, at: string) => {
    if (typeof value !== 'object' || value === null) return
    if (Array.isArray(value)) paths.push(`${at}/-`, `${at}/0`, `${at}/-1`, `${at}/9`)
    for (const [key, inner] of Object.entries(value)) {
      paths.push(`${at}/${key}`)
      walk(inner, `${at}/${key}`)
    }
  }
  walk(live['spec'] ?? live['data'], live['spec'] ? '/spec' : '/data')
  // The server sets some again if they are gone, after it has looked at who manages them; of metadata it drops before what it does not know.
  const known = paths.filter(at => !/clusterIP|ipFamil|Policy$|embedded.metadata/.test(at))
  const path = () => known[dice(known.length)] as string
  const values = [subject.part(dice)['spec'] ?? subject.part(dice)['data'], 'x', 1, null, [], {}]
  const value = () => values[dice(values.length)]
  return Array.from({ length: 1 + dice(2) }, () => {
    switch (dice(6)) {
      case 0:
        return { op: 'add', path: path(), value: value() }
      case 1:
        return { op: 'remove', path: path() }
      case 2:
        return { op: 'replace', path: path(), value: value() }
      case 3:
        return { op: 'copy', from: path(), path: path() }
      case 4:
        return { op: 'move', from: path(), path: path() }
      default: {
        const at = path()
        const found = at
          .split('/')
          .slice(1)
          .reduce<unknown>((in_, key) => (in_ as Record<string, unknown>)?.[key], live)
        return { op: 'test', path: at, value: dice(3) === 0 || comparedAsText(found) ? 'x' : found }
      }
    }
  })
}

/** A real server's `test` compares texts, in which its own have escapes that the patch has not. */
const comparedAsText = (value: unknown) => /[<>&]/.test(JSON.stringify(value) ?? '')

/** Sends the write, and says where what happens is not what was worked out here. */
async function differs(
  real: Real,
  subject: Subject,
  write: RandomWrite,
  live: Obj | undefined,
): Promise<string | undefined> {
  const expected = workOut(write, live)
  // What the server would make of the object that was worked out: its defaults, and what it finds wrong.
  const tried = expected.object && (await tryOut(real, write, live, expected.object))
  const answer = await real.ask(write.method, write.path, write.body, write.contentType)
  if (expected.problem) return sameProblem(expected.problem, answer)
  if (answer.problem) {
    // A null that an apply leaves where none may be is found when it is validated; one that is sent is dropped before.
    if (/Invalid value: "null"/.test(answer.problem.message ?? '') && /:null/.test(JSON.stringify(expected.object))) {
      return undefined
    }
    if (!tried?.problem) return `the server refused: ${JSON.stringify(answer.problem)}`
    // What does not fit its kind is found by other parts, in other words where it cannot even be decoded.
    return answer.status === tried.status || answer.status === 400 || answer.status === 422
      ? undefined
      : `the server refused with ${JSON.stringify(answer.problem)}, of what was worked out it says ${JSON.stringify(tried.problem)}`
  }
  if (!tried || tried.problem)
    return `the server took it, but not what was worked out: ${JSON.stringify(tried?.problem)}`
  const content = difference(contentOf(tried.object), contentOf(answer.object))
  if (content) return `content differs: ${content}`
  const entries = managedAfter(write, subject, live, expected.object as Obj, answer.object)
  return difference(comparable(entries), comparable(answer.object.metadata.managedFields))
}

const now = '2026-01-01T00:00:00Z'

function workOut(
  { what, subject, body, manager, force, subresource }: RandomWrite,
  before: Obj | undefined,
): { object?: Obj; problem?: Status } {
  const live = before && { ...before, apiVersion: subject.apiVersion }
  const { schema, apiVersion, hasStatus, kind } = subject
  try {
    if (what.startsWith('apply')) {
      return {
        object: apply({
          live,
          applied: body as Obj,
          manager,
          force,
          schema,
          apiVersion,
          kind,
          subresource,
          now,
          hasStatus,
        }),
      }
    }
    switch (what) {
      case 'merge':
        return { object: mergePatch(live as Obj, body) }
      case 'json':
        return { object: jsonPatch(live as Obj, body) }
      case 'strategic':
        return { object: strategicMerge(live as Obj, body, schema) }
      default:
        return { object: body as Obj }
    }
  } catch (error) {
    if (error instanceof ApiError) return { problem: error.status }
    throw error
  }
}

async function tryOut(
  real: Real,
  { subject, subresource }: RandomWrite,
  live: Obj | undefined,
  object: Obj,
): Promise<Answer> {
  const at = subject.path('default')
  const { managedFields: _, ...metadata } = object.metadata
  const body = { ...object, metadata }
  if (!live) return real.ask('POST', `${at}?dryRun=All`, body)
  return real.ask('PUT', `${at}/${live.metadata.name}${subresource ? `/${subresource}` : ''}?dryRun=All`, body)
}

function managedAfter(
  { what, manager, subject, subresource }: RandomWrite,
  given: Subject,
  before: Obj | undefined,
  worked: Obj,
  after: Obj,
) {
  if (what.startsWith('apply')) return worked.metadata.managedFields
  const { schema, apiVersion, hasStatus } = subject
  const live = before && { ...before, apiVersion }
  // With the defaults that the server adds, without what it adds later.
  const { managedFields: _, ...metadata } = after.metadata
  const next = { ...after, metadata, ...(given.later && !live ? { spec: { ...after['spec'] } } : {}) } as Obj
  if (!live) for (const [name] of given.later ?? []) delete next['spec'][name as string]
  // That a write leaves the status alone, or all but the status, comes later too: until then it may be of the wrong type.
  if (subresource && schema['x-name'] === undefined) next['spec'] = prune(schema, worked)['spec']
  if (!subresource && worked['status'] !== undefined) next['status'] = worked['status']
  if (worked.metadata.managedFields) next.metadata.managedFields = worked.metadata.managedFields
  return updateManaged({ live, next, manager, schema, apiVersion, subresource, now, hasStatus }).metadata.managedFields
}

function sameProblem(expected: Status, { problem }: Answer): string | undefined {
  if (!problem) return `the server took it, expected: ${JSON.stringify(expected)}`
  const facts = ({ code, reason, message, details }: Status) => ({
    code,
    reason: reason || undefined,
    message,
    causes: [...(details?.causes ?? [])].sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))),
  })
  return difference(facts(expected), facts(problem))
}

function contentOf({ metadata, ...rest }: Obj): unknown {
  const {
    managedFields: _,
    resourceVersion: __,
    generation: ___,
    uid: ____,
    creationTimestamp: _____,
    ...kept
  } = metadata
  return { ...rest, metadata: kept }
}

/** Entries in an order that does not depend on when they were made, and of times whether there is one. */
function comparable(entries: ManagedFieldsEntry[] | undefined): unknown {
  const known = (entries ?? []).map(({ time, ...entry }) => ({ ...entry, timed: time !== undefined }))
  return known.sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1))
}
const idOf = ({ manager, operation, apiVersion, subresource }: ManagedFieldsEntry) =>
  [operation, manager, apiVersion, subresource].join()

/** The first places where two values differ. */
function difference(mine: unknown, theirs: unknown): string | undefined {
  const found: string[] = []
  const walk = (a: unknown, b: unknown, at: string) => {
    if (isContainer(a) && isContainer(b) && Array.isArray(a) === Array.isArray(b)) {
      for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) walk(a[key], b[key], `${at}/${key}`)
    } else if (a !== b) found.push(`\n    ${at} here: ${JSON.stringify(a)}, server: ${JSON.stringify(b)}`)
  }
  walk(mine, theirs, '')
  return found.length > 0 ? found.slice(0, 5).join('') : undefined
}

const isContainer = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
