/**
 * The verb Create: an app's workload is there, as its template asks, and at its size.
 *
 * Guarantees: it acts only on a workload that is absent, scaled to zero by us, or other than its template; nothing is written where nothing differs, and nothing that is
 * somebody else's. What an existing workload is, is its owner's affair: it is scaled back up, and nothing more.
 */
import type { CachedClient } from '../../kube/cached.ts'
import { BadRequest, Invalid } from '../../kube/errors.ts'
import type { Kind, Snapshot } from '../../kube/kind.ts'
import { StatefulSet } from '../../kube/kinds.ts'
import { TerminalError } from '../../runtime/index.ts'
import { immutableFields } from '../../toolkit/immutable.ts'
import type { App } from '../view.ts'
import type { TemplateView, Workload } from './gather.ts'
import { forgetReplicas, scaleUp } from './scale.ts'
import { type Part, partOf } from './template.ts'

export type CreateStep =
  | { readonly is: 'nothing' }
  /** `for`: what is waited for, as in "waiting for …". */
  | { readonly is: 'wait'; readonly for: string }
  /** Only a person can mend it. */
  | { readonly is: 'refused'; readonly message: string }
  | {
      readonly is: 'apply'
      readonly parts: readonly Part[]
      readonly leftovers: TemplateView['leftovers']
    }
  | { readonly is: 'scaleUp'; readonly workload: Workload; readonly to: number }
  /** Somebody else has scaled it up: what was kept means nothing any more. */
  | { readonly is: 'forget'; readonly workload: Workload }

/** For an app that has the claim. */
export function decideCreate(app: App, workload: Workload | undefined, template: TemplateView): CreateStep {
  if (workload?.isBeingDeleted) return { is: 'wait', for: `${workload.kind} ${workload.name} to be gone` }
  if (!app.spec.template) {
    const { kind, name } = app.spec.workload ?? { kind: 'StatefulSet', name: app.metadata.name }
    if (!workload) return { is: 'wait', for: `${kind} ${name} to be there` }
  }
  return decideTemplate(template) ?? decideScale(app, workload)
}

function decideTemplate({ parts, leftovers }: TemplateView): CreateStep | undefined {
  for (const { foreign } of parts) if (foreign) return { is: 'refused', message: foreign }
  const going = parts.find(({ live }) => live?.metadata.deletionTimestamp !== undefined)
  if (going?.live) return { is: 'wait', for: `${going.kind.kind} ${going.live.metadata.name} to be gone` }
  const different = parts.filter(({ isDifferent }) => isDifferent)
  return different.length + leftovers.length > 0 ? { is: 'apply', parts: different, leftovers } : undefined
}

function decideScale(app: App, workload: Workload | undefined): CreateStep {
  if (workload?.annotatedReplicas === undefined) return { is: 'nothing' }
  if (workload.keptReplicas === undefined) return { is: 'forget', workload }
  const wished = app.spec.template?.spec['replicas']
  return { is: 'scaleUp', workload, to: typeof wished === 'number' ? wished : workload.keptReplicas }
}

/** Does what was decided. A Conflict means that somebody was faster: read, and decide anew. */
export async function create(client: CachedClient, app: App, step: CreateStep): Promise<void> {
  switch (step.is) {
    case 'apply':
      for (const part of step.parts) await applyPart(client, app, part)
      for (const { kind, live } of step.leftovers) await client.delete(kind, live, { propagation: 'Background' })
      return
    case 'scaleUp':
      return scaleUp(client, step.workload, step.to)
    case 'forget':
      return forgetReplicas(client, step.workload)
    default:
      return
  }
}

async function applyPart(client: CachedClient, app: App, part: Part): Promise<void> {
  const { kind, object, live } = part
  if (!live) return createPart(client, app, part)
  const { uid, resourceVersion } = live.metadata
  try {
    const metadata = { ...object.metadata, uid, resourceVersion }
    await client.apply(kind, { ...object, metadata }, { fieldValidation: 'Strict' })
  } catch (error) {
    const fields = error instanceof Invalid ? immutableFields(error, object, live) : []
    if (fields.length === 0) throw refusal(kind, live, error)
    throw new TerminalError(
      `spec.template: ${fields.join(', ')} of ${kind.kind} ${live.metadata.name} cannot be changed once it is there`,
      { cause: error },
    )
  }
}

/** The cache may be late, or show only what Shipmate made: what it does not show may be there, and somebody else's. */
async function createPart(client: CachedClient, app: App, part: Part): Promise<void> {
  const { kind, object } = part
  const { namespace } = app.metadata
  const there = await client.live.find(kind, { namespace, name: object.metadata.name ?? '' })
  if (there) {
    const now = partOf(app, part, there as Snapshot, { manager: client.live.fieldManager, isScaledDown: false })
    if (now.foreign) throw new TerminalError(now.foreign)
    // One that was scaled down or is going is looked at again, when the cache shows it.
    if (kind === StatefulSet || there.metadata.deletionTimestamp) return
    return applyPart(client, app, now)
  }
  try {
    await client.apply(kind, object, { isNew: true, force: false, fieldValidation: 'Strict' })
  } catch (error) {
    throw refusal(kind, { metadata: { name: object.metadata.name ?? '' } }, error)
  }
}

/** What the server does not take of a template is for a person to mend. */
function refusal(kind: Kind, { metadata }: { metadata: { name: string } }, error: unknown): unknown {
  if (!(error instanceof Invalid || error instanceof BadRequest)) return error
  return new TerminalError(`spec.template makes ${kind.kind} ${metadata.name} invalid: ${error.answer.message}`, {
    cause: error,
  })
}
