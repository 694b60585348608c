/**
 * Keeps the certificate of the webhooks in its Secret, and its authorities in the registrations: the I/O around certificate.ts.
 *
 * Guarantees: every replica does it, and they agree, as each write is of the version that was decided from, and what is written into a registration follows from a Secret
 * read after it. A Secret that is deleted or garbled, and a bundle that somebody overwrites, is put right at once, without a call that fails. While nothing happens,
 * nothing is written.
 */
import { delay } from '../../../shared/backoff.ts'
import type { Names } from '../../../shared/certificate.ts'
import type { Clock } from '../../../shared/clock.ts'
import { messageOf } from '../../../shared/errors.ts'
import type { Logger } from '../../../shared/log.ts'
import { isApplied } from '../../kube/applied.ts'
import type { Client, JsonPatchOperation } from '../../kube/client.ts'
import { AlreadyExists, Conflict, NotFound } from '../../kube/errors.ts'
import { Informer } from '../../kube/informer.ts'
import type { Kind, Live } from '../../kube/kind.ts'
import { CustomResourceDefinition, Secret } from '../../kube/kinds.ts'
import { type CertificateLifetimes, planCertificate } from './certificate.ts'
import type { Hook } from './hooks.ts'
import { conversionOf, type Registered, registeredOf, registrationsOf, type WebhookPlace } from './registration.ts'
import { bundleOf, readStored, type Served, type Stored, secretOf } from './stored.ts'

export interface KeeperOptions {
  readonly client: Client
  readonly clock: Clock
  readonly random: () => number
  readonly log: Logger
  readonly secret: { readonly name: string; readonly namespace: string }
  readonly names: Names
  readonly lifetimes: CertificateLifetimes
  readonly hooks: readonly Hook[]
  /** Of the two configurations. */
  readonly name: string
  readonly place: WebhookPlace
  /** Whether the registrations themselves are kept, too, or only the bundles in those that are there. */
  readonly register: boolean
  /** Told of each certificate to serve with. */
  readonly onCertificate: (served: Served) => void
}

export interface Keeper {
  /** Goes on until the signal is aborted, then resolves. */
  run(signal: AbortSignal): Promise<void>
  /** What is wrong now, for a person. */
  readonly trouble: string | undefined
}

/** However long nothing is due, the wall clock may have been set meanwhile. */
const longestSleep = 3_600_000
const backoff = { first: 200, longest: 30_000 }

export function createKeeper(options: KeeperOptions): Keeper {
  const { client, clock, log, secret, names, lifetimes, hooks, name, place, register } = options
  const registered = registeredOf(hooks, name)
  /** What was read or written last, with a certificate to serve with. */
  let known: Stored | undefined
  let trouble: string | undefined
  /** The authority that is to follow, and since when every registration has it. */
  let believed: { readonly ca: string; readonly since: number } | undefined

  const adopt = (stored: Stored) => {
    const { current } = stored
    if (!current) return
    const isInUse = current.cert === known?.current?.cert && current.key === known.current.key
    known = stored
    if (!isInUse) options.onCertificate(current)
  }

  const keepSecret = async (signal: AbortSignal): Promise<{ stored: Stored; again: number }> => {
    for (;;) {
      const live = await client.find(Secret, secret, { signal })
      const stored = readStored(live, names, clock.now())
      const since = believed && believed.ca === stored.next?.ca ? believed.since : undefined
      const plan = planCertificate({ now: clock.now(), stored, known, believed: since, names, lifetimes })
      if (!plan.next) {
        adopt(stored)
        return { stored, again: plan.again }
      }
      const { data, annotations } = secretOf(plan.next)
      try {
        if (live) {
          const metadata = { ...live.metadata, annotations: { ...live.metadata.annotations, ...annotations } }
          await client.update(Secret, { ...live, metadata, data: { ...withoutNext(live.data), ...data } }, { signal })
        } else {
          const metadata = { ...secret, annotations }
          await client.create(Secret, { metadata, type: 'kubernetes.io/tls', data }, { signal })
        }
        log.info(
          { secret: `${secret.namespace}/${secret.name}`, ...phasesOf(plan.next) },
          whatHappened(stored, plan.next),
        )
        adopt(plan.next)
        return { stored: plan.next, again: plan.again }
      } catch (error) {
        // Somebody else was first: what they wrote is looked at.
        if (!isOvertaken(error)) throw error
      }
    }
  }

  /** @param live as it was before the Secret was read */
  const keepRegistered = async (
    one: Registered,
    live: Live | undefined,
    bundle: string,
    signal: AbortSignal,
  ): Promise<void> => {
    const at = { kind: one.kind.kind, name: one.name }
    const resourceVersion = live?.metadata.resourceVersion
    if (register && one.kind !== CustomResourceDefinition) {
      const wished = registrationWith(one.kind, bundle)
      if (live && isApplied(wished, live, client.fieldManager)) return
      const metadata = { name: one.name, ...(resourceVersion !== undefined && { resourceVersion }) }
      await client.apply(one.kind, { ...wished, metadata }, { signal })
      return log.info(at, 'the webhooks are registered')
    }
    if (!live) return
    const patch = register ? conversionPatch(live, one.name, bundle) : bundlePatch(one, live, bundle)
    if (patch.length === 0) return
    const unchanged = { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion } as const
    await client.patch(one.kind, { name: one.name }, { json: [unchanged, ...patch] }, { signal })
    log.info(at, 'the bundle of authorities is written')
  }

  const registrationWith = (kind: Kind, bundle: string): object => {
    const found = registrationsOf(hooks, name, place).find(one => one.kind === kind)
    const { webhooks = [], ...rest } = (found?.object ?? {}) as { webhooks?: { clientConfig: object }[] }
    return {
      ...rest,
      webhooks: webhooks.map(one => ({ ...one, clientConfig: { ...one.clientConfig, caBundle: bundle } })),
    }
  }

  const conversionPatch = (live: Live, crd: string, bundle: string): JsonPatchOperation[] => {
    const hook = hooks.find(one => one.is === 'converting' && one.crd === crd)
    const wished = conversionOf(place, hook?.path ?? '', bundle)
    const { conversion } = (live as { spec?: { conversion?: { webhook?: { clientConfig?: object } } } }).spec ?? {}
    const isThere = isSame(conversion?.webhook?.clientConfig, wished.webhook.clientConfig)
    return isThere ? [] : [{ op: 'add', path: '/spec/conversion', value: wished }]
  }

  const round = async (signal: AbortSignal): Promise<number> => {
    // Before the Secret: so none is written by one that is older than what it has.
    const lives = await Promise.all(registered.map(one => client.find(one.kind, { name: one.name }, { signal })))
    const { stored, again } = await keepSecret(signal)
    const bundle = Buffer.from(bundleOf(stored)).toString('base64')
    try {
      for (const [index, one] of registered.entries()) await keepRegistered(one, lives[index], bundle, signal)
    } catch (error) {
      if (!isOvertaken(error)) throw error
      return clock.now()
    }
    const { next } = stored
    if (!next) believed = undefined
    else if (believed?.ca !== next.ca) {
      believed = { ca: next.ca, since: clock.now() }
      return Math.min(again, clock.now() + lifetimes.propagation)
    }
    return again
  }

  return {
    get trouble() {
      return trouble
    },
    async run(signal) {
      const bell = createBell()
      const watches = [{ kind: Secret as Kind, ...secret }, ...registered].map(({ kind, name: one }) => {
        const informer = new Informer(client, kind, {
          ...{ clock, random: options.random, fields: { 'metadata.name': one } },
          ...(kind.namespaced && { namespaces: [secret.namespace] }),
          onHealth: health => {
            if (health.is === 'failing') log.warn({ kind: kind.kind, name: one }, `cannot be watched: ${health.why}`)
          },
        })
        informer.subscribe(() => bell.ring())
        return informer.run(signal)
      })
      for (let failures = 0; !signal.aborted; ) {
        let wait: number
        try {
          wait = Math.min((await round(signal)) - clock.now(), longestSleep)
          failures = 0
          trouble = undefined
        } catch (error) {
          if (signal.aborted) break
          trouble = messageOf(error)
          log.error({ err: error }, `the certificate of the webhooks cannot be kept: ${trouble}`)
          wait = delay(backoff, ++failures, options.random)
        }
        await bell.heard(clock, wait, signal)
      }
      await Promise.all(watches)
    },
  }
}

const isOvertaken = (error: unknown) =>
  error instanceof Conflict || error instanceof AlreadyExists || error instanceof NotFound

const isSame = (a: unknown, b: unknown) => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b))

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, one]) => [key, sorted(one)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  )
}

function bundlePatch(one: Registered, live: Live, wished: string): JsonPatchOperation[] {
  return one
    .places(live)
    .filter(({ bundle }) => bundle !== wished)
    .map(({ at }) => ({ op: 'add', path: `${at}/caBundle`, value: wished }))
}

function withoutNext(data: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { 'next.crt': _, 'next.key': __, ...rest } = data
  return rest
}

const phasesOf = ({ current, next, previous }: Stored) => ({
  until: current && new Date(current.until).toISOString(),
  hasNext: next !== undefined,
  hasPrevious: previous !== undefined,
})

function whatHappened(before: Stored, after: Stored): string {
  if (!before.current) return 'a certificate for the webhooks was made'
  if (after.next) return 'the certificate of the webhooks gets a successor'
  if (before.next) return 'the successor is the certificate of the webhooks'
  return 'the authority of the certificate before is dropped'
}

/** What rings while nobody listens is heard at once by who listens next. */
function createBell() {
  let rang = false
  let answer: (() => void) | undefined
  return {
    ring() {
      rang = true
      answer?.()
    },
    async heard(clock: Clock, within: number, signal: AbortSignal): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>()
      answer = resolve
      const timer = clock.after(Math.max(within, 0), resolve)
      signal.addEventListener('abort', () => resolve(), { once: true })
      if (rang || signal.aborted) resolve()
      await promise
      rang = false
      answer = undefined
      timer.cancel()
    },
  }
}
