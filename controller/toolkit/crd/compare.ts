/**
 * The CRD that an operator was written for, beside the one on the cluster: what differs in a way that matters to the operator. Pure.
 *
 * A field that only the cluster knows, or a constraint that is looser or tighter there, is no difference: objects are read and written all the same.
 */
import { shown } from '../../../shared/nearest.ts'
import { typeName } from './describe.ts'
import type { Crd, CrdVersion } from './manifest.ts'
import { textOfPath } from './refuse.ts'
import type { StructuralSchema } from './structural.ts'

export type CrdDifference =
  | 'Missing'
  | 'NotEstablished'
  | 'ScopeDiffers'
  | 'VersionMissing'
  | 'VersionNotServed'
  | 'StatusMissing'
  | 'ScaleMissing'
  | 'FieldMissing'
  | 'FieldDiffers'
  | 'StorageDiffers'
  | 'Unreadable'

export interface CrdFinding {
  readonly is: CrdDifference
  /** The field that it is about, as in `spec.size`. */
  readonly field?: string
  /** What differs, in a sentence without a full stop. */
  readonly message: string
  /** What brings it about that it no longer does: a command, or a sentence. */
  readonly remedy: string
  /** The operator cannot do its work like this: it is not ready. */
  readonly blocks: boolean
}

export interface CompareOptions {
  /** The command that installs our CRD. Default: that of a project that `shipmate new operator` made. */
  readonly command?: string | undefined
}

/** A CRD as the cluster has it, as far as it is read. */
export interface ClusterCrd {
  readonly spec: {
    readonly scope: string
    readonly versions: readonly {
      readonly name: string
      readonly served: boolean
      readonly storage: boolean
      readonly schema?: { readonly openAPIV3Schema?: object | undefined } | undefined
      readonly subresources?: { readonly status?: object | undefined; readonly scale?: object | undefined } | undefined
    }[]
  }
  readonly status?:
    | { readonly conditions?: readonly { type: string; status: string; message?: string | undefined }[] | undefined }
    | undefined
}

/** Applies what the definitions of the project say. */
const installCommand = "npx shipmate operator install, in the operator's project"

/** @param version the one that the operator uses */
export function compareCrd(
  ours: Crd,
  version: string,
  theirs: ClusterCrd | undefined,
  options: CompareOptions = {},
): CrdFinding[] {
  const { name } = ours.metadata
  const remedy = options.command ?? installCommand
  const finding = (is: CrdDifference, message: string, more: Partial<CrdFinding> = {}): CrdFinding => ({
    ...{ is, message, remedy, blocks: true },
    ...more,
  })
  if (!theirs) return [finding('Missing', `the CRD ${name} is not on the cluster`)]
  const { scope } = ours.spec
  if (theirs.spec.scope !== scope) {
    const message = `the CRD ${name} has scope ${theirs.spec.scope}, but ${ours.spec.names.kind} was defined with ${scope}`
    return [
      finding('ScopeDiffers', message, {
        remedy: `a scope cannot change: delete the CRD and all its objects, then ${remedy}`,
      }),
    ]
  }
  const own = ours.spec.versions.find(one => one.name === version)
  const there = theirs.spec.versions.find(one => one.name === version)
  if (!own) throw new RangeError(`the CRD ${name} of ours has no version ${version}`)
  if (!there) {
    const known = theirs.spec.versions.map(one => one.name).join(', ')
    return [finding('VersionMissing', `the CRD ${name} has no version ${version}, only ${known}`)]
  }
  const findings: CrdFinding[] = []
  if (!there.served) findings.push(finding('VersionNotServed', `version ${version} of the CRD ${name} is not served`))
  const refused = theirs.status?.conditions?.find(({ type, status }) => type === 'NamesAccepted' && status === 'False')
  if (refused) {
    const message = `the names of the CRD ${name} are not accepted: ${refused.message ?? 'another CRD has them'}`
    findings.push(finding('NotEstablished', message, { remedy: 'delete the CRD that has the same names' }))
  }
  if (!there.subresources?.status) {
    findings.push(finding('StatusMissing', `the CRD ${name} has no status subresource in version ${version}`))
  }
  if (own.subresources.scale && !there.subresources?.scale) {
    const message = `the CRD ${name} has no scale subresource in version ${version}`
    findings.push(finding('ScaleMissing', message, { blocks: false }))
  }
  findings.push(...fieldFindings(own, there.schema?.openAPIV3Schema, name, finding))
  const stored = theirs.spec.versions.find(one => one.storage)?.name
  const storedByUs = ours.spec.versions.find(one => one.storage)?.name
  if (storedByUs !== undefined && stored !== storedByUs) {
    const message = `the CRD ${name} stores version ${stored}, ours stores ${storedByUs}`
    findings.push(finding('StorageDiffers', message, { blocks: false }))
  }
  return findings
}

function fieldFindings(
  own: CrdVersion,
  there: object | undefined,
  name: string,
  finding: (is: CrdDifference, message: string, more: Partial<CrdFinding>) => CrdFinding,
): CrdFinding[] {
  const walk = (ours: StructuralSchema, theirs: StructuralSchema, path: readonly string[]): CrdFinding[] => {
    if (theirs['x-kubernetes-preserve-unknown-fields'] && !theirs.properties) return []
    const field = textOfPath(path)
    const differs = (what: string) => [finding('FieldDiffers', `in the CRD ${name}, ${field} ${what}`, { field })]
    const [type, other] = [sortOf(ours), sortOf(theirs)]
    if (type !== other) return differs(`is of type ${typeName(theirs)}, ours of type ${typeName(ours)}`)
    const [allowed, allowedThere] = [valuesOf(ours), valuesOf(theirs)]
    const lacking = allowed?.filter(value => allowedThere?.includes(value) === false) ?? []
    const fields = Object.entries(ours.properties ?? {}).flatMap(([key, one]) => {
      const at = [...path, key]
      const same = theirs.properties?.[key] ?? theirs.additionalProperties
      if (same) return walk(one, same, at)
      if (theirs['x-kubernetes-preserve-unknown-fields']) return []
      return [finding('FieldMissing', `the CRD ${name} has no field ${textOfPath(at)}`, { field: textOfPath(at) })]
    })
    return [
      ...(lacking.length > 0 ? differs(`does not accept ${lacking.map(shown).join(', ')}`) : []),
      ...(ours.default !== undefined && theirs.default === undefined
        ? differs(`has no default; ours is ${shown(ours.default)}`)
        : []),
      ...fields,
      ...(ours.items && theirs.items ? walk(ours.items, theirs.items, [...path, '[]']) : []),
      ...(ours.additionalProperties && theirs.additionalProperties
        ? walk(ours.additionalProperties, theirs.additionalProperties, [...path, '*'])
        : []),
    ]
  }
  const { spec, status } = own.schema.openAPIV3Schema.properties ?? {}
  const properties = { ...(spec ? { spec } : {}), ...(status ? { status } : {}) }
  return there ? walk({ type: 'object', properties }, there, []) : []
}

/** What two schemas have to have in common. */
function sortOf(schema: StructuralSchema): string {
  return schema.type ?? (schema['x-kubernetes-int-or-string'] ? 'integer or string' : 'anything')
}

function valuesOf(schema: StructuralSchema): unknown[] | undefined {
  return schema.enum ?? schema.allOf?.find(part => part.enum)?.enum
}
