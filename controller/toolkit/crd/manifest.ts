/**
 * The CustomResourceDefinition of a kind (apiextensions.k8s.io/v1), as an object and as YAML. Pure.
 *
 * Guarantee: the same definition gives the same text.
 */
import { z } from 'zod'
import { shown } from '../../../shared/nearest.ts'
import type { CrdConversion } from '../../runtime/index.ts'
import { yaml } from '../libraries.ts'
import { type Columns, type PrinterColumn, printerColumns } from './columns.ts'
import { jsonSchemaOf } from './jsonschema.ts'
import type { Names } from './names.ts'
import { schemaAt } from './paths.ts'
import { refuse } from './refuse.ts'
import { rulesOf } from './rules.ts'
import { type StructuralSchema, structural, type ValidationRule } from './structural.ts'

/** The paths of the scale subresource, which `kubectl scale` and autoscalers use. */
export interface ScalePaths {
  /** How many are wished: an integer in the spec, such as `.spec.replicas`. */
  readonly spec: string
  /** How many there are: an integer in the status. */
  readonly status: string
  /** A label selector as a text, which a HorizontalPodAutoscaler needs: `.status.selector`. */
  readonly selector?: string
}

export interface CrdVersion {
  name: string
  served: boolean
  storage: boolean
  deprecated?: boolean
  deprecationWarning?: string
  schema: { openAPIV3Schema: StructuralSchema }
  subresources: {
    status: Record<string, never>
    scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath?: string }
  }
  additionalPrinterColumns: PrinterColumn[]
}

export interface Crd {
  apiVersion: 'apiextensions.k8s.io/v1'
  kind: 'CustomResourceDefinition'
  metadata: { name: string }
  spec: {
    group: string
    names: {
      kind: string
      listKind: string
      plural: string
      singular: string
      shortNames?: string[]
      categories?: string[]
    }
    scope: 'Namespaced' | 'Cluster'
    versions: CrdVersion[]
    /** Absent: only the name of the version changes. */
    conversion?: CrdConversion
  }
}

export interface Version {
  readonly name: string
  readonly served: boolean
  readonly storage: boolean
  readonly deprecated: boolean | string
  readonly description: string | undefined
  readonly spec: z.core.$ZodObject
  readonly status: z.core.$ZodObject
  readonly rules: readonly ValidationRule[]
  readonly columns: Columns
  readonly scale: ScalePaths | undefined
}

export function crdVersion(version: Version): CrdVersion {
  const { name, served, storage, deprecated } = version
  const root = rootSchema(version)
  const known = { ...root, properties: { ...root.properties, metadata: metadataFields } }
  return {
    name,
    served,
    storage,
    ...(deprecated ? { deprecated: true } : {}),
    ...(typeof deprecated === 'string' ? { deprecationWarning: deprecated } : {}),
    schema: { openAPIV3Schema: root },
    subresources: { status: {}, ...(version.scale ? { scale: scaleOf(version.scale, known) } : {}) },
    additionalPrinterColumns: printerColumns(version.columns, known),
  }
}

export function crdOf(names: Names, namespaced: boolean, versions: CrdVersion[], conversion?: CrdConversion): Crd {
  const { group, kind, plural, singular, shortNames, categories } = names
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular,
        ...(shortNames.length > 0 ? { shortNames: [...shortNames] } : {}),
        ...(categories.length > 0 ? { categories: [...categories] } : {}),
      },
      scope: namespaced ? 'Namespaced' : 'Cluster',
      versions,
      ...(conversion && { conversion }),
    },
  }
}

export function yamlOf(crd: Crd): string {
  const header = `# Generated from the definition of ${crd.spec.names.kind}: change that, not this file.\n`
  return header + yaml().stringify(crd, { lineWidth: 120, aliasDuplicateObjects: false })
}

/** `cache.example.com_memcacheds.yaml`: where a kind's CRD is kept, by the custom of Kubernetes' own tools. */
export function crdFileName({ group, plural }: { readonly group: string; readonly plural: string }): string {
  return `${group}_${plural}.yaml`
}

function rootSchema({ spec, status, rules, description }: Version): StructuralSchema {
  const wished = structural(jsonSchemaOf(spec), ['spec'])
  // Where every field may be left out the whole spec may; it is there all the same.
  const mayBeAbsent = wished.default === undefined && z.safeParse(spec, {}).success
  const checked = rulesOf(rules, ['rules'])
  return {
    ...(description === undefined ? {} : { description }),
    type: 'object',
    ...(mayBeAbsent || wished.default !== undefined ? {} : { required: ['spec'] }),
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: mayBeAbsent ? { ...wished, default: {} } : wished,
      status: structural(jsonSchemaOf(status), ['status']),
    },
    ...(checked.length > 0 ? { 'x-kubernetes-validations': checked } : {}),
  }
}

function scaleOf({ spec, status, selector }: ScalePaths, root: StructuralSchema) {
  const check = (name: string, path: string, begin: RegExp, type: string) => {
    const what = `scale.${name}`
    if (!begin.test(path) || path.includes('['))
      refuse(what, `${shown(path)} is not accepted: a path such as .${name}.replicas is`)
    const found = schemaAt(root, path, what).type
    if (found !== type) refuse(what, `${path} is of type ${found ?? 'any'}, but has to be of type ${type}`)
  }
  check('spec', spec, /^\.spec\./, 'integer')
  check('status', status, /^\.status\./, 'integer')
  if (selector !== undefined) check('selector', selector, /^\.(spec|status)\./, 'string')
  return {
    specReplicasPath: spec,
    statusReplicasPath: status,
    ...(selector === undefined ? {} : { labelSelectorPath: selector }),
  }
}

const text: StructuralSchema = { type: 'string' }
const time: StructuralSchema = { type: 'string', format: 'date-time' }
/** What a path may name of the metadata, which a CRD leaves to the server. */
const metadataFields: StructuralSchema = {
  type: 'object',
  properties: {
    name: text,
    generateName: text,
    namespace: text,
    uid: text,
    resourceVersion: text,
    generation: { type: 'integer' },
    creationTimestamp: time,
    deletionTimestamp: time,
    labels: { type: 'object', additionalProperties: text },
    annotations: { type: 'object', additionalProperties: text },
    finalizers: { type: 'array', items: text },
    ownerReferences: { type: 'array', items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
  },
}
