/**
 * CustomResourceDefinitions: what they get by default, and what they may not say.
 */
import type { FieldError } from '../../problems.ts'
import { checkRules } from '../../schema/rules.ts'
import type { Schema } from '../../schema/schema.ts'
import { checkStructural } from '../../schema/structural.ts'
import type { Obj, Strategy } from '../../types.ts'
import { notSupported } from '../validation/mistakes.ts'
import { list } from './lists.ts'
import { same, unchangedStatus } from './status.ts'

/** Its objects go before it does. */
export const cleanup = 'customresourcecleanup.apiextensions.k8s.io'

export const definition: Strategy = {
  hasGeneration: true,
  finalizer: cleanup,
  default: object => {
    const { spec } = object
    if (!spec) return
    if (spec.names) {
      spec.names.singular ||= String(spec.names.kind ?? '').toLowerCase()
      spec.names.listKind ||= `${spec.names.kind}List`
    }
    spec.conversion ??= { strategy: 'None' }
    const service = spec.conversion.webhook?.clientConfig?.service
    if (service) service.port ??= 443
  },
  prepareForCreate: object => {
    const storage = list(object.spec?.versions).find(version => version.storage)?.name
    object.status = {
      conditions: null,
      acceptedNames: { plural: '', kind: '' },
      storedVersions: storage ? [storage] : null,
    }
  },
  prepareForUpdate: unchangedStatus.prepareForUpdate,
  validate: (object, old) => {
    const errors = [...checkNames(object), ...checkVersions(object)]
    for (const path of ['group', 'scope', 'names.kind', 'names.plural'] as const) {
      if (old && !same(at(object, path), at(old, path))) {
        errors.push({
          mistake: 'FieldValueInvalid',
          field: `spec.${path}`,
          value: at(object, path),
          detail: 'field is immutable',
        })
      }
    }
    return errors
  },
}

function at(object: Obj, path: string): unknown {
  return path
    .split('.')
    .reduce((value, name) => (value as Record<string, unknown> | undefined)?.[name], object.spec as unknown)
}

function checkNames({ metadata, spec = {} }: Obj): FieldError[] {
  const errors: FieldError[] = []
  const { plural, kind } = spec.names ?? {}
  if (!spec.group) errors.push({ mistake: 'FieldValueRequired', field: 'spec.group' })
  else if (!String(spec.group).includes('.')) {
    errors.push({
      mistake: 'FieldValueInvalid',
      field: 'spec.group',
      value: spec.group,
      detail: 'should be a domain with at least one dot',
    })
  }
  if (!plural) errors.push({ mistake: 'FieldValueRequired', field: 'spec.names.plural' })
  if (!kind) errors.push({ mistake: 'FieldValueRequired', field: 'spec.names.kind' })
  if (!['Cluster', 'Namespaced'].includes(spec.scope))
    errors.push(notSupported('spec.scope', spec.scope ?? '', ['Cluster', 'Namespaced']))
  if (plural && spec.group && metadata.name !== `${plural}.${spec.group}`) {
    errors.unshift({
      mistake: 'FieldValueInvalid',
      field: 'metadata.name',
      value: metadata.name,
      detail: 'must be spec.names.plural+"."+spec.group',
    })
  }
  return errors
}

interface Version {
  name: string
  served?: boolean
  storage?: boolean
  schema?: { openAPIV3Schema?: Schema }
}

function checkVersions({ spec = {} }: Obj): FieldError[] {
  const errors: FieldError[] = []
  const versions: Version[] = list(spec.versions)
  const stored = versions.filter(version => version.storage)
  if (stored.length !== 1) {
    const detail = 'must have exactly one version marked as storage version'
    errors.push({ mistake: 'FieldValueInvalid', field: 'spec.versions', value: versions, detail })
  }
  // One schema for all is told of as such.
  const isOne = versions.length === 1
  for (const [index, version] of versions.entries()) {
    const path = isOne ? 'spec.validation.openAPIV3Schema' : `spec.versions[${index}].schema.openAPIV3Schema`
    const schema = version.schema?.openAPIV3Schema
    if (!schema)
      errors.push({
        mistake: 'FieldValueRequired',
        field: `spec.versions[${index}].schema.openAPIV3Schema`,
        detail: 'schemas are required',
      })
    else errors.push(...checkStructural(schema, path), ...checkRules(schema, path))
  }
  return errors
}
