/**
 * Reconcilers as a process: watches, leader election, metrics, health, signals.
 */
import { Counter } from 'prom-client'
import { ShipmateError } from '../../shared/errors.ts'
import { type Kind, keyOf, kindKey, type Snapshot } from '../kube/kind.ts'
import { Pod } from '../kube/kinds.ts'
import {
  addWebhooks,
  type Controller,
  createManager,
  type Manager,
  type ManagerOptions,
  predicates,
  type WebhookOptions,
} from '../runtime/index.ts'
import { webhooksOf } from './admission.ts'
import { guardCrd } from './crd/guard.ts'
import type { Crd } from './crd/manifest.ts'
import { findRef } from './expected.ts'
import { hashAnnotation } from './hash.ts'
import { madeBy, madeFor, makerIndex } from './ownership.ts'
import { selects } from './pods.ts'
import type { Reconciler } from './reconciler.ts'
import type { AnyResource } from './resource.ts'

// biome-ignore lint/suspicious/noExplicitAny: a process has reconcilers of many kinds.
type AnyReconciler = Reconciler<any>

export interface AddOptions {
  /** What a person runs to bring the operator's CRD to the cluster, for messages. Default: what does in a project that `shipmate new operator` made. */
  readonly crdCommand?: string | undefined
}

export interface RunOptions extends ManagerOptions, AddOptions {
  /** Of several replicas one works. Default: a lease with the operator's name; false: none. */
  readonly election?: false | undefined
  /**
   * How the webhooks of the operators' kinds are served, where there are any, and more `hooks` beside them. Default: on port 9443, for the Service `NAME-webhook`, with a
   * certificate in the Secret `NAME-webhook-tls`; false: not at all.
   */
  readonly webhooks?: false | Partial<WebhookOptions> | undefined
}

/** Starts one or several operators, and runs until the process is told to stop. */
export async function run(
  operators: AnyReconciler | readonly AnyReconciler[],
  options: RunOptions = {},
): Promise<void> {
  await managerFor(operators, options).start()
}

/** The manager that `run` starts, not started yet. */
export function managerFor(
  operators: AnyReconciler | readonly AnyReconciler[],
  { election, crdCommand, webhooks = {}, ...options }: RunOptions = {},
): Manager {
  const all = Array.isArray(operators) ? operators : [operators]
  const name = options.name ?? all[0]?.name ?? 'shipmate'
  const manager = createManager({
    name,
    ...(election !== false && { leaderElection: { name } }),
    health: { port: 8081 },
    metrics: { port: 8081 },
    ...options,
  })
  for (const one of all) addTo(manager, one, { crdCommand })
  if (webhooks === false) return manager
  const kinds = new Set<Kind>(all.map(({ kind }) => kind))
  const hooks = [...[...kinds].flatMap(webhooksOf), ...(webhooks.hooks ?? [])]
  if (hooks.length > 0) addWebhooks(manager, { name, ...webhooks, hooks })
  return manager
}

/** Adds an operator to a manager of one's own. The controller that it answers can be told of more to watch. */
export function addTo<C extends object>(
  manager: Manager,
  reconciler: Reconciler<C>,
  { crdCommand }: AddOptions = {},
): Controller<C> {
  const { kind, name, options, kinds, optionalKinds } = reconciler
  refuseTwice(manager, reconciler)
  const { operations, paths } = countersOf(manager)
  const uids = new Map<string, string>()
  const { reconcile, gone } = reconciler.connect({
    clock: manager.clock,
    random: manager.random,
    credentials: () => manager.credentials,
    onReport({ path, counters }) {
      paths.inc({ controller: name, path })
      for (const [code, count] of Object.entries(counters)) operations.inc({ controller: name, code }, count)
    },
  })
  const controller = manager.controller(kind, {
    ...{ name, concurrency: options.concurrency, when: isNews },
    ...(options.first && { first: cr => options.first?.(cr as Snapshot<C>) ?? false }),
    ...(options.further && { further: cr => options.further?.(cr as Snapshot<C>) }),
    // The operator's own, so that it is the same whoever else is in the process.
    fieldManager: options.fieldManager ?? name,
    formerFieldManagers: options.formerNames,
  })
  if ('crd' in kind) guardCrd(manager, kind as Kind & { crd(): Crd }, manager.clock, crdCommand)
  for (const metric of options.metrics ?? []) manager.metrics.registry.registerMetric(metric)
  for (const owned of kinds) {
    controller.owns(owned, { when: isNews, optional: optionalKinds.includes(owned) })
    manager.cache.informer(owned).addIndex(makerIndex, child => {
      const maker = madeBy(child as Snapshot)
      return maker ? [madeFor(maker)] : []
    })
  }
  for (const child of options.resources ?? []) {
    const optional = optionalKinds.includes(child.kind)
    if (child.options.owner === false)
      controller.watches(child.kind, object => namersOf(manager, kind, child, object), { when: isNews, optional })
  }
  for (const owned of optionalKinds) {
    manager.cache.informer(owned).onServed(isServed => {
      for (const { metadata } of manager.cache.informer(kind).list())
        controller.trigger(metadata, `${owned.kind} is ${isServed ? 'served' : 'no longer served'}`)
    })
  }
  for (const { kind: other, concerns, optional = false, when = isNews } of options.watches ?? [])
    controller.watches(other, concerns, { when, optional })
  options.listen?.((ref, reason) => controller.trigger(ref, reason))
  if (options.pods === true) controller.watches(Pod, pod => ownersOf(manager, kinds, kind, pod as Snapshot))
  return controller
    .reconcile(context => {
      uids.set(`${context.object.metadata.namespace}/${context.object.metadata.name}`, context.object.metadata.uid)
      return reconcile(context)
    })
    .gone(({ ref }) => {
      const key = `${ref.namespace}/${ref.name}`
      const uid = uids.get(key)
      if (uid) gone(uid)
      options.gone?.(ref)
      uids.delete(key)
    })
}

const added = new WeakMap<Manager, AnyReconciler[]>()

/** Two that cannot be told apart would prune each other's children, or let go what the other holds. */
function refuseTwice(manager: Manager, reconciler: AnyReconciler): void {
  const others = added.get(manager) ?? []
  for (const other of others.filter(({ kind }) => kindKey(kind) === kindKey(reconciler.kind))) {
    const both = `there are two operators of ${reconciler.kind.kind}`
    if (other.name === reconciler.name)
      throw new ShipmateError('Misuse', `${both} with the name ${other.name}: say \`name\` in one of them`, 'never')
    if (other.mayHold && reconciler.mayHold && other.finalizer === reconciler.finalizer)
      throw new ShipmateError(
        'Misuse',
        `${both} with the finalizer ${other.finalizer}: say \`finalizer\` in one of them`,
        'never',
      )
  }
  added.set(manager, [...others, reconciler])
}

/**
 * What this process wrote itself it knows already: else every failure would be tried again at once, for its own status. But the answer to a write of ours also
 * has what somebody else has changed meanwhile.
 */
const { any, annotationsChanged, byOthers, deletion, generationChanged, labelsChanged } = predicates
const isNews = any(byOthers, deletion, specChanged, labelsChanged, annotationsChanged)

function specChanged(change: Parameters<typeof generationChanged>[0]): boolean {
  return change.object.metadata.generation !== undefined && generationChanged(change)
}

/** Whose child without an owner reference it is: that of the custom resources from which its name follows. */
function namersOf<C extends object>(
  manager: Manager,
  kind: Kind<C>,
  child: AnyResource<C>,
  { metadata }: Snapshot,
): { name: string; namespace?: string | undefined }[] {
  if (metadata.annotations?.[hashAnnotation] === undefined) return []
  const all = manager.cache.peek(kind)?.list() ?? []
  return all.flatMap(cr => {
    const ref = findRef(child, cr)
    return ref && keyOf(ref) === keyOf(metadata) ? [cr.metadata] : []
  })
}

/** Whose workload a pod belongs to: the custom resources that control a workload which selects it, or for which it was made. */
function ownersOf(
  manager: Manager,
  kinds: readonly Kind[],
  kind: Kind,
  pod: Snapshot,
): { name: string; namespace?: string | undefined }[] {
  const { namespace, labels } = pod.metadata
  return kinds.flatMap(one => {
    const workloads = manager.cache.peek(one)?.list({ namespace }) ?? []
    return workloads.flatMap(workload => {
      const { selector } = (workload as { spec?: { selector?: unknown } }).spec ?? {}
      const owner = workload.metadata.ownerReferences?.find(
        reference => reference.controller && reference.kind === kind.kind,
      )
      if (typeof selector !== 'object' || selector === null || !selects(selector, labels)) return []
      if (owner) return [kind.namespaced ? { name: owner.name, namespace } : { name: owner.name }]
      const maker = madeBy(workload)
      return maker?.kind === `${kind.kind}.${kind.group}` ? [{ name: maker.name, namespace: maker.namespace }] : []
    })
  })
}

/** One set for each process, however many operators it has. */
function countersOf({ metrics }: Manager) {
  const registers = [metrics.registry]
  const counter = (name: string, help: string, labelNames: string[]) =>
    (metrics.registry.getSingleMetric(name) as Counter | undefined) ??
    new Counter({ name, help, labelNames, registers })
  return {
    operations: counter('shipmate_operations_total', 'What reconciliations did, by operation.', ['controller', 'code']),
    paths: counter('shipmate_paths_total', 'Ways that reconciliations took through their steps.', [
      'controller',
      'path',
    ]),
  }
}
