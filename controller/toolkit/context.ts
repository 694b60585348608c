/**
 * What the hooks of one reconciliation get. Made anew for each: nothing is shared between two of them, however many run at once.
 */
import { ShipmateError } from '../../shared/errors.ts'
import type { CachedClient } from '../kube/cached.ts'
import { type ExecOptions, type ExecResult, exec } from '../kube/exec.ts'
import { type Kind, kindKey, type Snapshot, type Wire } from '../kube/kind.ts'
import type { Pod } from '../kube/kinds.ts'
import type { CredentialsSource } from '../kube/kubeconfig.ts'
import type { Logger, Context as RuntimeContext } from '../runtime/index.ts'
import { TerminalError } from '../runtime/index.ts'
import { type AllOptions, createCare, type DeletionOptions } from './care.ts'
import { ownTypes, type Wanted } from './conditions.ts'
import { GiveUp } from './engine.ts'
import { indexOf, refOf } from './expected.ts'
import { addFinalizer, hasFinalizer, isBeingDeleted } from './finalizers.ts'
import { makerOf } from './ownership.ts'
import { createRegistry, type Entry, type Registry } from './registry.ts'
import type { AnyResource, ResourceObject } from './resource.ts'
import { createResults, type Results } from './results.ts'
import { listPods } from './workloads.ts'

/** The status, to be changed in place; it is written once, at the end, if something changed. */
export type StatusDraft<C extends object> = C extends { status?: infer S }
  ? { -readonly [K in keyof Wire<NonNullable<S>>]: Wire<NonNullable<S>>[K] }
  : Record<string, unknown>

type OfEither<C extends object> = AnyResource<C> | Entry<C>

export interface BasicContext<C extends object> {
  /** The custom resource, frozen. */
  readonly cr: Snapshot<C>
  readonly client: CachedClient
  readonly log: Logger
  /** Why this reconciliation. */
  readonly reasons: readonly string[]
  /** Aborted when the process stops or no longer leads. */
  readonly signal: AbortSignal
  readonly attempt: number
  readonly results: Results
  readonly registry: Registry<C>
  readonly status: StatusDraft<C>
  /** Being deleted. */
  readonly isDeleting: boolean
  /** Being deleted, and our finalizer is still there. */
  readonly isToFinalize: boolean
  /** Tells a person, through an Event. */
  event(type: 'Normal' | 'Warning', reason: string, note: string): void
  /**
   * A condition of the operator's own; it stays as it is said until it is said anew or dropped, and its observedGeneration tells of which generation it was said. The
   * toolkit's own types are refused.
   */
  condition(wanted: Wanted): void
  /** Takes a condition of the operator's own away. */
  dropCondition(type: string): void
  /**
   * Nothing failed, but it is not ready: Ready is False with this reason, and it is looked at again when something changes. In CRFinalizer: the finalizer stays
   * until then.
   */
  waitFor(reason: string, message: string): void
  /** Nothing failed, but only a person can go on: Stalled is True with this reason, and it is looked at again when something changes. */
  stall(reason: string, message: string): void
  /** Ends this reconciliation, without an error. */
  giveUp(reason: string, options?: { requeueAfter?: number }): never
  /** Look again after so many milliseconds at the latest. */
  comeBack(ms: number, why?: string): void
  /** A child to look after. @param after those that must be ready before it is created or changed */
  register<T extends object>(
    resource: ResourceObject<C, T>,
    options?: { after?: OfEither<C> | readonly OfEither<C>[] },
  ): Entry<C>
  /** Every declared resource, in the order of its declaration. */
  registerAll(): void
  /** Learns what is there of each registered child. */
  fetchPeers(): Promise<void>
  /** The registered child as it is, once it was asked for. */
  live<T extends object>(resource: ResourceObject<C, T>): Snapshot<T> | undefined
  /** The pods of a registered Deployment, StatefulSet, DaemonSet or Job, as `listPods` has them, but for terminating ones. Needs `pods` in the reconciler's options. */
  pods(resource: OfEither<C>): Promise<Snapshot<typeof Pod extends Kind<infer P> ? P : never>[]>
  /** Runs a command in a container, by name, of a running pod of a registered child. Needs `exec` in the reconciler's options. */
  exec(
    resource: OfEither<C>,
    container: string,
    command: readonly string[],
    options?: Partial<ExecOptions>,
  ): Promise<ExecResult>
  /** Refuses a custom resource that its own definition does not allow. */
  checkCR(): void
  /** Puts the finalizer on the custom resource, if something has to be finalized. */
  holdCR(): Promise<void>
  createResource(resource: OfEither<C>): Promise<void>
  createAllResources(options?: AllOptions): Promise<void>
  /** Runs the hooks of children that carry our finalizer, and lets them go. */
  releaseAllResources(): Promise<void>
}

export interface Context<C extends object> extends BasicContext<C> {
  mutateResource(resource: OfEither<C>): void
  mutateAllResources(options?: Pick<AllOptions, 'stopOnError'>): undefined
  updateResource(resource: OfEither<C>): Promise<void>
  createOrUpdateAllResources(options?: AllOptions): Promise<void>
  deleteResource(resource: OfEither<C>, options?: DeletionOptions): Promise<void>
  /**
   * Deletes every child that has the custom resource as its owner, and registered ones without an owner. While some are still there, as their pods are with
   * Foreground, that is waited for: in CRFinalizer, the finalizer stays until then.
   */
  deleteAllResources(options?: DeletionOptions): Promise<void>
  pruneResources(): Promise<void>
}

/** What only the reconciler sees. */
export interface Inside<C extends object> {
  readonly context: Context<C>
  readonly wanted: readonly Wanted[]
  /** Types of conditions that are to go. */
  readonly dropped: readonly string[]
  /** Children that are being deleted and held by a finalizer that nothing here handles. */
  held(): string[]
  /** What hooks wait for. */
  readonly waits: readonly { readonly reason: string; readonly message: string; readonly failed?: boolean }[]
  /** What is not ready, of the children too; `failed`: and only a person can mend it. */
  readonly waiting: readonly {
    readonly reason: string
    readonly message: string
    readonly failed?: boolean | undefined
  }[]
  /** Takes over what registered children say in the custom resource. */
  reflect(): void
  /** Takes our finalizer off every child, whatever its hook says. */
  letAllGo(): Promise<void>
  /** The custom resource, with the finalizer if that was put on it. */
  current(): Snapshot<C>
}

export interface ContextOptions<C extends object> {
  readonly kind: Kind<C> & { validate?(object: object): string[] }
  readonly declared: readonly AnyResource<C>[]
  readonly kinds: readonly Kind[]
  readonly optionalKinds: readonly Kind[]
  readonly finalizer: string
  readonly childFinalizer: string
  readonly isHeld: boolean
  /** The operator's name. */
  readonly operator: string
  readonly usual: AllOptions
  readonly credentials: () => CredentialsSource | undefined
  /** Names that the operator had before. */
  readonly formerNames: readonly string[]
  /** Whether hooks may ask for pods, and run commands in them. */
  readonly mayList: boolean
  readonly mayExec: boolean
}

export function createContext<C extends object>(runtime: RuntimeContext<C>, options: ContextOptions<C>): Inside<C> {
  const { object: cr, client, log, signal, reasons, attempt } = runtime
  const { kind, declared, kinds, finalizer, childFinalizer } = options
  const results = createResults(signal)
  const registry = createRegistry<C>()
  const wanted: Wanted[] = []
  const dropped: string[] = []
  const waiting: { reason: string; message: string; failed?: boolean }[] = []
  let current = cr
  const event: Context<C>['event'] = (type, reason, note) => runtime.event(type, reason, note)
  const maker = makerOf(kind, cr as Snapshot, options.operator, options.formerNames)
  const condition: Context<C>['condition'] = one => {
    refuseOwnType(one.type)
    wanted.push(one)
  }
  const waitFor: Context<C>['waitFor'] = (reason, message) => void waiting.push({ reason, message })
  async function hold(): Promise<void> {
    if (!isBeingDeleted(cr as Snapshot)) current = await addFinalizer(client, kind, current, finalizer)
  }
  const care = createCare({
    ...{ cr, client, log, signal, event, results, registry, childFinalizer, maker, kinds, declared, hold },
    ...{ condition, waitFor },
    optionalKinds: options.optionalKinds,
  })

  const register: Context<C>['register'] = (resource, { after = [] } = {}) => {
    if (!kinds.includes(resource.kind))
      throw new ShipmateError(
        'Misuse',
        `${resource.kind.kind} is not declared: name it in \`resources\` or \`owns\`, so that it is watched`,
        'never',
      )
    const ref = refOf(resource, cr)
    const short = indexOf(resource, ref, cr as Snapshot)
    const other = registry.get(short)
    // Kinds of one name in two groups are told apart where they meet.
    const isOther = other !== undefined && kindKey(other.resource.kind) !== kindKey(resource.kind)
    const index = isOther ? `${resource.kind.group || 'core'}/${short}` : short
    const others = Array.isArray(after) ? after : [after]
    const entry: Entry<C> = {
      resource,
      ref,
      index,
      after: others.map(other => entryOf(other).index),
      peer: undefined,
      isFetched: false,
      isUnwished: false,
      expected: undefined,
    }
    registry.add(entry)
    results.add({ code: 'Registered', on: entry.index })
    return entry
  }

  function entryOf(given: OfEither<C>): Entry<C> {
    const entry = 'index' in given ? registry.get(given.index) : registry.of(given)
    if (entry) return entry
    const name = 'index' in given ? given.index : given.kind.kind
    throw new ShipmateError('Misuse', `${name} is not registered`, 'never')
  }

  async function pods(given: OfEither<C>) {
    if (!options.mayList)
      throw new ShipmateError(
        'Misuse',
        "`pods` is not among the operator's options: true watches pods, 'list' asks for them",
        'never',
      )
    const { peer, index } = entryOf(given)
    if (!peer) return []
    if (!(peer as { spec?: { selector?: unknown } }).spec?.selector)
      throw new ShipmateError('Misuse', `${index} has no selector, so it has no pods`, 'never')
    const all = await listPods(client, peer as Parameters<typeof listPods>[1])
    return all.filter(pod => !isBeingDeleted(pod as Snapshot))
  }

  const context: Context<C> = {
    ...{ cr, client, log, signal, reasons, attempt, results, registry, register },
    status: structuredClone((cr as { status?: object }).status ?? {}) as StatusDraft<C>,
    isDeleting: isBeingDeleted(cr as Snapshot),
    isToFinalize: isBeingDeleted(cr as Snapshot) && hasFinalizer(cr as Snapshot, finalizer),
    event,
    condition,
    dropCondition(type) {
      refuseOwnType(type)
      dropped.push(type)
    },
    waitFor,
    stall: (reason, message) => void waiting.push({ reason, message, failed: true }),
    giveUp(reason, { requeueAfter } = {}) {
      throw new GiveUp(reason, requeueAfter)
    },
    comeBack: (ms, why) =>
      results.add({ code: 'ComeBack', on: `${cr.kind} ${cr.metadata.name}`, requeueAfter: ms, note: why }),
    registerAll() {
      for (const resource of declared) register(resource)
    },
    fetchPeers: () => care.fetchPeers(),
    live: <T extends object>(resource: ResourceObject<C, T>) => registry.of(resource)?.peer as Snapshot<T> | undefined,
    pods,
    async exec(given, container, command, more = {}) {
      if (!options.mayExec)
        throw new ShipmateError('Misuse', "`exec: true` is not among the operator's options", 'never')
      const credentials = options.credentials()
      if (!credentials) throw new ShipmateError('Misuse', 'exec needs a connection to a cluster of its own', 'never')
      const running = (await pods(given)).find(pod => pod.status?.phase === 'Running')
      if (!running) throw new ShipmateError('Unavailable', `${entryOf(given).index} has no running pod`, 'later')
      const result = await exec(credentials, running.metadata, { signal, ...more, container, command })
      if (result.exitCode === 0) return result
      const said = result.stderr.trim().slice(-500)
      throw new ShipmateError(
        'ExecFailed',
        `${command[0]} in ${running.metadata.name} ended with ${result.exitCode}${said ? `: ${said}` : ''}`,
        'later',
      )
    },
    checkCR() {
      const wrong = kind.validate?.(cr) ?? []
      if (wrong.length > 0) throw new TerminalError(wrong.join('; '))
    },
    async holdCR() {
      const hasHook = registry.all().some(({ resource }) => resource.options.finalizer !== undefined)
      if (options.isHeld || hasHook) await hold()
    },
    createResource: given => care.createResource(entryOf(given)),
    createAllResources: more => care.createAllResources({ ...options.usual, ...more }),
    releaseAllResources: () => care.releaseAllResources(),
    mutateResource: given => care.mutateResource(entryOf(given)),
    mutateAllResources(more) {
      care.mutateAllResources(more)
      return undefined
    },
    updateResource: given => care.updateResource(entryOf(given)),
    createOrUpdateAllResources: more => care.createOrUpdateAllResources({ ...options.usual, ...more }),
    deleteResource: (given, more) => care.deleteResource(entryOf(given), more),
    async deleteAllResources(more) {
      const left = await care.deleteAllResources(more)
      if (left.length > 0) waiting.push({ reason: 'ChildrenGoing', message: `${left.join(', ')}: being deleted` })
    },
    pruneResources: () => care.pruneResources(),
  }

  return {
    context,
    wanted,
    dropped,
    held: () => care.held(),
    waits: waiting,
    reflect() {
      const draft = context.status as Record<string, unknown>
      for (const { resource, peer, index } of registry.all()) {
        try {
          const { conditions = [], status = {} } = resource.options.reflect?.(peer, cr) ?? {}
          for (const one of conditions) condition(one)
          for (const [field, value] of Object.entries(status)) {
            if (value === undefined) delete draft[field]
            else draft[field] = structuredClone(value)
          }
        } catch (error) {
          results.add({ code: 'ReadinessFailed', on: index, error })
        }
      }
    },
    letAllGo: () => care.letAllGo(),
    current: () => current,
    get waiting() {
      const held = care.held().map(message => ({ reason: 'ChildHeld', message }))
      const children = registry.all().flatMap(entry => {
        const { ready, reason, message, failed } = care.readiness(entry)
        if (ready) return []
        return [{ reason, message: message.startsWith(entry.index) ? message : `${entry.index}: ${message}`, failed }]
      })
      return [...waiting, ...held, ...children]
    },
  }
}

function refuseOwnType(type: string): void {
  if ((ownTypes as readonly string[]).includes(type))
    throw new ShipmateError('Misuse', `the condition ${type} is the toolkit's own; give yours another type`, 'never')
}
