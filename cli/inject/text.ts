/**
 * `shipmate inject` on the text of files: the sidecar is added to the templates that ask for it, every other byte stays. Pure.
 *
 * Guarantees: what comes out says exactly what the function of controller/webhook/inject made, which is checked by reading it again; where one template is
 * refused, nothing comes out.
 */
import { isDeepStrictEqual } from 'node:util'
import { LineCounter, parseAllDocuments } from 'yaml'
import { lifecycleLabel } from '../../controller/app/workload/marks.ts'
import { inject, lifecycleOf, type Settings } from '../../controller/webhook/inject/inject.ts'
import { type PodTemplate, shapeProblem } from '../../controller/webhook/inject/template.ts'
import { messageOf } from '../../shared/errors.ts'
import type { LifecycleSpec } from '../../shared/lifecycle/model.ts'
import { validateLifecycle } from '../../shared/lifecycle/validate.ts'
import { CannotSplice, type Splice, spliced, splicesAt } from './splice.ts'
import { type Found, findIn, replaced, type Workload } from './workloads.ts'

export interface Input {
  /** As a person knows it. */
  readonly file: string
  readonly text: string
}

export interface Wishes extends Settings {
  /** For templates without the label. */
  readonly lifecycle?: string | undefined
  /** For templates without the annotation. */
  readonly app?: string | undefined
}

export interface Outcome {
  /** One for each input, if nothing was refused. */
  readonly texts: readonly string[]
  /** To be told, each a sentence with the file and the object it is about. */
  readonly warnings: readonly string[]
  readonly problems: readonly string[]
  readonly injected: number
}

/** @param known files that are read for their Lifecycles alone */
export function injectTexts(inputs: readonly Input[], known: readonly Input[], wishes: Wishes): Outcome {
  const problems: string[] = []
  const read = inputs.map(input => readInput(input, problems))
  const lifecycles = [...read, ...known.map(input => readInput(input, problems))].flatMap(({ found }) =>
    found.flatMap(one => one.lifecycles),
  )
  const bare = read.flatMap(({ found }) => found.flatMap(({ workloads }) => workloads)).filter(one => !isAsking(one))
  if (wishes.lifecycle !== undefined && bare.length > 1)
    problems.push(
      `--lifecycle is for one template without the label ${lifecycleLabel}, and there are ${bare.length} (${bare.map(({ title }) => title).join(', ')}): label those that are meant`,
    )
  const warnings: string[] = []
  let injected = 0
  const texts = read.map(one => {
    const splices = one.found.flatMap((found, document) =>
      found.workloads.flatMap(workload => {
        const tell = (list: string[]) => (sentence: string) => list.push(`${one.file}: ${workload.title}: ${sentence}`)
        const result = injectOne(workload, lifecycles, wishes, tell(problems), tell(warnings))
        if (!result) return []
        if (result.isNew) injected++
        return changes(one, document, workload, result.pod, tell(problems))
      }),
    )
    const text = spliced(one.text, splices)
    if (problems.length === 0 && !saysTheSame(text, one.wanted)) problems.push(`${one.file}: ${notInPlace}`)
    return text
  })
  return { texts: problems.length > 0 ? [] : texts, warnings, problems, injected }
}

const notInPlace = 'it cannot be changed in place: write out the aliases (*NAME) of the templates first'
const parsing = { merge: true, prettyErrors: false, logLevel: 'error' } as const

interface Read extends Input {
  readonly documents: readonly { readonly contents: unknown }[]
  /** Of each document: its value, which becomes what is wanted. */
  readonly values: readonly unknown[]
  readonly wanted: unknown[]
  readonly found: readonly Found[]
}

function readInput({ file, text }: Input, problems: string[]): Read {
  const lineCounter = new LineCounter()
  const parsed = parseAllDocuments(text, { ...parsing, lineCounter })
  const documents = Array.isArray(parsed) ? parsed : []
  for (const error of documents.flatMap(({ errors }) => errors)) {
    const { line, col } = lineCounter.linePos(error.pos[0])
    problems.push(`${file}:${line}:${col}: ${error.message}`)
  }
  let values: unknown[] = []
  try {
    values = documents.map(document => document.toJS({ maxAliasCount: 1000 }))
  } catch (error) {
    problems.push(`${file}: ${messageOf(error)}`)
  }
  return { file, text, documents, values, wanted: [...values], found: values.map(value => findIn(value)) }
}

function isAsking({ template, lifecycle }: Workload): boolean {
  return lifecycle !== undefined || lifecycleOf(template) !== undefined
}

type Tell = (sentence: string) => void

function injectOne(
  workload: Workload,
  lifecycles: Found['lifecycles'],
  wishes: Wishes,
  refuse: Tell,
  warn: Tell,
): { readonly pod: PodTemplate; readonly isNew: boolean } | undefined {
  const asked = workload.lifecycle ?? wishes.lifecycle
  if (!isAsking(workload) && asked === undefined) return undefined
  const shape = shapeProblem(workload.template)
  if (shape !== undefined) {
    refuse(shape)
    return undefined
  }
  const template = labelled(workload.template, asked)
  const name = lifecycleOf(template) ?? ''
  const lifecycle = lifecycleNamed(name, workload, lifecycles, refuse)
  const facts = { app: wishes.app ?? workload.app, claims: workload.claims, lifecycle }
  const result = inject(template, facts, wishes)
  if (result.outcome === 'refused') for (const problem of result.problems) refuse(problem)
  else if (result.outcome === 'left') warn(`left alone: ${result.why}`)
  else {
    for (const warning of result.warnings) warn(warning)
    return { pod: result.pod, isNew: !isDeepStrictEqual(result.pod, workload.template) }
  }
  return undefined
}

function labelled(template: PodTemplate, lifecycle: string | undefined): PodTemplate {
  if (lifecycle === undefined || lifecycleOf(template) !== undefined) return template
  const { metadata = {}, ...rest } = template
  // First, as a pod's template is written.
  return { metadata: { ...metadata, labels: { ...metadata.labels, [lifecycleLabel]: lifecycle } }, ...rest }
}

/** Of the same namespace where both say one. */
function lifecycleNamed(
  name: string,
  { namespace }: Workload,
  lifecycles: Found['lifecycles'],
  refuse: Tell,
): LifecycleSpec | undefined {
  const named = lifecycles.find(
    one => one.name === name && (one.namespace === undefined || namespace === undefined || one.namespace === namespace),
  )
  if (!named) return undefined
  const { spec, problems } = validateLifecycle(named.spec)
  const wrong = problems.filter(({ severity }) => severity === 'error')
  for (const { path, message } of wrong) refuse(`lifecycle ${name}: ${path.join('.')}: ${message}`)
  return spec
}

function changes(read: Read, document: number, { path, template }: Workload, pod: PodTemplate, refuse: Tell): Splice[] {
  read.wanted[document] = replaced(read.wanted[document], path, pod)
  try {
    return splicesAt(read.text, read.documents[document]?.contents, path, template, pod)
  } catch (error) {
    if (!(error instanceof CannotSplice)) throw error
    refuse(`${notInPlace} (${error.message})`)
    return []
  }
}

function saysTheSame(text: string, wanted: readonly unknown[]): boolean {
  const parsed = parseAllDocuments(text, parsing)
  const documents = Array.isArray(parsed) ? parsed : []
  if (documents.some(({ errors }) => errors.length > 0)) return false
  return isDeepStrictEqual(
    documents.map(document => document.toJS({ maxAliasCount: 1000 })),
    wanted,
  )
}
