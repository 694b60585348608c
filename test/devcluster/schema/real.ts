/**
 * The real server's word on a schema: a definition made there, objects sent to it, and what it said of them beside what our functions say.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { authenticated } from '../../../controller/kube/auth.ts'
import { createConnection } from '../../../controller/kube/connection.ts'
import { credentialsFrom } from '../../../controller/kube/kubeconfig.ts'
import { type FieldError, mistakeText } from '../../../devcluster/api/problems.ts'
import { validateCustom } from '../../../devcluster/api/schema/custom.ts'
import { decodeMetaErrors } from '../../../devcluster/api/schema/decode.ts'
import { applyDefaults } from '../../../devcluster/api/schema/defaults.ts'
import { dns1123Subdomain, validateMeta } from '../../../devcluster/api/schema/meta.ts'
import { prune } from '../../../devcluster/api/schema/prune.ts'
import { checkRules } from '../../../devcluster/api/schema/rules.ts'
import type { Schema } from '../../../devcluster/api/schema/schema.ts'
import { checkStructural } from '../../../devcluster/api/schema/structural.ts'
import { findUnknown } from '../../../devcluster/api/schema/unknown.ts'

const group = 'schema.test.example.com'
const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

/** What became of an object: its spec as it would be kept, or every cause of the refusal; and the fields that were warned of. */
export interface Verdict {
  status: number
  spec?: unknown
  causes?: string[]
  message?: string
  unknown?: string[]
}

interface Answer {
  status: number
  body: {
    spec?: unknown
    message?: string
    metadata?: Record<string, unknown>
    details?: { causes?: { reason?: string; field?: string; message?: string }[] }
  }
  warnings: string[]
}

export interface Definition {
  create(spec: unknown, metadata?: object): Promise<Verdict>
  /** Keeps an object, to be updated. */
  store(name: string, spec: unknown): Promise<void>
  update(name: string, spec: unknown): Promise<Verdict>
  raw(
    text: string,
    fieldValidation: string,
  ): Promise<{ status: number; message: string | undefined; warnings: string[] }>
  kind: string
  /** Makes its schema another one, which refuses the spec that is given. */
  change(spec: Schema, refused: unknown): Promise<void>
}

const line = (reason: string | undefined, field: string | undefined, message: string | undefined) =>
  `${reason} ${field} ${message}`

const shownErrors = (errors: readonly FieldError[]): string[] =>
  [...new Set(errors.map(error => line(error.mistake, error.field, mistakeText(error))))].sort()

export const rootOf = (spec: Schema): Schema => ({ type: 'object', properties: { spec } })

export function realServer(file: string) {
  const connection = createConnection()
  const send = authenticated(connection, credentialsFrom({ file }), {})
  const run = `r${Date.now().toString(36)}`
  let serial = 0

  async function call(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown): Promise<Answer> {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const headers = { 'content-type': 'application/json', accept: 'application/json' }
    const target = { verb: 'create', group, resource: 'all' }
    const answer = await send({ method, path, headers, target, ...(body === undefined ? {} : { body: text }) })
    const given = answer.headers.warning
    const warnings = (Array.isArray(given) ? given : given ? [given] : []).flatMap(one =>
      [...one.matchAll(/299 - "((?:[^"\\]|\\.)*)"/g)].map(([, inner = '']) => inner.replaceAll('\\"', '"')),
    )
    return { status: answer.status, body: answer.text.startsWith('{') ? JSON.parse(answer.text) : {}, warnings }
  }

  const definition = (plural: string, schema: Schema) => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural, kind: plural.toUpperCase(), singular: plural },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
    },
  })

  const causesOf = ({ body }: Answer) =>
    [...new Set((body.details?.causes ?? []).map(cause => line(cause.reason, cause.field, cause.message)))].sort()

  return {
    close: () => connection.close(),
    /** What is wrong with a definition of this schema. */
    async refusal(schema: Schema): Promise<string[]> {
      return causesOf(await call('POST', `${crds}?dryRun=All`, definition(`${run}d${++serial}`, schema)))
    },
    async define(spec: Schema): Promise<Definition> {
      const plural = `${run}x${++serial}`
      const kind = plural.toUpperCase()
      const path = `/apis/${group}/v1/namespaces/default/${plural}`
      const made = await call('POST', crds, definition(plural, rootOf(spec)))
      if (made.status !== 201) throw new Error(made.body.message)
      while ((await call('GET', path)).status !== 200) await sleep(20)
      const object = (given: unknown, metadata: object = {}) => ({
        apiVersion: `${group}/v1`,
        kind,
        metadata: { name: 'x', ...metadata },
        ...(given === undefined ? {} : { spec: given }),
      })
      const verdict = (answer: Answer): Verdict => {
        const unknown = answer.warnings.flatMap(warning => /^unknown field "(.*)"$/.exec(warning)?.[1] ?? [])
        const causes = causesOf(answer)
        if (answer.status < 300) return { status: 200, spec: answer.body.spec ?? null, unknown }
        if (causes.length > 0) return { status: answer.status, causes, unknown }
        return {
          status: answer.status,
          message: answer.body.message?.replace(/^.* cannot be handled as a \w+: /, '') ?? '',
        }
      }
      return {
        kind,
        create: async (given, metadata) => verdict(await call('POST', `${path}?dryRun=All`, object(given, metadata))),
        async store(name, given) {
          const answer = await call('POST', path, object(given, { name }))
          if (answer.status !== 201) throw new Error(answer.body.message)
        },
        async update(name, given) {
          const { body } = await call('GET', `${path}/${name}`)
          return verdict(await call('PUT', `${path}/${name}?dryRun=All`, object(given, body.metadata)))
        },
        async raw(text, fieldValidation) {
          const { status, body, warnings } = await call(
            'POST',
            `${path}?dryRun=All&fieldValidation=${fieldValidation}`,
            text,
          )
          return { status, message: body.message, warnings }
        },
        async change(next, refused) {
          const { body } = await call('GET', `${crds}/${plural}.${group}`)
          const changed = { ...definition(plural, rootOf(next)), metadata: body.metadata }
          const answer = await call('PUT', `${crds}/${plural}.${group}`, changed)
          if (answer.status !== 200) throw new Error(answer.body.message)
          while ((await call('POST', `${path}?dryRun=All`, object(refused))).status !== 422) await sleep(50)
        },
      }
    },
  }
}

/** The same of our functions. */
export function ourVerdict(spec: Schema, given: unknown, options: { metadata?: object; old?: unknown } = {}): Verdict {
  const schema = rootOf(spec)
  const object = { apiVersion: `${group}/v1`, kind: 'X', metadata: { name: 'x', ...options.metadata }, spec: given }
  const text = JSON.parse(JSON.stringify(object))
  const undecodable = decodeMetaErrors(text.metadata)
  if (undecodable[0]) return { status: 400, message: undecodable[0] }
  const kept = (value: typeof object) => applyDefaults(schema, prune(schema, value))
  const next = kept(text)
  const old = options.old === undefined ? undefined : kept({ ...text, spec: options.old })
  const unknown = findUnknown(schema, text)
  const meta = validateMeta(
    { ...next.metadata, namespace: 'default' },
    { namespaced: true, generated: false, nameRule: dns1123Subdomain },
  )
  const causes = shownErrors([...meta, ...validateCustom(schema, next, old)])
  return causes.length > 0 ? { status: 422, causes, unknown } : { status: 200, spec: next.spec ?? null, unknown }
}

export const ourRefusal = (schema: Schema): string[] => {
  const errors = checkStructural(schema)
  return shownErrors(errors.length > 0 ? errors : checkRules(schema))
}
