/**
 * A pod that runs: its containers are processes, its volumes folders.
 *
 * Guarantees: containers start, are restarted and end in the order and by the signals that a kubelet uses (plan.ts decides, this file does). All
 * that it has on disk but claims is in its folder, and goes with `remove`. One whose status cannot be told (`tell` waits) goes on all the same.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type Clock, sleep, type Timer } from '../../shared/clock.ts'
import { messageOf } from '../../shared/errors.ts'
import { type ApiServer, isWithoutAccount, serverVariables, type Tokens } from './account.ts'
import { type Asker, callHook, shortened } from './ask.ts'
import { attend } from './attend.ts'
import { type CrashBackoff, crashDelay } from './backoff.ts'
import { runIn } from './command.ts'
import { type Container, startContainer } from './container.ts'
import type { Place } from './downward.ts'
import { ConfigError, environmentOf, type Objects } from './environment.ts'
import { createGrace, type Grace } from './grace.ts'
import { commandOf, type Images, imageOf } from './images.ts'
import type { Keeper } from './keeper.ts'
import { createLog } from './log.ts'
import { tokensOf } from './payload.ts'
import { planOf } from './plan.ts'
import { type Addresses, readdressed, relocated } from './rewrite.ts'
import { createSandbox, type Isolation } from './sandbox.ts'
import { createSlot, ended, lost, type Slot, stateOf } from './slot.ts'
import { containersOf, type Pod, type PodStatus } from './spec.ts'
import { type PodFacts, statusOf } from './status.ts'
import { createVolumes, ownToken } from './volumes.ts'

export interface PodOptions {
  readonly pod: Pod
  readonly addresses: Addresses
  readonly place: Place
  readonly folder: string
  readonly claims: string
  readonly keeper: Keeper
  readonly isolation: Isolation
  readonly images: Images
  readonly objects: Objects
  readonly tokens: Tokens
  readonly server: ApiServer | undefined
  readonly backoff: CrashBackoff
  readonly clock: Clock
  /** Writes its status. */
  readonly tell: (status: PodStatus) => Promise<void>
  readonly event: (type: 'Normal' | 'Warning', reason: string, note: string) => void
  /** Something went wrong that is nobody's fault but the node's. */
  readonly onProblem: (what: string) => void
}

export interface PodLife {
  readonly pod: Pod
  readonly addresses: Addresses
  readonly slots: readonly Slot[]
  /** Its object changed. */
  update(pod: Pod): void
  /** Objects that it uses may have changed. */
  refresh(): void
  /** Ends it in good order; called again, the shorter time counts. Resolves when the last status is told. */
  terminate(graceSeconds: number): Promise<void>
  /** All of it is dead at once, and nothing is told to anybody. */
  die(): Promise<void>
  /** Its folder goes. Once it is dead. */
  remove(): void
  /** The words of a command as they are in its containers. */
  words(slot: Slot, command: readonly string[]): string[]
}

/** What a container has left of the pod's grace period at least, once its hook has ended, in milliseconds; a kubelet's own rule. */
const leastGrace = 2000

export function startPod(options: PodOptions): PodLife {
  const { addresses, place, folder, keeper, isolation, images, objects, tokens, server, backoff, clock, event } =
    options
  let { pod } = options
  const { name, namespace, uid } = pod.metadata
  const startedAt = Date.parse(pod.status?.startTime ?? '') || clock.now()
  const planned = containersOf(pod)
  const waiting = planned.some(({ role }) => role !== 'main') ? 'PodInitializing' : 'ContainerCreating'
  const slots = planned.map(one => createSlot(pod, one, waiting, clock.now()))
  const sources = { ...objects, token: tokens.get }
  const volumes = createVolumes(pod, { folder, claims: options.claims, place, sources, server })
  const stopping = new AbortController()
  const grace = createGrace()
  const hasPids = pod.spec?.shareProcessNamespace !== true && pod.spec?.hostPID !== true
  let isPrepared = false
  let isEnding = false
  let isDead = false
  let hasEnded = false
  let failure: PodFacts['failure']
  let ending: Promise<void> | undefined
  let timer: Timer | undefined

  const facts = (): PodFacts => ({
    ...{ ip: addresses.ip, hostIp: place.hostIp, startedAt, now: clock.now(), backoff, isPrepared, hasEnded, failure },
  })

  // One after the other, the newest only, and only what is news.
  let isStale = false
  let telling: Promise<void> | undefined
  let told: PodStatus | undefined
  function tell(): Promise<void> {
    isStale = true
    telling ??= (async () => {
      // What happens at once is told at once.
      await Promise.resolve()
      while (isStale && !isDead) {
        isStale = false
        const status = statusOf(pod, slots.map(stateOf), facts(), told ?? pod.status)
        if (isDeepStrictEqual(status, told)) continue
        await options.tell(status)
        told = status
      }
    })().finally(() => {
      telling = undefined
    })
    return telling
  }

  /** Does what is next, and tells what is. */
  function step(): void {
    void tell()
    timer?.cancel()
    if (!isPrepared || isEnding || isDead || hasEnded) return
    const plan = planOf(pod, slots.map(stateOf), { startedAt, now: clock.now(), backoff })
    if (plan.is === 'finish') return void finish()
    if (plan.is === 'expire') {
      failure = { reason: 'DeadlineExceeded', message: 'Pod was active on the node longer than the specified deadline' }
      event('Normal', failure.reason, failure.message)
      grace.limit(pod.spec?.terminationGracePeriodSeconds ?? 30)
      return void finish()
    }
    for (const slot of slots)
      if (plan.start.includes(slot.spec.name) && !slot.isBusy && !slot.isBlocked && !slot.container) start(slot)
    if (plan.at !== undefined) timer = clock.after(plan.at - clock.now(), step)
  }

  function block(slot: Slot, reason: string, message: string): void {
    slot.isBlocked = true
    slot.life = { is: 'waiting', reason, message }
    event('Warning', 'Failed', `Error: ${message}`)
    void tell()
  }

  function start(slot: Slot): void {
    const { spec } = slot
    const image = imageOf(images, spec.image ?? '')
    if (!image && !spec.command?.length) {
      const message = `there is no local image "${spec.image}", and the container has no command`
      return block(slot, 'ImagePullBackOff', message)
    }
    let container: Container
    const own = join(folder, 'containers', spec.name)
    const messageFile = join(own, 'termination-log')
    try {
      // Not the user's own: what is configured there, as another cluster, is not the pod's.
      const home = join(own, 'home')
      const given = { PATH: process.env['PATH'] ?? '', HOME: home }
      const ports = [...addresses.ports].filter(([declared, real]) => declared !== real)
      const mapped = ports.map(([declared, real]) => [`SHIPMATE_PORT_${declared}`, String(real)])
      const node = { HOST: addresses.ip, ...Object.fromEntries(mapped), ...(server && serverVariables(server)) }
      const env = environmentOf(pod, spec, place, objects, { image: { ...given, ...image?.env }, node })
      const argv = commandOf(spec, image, env) ?? []
      const binds = volumes.bindsOf(spec, env)
      rmSync(own, { recursive: true, force: true })
      mkdirSync(home, { recursive: true })
      writeFileSync(messageFile, '')
      const target = spec.terminationMessagePath ?? '/dev/termination-log'
      const sandbox = createSandbox({
        ...{ isolation, hasPids, root: join(own, 'root'), cwd: spec.workingDir || image?.cwd || '/' },
        binds: [...binds, { source: messageFile, target, isFile: true, isReadOnly: false }],
      })
      const isRewritten = sandbox.isolation === 'none'
      slot.root = isRewritten ? { path: sandbox.root, targets: sandbox.targets } : undefined
      if (isRewritten) {
        env['SHIPMATE_ROOT'] = sandbox.root
        const file = volumes.kubeconfig()
        if (file !== undefined) env['KUBECONFIG'] ??= file
      }
      // What the pod's spec gives is its words; what the machine gives, PATH above all, is not.
      const theirs = new Set([...(spec.env ?? []).map(one => one.name), ...Object.keys(image?.env ?? {})])
      for (const one of theirs) if (env[one] !== undefined) env[one] = word(slot, env[one])
      slot.env = env
      slot.previousLog?.remove()
      slot.previousLog = slot.log
      const log = createLog(join(folder, 'logs', spec.name, `${slot.starts++}.log`), undefined, clock.now)
      slot.log = log
      const words = argv.map(one => word(slot, one))
      container = startContainer({
        ...{ keeper, sandbox, argv: words, env, log, now: clock.now },
        hasStdin: spec.stdin === true,
      })
    } catch (error) {
      if (error instanceof ConfigError) return block(slot, 'CreateContainerConfigError', error.message)
      options.onProblem(`container ${spec.name} of ${namespace}/${name}: ${messageOf(error)}`)
      return block(slot, 'CreateContainerError', messageOf(error))
    }
    slot.isBusy = true
    slot.ending = undefined
    const over = new AbortController()
    slot.over = over
    if (slot.life.is === 'ended') {
      const { is: _, ...last } = slot.life
      slot.last = last
      slot.restarts++
    }
    slot.container = container
    event('Normal', 'Created', `Container created`)
    void container.begun.then(hasBegun => {
      slot.isBusy = false
      if (!hasBegun || isDead) return
      event('Normal', 'Started', `Container started`)
      slot.life = { is: 'running', id: container.id, startedAt: container.startedAt, isStarted: false, isReady: false }
      void tell()
      attendTo(slot, container, over.signal)
    })
    void container.ended.then(async exit => {
      over.abort()
      slot.isBusy = false
      const message = await messageOfEnd(slot, messageFile, exit.code)
      if (slot.container !== container) return
      ended(slot, container, exit, message, clock.now(), backoff)
      if (exit.failure !== undefined) event('Warning', 'Failed', `Error: ${exit.failure}`)
      if (!isEnding && !hasEnded && crashDelay(slot.crashes, backoff) > 0 && exit.code !== 0)
        event(
          'Warning',
          'BackOff',
          `Back-off restarting failed container ${spec.name} in pod ${name}_${namespace}(${uid})`,
        )
      if (!isDead) step()
    })
  }

  function word(slot: Slot, text: string): string {
    const addressed = pod.spec?.hostNetwork ? text : readdressed(text, addresses)
    return slot.root ? relocated(addressed, slot.root.path, slot.root.targets) : addressed
  }

  async function messageOfEnd({ spec, log }: Slot, file: string, code: number): Promise<string> {
    const text = readText(file)
    if (text !== '' || code === 0 || spec.terminationMessagePolicy !== 'FallbackToLogsOnError') return text
    return (await log?.tail(80, 2048)) ?? ''
  }

  function askerOf(slot: Slot, container: Container): Asker {
    return {
      spec: slot.spec,
      ip: addresses.ip,
      port: declared => addresses.ports.get(declared) ?? declared,
      run: (command, signal) => runIn(container, keeper, words(slot, command), slot.env, signal),
      sleep: (ms, signal) => sleep(clock, ms, signal).catch(() => undefined),
    }
  }
  const words = (slot: Slot, command: readonly string[]) => command.map(one => word(slot, one))

  function attendTo(slot: Slot, container: Container, signal: AbortSignal): void {
    const change = (part: { isStarted?: boolean; isReady?: boolean }) => {
      if (slot.container !== container || slot.life.is !== 'running') return
      slot.life = { ...slot.life, ...part }
      slot.hasStarted ||= slot.life.isStarted
      step()
    }
    const attending = attend({
      ...{ asker: askerOf(slot, container), spec: slot.spec, clock, signal, event },
      onStarted: () => change({ isStarted: true }),
      onReady: isReady => {
        if (slot.life.is === 'running' && slot.life.isReady !== isReady) change({ isReady })
      },
      onSick(_why, seconds = pod.spec?.terminationGracePeriodSeconds ?? 30) {
        const own = createGrace()
        own.limit(seconds)
        slot.ending ??= end(slot, own, Promise.resolve())
      },
    })
    attending.catch(error =>
      options.onProblem(`probes of ${slot.spec.name} in ${namespace}/${name}: ${messageOf(error)}`),
    )
  }

  /** preStop, SIGTERM when `others` are gone, SIGKILL when the time is over. */
  async function end(slot: Slot, time: Grace, others: Promise<unknown>): Promise<void> {
    const { container } = slot
    if (!container) return
    const { preStop, stopSignal } = slot.spec.lifecycle ?? {}
    slot.over?.abort()
    if (slot.life.is === 'running') slot.life = { ...slot.life, isReady: false }
    void tell()
    if (preStop) {
      const over = new AbortController()
      const hook = callHook(askerOf(slot, container), preStop, over.signal).then(failed => {
        if (failed !== undefined && !over.signal.aborted)
          event('Warning', 'FailedPreStopHook', `PreStopHook failed: ${shortened(failed)}`)
      })
      await time.within(Promise.race([hook, container.ended]))
      over.abort()
    }
    await time.within(Promise.race([others, container.ended]))
    await time.within(container.begun)
    container.signal((stopSignal as NodeJS.Signals | undefined) ?? 'SIGTERM')
    if (!(await time.within(container.ended, leastGrace))) container.signal('SIGKILL')
    await container.ended
  }

  /** All that runs ends: sidecars after the others, the later one first. */
  async function endAll(): Promise<void> {
    const ends = (slot: Slot, others: Promise<unknown>): Promise<unknown> => {
      if (slot.container) event('Normal', 'Killing', `Stopping container ${slot.spec.name}`)
      if (!slot.ending || !slot.container) {
        slot.ending = end(slot, grace, others)
        return slot.ending
      }
      const { container } = slot
      return grace.within(container.ended, leastGrace).then(isGone => {
        if (!isGone) container.signal('SIGKILL')
        return container.ended
      })
    }
    const none = Promise.resolve()
    let others: Promise<unknown> = Promise.all(
      slots.filter(({ role }) => role !== 'native').map(one => ends(one, none)),
    )
    for (const slot of slots.filter(({ role }) => role === 'native').reverse()) {
      const before = others
      others = Promise.all([before, ends(slot, before)])
    }
    await others
    // What they were is written by who waits for their end.
    await new Promise(setImmediate)
    while (slots.some(({ container }) => container) && !isDead) await sleep(clock, 1)
  }

  async function finish(): Promise<void> {
    if (ending) return
    ending = (async () => {
      isEnding = true
      grace.limit(pod.spec?.terminationGracePeriodSeconds ?? 30)
      await endAll()
      hasEnded = true
      close()
      await tell()
    })()
    await ending
  }

  async function terminateAll(): Promise<void> {
    isEnding = true
    stopping.abort()
    await endAll()
    for (const slot of slots) {
      if (slot.life.is !== 'waiting') continue
      slot.life = { is: 'ended', ...(slot.last ?? lost(undefined, startedAt, clock.now())) }
    }
    hasEnded = true
    close()
    await tell()
  }

  function close(): void {
    stopping.abort()
    timer?.cancel()
    tokens.stop()
  }

  let complained = ''
  /** Makes the volumes; when they are there, the pod begins. */
  function prepare(): void {
    if (isEnding || isDead || hasEnded) return
    const lacking = volumes.update(pod)
    if (lacking) {
      const note = `MountVolume.SetUp failed for volume "${lacking.volume}" : ${lacking.missing}`
      if (!isPrepared && note !== complained) event('Warning', 'FailedMount', note)
      complained = note
      if (!isPrepared) return
    }
    isPrepared = true
    for (const slot of slots) slot.isBlocked = false
    step()
  }

  async function begin(): Promise<void> {
    void tell()
    const wishes = tokensOf(pod.spec?.volumes ?? [])
    const wantsOwn = server && wishes.length === 0 && pod.spec?.automountServiceAccountToken !== false
    for (;;) {
      try {
        await tokens.fetch(wantsOwn ? [ownToken] : wishes, stopping.signal)
        break
      } catch (error) {
        if (stopping.signal.aborted) return
        if (wantsOwn && isWithoutAccount(error)) break
        event('Warning', 'FailedMount', `MountVolume.SetUp failed for volume "token" : ${messageOf(error)}`)
        await sleep(clock, 1000, stopping.signal).catch(() => undefined)
        if (stopping.signal.aborted) return
      }
    }
    prepare()
  }

  const guarded = (what: string, doing: () => void) => {
    try {
      doing()
    } catch (error) {
      options.onProblem(`${what} of ${namespace}/${name}: ${messageOf(error)}`)
    }
  }
  const begun = begin().catch(error => options.onProblem(`start of ${namespace}/${name}: ${messageOf(error)}`))
  return {
    get pod() {
      return pod
    },
    addresses,
    slots,
    update(now) {
      pod = now
      if (isPrepared) guarded('update', prepare)
    },
    refresh: () => void begun.then(() => guarded('volumes', prepare)),
    terminate(graceSeconds) {
      grace.limit(graceSeconds)
      ending = ending ? ending.then(() => tell()) : terminateAll()
      return ending
    },
    async die() {
      isDead = true
      close()
      grace.limit(0)
      const all = slots.flatMap(({ container }) => (container ? [container] : []))
      for (const container of all) container.signal('SIGKILL')
      await Promise.all(all.map(container => container.ended))
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
    words,
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8').slice(0, 4096)
  } catch {
    return ''
  }
}
