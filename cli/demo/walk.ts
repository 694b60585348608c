/**
 * The life of one app, from Start to End, with a backup and a configuration change on the way; and whether the backup restores.
 *
 * Guarantee: a step is told as done only when it has happened as told: the states came in this order, and what was asked for is there. Else it throws a Failure.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { StatefulApp } from '../../controller/app/kinds.ts'
import { Pod } from '../../controller/kube/kinds.ts'
import { Failure } from '../ending.ts'
import { killAgent } from './fault.ts'
import { type AppStatus, type Follower, follow } from './follower.ts'
import { compare, connectKv, fill, hashOf, type KvClient, type Written } from './kv-client.ts'
import type { Screen } from './screen.ts'
import { namespace, type Stage } from './stage.ts'
import { until } from './until.ts'

export interface WalkOptions {
  /** The sidecar is killed in the middle of the backup. */
  readonly fault: boolean
}

const name = 'kv'
const pod = 'kv-0'
const sidecar = 'shipmate-sidecar'
const keys = 1000
/** In MiB a second: slow enough to be seen. */
const rate = 2
const backup = '/backup/first'
/** When the sidecar is killed, in percent. */
const faultAt = 30

interface Desired {
  readonly state: string
  readonly action?: string
  readonly params?: Record<string, string | number>
}

export async function walk(stage: Stage, screen: Screen, options: WalkOptions): Promise<void> {
  const follower = await follow(stage.cluster.client, { namespace, name })
  const act = { stage, screen, follower }
  try {
    const kv = await start(act)
    const written = await load(act, kv)
    const meanwhile = await takeBackup(act, kv, options)
    await reconfigure(act, kv)
    kv.close()
    await end(act)
    await restore(act, written, meanwhile)
  } catch (error) {
    await explain(act)
    throw error
  } finally {
    await follower.stop()
  }
}

/** Once more, for who wants to go on by hand. */
export async function startAgain(stage: Stage, screen: Screen): Promise<void> {
  const follower = await follow(stage.cluster.client, { namespace, name })
  try {
    screen.heading('End → Running, to go on by hand')
    await wish({ stage, screen, follower }, { state: 'Running' }, ['Start', 'Running'])
  } finally {
    await follower.stop()
  }
}

interface Act {
  readonly stage: Stage
  readonly screen: Screen
  readonly follower: Follower
}

async function start(act: Act): Promise<KvClient> {
  const { stage, screen } = act
  screen.heading('Start → Running')
  screen.command('kubectl apply -f examples/kv/lifecycle.yaml -f examples/kv/app.yaml')
  await through(act, ['Start', 'Running'], async () => {
    await stage.apply('examples/kv/lifecycle.yaml')
    await stage.apply('examples/kv/app.yaml')
  })
  return connectKv(await addressOf(act, pod))
}

async function load({ screen }: Act, kv: KvClient): Promise<Written> {
  const written = await fill(kv, keys)
  screen.event('', `${number(keys)} keys are written to it, ${mib(written.bytes)} MiB, each synced to its data file`)
  return written
}

async function takeBackup(act: Act, kv: KvClient, { fault }: WalkOptions): Promise<Map<string, string>> {
  const { stage, screen, follower } = act
  screen.heading(`Running → Servicing → Running: a backup, while clients go on writing${fault ? ', and a fault' : ''}`)
  const before = podStatus(follower)
  let killed: string | undefined
  follower.onOperation(({ phase, runs = [] }) => {
    const run = runs.at(-1)
    const { percent, message = '' } = (run?.progress ?? {}) as { percent?: number; message?: string }
    if (phase !== 'Running' || percent === undefined) return
    screen.progress('Servicing', percent, message)
    if (!fault || killed !== undefined || percent < faultAt) return
    killed = killAgent(stage.nodes, before?.uid ?? '', sidecar)
    screen.event('SIGKILL', `to ${killed}, at ${percent} %`)
  })
  const clients = writeOn(kv)
  let meanwhile: Map<string, string>
  try {
    const params = { to: backup, rate }
    await wish(act, { state: 'Servicing', action: 'backup', params }, ['Servicing', 'Running'])
  } finally {
    follower.onOperation(() => {})
    meanwhile = await clients.stop()
  }
  const { phase, runs = [] } = follower.operation()?.status ?? {}
  const result = runs.at(-1)?.result as { keys: number; bytes: number; sha256: string } | undefined
  if (phase !== 'Succeeded' || !result) throw new Failure(`the backup is ${phase}, without a result`)
  screen.event(
    '',
    `${backup}: ${number(result.keys)} keys, ${mib(result.bytes)} MiB, sha256 ${result.sha256.slice(0, 12)}…`,
  )
  screen.event('', `${number(meanwhile.size)} writes came in meanwhile`)
  if (fault) checkFault(act, killed, before?.bootId, runs.length)
  return meanwhile
}

/** It was killed, another one is there, and what it had begun was done once: the action itself keeps count. */
function checkFault(
  { stage, screen, follower }: Act,
  killed: string | undefined,
  bootId: string | undefined,
  runs: number,
): void {
  if (killed === undefined) throw new Failure('the backup was over before the sidecar could be killed')
  if (podStatus(follower)?.bootId === bootId) throw new Failure('the sidecar is the one that was to be killed')
  screen.command(`kubectl exec ${pod} -c ${sidecar} -- cat ${backup}.runs`)
  const file = join(stage.nodes.folder, 'claims', namespace, `backup-${pod}`, 'first.runs')
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  for (const line of lines) screen.line(`            ${line}`)
  const done = lines.filter(line => line.startsWith('done ')).length
  const begun = lines.length - done
  if (done !== 1 || begun !== runs)
    throw new Failure(`the backup was begun ${begun} times in ${runs} runs, and done ${done} times`)
  const how = runs === 1 ? 'the new agent adopted it' : `the first run was found not to have happened`
  screen.event('once', `it was done exactly once; ${how}`)
}

async function reconfigure(act: Act, kv: KvClient): Promise<void> {
  const { screen } = act
  const limit = 4096
  const long = Buffer.alloc(2 * limit, 'x')
  screen.heading('Running → Servicing → Running: a configuration change')
  const earlier = await kv.put('long', long)
  const { maxValueBytes } = await kv.config()
  const params = { maxValueBytes: limit }
  await wish(act, { state: 'Servicing', action: 'reconfigure', params }, ['Servicing', 'Running'])
  const later = await kv.put('long', long)
  const now = (await kv.config()).maxValueBytes
  if (earlier !== 204 || later !== 413 || now !== limit)
    throw new Failure(`maxValueBytes is ${now}; a long value was answered with ${earlier}, and then ${later}`)
  screen.event(
    '',
    `maxValueBytes ${number(maxValueBytes)} → ${number(now)}: 8 KiB were taken before (${earlier}), and are refused now (${later})`,
  )
}

async function end(act: Act): Promise<void> {
  const { stage, screen } = act
  screen.heading('Running → Stopping → End')
  await wish(act, { state: 'End' }, ['Stopping', 'End'])
  const left = await until('its pods to be gone', async () => {
    const pods = await stage.cluster.client.list(Pod, { namespace })
    return pods.length === 0 && { pods }
  })
  screen.event('', `pods: ${left.pods.length}; its volumes stay`)
  screen.event('', `status.path  ${act.follower.app?.status?.path}`)
}

async function restore(act: Act, written: Written, meanwhile: ReadonlyMap<string, string>): Promise<void> {
  const { stage, screen } = act
  const { client } = stage.cluster
  screen.heading('Does the backup restore?')
  screen.command('kubectl apply -f examples/kv/restore.yaml')
  await stage.apply('examples/kv/restore.yaml')
  const kv = connectKv(await addressOf(act, 'kv-restored'))
  const found = await kv.dump()
  kv.close()
  const { same, missing, other, unknown } = compare(written.values, found, meanwhile)
  if (same !== keys || unknown.length > 0) {
    const some = [...missing, ...other, ...unknown].slice(0, 3).join(', ')
    throw new Failure(
      `of ${keys} keys ${missing.length} are missing, ${other.length} differ, ${unknown.length} are nobody's: ${some}`,
    )
  }
  screen.event('yes', `a second kv has all ${number(same)} keys, and each value is what was written`)
  await client.delete(Pod, { namespace, name: 'kv-restored' }, { gracePeriodSeconds: 0 })
}

/** Wishes it, and waits until the app has come through these states. */
async function wish(act: Act, desired: Desired, states: readonly string[]): Promise<void> {
  // Not merged: parameters of the wish before would stay.
  const json = [{ op: 'replace' as const, path: '/spec/desired', value: desired }]
  act.screen.command(`kubectl patch sapp ${name} --type json -p '${JSON.stringify(json)}'`)
  await through(act, states, async () => {
    await act.stage.cluster.client.patch(StatefulApp, { namespace, name }, { json })
  })
}

async function through(
  { screen, follower, stage }: Act,
  states: readonly string[],
  ask: () => Promise<void>,
): Promise<void> {
  const seen: string[] = []
  follower.onState((state, status) => {
    seen.push(state)
    screen.event(state, textOf(state, status))
  })
  try {
    await ask()
    const { generation } = (await stage.cluster.client.get(StatefulApp, { namespace, name })).metadata
    const last = states.at(-1)
    await until(
      `${states.join(' → ')}`,
      () => {
        const { status } = follower.app ?? {}
        const stalled = status?.conditions?.find(({ type, status: is }) => type === 'Stalled' && is === 'True')
        if (stalled && status?.observedGeneration === generation)
          throw new Failure(`${stalled.reason}: ${stalled.message}`)
        return status?.observedGeneration === generation && status?.state === last && seen.length >= states.length
      },
      60_000,
    )
  } finally {
    follower.onState(() => {})
  }
  if (seen.join() !== states.join())
    throw new Failure(`the states were ${seen.join(' → ')} instead of ${states.join(' → ')}`)
}

/** What a state means, as the app's status has it. */
function textOf(state: string, { waitingFor, operation, action }: AppStatus): string {
  if (state === 'Start') return `waits for ${waitingFor?.replace(/, .*/, '')}`
  if (state === 'Running') return `${pod} takes reads and writes: probes.accepting.ok holds`
  if (state === 'End') return 'scaled to zero'
  return `${action ?? operation?.action ?? ''}`
}

const podStatus = (follower: Follower) => follower.app?.status?.pods?.find(one => one.name === pod)

/** Once it is ready, where its kv listens. */
function addressOf({ stage }: Act, name: string): Promise<string> {
  return until(`pod ${name} to be ready`, async () => {
    const found = await stage.cluster.client.find(Pod, { namespace, name })
    const isReady = found?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')
    const addresses = isReady ? stage.nodes.life(found?.metadata.uid ?? '')?.addresses : undefined
    return addresses && `${addresses.ip}:${addresses.ports.get(6380) ?? 6380}`
  })
}

/** Clients that write until they are stopped; answers what was taken. */
function writeOn(kv: KvClient): { stop(): Promise<Map<string, string>> } {
  const taken = new Map<string, string>()
  let isOver = false
  const writing = (async () => {
    for (let index = 0; !isOver; index++) {
      const value = Buffer.from(`written at ${new Date().toISOString()}`)
      if ((await kv.put(`later/${index}`, value)) === 204) taken.set(`later/${index}`, hashOf(value))
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  })()
  // Told by `stop`, to who waits for it.
  writing.catch(() => undefined)
  return {
    async stop() {
      isOver = true
      await writing
      return taken
    },
  }
}

/** What a person would look at first. */
async function explain({ stage, screen, follower }: Act): Promise<void> {
  const { state, waitingFor, conditions = [] } = follower.app?.status ?? {}
  screen.line()
  if (state !== undefined) screen.line(`kv is ${state}${waitingFor ? `, and waits for ${waitingFor}` : ''}`)
  for (const { type, status, reason, message } of conditions) screen.line(`  ${type}=${status}  ${reason}: ${message}`)
  const said = [
    ...(await stage.logs('shipmate-system', {})).map(line => `controller: ${line}`),
    ...(await stage.logs(namespace, {})).map(line => `pod: ${line}`),
    ...stage.nodes.problems.map(line => `node: ${line}`),
  ]
  for (const line of said) screen.line(`  ${line}`)
}

const number = (value: number) => value.toLocaleString('en')
const mib = (bytes: number) => (bytes / (1 << 20)).toFixed(1)
