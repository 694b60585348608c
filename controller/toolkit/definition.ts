/**
 * A custom resource from one definition: its kind for the client, its TypeScript type, CRD, validation and documentation.
 *
 * Guarantees: whatever the definition says and a CRD cannot is refused when it is defined, with the field and what to do; the status always has
 * `conditions` and `observedGeneration`; the spec of a stored object is as its type says, defaults filled in.
 */
import { z } from 'zod'
import { ShipmateError } from '../../shared/errors.ts'
import type { Desired } from '../../shared/kinds/app.ts'
import { suggestion } from '../../shared/nearest.ts'
import { apiVersionOf, type Draft, type DraftMeta, defineKind, type Kind, type ShapeOf } from '../kube/kind.ts'
import { conversionOf, type Hook, type WebhookPlace } from '../runtime/index.ts'
import { type Admitting, type Conversion, conversionPath, type Default, hooksOf, type Validate } from './admission.ts'
import type { Condition } from './conditions.ts'
import type { Columns } from './crd/columns.ts'
import { docsOf } from './crd/docs.ts'
import { type Crd, type CrdVersion, crdOf, crdVersion, type ScalePaths, yamlOf } from './crd/manifest.ts'
import { checkNames, type Names } from './crd/names.ts'
import { refuse } from './crd/refuse.ts'
import { wholeStatus } from './crd/status.ts'
import type { ValidationRule } from './crd/structural.ts'
import { problemsOf } from './crd/validate.ts'
import { type AppLifecycle, type AppView, appView, wishOf } from './crd/wish.ts'

export interface CustomResourceDefinitionOf<S extends z.core.$ZodObject, T extends z.ZodObject> {
  /** A domain of yours: `cache.example.com`. */
  readonly group: string
  /** `v1alpha1`, `v1`. */
  readonly version: string
  /** In CamelCase: `Memcached`. */
  readonly kind: string
  /** The name in URLs. Default: by the rule that Kubernetes' own tools use. */
  readonly plural?: string
  /** Default: the kind in lower case. */
  readonly singular?: string
  /** What kubectl accepts as well. Default: none. */
  readonly shortNames?: readonly string[]
  /** Groups of kinds that kubectl knows, such as `all`. Default: none. */
  readonly categories?: readonly string[]
  /** Default true. */
  readonly namespaced?: boolean
  /** What an object of this kind is, for `kubectl explain`. */
  readonly description?: string
  /** What is wished: a `z.object`, of zod or of zod/mini. */
  readonly spec: S
  /** What is observed; `conditions` and `observedGeneration` are added, or replace what stands here. Default: these alone. */
  readonly status?: T
  /** What `kubectl get` prints beside the name: a JSON path each. An age is added. */
  readonly columns?: Columns
  /** CEL rules about the whole object. Rules about one field: `.meta({ rules: [...] })` there. */
  readonly rules?: readonly ValidationRule[]
  /** Makes `kubectl scale` and autoscalers work. Default: they do not. */
  readonly scale?: ScalePaths
  /** Whether the server answers requests for this version. Default true. */
  readonly served?: boolean
  /** Whether objects are stored in this version; of all versions, one is. Default true. */
  readonly storage?: boolean
  /** The server warns who uses this version; with a text, by that. Default false. */
  readonly deprecated?: boolean | string
  /**
   * The lifecycle of the app that an object of this kind stands for. It adds `spec.desired`, the wished state, which only takes what the lifecycle knows, `status.app`
   * and columns for both; `appResource` keeps the StatefulApp that goes with it.
   */
  readonly lifecycle?: AppLifecycle | undefined
  /** Other versions of this kind that are in the same CRD; of all, one is stored. Without `convert` their fields are the same: only the name of the version changes. */
  readonly versions?: readonly CustomResource[]
  /** Between each of `versions`, by its name, and this one: `{ v1alpha1: { up, down } }`. The API server asks it as a webhook. */
  readonly convert?: Readonly<Record<string, Conversion<ResourceShape<S, T>>>> | undefined
  /** Fills in, in place, what the defaults of a schema cannot. Asked by the API server, as a webhook, before it checks the schema. */
  readonly default?: Default<ResourceShape<S, T>> | undefined
  /** What is wrong with an object that no schema and no CEL rule can say. Asked by the API server, as a webhook, about whatever is created or changed, in this version. */
  readonly validate?: Validate<ResourceShape<S, T>> | undefined
}

/** A kind with all that follows from its definition. */
export interface CustomResource<Shape extends object = object, Input = object> extends Kind<Shape> {
  /** The manifest, anew at each call. @param place of its webhooks, if it converts. Default: as `run` has it, in the namespace `default` */
  crd(place?: WebhookPlace): Crd
  /** The same as YAML, marked as generated. */
  crdYaml(place?: WebhookPlace): string
  /** What the definition's `default`, `validate` and `convert` are for the API server. */
  readonly webhooks: readonly Hook[]
  /** What is wrong with an object, a sentence each; empty where nothing is. CEL rules are left to the server. */
  validate(object: unknown): string[]
  /** Its fields as Markdown. */
  docs(): string
  /** As it was defined. */
  readonly lifecycle?: AppLifecycle | undefined
  /** An object to create: what has a default may be left out, the server fills it in. */
  draft(object: { readonly metadata: DraftMeta; readonly spec: Input }): Draft<Shape>
}

/** What every status has. */
export interface StandardStatus {
  conditions?: Condition[] | undefined
  observedGeneration?: number | undefined
}

/** All that a status has is optional when it is read. */
type StatusShape<T extends z.ZodObject> =
  z.output<T> extends Record<string, never>
    ? StandardStatus
    : {
        [K in keyof z.output<T> as K extends keyof StandardStatus ? never : K]?: z.output<T>[K] | undefined
      } & StandardStatus

/** The objects of a kind: `spec` with defaults filled in, `status` as far as it was written. */
export interface ResourceShape<S extends z.core.$ZodObject, T extends z.ZodObject> {
  spec: z.output<S>
  status?: StatusShape<T>
}

/** The same, of a kind with a lifecycle. */
export interface AppShape<S extends z.core.$ZodObject, T extends z.ZodObject> {
  spec: z.output<S> & { desired?: Desired | undefined }
  status?: StatusShape<T> & { app?: AppView | undefined }
}

/** `type Memcached = ResourceOf<typeof Memcached>` */
export type ResourceOf<K extends Kind> = ShapeOf<K>

/** The spec as a person writes it: what has a default may be left out. */
export type SpecInputOf<K extends Kind> = K extends CustomResource<infer _Shape, infer Input> ? Input : never

// biome-ignore lint/complexity/noBannedTypes: an object schema without fields has no other name in zod.
type NoFields = z.ZodObject<{}>

export function defineCustomResource<S extends z.ZodObject, T extends z.ZodObject = NoFields>(
  definition: CustomResourceDefinitionOf<S, T> & { readonly lifecycle: AppLifecycle },
): CustomResource<AppShape<S, T>, z.input<S> & { desired?: Desired | undefined }> & { readonly lifecycle: AppLifecycle }
export function defineCustomResource<S extends z.core.$ZodObject, T extends z.ZodObject = NoFields>(
  definition: CustomResourceDefinitionOf<S, T> & { readonly lifecycle?: undefined },
): CustomResource<ResourceShape<S, T>, z.input<S>>
export function defineCustomResource(given: AnyDefinition): CustomResource {
  return named(given.kind, () => {
    const definition = given.lifecycle ? withWish(given, given.lifecycle) : given
    const { group, version, kind: name, namespaced = true, spec } = definition
    const names = namesOf(definition)
    checkNames(names)
    checkObject('spec', spec)
    if (definition.status !== undefined) checkObject('status', definition.status)
    const status = wholeStatus(definition.status)
    const { served = true, storage = true, deprecated = false, description } = definition
    const { rules = [], columns = {}, scale } = definition
    const own = crdVersion({
      ...{ name: version, served, storage, deprecated, description, spec, status, rules, columns, scale },
    })
    checkConversions(definition)
    const versions = [own, ...(definition.versions ?? []).flatMap(other => versionsOf(other, definition))]
    const kind = { group, version, kind: name, plural: names.plural, namespaced }
    const made = (place: WebhookPlace = { service: { name: `${names.singular}-webhook`, namespace: 'default' } }) =>
      crdOf(names, namespaced, versions, definition.convert && conversionOf(place, conversionPath(kind)))
    const apiVersion = apiVersionOf(kind)
    const schema = own.schema.openAPIV3Schema
    const validate = (object: unknown) =>
      problemsOf(object, { apiVersion, kind: name, namespaced, schema, spec, status })
    return {
      ...kind,
      crd: place => structuredClone(made(place)),
      crdYaml: place => yamlOf(made(place)),
      validate,
      webhooks: hooksOf(kind, definition as Admitting, validate),
      docs: () => docsOf(made(), version),
      draft: object => ({ apiVersion, kind: name, ...object }) as Draft,
      ...(definition.lifecycle && { lifecycle: definition.lifecycle }),
    }
  })
}

type AnyDefinition = CustomResourceDefinitionOf<z.core.$ZodObject, z.ZodObject>

/** What is said of a schema, but for its id, which there is once. */
function metaOf(schema: z.ZodObject | undefined) {
  const { id: _id, ...meta } = schema?.meta() ?? {}
  return meta
}

/** With what a lifecycle adds. */
function withWish(definition: AnyDefinition, lifecycle: AppLifecycle): AnyDefinition {
  const { status, columns = {} } = definition
  checkObject('spec', definition.spec)
  const spec = definition.spec as z.ZodObject
  if (typeof spec.extend !== 'function')
    refuse('spec', 'with a lifecycle it has to be a z.object of zod, not of zod/mini')
  if ('desired' in spec.shape) refuse('spec.desired', 'the lifecycle adds it: leave it out')
  if (status && 'app' in status.shape) refuse('status.app', 'the lifecycle adds it: leave it out')
  const wish = wishOf(lifecycle).optional().describe('The wish. Without one the app is only observed.')
  const app = appView.optional().describe('How its app stands.')
  return {
    ...definition,
    spec: spec.extend({ desired: wish }).meta(metaOf(spec)),
    status: (status ?? z.object({})).extend({ app }).meta(metaOf(status)),
    columns: {
      Desired: '.spec.desired.state',
      State: '.status.app.state',
      ...columns,
      'Waiting For': { path: '.status.app.waitingFor', priority: 1 },
    },
  }
}

function namesOf({ group, version, kind, plural, singular, shortNames = [], categories = [] }: AnyDefinition): Names {
  const lower = String(kind).toLowerCase()
  const defaults = defineKind({ group, version, kind: String(kind) })
  return {
    group,
    version,
    kind,
    plural: plural ?? defaults.plural,
    singular: singular ?? lower,
    shortNames,
    categories,
  }
}

function versionsOf(other: CustomResource, { group, kind, version, storage = true }: AnyDefinition): CrdVersion[] {
  const what = `versions: ${apiVersionOf(other)} ${other.kind}`
  if (other.group !== group || other.kind !== kind) refuse(what, `is no version of ${kind} in ${group}`)
  if (other.version === version) refuse(what, 'is the version that it is listed in')
  const versions = other.crd().spec.versions
  const stored = versions.find(one => one.storage)
  if (stored && storage)
    refuse(what, `of all versions one is stored, and ${version} is: define this one with storage: false`)
  return versions
}

/** Between all versions, or none: one that is left out would lose fields in silence. */
function checkConversions({ convert, versions = [] }: AnyDefinition): void {
  if (!convert) return
  const others = versions.flatMap(other => other.crd().spec.versions.map(({ name }) => name))
  const [lacking] = others.filter(name => !Object.hasOwn(convert, name))
  if (lacking !== undefined) refuse('convert', `version ${lacking} is missing: { ${lacking}: { up, down } }`)
  const [unknown] = Object.keys(convert).filter(name => !others.includes(name))
  if (unknown !== undefined)
    refuse(`convert.${unknown}`, `there is no such version in versions${suggestion(unknown, others)}`)
}

function checkObject(part: string, schema: unknown): void {
  const { def } = (schema as z.core.$ZodObject | undefined)?._zod ?? {}
  if (def === undefined) refuse(part, 'it has to be a schema of zod 4: z.object({ … })')
  if (def.type !== 'object') refuse(part, `it is a z.${def.type}, but has to be a z.object`)
}

/** Refusals say which kind it is. */
function named<R>(kind: string, define: () => R): R {
  try {
    return define()
  } catch (error) {
    if (!(error instanceof ShipmateError)) throw error
    throw new ShipmateError(error.code, `${kind}: ${error.message}`, error.retry, { cause: error })
  }
}
