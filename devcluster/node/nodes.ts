/**
 * Nodes: registers them, runs the pods that are bound to them, writes their status, and removes those that have ended.
 *
 * Guarantees: a pod object goes only after all its processes have ended, unless somebody else removes it. A node that is disconnected writes nothing
 * and heeds nothing, but its processes go on. After `stop`, or the end of this process however it comes, no process is left and no file but claims.
 */
import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from '../../controller/kube/client.ts'
import { Conflict, NotFound } from '../../controller/kube/errors.ts'
import { createEventRecorder } from '../../controller/kube/events.ts'
import { Informer } from '../../controller/kube/informer.ts'
import { ConfigMap, Node, Pod as PodKind, Secret, Service } from '../../controller/kube/kinds.ts'
import { type Clock, systemClock } from '../../shared/clock.ts'
import { messageOf } from '../../shared/errors.ts'
import type { PodRuntime } from '../api/types.ts'
import { prefix as folderPrefix, sweepAbandoned } from './abandoned.ts'
import { type ApiServer, createTokens } from './account.ts'
import { type CrashBackoff, kubeletBackoff } from './backoff.ts'
import type { Objects } from './environment.ts'
import type { Images } from './images.ts'
import { createKeeper, sweep } from './keeper.ts'
import { type Addressing, openNetwork } from './network.ts'
import { type PodLife, startPod } from './pod.ts'
import { allocatable, type Machine, register, setReady } from './register.ts'
import { createRuntime } from './runtime.ts'
import { type Isolation, isolationHere } from './sandbox.ts'
import { lost } from './slot.ts'
import { containersOf, type Pod, type PodStatus, portsOf } from './spec.ts'
import { statusOf } from './status.ts'

export interface NodesOptions {
  readonly client: Client
  /** How many. Default 1. */
  readonly count?: number | undefined
  /** Their names are this and a number from 1; a single node has it as it is. Default `node`. */
  readonly name?: string | undefined
  /** Labels for each, by its number from 1. */
  readonly labels?: ((number: number) => Readonly<Record<string, string>>) | undefined
  /** What runs in the stead of images. */
  readonly images?: Images | undefined
  /** Where pods and claims are. Claims stay in it. Default: a new folder, which goes at the end. */
  readonly folder?: string | undefined
  /** Where processes of pods find the API server. Default: they are not told. */
  readonly server?: ApiServer | undefined
  /** Default: a kubelet's, 10 s to 5 min. */
  readonly backoff?: CrashBackoff | undefined
  /** Default: the best that works here. */
  readonly isolation?: Isolation | undefined
  /** Default: an address for each pod on Linux, mapped ports elsewhere. */
  readonly addressing?: Addressing | undefined
  /** Told with each mapped port. */
  readonly onPort?: ((pod: string, declared: number, real: number) => void) | undefined
  readonly clock?: Clock | undefined
}

export interface RunningNode {
  readonly name: string
  readonly bootId: string
  readonly ip: string
  /** It can no longer reach the API server, or again: nothing is told and nothing heeded. */
  disconnect(): Promise<void>
  connect(): Promise<void>
  /** Every process on it dies, and nobody is told: the power is off. */
  crash(): Promise<void>
  /** Back after a crash, with another boot id and the same pods, by uid, under other addresses. */
  start(): Promise<void>
}

export interface Nodes {
  readonly all: readonly RunningNode[]
  readonly folder: string
  readonly isolation: Isolation
  /** What the API server asks for logs, commands and connections; the same for each node. */
  readonly runtime: PodRuntime
  /** The pod with this uid, if it has been started here. */
  life(uid: string): PodLife | undefined
  /** What went wrong in the nodes themselves, the latest. */
  readonly problems: readonly string[]
  stop(): Promise<void>
}

interface Own extends Machine {
  isOn: boolean
  isConnected: boolean
  connected: PromiseWithResolvers<void>
}

const portAnnotation = 'shipmate.dev/api-port'
const apiPort = 7443

export async function startNodes(options: NodesOptions): Promise<Nodes> {
  const {
    client,
    count = 1,
    name: prefix = 'node',
    images = {},
    backoff = kubeletBackoff,
    clock = systemClock,
  } = options
  const isTemporary = options.folder === undefined
  if (options.folder !== undefined) mkdirSync(options.folder, { recursive: true })
  if (isTemporary) await sweepAbandoned()
  const folder = realpathSync(options.folder ?? mkdtempSync(join(tmpdir(), folderPrefix)))
  const claims = join(folder, 'claims')
  await sweep(folder)
  const keeper = createKeeper(folder, isTemporary)
  // What an earlier one has left, its processes being dead.
  rmSync(join(folder, 'pods'), { recursive: true, force: true })
  const isolation = options.isolation ?? isolationHere()
  const network = await openNetwork(options.addressing)
  const stopping = new AbortController()
  const { signal } = stopping
  const stopped = new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()))
  const pods = new Informer(client, PodKind)
  const maps = new Informer(client, ConfigMap)
  const secrets = new Informer(client, Secret)
  const services = new Informer(client, Service)
  const recorder = createEventRecorder(client, { component: 'kubelet', clock })
  const machines = new Map<string, Own>()
  const lives = new Map<string, PodLife>()
  const starting = new Set<string>()
  const ending = new Set<string>()
  const problems: string[] = []

  const objects: Objects = {
    configMap: (namespace, name) => maps.get({ namespace, name }),
    secret: (namespace, name) => secrets.get({ namespace, name }),
    services: namespace => services.list({ namespace }),
  }
  function problem(what: string): void {
    problems.push(what)
    if (problems.length > 100) problems.shift()
  }
  /** What a node does by itself; an object that is gone or another is no problem. */
  function care(what: string, doing: Promise<unknown>): void {
    doing.catch(error => {
      if (signal.aborted || error instanceof NotFound || error instanceof Conflict) return
      problem(`${what}: ${messageOf(error)}`)
    })
  }
  const online = async (machine: Own | undefined) => {
    while (machine && !machine.isConnected && !signal.aborted) await Promise.race([machine.connected.promise, stopped])
  }

  function sync(pod: Pod): void {
    if (signal.aborted) return
    const { uid, name, deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata
    const machine = machines.get(pod.spec?.nodeName ?? '')
    if (!machine?.isOn || !machine.isConnected) return
    const life = lives.get(uid)
    life?.update(pod)
    if (deletionTimestamp) return care(`end of ${name}`, end(pod, machine, deletionGracePeriodSeconds))
    if (life || starting.has(uid) || pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed') return
    starting.add(uid)
    care(
      `start of ${name}`,
      begin(pod, machine).finally(() => {
        starting.delete(uid)
        // What happened to it meanwhile.
        const now = pods.get(pod.metadata)
        if (now?.metadata.uid === uid && now.metadata.resourceVersion !== pod.metadata.resourceVersion) sync(now)
        if (!now && lives.has(uid)) care(`removal of ${name}`, removed(pod))
      }),
    )
  }

  async function begin(pod: Pod, machine: Own): Promise<void> {
    const { uid, name, namespace } = pod.metadata
    const isHost = pod.spec?.hostNetwork === true
    const ports = portsOf(pod)
    const same = new Map(ports.map(port => [port, port]))
    const addresses = isHost ? { ip: machine.ip, ports: same } : await network.attach(ports)
    if (network.addressing === 'ports' && !isHost) {
      for (const [declared, real] of addresses.ports) options.onPort?.(`${namespace}/${name}`, declared, real)
      const real = addresses.ports.get(Number(pod.metadata.annotations?.[portAnnotation] ?? apiPort))
      if (real !== undefined) {
        const merge = { metadata: { uid, annotations: { [portAnnotation]: String(real) } } }
        await client.patch(PodKind, pod.metadata, { merge }, { signal })
      }
    }
    if (signal.aborted || !machine.isOn) return network.detach(addresses)
    const life = startPod({
      ...{ pod, addresses, place: { ip: addresses.ip, hostIp: machine.ip, allocatable } },
      ...{ folder: join(folder, 'pods', uid), claims, keeper, isolation, images, objects, backoff, clock },
      server: options.server,
      tokens: createTokens(client, pod, clock, () => lives.get(uid)?.refresh()),
      tell: status => tell(lives.get(uid)?.pod ?? pod, machine, status),
      event: (type, reason, note) => recorder.record(pod, { type, reason, action: reason, note }),
      onProblem: problem,
    })
    lives.set(uid, life)
  }

  async function tell(pod: Pod, machine: Own, status: PodStatus): Promise<void> {
    await online(machine)
    // Addresses are lists that are merged by their items: told so, they are replaced.
    const replaced = (ips: readonly object[] | undefined) => [...(ips ?? []), { $patch: 'replace' }]
    const lists = { podIPs: replaced(status.podIPs), hostIPs: replaced(status.hostIPs) }
    const strategic = { metadata: { uid: pod.metadata.uid }, status: { ...status, ...lists } }
    try {
      await client.patch(PodKind, pod.metadata, { strategic }, { subresource: 'status', signal })
    } catch (error) {
      care(`status of ${pod.metadata.name}`, Promise.reject(error))
    }
  }

  async function end(pod: Pod, machine: Own, grace: number): Promise<void> {
    const { uid } = pod.metadata
    const life = lives.get(uid)
    const over = life?.terminate(grace)
    if (ending.has(uid) || starting.has(uid)) return over
    ending.add(uid)
    try {
      await over
      await online(machine)
      if (signal.aborted || !machine.isOn || lives.get(uid) !== life) return
      if (!life) await tell(pod, machine, goneStatus(pod, machine.ip, clock.now()))
      await forget(uid)
      await client.delete(PodKind, pod.metadata, { gracePeriodSeconds: 0, preconditions: { uid }, signal })
    } finally {
      ending.delete(uid)
    }
  }

  async function forget(uid: string): Promise<void> {
    const life = lives.get(uid)
    if (!life) return
    lives.delete(uid)
    await life.die()
    life.remove()
    network.detach(life.addresses)
  }

  /** Its object is gone while its processes may be there: somebody forced it. */
  async function removed(pod: Pod): Promise<void> {
    await online(machines.get(pod.spec?.nodeName ?? ''))
    await forget(pod.metadata.uid)
  }

  function resync(): void {
    for (const pod of pods.list()) sync(pod)
    for (const life of lives.values()) if (!pods.get(life.pod.metadata)) care('removal', removed(life.pod))
  }

  async function crash(machine: Own): Promise<void> {
    machine.isOn = false
    const dying = [...lives].filter(([, life]) => life.pod.spec?.nodeName === machine.name)
    for (const [uid, life] of dying) {
      lives.delete(uid)
      await life.die()
      network.detach(life.addresses)
    }
  }

  function running(machine: Own): RunningNode {
    const { name, ip } = machine
    return {
      ...{ name, ip },
      get bootId() {
        return machine.bootId
      },
      async disconnect() {
        machine.isConnected = false
        await setReady(client, name, false, clock.now())
      },
      async connect() {
        await setReady(client, name, true, clock.now())
        machine.isConnected = true
        machine.connected.resolve()
        machine.connected = Promise.withResolvers()
        resync()
      },
      async crash() {
        await crash(machine)
        if (await client.find(Node, { name })) await setReady(client, name, false, clock.now())
      },
      async start() {
        machine.bootId = randomUUID()
        await register(client, machine, 'v1.36.0', clock.now())
        machine.isOn = true
        resync()
      },
    }
  }

  /** One of these has changed: who uses it looks again. */
  function touched({ object }: { object: { metadata: { namespace?: string | undefined } } }): void {
    for (const life of lives.values()) if (life.pod.metadata.namespace === object.metadata.namespace) life.refresh()
  }

  async function stop(): Promise<void> {
    stopping.abort()
    recorder.stop()
    await Promise.all([...lives.values()].map(life => life.die()))
    await keeper.stop()
    await watching
    await network.close()
    rmSync(join(folder, 'pods'), { recursive: true, force: true })
    if (isTemporary) rmSync(folder, { recursive: true, force: true })
  }

  let watching: Promise<unknown> = Promise.resolve()
  try {
    for (let number = 1; number <= count; number++) {
      const machine: Own = {
        name: count === 1 ? prefix : `${prefix}-${number}`,
        labels: options.labels?.(number) ?? {},
        ip: network.host(),
        bootId: randomUUID(),
        isOn: true,
        isConnected: true,
        connected: Promise.withResolvers(),
      }
      machines.set(machine.name, machine)
      await register(client, machine, 'v1.36.0', clock.now())
    }
    watching = Promise.all([pods, maps, secrets, services].map(one => one.run(signal)))
    await Promise.all([maps.synced, secrets.synced, services.synced])
    maps.subscribe(touched)
    secrets.subscribe(touched)
    pods.subscribe(change => {
      if (change.type === 'removed') care(`removal of ${change.object.metadata.name}`, removed(change.object))
      else sync(change.object)
    })
    await pods.synced
  } catch (error) {
    await stop()
    throw error
  }
  return {
    all: [...machines.values()].map(running),
    folder,
    isolation,
    runtime: createRuntime(uid => lives.get(uid), keeper),
    life: uid => lives.get(uid),
    problems,
    stop,
  }
}

/** The last status of a pod whose processes went before this node knew of them. */
function goneStatus(pod: Pod, hostIp: string, now: number): PodStatus {
  const before = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])]
  const startedAt = Date.parse(pod.status?.startTime ?? '') || now
  const states = containersOf(pod).map(planned => {
    const old = before.find(({ name }) => name === planned.spec.name)
    const began = Date.parse(old?.state?.running?.startedAt ?? '') || startedAt
    const life = { is: 'ended', ...lost(old?.containerID, began, now) } as const
    return { ...planned, life, last: undefined, restarts: old?.restartCount ?? 0, crashes: 0, hasStarted: true }
  })
  const facts = { ip: pod.status?.podIP, hostIp, startedAt, now, backoff: kubeletBackoff }
  return statusOf(pod, states, { ...facts, isPrepared: false, hasEnded: true })
}
