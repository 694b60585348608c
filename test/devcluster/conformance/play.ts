/**
 * One sequence, played on two servers at once: what they answer is compared step by step, then what their watches told.
 */
import { type Dice, diceOf, one } from './dice.ts'
import { type Kind, kinds, pathOf } from './kinds.ts'
import {
  emptyInImmutable,
  forgottenManagers,
  labelsOfJobs,
  ownerOfClaims,
  unknownInApply,
  versionOfNothing,
} from './known.ts'
import { differences, normal, nothingSeen, type Seen } from './normal.ts'
import { type Answer, patches, type Server, type WatchEvent } from './servers.ts'
import { randomStep, type Sent, type Step } from './steps.ts'

const length = 14

export interface Sequence {
  readonly kind: Kind
  readonly steps: readonly Step[]
}

export function sequenceOf(seed: number): Sequence {
  const dice: Dice = diceOf(seed)
  const kind = one(dice, ...kinds)
  return { kind, steps: Array.from({ length }, () => randomStep(dice, kind)) }
}

export interface Difference {
  /** Of the step after which they differed. */
  readonly at: number
  readonly sent: Sent | undefined
  readonly what: readonly string[]
  /** Which of the known ones it is, in the words of docs/devcluster.md. */
  readonly known?: string | undefined
}

interface Side {
  readonly server: Server
  readonly seen: Seen
  // biome-ignore lint/suspicious/noExplicitAny: what the server showed.
  readonly known: Map<string, any>
  /** The version before the first step. */
  readonly since: string
}

/** What differed first; undefined if nothing did. `namespace` is new to both servers. */
export async function play(
  here: Server,
  there: Server,
  sequence: Sequence,
  namespace: string,
): Promise<Difference | undefined> {
  const { kind, steps } = sequence
  const sides = await Promise.all([here, there].map(server => prepare(server, kind, namespace)))
  for (const [at, step] of steps.entries()) {
    const shown = await Promise.all(sides.map(side => carryOut(side, step, namespace)))
    const [mine, its] = shown.map(one => one.shown)
    const sent = shown[0]?.sent
    const what = differences(mine, its)
    if (what.length === 0) continue
    const listed = knownParts(sequence, what) ?? knownOf(kind, sent, mine as Answer, its as Answer)
    return { at, sent, what, known: listed }
  }
  const [mine, its] = await Promise.all(sides.map(side => told(side, kind, namespace)))
  const what = differences(mine, its)
  if (what.length === 0) return undefined
  return { at: steps.length - 1, sent: undefined, what, known: knownParts(sequence, what) }
}

function knownOf(kind: Kind, sent: Sent | undefined, mine: Answer, its: Answer): string | undefined {
  const isStatus = kind.isCustom && sent?.line.includes('/status')
  if (isStatus && its.status === 200 && its.body.metadata.managedFields === undefined) return forgottenManagers
  const isApply = kind.isCustom && sent?.type === patches.apply && mine.status === 500 && its.status === 500
  if (isApply && [mine, its].every(({ body }) => body.message.includes('field not declared in schema')))
    return unknownInApply
  if (its.status !== 422) return undefined
  const untold = causesOf(its).filter(cause => !causesOf(mine).includes(cause))
  const added = causesOf(mine).filter(cause => !causesOf(its).includes(cause))
  const isFrozen = (cause: string) => cause.includes('is immutable when `immutable` is set')
  const isData = kind.kind === 'ConfigMap' || kind.kind === 'Secret'
  const isKnown = isData && added.length === 0 && untold.length > 0 && untold.every(isFrozen)
  return isKnown ? emptyInImmutable : undefined
}

const causesOf = ({ body }: Answer): string[] => body?.details?.causes ?? []

/** Where all that differs is in parts that are known to. */
function knownParts({ kind }: Sequence, what: readonly string[]): string | undefined {
  if (what.every(one => /^[^:]*resourceVersion:/.test(one))) return versionOfNothing
  if (kind.kind === 'Job' && what.every(one => /^\S*metadata\.labels: .* here, nothing there$/.test(one)))
    return labelsOfJobs
  const isOfClaims = /^[^ ]*managedFields\S*f:volumeClaimTemplates: /
  return kind.kind === 'StatefulSet' && what.every(one => isOfClaims.test(one)) ? ownerOfClaims : undefined
}

async function prepare(server: Server, kind: Kind, namespace: string): Promise<Side> {
  await server.ask('POST /api/v1/namespaces', { metadata: { name: namespace } })
  await server.ask(`POST /api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: 'default' } })
  const { body } = await server.ask(`GET ${pathOf(kind, namespace)}`)
  return { server, seen: nothingSeen(), known: new Map(), since: body.metadata.resourceVersion }
}

async function carryOut({ server, seen, known }: Side, step: Step, namespace: string) {
  const sent = step.make(namespace, known)
  const answer: Answer = await server.ask(sent.line, sent.body, { type: sent.type, accept: sent.accept })
  const { body } = answer
  if (body?.metadata?.name && body.metadata.resourceVersion && body.kind !== 'Scale')
    known.set(body.metadata.name, body)
  return { sent, shown: normal(answer, seen) }
}

const mark = 'end-of-sequence'

/** The events since the beginning, up to those of an object that is made for that. */
async function told({ server, seen, since }: Side, kind: Kind, namespace: string): Promise<unknown[]> {
  const path = pathOf(kind, namespace)
  await makeMark(server, kind, path)
  const events: WatchEvent[] = []
  for await (const event of server.watch(`${path}?watch=true&resourceVersion=${since}`)) {
    if (event.object.metadata.name === mark) break
    events.push(event)
  }
  return events.map(event => normal(event, seen))
}

async function makeMark(server: Server, { apiVersion, kind, whole }: Kind, path: string): Promise<void> {
  const dice = diceOf(1)
  for (let attempt = 0; attempt < 100; attempt++) {
    const object = { apiVersion, kind, metadata: { name: mark }, ...whole(dice) }
    const { status } = await server.ask(`POST ${path}`, object)
    if (status === 201) return
  }
  throw new Error(`no ${kind} of 100 was taken`)
}
