/**
 * Objects of an operator on the cluster: applied, waited for, removed; a line on stdout for each.
 *
 * Guarantees: what is there already in that way is not written again; what is somebody else's is neither overwritten nor removed, and is found before
 * anything is written.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../controller/kube/client.ts'
import { Conflict, NotFound } from '../controller/kube/errors.ts'
import { type Kind, keyOf, type Live, type Ref } from '../controller/kube/kind.ts'
import { CustomResourceDefinition, Namespace, Pod } from '../controller/kube/kinds.ts'
import { readinessOf } from '../controller/toolkit/readiness.ts'
import { Failure } from './ending.ts'
import { type Manifest, ownLabels } from './manifest.ts'
import type { Project } from './project.ts'

export interface ApplyingOptions {
  /** Let the server check everything, and write nothing. */
  readonly dryRun?: boolean | undefined
}

const poll = 250

export async function applyAll(
  client: Client,
  project: Pick<Project, 'name' | 'namespace'>,
  manifests: readonly Manifest[],
  { dryRun = false }: ApplyingOptions,
): Promise<void> {
  await untilNotLeaving(client, manifests)
  const live = await Promise.all(manifests.map(({ kind, object }) => client.find(kind, refOf(object))))
  for (const [index, one] of manifests.entries()) {
    const there = live[index]
    if (there && !isShared(one.kind) && !isOwn(there, project)) {
      throw new Failure(
        `${nameOf(one)} is there already, and is not this operator's, as it has not the labels ${labelText(project)}: choose another name in shipmate.yaml; nothing was written`,
      )
    }
  }
  const isHomeless = live.every((there, index) => manifests[index]?.kind !== Namespace || there === undefined)
  for (const [index, one] of manifests.entries()) {
    const before = live[index]
    // A namespace may be anybody's: it has to be there, no more.
    if (one.kind === Namespace && before) tell(one, 'unchanged')
    else if (dryRun && one.object.metadata.namespace === project.namespace && isHomeless && !before)
      tell(one, 'would be created')
    else {
      const after = await client.apply(one.kind, one.object, { dryRun, fieldValidation: 'Strict' })
      tell(one, change(before, after, dryRun))
    }
  }
}

/** A namespace takes nothing new while it is being deleted: until it is gone. */
async function untilNotLeaving(client: Client, manifests: readonly Manifest[]): Promise<void> {
  for (const { object } of manifests.filter(({ kind }) => kind === Namespace)) {
    const isLeaving = async () =>
      (await client.find(Namespace, refOf(object)))?.metadata.deletionTimestamp !== undefined
    if (!(await isLeaving())) continue
    const what = `Namespace ${object.metadata.name} is being deleted`
    process.stderr.write(`${what}: waiting until it is gone\n`)
    await until(60_000, `nothing was written, as ${what}, still`, async () => !(await isLeaving()))
  }
}

/** In the opposite order. What is not there, or not ours, is passed over. */
export async function removeAll(
  client: Client,
  project: Pick<Project, 'name' | 'namespace'>,
  manifests: readonly Manifest[],
  { dryRun = false }: ApplyingOptions,
): Promise<void> {
  for (const one of manifests.toReversed()) {
    const there = await client.find(one.kind, refOf(one.object))
    if (!there) tell(one, 'not there')
    else if (!isShared(one.kind) && !isOwn(there, project))
      tell(one, `left alone, as it has not the labels ${labelText(project)}`)
    else if (dryRun) tell(one, 'would be deleted')
    else {
      await remove(client, one.kind, there)
      tell(one, 'deleted')
    }
  }
}

/** Until it is gone, finalizers included. */
async function remove(client: Client, kind: Kind, there: Live, timeout = 60_000): Promise<void> {
  const ref = refOf(there)
  const { uid } = there.metadata
  try {
    await client.delete(kind, ref, { preconditions: { uid }, propagation: 'Background' })
  } catch (error) {
    // Somebody else was faster.
    if (!(error instanceof NotFound || error instanceof Conflict)) throw error
  }
  await until(timeout, `${kind.kind} ${keyOf(ref)} is still there`, async () => {
    const now = await client.find(kind, ref)
    return now?.metadata.uid !== uid
  })
}

/** Until it does its work; a failure says what is missing. @param pods whose state says more than its own: what is wrong with them is said at once */
export async function untilReady(
  client: Client,
  { kind, object }: Manifest,
  { timeout, pods }: { readonly timeout: number; readonly pods?: Pick<Project, 'name' | 'namespace'> | undefined },
): Promise<void> {
  const deadline = Date.now() + timeout
  const said = new Set<string>()
  for (;;) {
    const readiness = readinessOf(kind, await client.find(kind, refOf(object)))
    if (readiness.ready) return
    const trouble = pods ? await troubleOf(client, pods) : []
    if (readiness.failed || Date.now() >= deadline) {
      const why = [readiness.message, ...trouble.map(({ sentence }) => sentence)].join('; ')
      throw new Failure(`${kind.kind} ${object.metadata.name} is not ready after ${timeout / 1000} s: ${why}`)
    }
    for (const { reason, sentence } of trouble) {
      if (!said.has(reason)) process.stderr.write(`${sentence}\n`)
      said.add(reason)
    }
    await sleep(Math.min(poll, Math.max(deadline - Date.now(), 1)))
  }
}

/** Until the operator's pods are gone: they use its account to the end. */
export async function untilNoPods(client: Client, project: Project, timeout: number): Promise<void> {
  const { namespace } = project
  await until(timeout, `pods of ${project.name} are still there`, async () => {
    return (await client.list(Pod, { namespace, labels: ownLabels(project) })).length === 0
  })
}

async function until(timeout: number, what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + timeout
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Failure(`${what} after ${timeout / 1000} s`)
    await sleep(poll)
  }
}

interface Trouble {
  readonly reason: string
  /** For a person. */
  readonly sentence: string
}

const ordinary = new Set(['ContainerCreating', 'PodInitializing'])
const noImage = new Set(['ErrImagePull', 'ImagePullBackOff', 'ErrImageNeverPull'])

/** What is wrong with its containers, as the kubelet says it; of pods with the same trouble, one. */
async function troubleOf(client: Client, project: Pick<Project, 'name' | 'namespace'>): Promise<Trouble[]> {
  const pods = await client.list(Pod, { namespace: project.namespace, labels: ownLabels(project) })
  const all = pods.flatMap(({ metadata, status }) =>
    (status?.containerStatuses ?? []).flatMap(({ image, state, lastState }): Trouble[] => {
      const ended = state?.terminated ?? lastState?.terminated
      const { reason, message = '' } = state?.waiting ?? ended ?? {}
      if (!reason || ordinary.has(reason)) return []
      const pod = `pod ${metadata.name}: ${reason}`
      if (noImage.has(reason)) {
        const todo = `the node has no image ${image} and cannot pull it: push it, or load it on the node`
        return [{ reason: 'NoImage', sentence: `${pod}: ${todo} (${message})` }]
      }
      // What it printed last says more than that it is started again.
      const last = ended?.message?.trim() || message
      return [{ reason, sentence: last ? `${pod}: ${last}` : pod }]
    }),
  )
  return [...new Map(all.map(one => [one.reason, one])).values()].slice(0, 3)
}

/** Kinds of which an object may have come from elsewhere: from `kubectl apply`, from another tool. */
function isShared(kind: Kind): boolean {
  return kind === CustomResourceDefinition || kind === Namespace
}

function isOwn({ metadata }: Live, project: Pick<Project, 'name' | 'namespace'>): boolean {
  return Object.entries(ownLabels(project)).every(([label, value]) => metadata.labels?.[label] === value)
}

function labelText(project: Pick<Project, 'name' | 'namespace'>): string {
  return Object.entries(ownLabels(project))
    .map(([label, value]) => `${label}=${value}`)
    .join(', ')
}

function change(before: Live | undefined, after: Live, dryRun: boolean): string {
  const would = dryRun ? 'would be ' : ''
  if (!before) return `${would}created`
  // A dry run never has a new version, so what it would write is compared.
  const isSame = dryRun
    ? withoutTimes(before) === withoutTimes(after)
    : before.metadata.resourceVersion === after.metadata.resourceVersion
  return isSame ? 'unchanged' : `${would}changed`
}

function withoutTimes({ metadata, ...rest }: Live): string {
  const { managedFields: _, resourceVersion: __, generation: ___, ...others } = metadata
  return JSON.stringify({ ...rest, metadata: others })
}

/** An object by its kind and place. */
interface Named {
  readonly kind: Kind
  readonly object: Parameters<typeof refOf>[0]
}

function nameOf({ kind, object }: Named): string {
  return `${kind.kind} ${keyOf(refOf(object))}`
}

/** Says what became of an object. */
export function tell(one: Named, is: string): void {
  process.stdout.write(`${nameOf(one)} ${is}\n`)
}

function refOf({
  metadata,
}: {
  readonly metadata: { readonly name: string; readonly namespace?: string | undefined }
}): Ref {
  return metadata.namespace === undefined
    ? { name: metadata.name }
    : { name: metadata.name, namespace: metadata.namespace }
}
