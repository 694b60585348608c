/**
 * OKT's reconcilers: from a custom resource to what it wishes, by way of an engine.
 *
 * - Basic: registers children and creates them, all or so many at a time. What is there is left alone.
 * - Advanced: also works out what each should be, updates what differs, deletes what nothing asks for any more.
 *
 * Guarantees: one status write for each reconciliation, and only if something changed; the finalizer goes only when finalization succeeded and nothing is waited
 * for, or its deadline has passed; a Conflict is no failure; the same failure again is tried at growing intervals.
 */
import type { Metric } from 'prom-client'
import { hashOf } from '../../shared/canonical.ts'
import { type Clock, systemClock, timeOf } from '../../shared/clock.ts'
import { messageOf, ShipmateError } from '../../shared/errors.ts'
import { NotFound } from '../kube/errors.ts'
import type { Kind, Ref, Snapshot } from '../kube/kind.ts'
import type { CredentialsSource } from '../kube/kubeconfig.ts'
import {
  type Manager,
  type Predicate,
  type Result,
  RetryAfter,
  type Context as RuntimeContext,
} from '../runtime/index.ts'
import { type Condition, conditionsFor, type Standing, withConditions } from './conditions.ts'
import { type BasicContext, type Context, createContext, type Inside } from './context.ts'
import type { Crd } from './crd/manifest.ts'
import type { Engine } from './engine.ts'
import { refuseAmbiguous, removeFinalizer } from './finalizers.ts'
import { freeStyle } from './freestyle.ts'
import { addTo } from './operator.ts'
import { type PolicyRule, type Rbac, rbacOf } from './rbac.ts'
import type { AnyResource } from './resource.ts'
import { type Consolidated, errorKind, isPassing } from './results.ts'
import { stepper } from './stepper.ts'
import { createThrottle, type ThrottleOptions } from './throttle.ts'

export interface ReconcilerOptions<C extends object> {
  /** In logs, metrics, events and the lease, and in each child. Default: the kind, in lower case. */
  readonly name?: string | undefined
  /** Under which name children are applied, as in managedFields. Default: its name. */
  readonly fieldManager?: string | undefined
  /**
   * Names that it had before, or under which its children were applied: what was made under them is taken over, so that fields and children
   * that are no longer wished go. Default: none.
   */
  readonly formerNames?: readonly string[] | undefined
  /** The children. Each is registered, unless ObjectsGetter says which. */
  readonly resources?: readonly AnyResource<C>[] | undefined
  /** Further kinds of children: of those that are declared while it runs. */
  readonly owns?: readonly Kind[] | undefined
  /**
   * Whether hooks ask for `pods()`. `true` watches pods, so that it costs no request and a change of one is a reason to reconcile; `list` asks the server each time.
   * Default false: they do not.
   */
  readonly pods?: boolean | 'list' | undefined
  /** Whether hooks run commands in pods with `exec()`. Default false. */
  readonly exec?: boolean | undefined
  /** Further objects whose changes are a reason to reconcile, and which custom resources each concerns. */
  readonly watches?: readonly Watched[] | undefined
  /** Called once, with what wakes a custom resource: for news that come from elsewhere than the API server. */
  readonly listen?: ((wake: (ref: Ref, reason: string) => void) => void) | undefined
  /**
   * Writes the status only if nobody has changed the object since it was read: for a status from which is decided what to do. Else that is so only where
   * conditions change. Default false.
   */
  readonly statusByVersion?: boolean | undefined
  /** The name of the finalizer; two operators of one kind need one each. Default: `GROUP/finalizer`. */
  readonly finalizer?: string | undefined
  /** After so many milliseconds of failing finalization the finalizer goes all the same, and an Event says so. Default: never. */
  readonly finalizationDeadline?: number | undefined
  /** Create no more than so many children in one reconciliation. Default 0: no limit. */
  readonly maxCreation?: number | undefined
  /** Leave the other children alone once one has failed. Default false. */
  readonly stopOnError?: boolean | undefined
  /** What the hooks do on the cluster besides, as rules of a Role; `shipmate gen rbac` adds them to those that follow from the rest. */
  readonly permissions?: readonly PolicyRule[] | undefined
  /** Metrics of the operator's own (prom-client), served beside the others. Made with `registers: []`: the process has a registry of its own. */
  readonly metrics?: readonly Metric[] | undefined
  /** A custom resource is gone: forget what was kept of it in this process, as in a metric. Best effort; what must not be left behind needs a finalizer. */
  gone?(ref: Ref): void
  /**
   * Which custom resources it looks after, where several processes share them: the others are left alone, whatever happens to them. The answer for one must never
   * change. Default: all.
   */
  only?(cr: Snapshot<C>): boolean
  /** Which custom resources come before the others when a process begins. Default: none. */
  first?(cr: Snapshot<C>): boolean
  /** Reconciliations at once. Default 10. */
  readonly concurrency?: number | undefined
  readonly throttle?: ThrottleOptions | undefined
  /** How far a custom resource has got, where its work is many steps without a change of its spec: another answer than the last one is no hot loop. Default: none. */
  further?(cr: Snapshot<C>): unknown
}

/** A kind to watch; make one with `watched`. */
export interface Watched {
  readonly kind: Kind
  concerns(object: Snapshot): readonly Ref[]
  readonly optional?: boolean | undefined
  /** Which changes count. Default: those that this process did not make itself. */
  readonly when?: Predicate<object> | undefined
}

export function watched<T extends object>(
  kind: Kind<T>,
  concerns: (object: Snapshot<T>) => readonly Ref[],
  { when, ...options }: { readonly optional?: boolean; readonly when?: Predicate<T> } = {},
): Watched {
  return {
    kind,
    concerns: object => concerns(object as Snapshot<T>),
    when: when as Predicate<object> | undefined,
    ...options,
  }
}

export interface BasicOptions<C extends object> extends ReconcilerOptions<C> {
  /** What to do. Default: create every declared resource that is not there. */
  readonly reconcile?: ((context: BasicContext<C>) => Promise<void> | void) | undefined
  readonly finalize?: ((context: BasicContext<C>) => Promise<void> | void) | undefined
}

export interface AdvancedOptions<C extends object> extends ReconcilerOptions<C> {
  /** Default: a Stepper without hooks. */
  readonly engine?: Engine<C> | undefined
}

/** What a reconciliation was, for the log and the metrics. */
export interface Report {
  readonly path: string
  readonly counters: Readonly<Record<string, number>>
}

/** What surrounds it in a process. */
export interface ReconcilerSurroundings {
  readonly clock?: Clock | undefined
  readonly random?: (() => number) | undefined
  readonly credentials?: (() => CredentialsSource | undefined) | undefined
  readonly onReport?: ((report: Report) => void) | undefined
}

export interface Reconciler<C extends object> {
  readonly kind: Kind<C>
  /** In logs, metrics and events; where it runs alone, that of its lease. */
  readonly name: string
  readonly options: ReconcilerOptions<C>
  /** Every kind of child. */
  readonly kinds: readonly Kind[]
  /** Those of them that may be absent from the cluster. */
  readonly optionalKinds: readonly Kind[]
  /** Whether it puts a finalizer on every custom resource. */
  readonly isHeld: boolean
  /** Whether it may put one on some: children that are declared while it runs may have a hook. */
  readonly mayHold: boolean
  /** Whether it deletes children. */
  readonly mayDelete: boolean
  readonly finalizer: string
  /** The function that the runtime calls, and what to call when an object is gone. */
  connect(around?: ReconcilerSurroundings): {
    reconcile(context: RuntimeContext<C>): Promise<Result>
    gone(uid: string): void
  }
  /** As `addTo` does: whoever hosts or tests operators needs to know no more of them than this, `rbac` and `crds`. */
  addTo(manager: Manager): void
  /** What it may do, as `rbacOf` says it. */
  rbac(): Rbac
  /** The CRD of its kind, where it is defined here. */
  crds(): Crd[]
}

/** Initial deployment: what is not there is created. */
export function basicReconciler<C extends object>(kind: Kind<C>, options: BasicOptions<C> = {}): Reconciler<C> {
  const create = async (context: Context<C>) => {
    if (options.reconcile) return options.reconcile(context)
    context.registerAll()
    await context.createAllResources()
  }
  return createReconciler(kind, freeStyle(create, { CRFinalizer: options.finalize }), options, false)
}

/** The whole life of the children. */
export function advancedReconciler<C extends object>(kind: Kind<C>, options: AdvancedOptions<C> = {}): Reconciler<C> {
  return createReconciler(kind, options.engine ?? stepper(), options, true)
}

function createReconciler<C extends object>(
  kind: Kind<C>,
  engine: Engine<C>,
  options: ReconcilerOptions<C>,
  mayDelete: boolean,
): Reconciler<C> {
  const declared = options.resources ?? []
  refuseAmbiguous(kind, declared)
  const kinds = [...new Set<Kind>([...declared.map(resource => resource.kind), ...(options.owns ?? [])])]
  const required = [
    ...declared.filter(({ options }) => !options.optional).map(({ kind }) => kind),
    ...(options.owns ?? []),
  ]
  const optionalKinds = kinds.filter(one => !required.includes(one))
  const isHeld = engine.finalizes || declared.some(resource => resource.options.finalizer !== undefined)
  const mayHold = isHeld || (options.owns ?? []).length > 0
  const finalizer = options.finalizer ?? `${kind.group}/finalizer`
  // Two operators of one kind are told apart by their finalizers, on children too.
  const childFinalizer = options.finalizer === undefined ? `${kind.group}/child` : `${options.finalizer}.child`
  const name = options.name ?? kind.kind.toLowerCase()
  const reconciler: Reconciler<C> = {
    ...{ name, kind, options, kinds, optionalKinds, isHeld, mayHold, mayDelete, finalizer },
    connect({ clock = systemClock, random, credentials = () => undefined, onReport } = {}) {
      const throttle = createThrottle({ clock, random, ...options.throttle })
      const usual = { maxCreation: options.maxCreation, stopOnError: options.stopOnError }
      return {
        gone: uid => throttle.forget(uid),
        async reconcile(runtime) {
          const { object, log, client } = runtime
          const { uid } = object.metadata
          if (options.only && !options.only(object)) return
          const inside = createContext(runtime, {
            kind,
            declared,
            kinds,
            optionalKinds,
            finalizer,
            childFinalizer,
            isHeld,
            operator: name,
            formerNames: options.formerNames ?? [],
            mayList: Boolean(options.pods) || options.exec === true,
            mayExec: options.exec === true,
            usual,
            credentials,
          })
          const { results, isToFinalize, isDeleting } = inside.context
          const path = await engine.run(inside.context)
          inside.reflect()
          // How ready the children are is asked before it is decided what came of all, as that may fail too.
          const waiting = isDeleting ? [] : inside.waiting
          const done = results.consolidated()
          const counters = results.counters() as Record<string, number>
          onReport?.({ path, counters })
          log.debug({ path, operations: results.toString().split('\n') }, 'went through its steps')
          if (done.is === 'error' && isPassing(done.because?.error, inside.context.signal)) throw done.because?.error
          const isFinalized = isToFinalize && done.is === 'success' && inside.waits.length === 0
          const left = isToFinalize ? leftOf(object, options.finalizationDeadline, clock) : undefined
          const untilDeadline = left ?? Number.POSITIVE_INFINITY
          const others = isDeleting ? (object.metadata.finalizers ?? []).filter(one => one !== finalizer) : []
          if (isFinalized || left === 0) {
            if (!isFinalized) {
              abandon(runtime, done, inside)
              await inside.letAllGo()
            }
            // Who has conditions of its own may want to show that they came to their end; and who waits for others, what it waits for.
            const isTold = inside.wanted.length > 0 || inside.dropped.length > 0 || others.length > 0
            const last = others.length > 0 ? standingHeld(inside, others) : standingOf(inside, waiting, done)
            const told = isTold && (await writeStatus(runtime, kind, inside, last, clock, options))
            await removeFinalizer(client, kind, told || inside.current(), finalizer).catch(unlessGone)
            log.info({ path }, isFinalized ? 'finalized' : 'let go, though it could not be finalized')
            throttle.forget(uid)
            return
          }
          if (isDeleting && !isToFinalize) {
            if (others.length > 0)
              await writeStatus(runtime, kind, inside, standingHeld(inside, others), clock, options)
            return
          }
          const standing = standingOf(inside, waiting, done)
          await writeStatus(runtime, kind, inside, standing, clock, options)
          if (done.is !== 'error') {
            throttle.forget(uid)
            if (Object.keys(counters).some(code => isWorthTelling(code))) log.info({ path, ...counters }, 'reconciled')
            const requeueAfter = Math.min(done.requeueAfter ?? Number.POSITIVE_INFINITY, untilDeadline)
            return Number.isFinite(requeueAfter) ? { requeueAfter } : undefined
          }
          const failures = results.operations.filter(
            ({ error }) => error !== undefined && !isPassing(error, inside.context.signal),
          )
          const after = throttle.failed(
            uid,
            failures.map(({ on, error }) => ({ on, kind: errorKind(error) })),
          )
          const error = done.because?.error
          throw new RetryAfter(error, Math.min(Math.max(after, askedOf(error)), untilDeadline))
        },
      }
    },
    addTo: manager => void addTo(manager, reconciler),
    rbac: () => rbacOf([reconciler]),
    crds: () => ('crd' in kind ? [(kind as Kind<C> & { crd(): Crd }).crd()] : []),
  }
  return reconciler
}

function isWorthTelling(code: string): boolean {
  return !['Registered', 'Mutated', 'Unchanged', 'Waiting', 'Absent', 'ComeBack'].includes(code)
}

/** Milliseconds until a finalization is overdue; undefined where it never is. */
function leftOf(object: Snapshot<object>, deadline: number | undefined, clock: Clock): number | undefined {
  const { deletionTimestamp } = object.metadata
  if (deadline === undefined || deletionTimestamp === undefined) return undefined
  return Math.max(Date.parse(deletionTimestamp) + deadline - clock.now() + 1, 0)
}

function abandon<C extends object>(
  { event, object }: RuntimeContext<C>,
  { is, because }: Consolidated,
  { waits }: Inside<C>,
): void {
  const why = is === 'error' ? messageOf(because?.error) : (because?.note ?? waits[0]?.message)
  event(
    'Warning',
    'FinalizationAbandoned',
    `${object.kind} ${object.metadata.name} is let go, as its deadline has passed; it could not be finalized: ${why}`,
  )
}

/** How things stand, in the words of conditions. Pure. */
function standingOf<C extends object>(
  inside: Inside<C>,
  waiting: Inside<C>['waiting'],
  { is, because }: Consolidated,
): Standing {
  const { context, waits } = inside
  const failed = { reason: reasonOf(because?.error), message: `${because?.on}: ${messageOf(because?.error)}` }
  if (context.isDeleting) {
    if (is === 'error') return { is: 'deleting', failed: true, reason: 'FinalizationFailed', message: failed.message }
    const [held] = inside.held()
    const why =
      is === 'givenUp'
        ? { reason: 'GivenUp', message: because?.note ?? '' }
        : (waits[0] ?? (held === undefined ? {} : { reason: 'ChildHeld', message: held }))
    return { is: 'deleting', failed: false, reason: 'Finalizing', message: 'It is being finalized.', ...why }
  }
  switch (is) {
    case 'givenUp':
      return { is: 'givenUp', reason: 'GivenUp', message: because?.note ?? '' }
    case 'error':
      return { is: isForAPerson(because?.error) ? 'stalled' : 'failing', ...failed }
    case 'success': {
      const first = waiting.find(({ failed }) => failed) ?? waiting[0]
      if (!first) return { is: 'ready' }
      return { is: first.failed ? 'stalled' : 'waiting', reason: first.reason, message: first.message }
    }
  }
}

/** Ours is done; a child or somebody else's finalizer still holds it. */
function standingHeld<C extends object>(inside: Inside<C>, others: readonly string[]): Standing {
  const [child] = inside.held()
  return child === undefined
    ? { is: 'deleting', failed: false, reason: 'Held', message: `It is held by the finalizer ${others.join(', ')}.` }
    : { is: 'deleting', failed: false, reason: 'ChildHeld', message: child }
}

/** Trying again does not help until somebody changes something. */
function isForAPerson(error: unknown): boolean {
  // What a hook has called off after a time of its own may be faster next time.
  return error instanceof ShipmateError && error.retry === 'never' && error.code !== 'Aborted'
}

/** Let go already: the cache may show it a moment longer. */
function unlessGone(error: unknown): void {
  if (!(error instanceof NotFound)) throw error
}

/** How long whoever refused asks to wait. */
function askedOf(error: unknown): number {
  const { retryAfter } = (error ?? {}) as { retryAfter?: unknown }
  return typeof retryAfter === 'number' ? retryAfter : 0
}

/** One CamelCase word. */
function reasonOf(error: unknown): string {
  const kind = errorKind(error)
  return /^[A-Z][A-Za-z]*$/.test(kind) && kind !== 'Error' ? kind : 'Failed'
}

async function writeStatus<C extends object>(
  { client, object }: RuntimeContext<C>,
  kind: Kind<C>,
  { context, wanted, dropped, current }: Inside<C>,
  standing: Standing,
  clock: Clock,
  { statusByVersion = false }: Pick<ReconcilerOptions<C>, 'statusByVersion'>,
): Promise<Snapshot<C> | undefined> {
  const before = ((object as { status?: Record<string, unknown> }).status ?? {}) as Record<string, unknown>
  const draft = context.status as Record<string, unknown>
  const now = timeOf(clock.now())
  const { generation } = object.metadata
  const conditions = withConditions(
    (before['conditions'] ?? []) as Condition[],
    [...wanted, ...conditionsFor(standing)],
    { now, generation, dropped },
  )
  // What was taken out of the draft goes.
  const gone = Object.fromEntries(
    Object.keys(before)
      .filter(key => !(key in draft))
      .map(key => [key, null]),
  )
  const status = { ...gone, ...draft, conditions, observedGeneration: generation }
  // A list is written as a whole: who has added to it meanwhile must not lose that.
  const isSame = hashOf(conditions) === hashOf(before['conditions'] ?? [])
  const { resourceVersion } = current().metadata
  try {
    return await client.status(kind, current(), status as Parameters<typeof client.status<C>>[2], {
      fieldValidation: 'Strict',
      ...((!isSame || statusByVersion) && { resourceVersion }),
    })
  } catch (error) {
    if (!(error instanceof NotFound)) throw error
    const there = await client.live.find(kind, object.metadata)
    // It went meanwhile: there is nobody to tell.
    if (there?.metadata.uid !== object.metadata.uid) return undefined
    throw new ShipmateError(
      'Misuse',
      `the status of ${kind.kind} cannot be written: its CRD has no status subresource (\`subresources: { status: {} }\`)`,
      'never',
      { cause: error },
    )
  }
}
