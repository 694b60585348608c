/**
 * The fields of a kind as Markdown: a table each for spec and status. Pure.
 */
import { shown } from '../../../shared/nearest.ts'
import { constraintsOf, typeName } from './describe.ts'
import type { Crd } from './manifest.ts'
import type { StructuralSchema } from './structural.ts'

interface Row {
  readonly path: string
  readonly schema: StructuralSchema
  readonly isRequired: boolean
}

/** Of one version of a kind. */
export function docsOf(crd: Crd, version: string): string {
  const { group, names, scope } = crd.spec
  const root = crd.spec.versions.find(one => one.name === version)?.schema.openAPIV3Schema
  const short = (names.shortNames ?? []).map(name => `\`${name}\``).join(', ')
  const where = scope === 'Namespaced' ? 'in a namespace' : 'in the whole cluster'
  return [
    `## ${names.kind}`,
    `\`${group}/${version}\`, ${where}${short === '' ? '' : `, short ${short}`}.`,
    ...(root?.description ? [root.description] : []),
    ...(root?.['x-kubernetes-validations'] ?? []).map(({ rule, message }) => `- ${message ?? `\`${rule}\``}`),
    ...['spec', 'status'].flatMap(part => table(part, root?.properties?.[part])),
  ]
    .join('\n\n')
    .concat('\n')
}

function table(part: string, schema: StructuralSchema | undefined): string[] {
  const rows = schema ? rowsOf(part, schema) : []
  if (rows.length === 0) return []
  const lines = rows.map(({ path, schema, isRequired }) => {
    const limits = constraintsOf(schema, text => `\`${text}\``)
    const cells = [
      `\`${path}\``,
      typeName(schema),
      schema.default === undefined ? (isRequired ? 'required' : '') : `\`${shown(schema.default)}\``,
      limits.join('; '),
      schema.description ?? '',
    ]
    return `| ${cells.map(escaped).join(' | ')} |`
  })
  return [
    `### ${part}`,
    ['| field | type | default | constraints | description |', '|---|---|---|---|---|', ...lines].join('\n'),
  ]
}

function rowsOf(path: string, schema: StructuralSchema): Row[] {
  const { properties = {}, required = [], additionalProperties, items } = schema
  const fields = Object.entries(properties).flatMap(([name, one]): Row[] => {
    const at = `${path}.${name}`
    return [{ path: at, schema: one, isRequired: required.includes(name) }, ...rowsOf(at, one)]
  })
  const inside = items
    ? rowsOf(`${path}[]`, items)
    : additionalProperties
      ? rowsOf(`${path}.*`, additionalProperties)
      : []
  return [...fields, ...inside]
}

const escaped = (text: string) => text.replaceAll('|', '\\|').replace(/\s*\n\s*/g, ' ')
