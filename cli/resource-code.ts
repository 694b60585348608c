/**
 * The TypeScript of a child resource. Pure.
 */
import type { Kind } from '../controller/kube/kind.ts'
import type { Type } from './dictionary.ts'

/** Whose child it is. */
export interface Parent {
  readonly kind: Kind
  /** The module that exports its definition under its kind; undefined: it is declared here. */
  readonly from: string | undefined
}

export interface ResourceCode {
  /** Of the constant. */
  readonly name: string
  /** It has a name of its own, beside that of its type. */
  readonly isNamed: boolean
  /** Without its extension. */
  readonly file: string
  readonly type: Type
  readonly parent: Parent
  /** What it begins with stands in a template. */
  readonly initial?: object | undefined
}

/** Kinds whose content is not in a spec. */
const withData = ['ConfigMap', 'Secret']

export function codeOf({ name, isNamed, file, type, parent, initial }: ResourceCode): string {
  const { kind } = type
  const of = parent.kind.kind
  // A custom resource may have the name of its child's kind.
  const child = kind.kind === of ? `Child${kind.kind}` : kind.kind
  const parts = withData.includes(kind.kind) && kind.group === '' ? "'data'" : "'spec'"
  const kube = [
    ...(type.exported ? [type.exported === child ? child : `${type.exported} as ${child}`] : []),
    ...(type.exported && parent.from ? [] : ['defineKind']),
  ]
  const declared = [
    ...(type.exported ? [] : [`const ${child} = defineKind<{ spec?: Record<string, unknown> }>(${literal(kind)})\n`]),
    ...(parent.from ? [] : [`const ${of} = defineKind<{ spec: Record<string, unknown> }>(${literal(parent.kind)})\n`]),
  ]
  const named = isNamed ? `  name: cr => \`\${cr.metadata.name}-${file}\`,\n\n` : ''
  const outside = kind.namespaced
    ? ''
    : `  // It is in no namespace, so a ${of} cannot own it: what has to go with the ${of} goes in CRFinalizer.\n  owner: false,\n\n`
  const begins = initial
    ? `yamlTemplate(new URL('./${file}.yaml', import.meta.url), () => ({})),`
    : "cr => ({ metadata: { labels: { 'app.kubernetes.io/instance': cr.metadata.name } } }),"
  return `/**
 * The ${kind.kind} of a ${of}.
 */
import { mutable${initial ? ', yamlTemplate' : ''} } from 'shipmate'
${kube.length > 0 ? `import { ${kube.toSorted((a, b) => a.toLowerCase().localeCompare(b.toLowerCase())).join(', ')} } from 'shipmate/kube'\n` : ''}${parent.from ? `import { ${of} } from '${parent.from}'\n` : ''}
${declared.join('')}${declared.length > 0 ? '\n' : ''}export const ${name} = mutable(${child}, ${of}, {
${named}${outside}  // What it begins with${initial ? `: ${file}.yaml, in which {{ name }} stands for a value that is given here` : ''}.
  mutateWithInitialData: ${begins}

  // What of the ${of} it follows: \`object.spec.size = cr.spec.size\`.
  mutateWithCR(_object, _cr) {},

  // Which parts count: while these are as wished, nothing is written. Without it: every field.
  getHashableRef: () => ['labels', ${parts}],
})
`
}

function literal({ group, version, kind, plural, namespaced }: Kind): string {
  const more = [...(plural ? [`plural: '${plural}'`] : []), ...(namespaced ? [] : ['namespaced: false'])]
  return `{ ${[`group: '${group}'`, `version: '${version}'`, `kind: '${kind}'`, ...more].join(', ')} }`
}
