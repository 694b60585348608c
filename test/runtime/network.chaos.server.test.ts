/**
 * The promise: through a network that cuts, delays, freezes and garbles, no event is lost, no write is made twice, nothing crashes, nothing
 * hangs on a dead connection and memory stays bounded.
 *
 * Each schedule is a seed: a controller works through a proxy that misbehaves while a writer, on a good line, changes what it watches.
 * Replay one with SHIPMATE_SEED=N.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type Access, connect } from '../../controller/kube/access.ts'
import { authenticated } from '../../controller/kube/auth.ts'
import { createConnection } from '../../controller/kube/connection.ts'
import { Conflict, NotFound } from '../../controller/kube/errors.ts'
import type { Kind } from '../../controller/kube/kind.ts'
import { ConfigMap, Namespace } from '../../controller/kube/kinds.ts'
import { createManager } from '../../controller/runtime/manager.ts'
import { FaultyProxy } from '../fixtures/proxy.ts'
import { punctual } from '../fixtures/punctual.ts'
import { installWidgets, type Widget } from '../fixtures/widget.ts'

const kubeconfig = inject('kubeconfig')
const first = Number(process.env.SHIPMATE_SEED ?? 1)
const schedules = Number(process.env.SHIPMATE_SCHEDULES ?? 20)
const atOnce = 4
/** Milliseconds that a call has, and that a stream may be silent for: freezes are longer, some of them. */
const time = 1500
/** Milliseconds after which nothing will happen any more, if nothing new has: whatever is tried again is tried many times in that, on a busy machine, too. */
const patience = 120_000

describe.skipIf(!kubeconfig)('a controller behind a network that misbehaves', () => {
  let direct: Access
  let widgets: Kind<Widget>
  const rejections: unknown[] = []
  const onRejection = (error: unknown) => rejections.push(error)

  beforeAll(async () => {
    process.on('unhandledRejection', onRejection)
    direct = connect({ kubeconfig: { file: kubeconfig } })
    widgets = await installWidgets(direct.client, 'network.test.example.com')
  })
  afterAll(async () => {
    process.off('unhandledRejection', onRejection)
    await direct.close()
  })

  test(`loses nothing and does nothing twice, over ${schedules} schedules from seed ${first}`, {
    timeout: 3_600_000,
  }, async () => {
    const seeds = Array.from({ length: schedules }, (_, i) => first + i)
    const before = heap()
    const failures: string[] = []
    const worker = async () => {
      for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) {
        const wrong = await play(seed, direct, widgets).catch(error => `threw ${error?.stack ?? error}`)
        if (wrong)
          failures.push(
            `seed ${seed}: ${wrong}\n  replay: SHIPMATE_SEED=${seed} npx vitest run test/runtime/network.chaos.server.test.ts`,
          )
      }
    }
    await Promise.all(Array.from({ length: atOnce }, worker))
    expect(failures, failures.join('\n')).toEqual([])
    expect(rejections).toEqual([])
    const grown = (heap() - before) / 1048576
    console.log(`seeds ${first} to ${first + schedules - 1}: all converged; the heap grew by ${grown.toFixed(1)} MiB`)
    expect(grown, 'MiB that the heap grew by: something is kept for ever').toBeLessThan(48)
  })
})

/** Plays one schedule; what went wrong, if anything did. */
async function play(seed: number, direct: Access, widgets: Kind<Widget>): Promise<string | undefined> {
  const random = dice(seed)
  const namespace = `net-${seed}-${Date.now().toString(36)}`
  await direct.client.create(Namespace, { metadata: { name: namespace } })
  const proxy = await FaultyProxy.start(random(2) === 0 ? 'tls' : 'plain', await direct.credentials.current())
  const connection = createConnection({ deadline: time, connectTimeout: 1000 })
  const late: string[] = []
  const manager = createManager({
    name: 'network-test',
    ...{
      signals: false,
      containRejections: false,
      log: { level: 'silent' },
      namespaces: [namespace],
      gracePeriod: 5000,
    },
    send: punctual(authenticated(connection, proxy.credentials), time, what => late.push(what)),
    retry: { tries: 3, backoff: { first: 20, longest: 200 } },
    cache: {
      ...{ watchSeconds: 4, silence: { withBookmarks: time, without: time, streaming: time } },
      backoff: { first: 20, longest: 300 },
      ...{ streaming: random(2) === 0, pageSize: 3 },
    },
  })
  manager
    .controller(widgets, { backoff: { first: 10, longest: 500 }, hotLoop: { burst: 10_000 } })
    .owns(ConfigMap)
    .reconcile(async ({ object, client }) => {
      if (object.metadata.deletionTimestamp) return
      await client.apply(
        ConfigMap,
        { metadata: { name: object.metadata.name }, data: { value: object.spec.value } },
        { owner: object },
      )
      await client.status(widgets, object, { observedValue: object.spec.value })
    })

  const regressions: string[] = []
  const versions = new Map<string, bigint>()
  manager.cache.informer(widgets).subscribe(({ key, object, type }) => {
    const version = BigInt(object.metadata.resourceVersion)
    const known = versions.get(key) ?? 0n
    if (version < known || (version === known && type !== 'removed'))
      regressions.push(`${key} ${type} at ${version} after ${known}`)
    versions.set(key, version)
  })

  const running = manager.start()
  const over = { over: false }
  try {
    const calls = callRepeatedly(manager.client, namespace, over)
    await Promise.all([misbehave(proxy, dice(seed * 2 + 1)), change(direct, widgets, namespace, dice(seed * 2 + 2))])
    over.over = true
    proxy.heal()
    const answered = await calls

    const differs = await converged(direct, manager, widgets, namespace, late)
    if (late.length > 0) return `hangs: ${late.join('; ')}`
    if (differs) return `does not converge: ${differs}`
    if (regressions.length > 0) return `events out of order: ${regressions.join('; ')}`
    const made = (await direct.client.list(ConfigMap, { namespace, labels: 'call' })).map(
      made => made.metadata.labels?.['call'],
    )
    if (new Set(made).size !== made.length) return `a write was made twice: ${made.sort().join(' ')}`
    const lost = answered.filter(call => !made.includes(call))
    if (lost.length > 0) return `writes were answered and are not there: ${lost.join(' ')}`
    return undefined
  } finally {
    over.over = true
    await manager.stop()
    await running
    await connection.close()
    await proxy.close()
    void direct.client.delete(Namespace, { name: namespace }).catch(() => undefined)
  }
}

async function misbehave(proxy: FaultyProxy, random: (below: number) => number): Promise<void> {
  const steps = 10 + random(12)
  for (let i = 0; i < steps; i++) {
    await pause(10 + random(120))
    const part = random(1000) / 1000
    switch (random(9)) {
      case 0:
        proxy.cutAll()
        break
      case 1:
        proxy.cutNext(part)
        break
      case 2:
        proxy.cutAfterNext()
        break
      case 3:
        proxy.garbleNext(part, 1 + random(20))
        break
      case 4:
        proxy.delay(random(60))
        break
      case 5:
        proxy.freeze()
        await pause(random(4) === 0 ? 2000 : 50 + random(300))
        proxy.thaw()
        break
      case 6:
        proxy.refuse(true)
        proxy.cutAll()
        await pause(random(200))
        proxy.refuse(false)
        break
      case 7:
        proxy.delay(0)
        break
      case 8:
        proxy.abandon()
        break
    }
  }
}

/** Creates, changes and deletes Widgets, and damages their ConfigMaps, on a good line. */
async function change(
  direct: Access,
  widgets: Kind<Widget>,
  namespace: string,
  random: (below: number) => number,
): Promise<void> {
  const { client } = direct
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  for (let i = 0; i < 40; i++) {
    await pause(random(50))
    const ref = { name: names[random(names.length)] as string, namespace }
    const ignore = (error: unknown) => {
      if (!(error instanceof NotFound) && !(error instanceof Conflict)) throw error
    }
    switch (random(5)) {
      case 0:
      case 1:
      case 2:
        await client.apply(
          widgets,
          { metadata: ref, spec: { value: String(random(1000)) } },
          { fieldManager: 'writer' },
        )
        break
      case 3:
        await client.delete(widgets, ref).catch(ignore)
        await client.delete(ConfigMap, ref).catch(ignore) // no garbage collector runs here
        break
      case 4:
        if (random(2) === 0) await client.patch(ConfigMap, ref, { merge: { data: { value: 'damaged' } } }).catch(ignore)
        else await client.delete(ConfigMap, ref).catch(ignore)
        break
    }
  }
}

/** Creates objects, one call after the other, each marked with its own number. Returns the numbers of the calls that were answered. */
async function callRepeatedly(
  client: Access['client'],
  namespace: string,
  until: { over: boolean },
): Promise<string[]> {
  const answered: string[] = []
  for (let call = 0; !until.over; call++) {
    try {
      await client.create(ConfigMap, { metadata: { generateName: 'call-', namespace, labels: { call: String(call) } } })
      answered.push(String(call))
    } catch {
      // Whether it was made is unknown: that is what is checked in the end.
    }
  }
  return answered
}

/** Waits until the cluster is as wished and the cache like the cluster. What differs, and will for ever. */
async function converged(
  direct: Access,
  manager: ReturnType<typeof createManager>,
  widgets: Kind<Widget>,
  namespace: string,
  late: readonly string[],
): Promise<string | undefined> {
  const seen = new Set<string>()
  for (let news = performance.now(); late.length === 0; ) {
    const there = await direct.client.list(widgets, { namespace })
    const maps = new Map((await direct.client.list(ConfigMap, { namespace })).map(map => [map.metadata.name, map]))
    const cached = manager.cache.informer(widgets)
    let differs = there
      .filter(
        widget =>
          widget.status?.observedValue !== widget.spec.value ||
          maps.get(widget.metadata.name)?.data?.['value'] !== widget.spec.value ||
          cached.get(widget.metadata)?.metadata.resourceVersion !== widget.metadata.resourceVersion,
      )
      .map(
        ({ metadata: { name }, spec, status }) =>
          `${name} wishes ${spec.value}, status ${status?.observedValue}, map ${maps.get(name)?.data?.['value']}`,
      )
      .join('; ')
    if (cached.list().length !== there.length) differs += ` the cache has ${cached.list().length} of ${there.length}`
    if (differs === '') return undefined
    if (!seen.has(differs)) news = performance.now()
    seen.add(differs)
    if (performance.now() - news > patience) return differs
    await pause(50)
  }
  return undefined
}

function dice(seed: number): (below: number) => number {
  const source = xoroshiro128plus(seed)
  return below => (((source.next() >>> 0) * below) / 2 ** 32) | 0
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

function heap(): number {
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
  return process.memoryUsage().heapUsed
}
