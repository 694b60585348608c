/**
 * `default`, `validate` and `convert` of a definition as webhooks: what they are asked about, and what becomes of their answers.
 *
 * Guarantees: nobody is asked about a status, nor about an object that is being deleted, so that its finalizers can always go; a default that cannot cope with an object
 * that the schema refuses leaves it to the server to say so; a conversion changes of the metadata labels and annotations alone, and leaves what it does not say as it is.
 */
import { apiVersionOf, type Kind, type Live } from '../kube/kind.ts'
import {
  type AdmissionRequest,
  type ConversionRequest,
  converting,
  type Hook,
  type HookRule,
  mutating,
  type Problem,
  type User,
  validating,
} from '../runtime/index.ts'

/** What a `validate` is asked. */
export interface ValidationRequest<Shape extends object = object> {
  readonly operation: 'CREATE' | 'UPDATE'
  /** As it would be written: by the schema it is right already. */
  readonly object: Live<Shape>
  /** As it is; absent in a CREATE. */
  readonly old?: Live<Shape> | undefined
  /** Who asks. */
  readonly user: User
  /** Nothing will be written. */
  readonly dryRun: boolean
  readonly signal: AbortSignal
  /** What kubectl prints beside its answer. */
  warn(text: string): void
}

/** What is wrong: each a field and what is accepted there, or a sentence. Nothing: nothing is. */
export type Problems = readonly (Problem | string)[] | undefined

export type Validate<Shape extends object = object> = (
  request: ValidationRequest<Shape>,
  // biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing finds nothing wrong.
) => Problems | void | Promise<Problems | void>

/** Changes `object` in place. */
export type Default<Shape extends object = object> = (
  object: Live<Shape>,
  request: AdmissionRequest<Shape>,
) => void | Promise<void>

/** The parts of an object that a conversion says; what is absent stays as it is. */
export interface Converted<Shape extends object = object> {
  readonly spec: Shape extends { spec: infer S } ? S : unknown
  readonly status?: (Shape extends { status?: infer S } ? S : unknown) | undefined
  /** Only these of the metadata can be changed. */
  readonly labels?: Record<string, string> | undefined
  readonly annotations?: Record<string, string> | undefined
}

/** Between another version and the one in whose definition it stands. */
export interface Conversion<Shape extends object = object> {
  /** An object of the other version in this one. */
  // biome-ignore lint/suspicious/noExplicitAny: the other version's type is said where the function is written.
  up(other: any): Converted<Shape> | Promise<Converted<Shape>>
  /** An object of this version in the other. */
  down(object: Live<Shape>): Converted | Promise<Converted>
}

export interface Admitting {
  readonly default?: Default | undefined
  readonly validate?: Validate | undefined
  /** By the name of the other version. */
  readonly convert?: Readonly<Record<string, Conversion>> | undefined
}

/** @param problemsOf what is wrong with an object by its schema */
export function hooksOf(
  kind: Kind,
  { default: fill, validate, convert }: Admitting,
  problemsOf: (object: unknown) => string[],
): Hook[] {
  const resource = `${kind.plural}.${kind.group}`
  const rules: HookRule[] = [
    {
      ...{ operations: ['CREATE', 'UPDATE'], apiGroups: [kind.group], apiVersions: [kind.version] },
      ...{ resources: [kind.plural], scope: kind.namespaced ? 'Namespaced' : 'Cluster' },
    },
  ]
  const matchConditions = [{ name: 'not-being-deleted', expression: '!has(object.metadata.deletionTimestamp)' }]
  return [
    ...(fill
      ? [
          mutating({
            ...{ name: `default.${resource}`, path: `/default/${resource}`, rules, matchConditions },
            reinvocationPolicy: 'IfNeeded',
            handle: request => filledIn(request, fill, problemsOf),
          }),
        ]
      : []),
    ...(validate
      ? [
          validating({
            ...{ name: `validate.${resource}`, path: `/validate/${resource}`, rules, matchConditions },
            handle: request => validated(request, validate),
          }),
        ]
      : []),
    ...(convert
      ? [
          converting({
            ...{ crd: resource, path: conversionPath(kind) },
            convert: request => converted(request, kind, convert),
          }),
        ]
      : []),
  ]
}

/** Those of a kind, wherever it was defined. */
export function webhooksOf(kind: Kind): readonly Hook[] {
  return (kind as Kind & { readonly webhooks?: readonly Hook[] }).webhooks ?? []
}

export const conversionPath = ({ plural, group }: Kind) => `/convert/${plural}.${group}`

async function filledIn(request: AdmissionRequest, fill: Default, problemsOf: (object: unknown) => string[]) {
  const { object } = request
  if (!object) return undefined
  const before = structuredClone(object)
  try {
    await fill(object, request)
  } catch (error) {
    if (problemsOf(before).length > 0) return undefined
    throw error
  }
  return { object }
}

async function validated(request: AdmissionRequest, validate: Validate) {
  const { object, old, operation, user, dryRun, signal } = request
  if (!object || (operation !== 'CREATE' && operation !== 'UPDATE')) return undefined
  const warnings: string[] = []
  const warn = (text: string) => void warnings.push(text)
  const found = (await validate({ object, old, operation, user, dryRun, signal, warn })) ?? []
  return { problems: found.map(one => (typeof one === 'string' ? { message: one } : one)), warnings }
}

/** From one version to another by way of the one in whose definition it stands. */
async function converted(
  { object, to }: ConversionRequest,
  kind: Kind,
  conversions: Readonly<Record<string, Conversion>>,
): Promise<Live> {
  const own = apiVersionOf(kind)
  const between = (apiVersion: string) => {
    const [, version = ''] = apiVersion.split('/')
    const found = Object.hasOwn(conversions, version) ? conversions[version] : undefined
    if (!found) throw new Error(`there is no conversion from or to ${apiVersion}`)
    return found
  }
  const { apiVersion } = object
  const here = apiVersion === own ? object : withParts(object, own, await between(apiVersion).up(object))
  return to === own ? here : withParts(here, to, await between(to).down(here))
}

function withParts(object: Live, apiVersion: string, parts: Converted): Live {
  const { labels = object.metadata.labels, annotations = object.metadata.annotations } = parts
  const { status: before } = object as { status?: unknown }
  const { spec, status = before } = parts
  return {
    ...object,
    apiVersion,
    metadata: { ...object.metadata, ...(labels && { labels }), ...(annotations && { annotations }) },
    spec,
    ...(status !== undefined && { status }),
  } as Live
}
