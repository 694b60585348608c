/**
 * Carries out, on the cluster and in the sidecars, what was decided for an app.
 *
 * Guarantees: every write that decides carries the version that it was decided from; no run is asked for before evictions are held back; an Operation that is there
 * already under the name of a wish is taken as that wish's only if it carries the app's uid.
 */
import type { CachedClient } from '../kube/cached.ts'
import { AlreadyExists, NotFound } from '../kube/errors.ts'
import { ConfigMap, Secret } from '../kube/kinds.ts'
import { TerminalError } from '../runtime/index.ts'
import type { Effect } from './decide/app.ts'
import { operationFinalizer } from './decide/app.ts'
import { wishLabel } from './decide/queue.ts'
import { Operation } from './kinds.ts'
import type { Learned } from './learned.ts'
import { operationConditions } from './operation-conditions.ts'
import { secretNameOf } from './trust/app-secret.ts'
import { configNameOf } from './trust/lifecycle-config.ts'
import type { App, Op, OpStatus, View } from './view.ts'
import { takeClaim } from './workload/claim.ts'
import { create, decideCreate } from './workload/create.ts'
import { decideEnd, end, gatherEnd } from './workload/end.ts'
import { readTemplate, type Workload } from './workload/gather.ts'

export interface HandsOptions {
  readonly client: CachedClient
  readonly app: App
  readonly learned: Learned
  /** Holds evictions back, once. */
  gate(): Promise<void>
  /** The status of an Operation is stored. */
  wrote(op: Op, status: OpStatus): void
  event(type: 'Normal' | 'Warning', reason: string, note: string): void
}

/** Does it. What it leaves is read anew. */
export async function carryOut(
  effect: Effect,
  view: View,
  workload: Workload | undefined,
  options: HandsOptions,
): Promise<void> {
  const { client, app, learned, event } = options
  switch (effect.do) {
    case 'writeOperation':
      await writeStatus(client, effect.op, effect.status, view.now)
      options.wrote(effect.op, effect.status)
      return tell(effect.op, effect.status, event)
    case 'createOperation':
      return createOperation(effect, app, client)
    case 'holdOperation':
      return finalize(client, effect.op, [...(effect.op.metadata.finalizers ?? []), operationFinalizer])
    case 'releaseOperation': {
      const left = (effect.op.metadata.finalizers ?? []).filter(one => one !== operationFinalizer)
      return finalize(client, effect.op, left)
    }
    case 'cancelOperation':
      event('Normal', 'Preempted', `${effect.op.metadata.name} is cancelled for the sake of the wish`)
      await patch(client, effect.op, { spec: { cancel: true } })
      return
    case 'ask': {
      if (effect.ask.ask === 'put') await options.gate()
      const { ask } = effect
      const owner = view.operations.find(one =>
        'run' in ask
          ? runsOf(one).some(({ id }) => id === ask.run.id)
          : one.metadata.uid === app.status?.operation?.uid,
      )
      if (owner) await learned.ask(ask, owner)
      return
    }
    case 'claim':
      if (workload) await takeClaim(client, app, workload)
      return
    case 'create': {
      const step = decideCreate(app, workload, await readTemplate(client, app))
      if (step.is === 'refused') throw new TerminalError(step.message)
      const lack = step.is === 'wait' ? step.for : step.is === 'apply' ? await lackOf(client, app) : undefined
      if (lack !== undefined) return learned.lacks(lack)
      return create(client, app, step)
    }
    case 'end': {
      const seen = await gatherEnd(client, app, workload, view.pods)
      const step = decideEnd(seen)
      if (step.is === 'refused') throw new TerminalError(step.message)
      if (step.is !== 'done' && step.is !== 'wait') await end(client, app, step)
      learned.ended(step.is === 'done', step.is === 'wait' ? step.for : undefined)
    }
  }
}

/** What pods need from their first moment on: without it a sidecar would start that nobody can ask. */
async function lackOf(client: CachedClient, { metadata, spec }: App): Promise<string | undefined> {
  const { namespace } = metadata
  const needed = [
    [Secret, secretNameOf(metadata.name)],
    [ConfigMap, configNameOf(spec.lifecycle)],
  ] as const
  for (const [kind, name] of needed)
    if (!(await client.find<object>(kind, { namespace, name }))) return `${kind.kind} ${name} to be there`
  return undefined
}

function runsOf({ status }: Op) {
  return status?.runs ?? []
}

async function writeStatus(client: CachedClient, op: Op, status: OpStatus, now: number): Promise<void> {
  const gone = Object.keys(op.status ?? {}).filter(key => !(key in status))
  const { resourceVersion } = op.metadata
  const written = {
    ...Object.fromEntries(gone.map(key => [key, null])),
    ...status,
    observedGeneration: op.metadata.generation,
    conditions: operationConditions(op, status, now),
  }
  await client.status(Operation, op, written as never, { resourceVersion, fieldValidation: 'Strict' })
}

/** What a person should know of an operation. */
function tell(op: Op, { phase, message, finishedAt, runs = [] }: OpStatus, event: HandsOptions['event']): void {
  for (const { run, outcome, reason, by } of op.spec.settle ?? []) {
    const before = runsOf(op).find(({ id }) => id === run)?.phase
    const now = runs.find(({ id }) => id === run)
    if (before === 'Unknown' && now?.phase === outcome)
      event(
        'Normal',
        'RunSettled',
        `${op.metadata.name}: ${run} in ${now.pod} is ${outcome}, ${by ?? 'somebody'} says: ${reason}`,
      )
  }
  if (phase === op.status?.phase && finishedAt === op.status?.finishedAt) return
  const { name } = op.metadata
  const why = message === undefined ? '' : `: ${message}`
  if (finishedAt !== undefined)
    return event(phase === 'Succeeded' ? 'Normal' : 'Warning', `Operation${phase}`, `${name} (${op.spec.action})${why}`)
  if (phase === 'Unknown') return event('Warning', 'OutcomeUnknown', `${name}${why}`)
  if (phase === 'Running') event('Normal', 'OperationBegun', `${name} (${op.spec.action})`)
}

async function createOperation(
  { name, action, wish }: Extract<Effect, { do: 'createOperation' }>,
  app: App,
  client: CachedClient,
): Promise<void> {
  const { namespace, uid } = app.metadata
  const spec = {
    app: app.metadata.name,
    action,
    ...(wish?.params && { params: wish.params }),
    ...(wish?.paramsFrom && { paramsFrom: wish.paramsFrom }),
  }
  const metadata = { name, namespace, finalizers: [operationFinalizer], labels: { [wishLabel]: uid } }
  try {
    await client.create(Operation, { metadata, spec } as never, { fieldValidation: 'Strict' })
  } catch (error) {
    if (!(error instanceof AlreadyExists)) throw error
    const there = await client.live.find(Operation, { namespace, name })
    if (there && there.metadata.labels?.[wishLabel] !== uid)
      throw new TerminalError(`Operation ${name} is in the way: it belongs to no wish of this app`)
    // Ours, from before: it is taken up when the cache has it.
  }
}

async function finalize(client: CachedClient, op: Op, finalizers: readonly string[]): Promise<void> {
  try {
    await patch(client, op, { metadata: { finalizers } })
  } catch (error) {
    if (!(error instanceof NotFound)) throw error
  }
}

function patch(client: CachedClient, op: Op, change: { metadata?: object; spec?: object }): Promise<unknown> {
  const { uid, resourceVersion, name, namespace } = op.metadata
  const merge = { ...change, metadata: { ...change.metadata, uid, resourceVersion } }
  return client.patch(Operation, { name, namespace }, { merge })
}
