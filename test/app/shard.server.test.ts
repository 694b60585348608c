/**
 * Two controllers share the apps of one cluster: `--shard 0/2` and `--shard 1/2`, a Lease each.
 */
import { Command } from 'commander'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { define } from '../../cli/commands/controller.ts'
import { Lifecycle, Operation, StatefulApp } from '../../controller/app/kinds.ts'
import { shipmateRbac } from '../../controller/app/rbac.ts'
import { isOfShard, leaseOf, type Shard } from '../../controller/app/shard.ts'
import type { Client } from '../../controller/kube/client.ts'
import { NotFound } from '../../controller/kube/errors.ts'
import { Lease, Role, RoleBinding, StatefulSet } from '../../controller/kube/kinds.ts'
import type { ApiLine } from '../fixtures/app/api-line.ts'
import { rigMissing } from '../fixtures/app/control-plane.ts'
import { controllerUser, grantController, type RunningController, startController } from '../fixtures/app/controller.ts'
import { type Rig, startRig } from '../fixtures/app/rig.ts'
import { sampleApp, sampleLifecycle, sampleStatefulSet } from '../fixtures/app/samples.ts'
import { installOwnKinds } from '../fixtures/own-kinds.ts'

const lifecycle = 'sample'
const shards: Shard[] = [
  { index: 0, count: 2 },
  { index: 1, count: 2 },
]
type Status = NonNullable<StatefulApp['status']>

/** What a controller may do in its own namespace: with this Lease, and with no other. */
async function grantLease(client: Client, lease: string): Promise<void> {
  const metadata = { name: lease, namespace: 'default' }
  const apiGroup = 'rbac.authorization.k8s.io'
  await client.apply(Role, { metadata, rules: shipmateRbac(lease).own as never })
  await client.apply(RoleBinding, {
    metadata,
    roleRef: { apiGroup, kind: 'Role', name: lease },
    subjects: [{ apiGroup, kind: 'Group', name: controllerUser.group }],
  })
}

describe('--shard', () => {
  it.each([['2/2'], ['1'], ['-1/2'], ['a/b'], ['0/0']])('%s is refused, in words that say what is not', async wrong => {
    const command = new Command().exitOverride()
    define(command)
    await expect(command.parseAsync(['node', 'shipmate', `--shard=${wrong}`])).rejects.toThrow(
      `--shard ${wrong}: it is written I/N, with I from 0 to N - 1, as 0/3`,
    )
  })
})

describe.skipIf(rigMissing)('two shards', { timeout: 240_000 }, () => {
  let rig: Rig
  let namespace: string
  const lines: ApiLine[] = []
  const controllers: RunningController[] = []
  /** The names of its apps, by shard. */
  const owned: string[][] = [[], []]

  async function start(index: number): Promise<void> {
    const shard = shards[index] as Shard
    const line = await rig.line(controllerUser)
    lines[index] = line
    controllers[index] = await startController(line, {
      shard,
      manager: { leaderElection: { name: leaseOf('shipmate', shard), namespace: 'default' } },
    })
  }

  beforeAll(async () => {
    rig = await startRig({
      async prepare(client) {
        await installOwnKinds(client)
        await grantController(client)
        for (const shard of shards) await grantLease(client, leaseOf('shipmate', shard))
      },
    })
    namespace = await rig.namespace()
    await rig.client.create(Lifecycle, { metadata: { name: lifecycle, namespace }, spec: sampleLifecycle() as never })
    // Who has which is known when it is there: as many as it takes until each has two.
    for (let n = 0; owned.some(names => names.length < 2); n++) {
      const place = { namespace, name: `app-${n}`, lifecycle, replicas: 1 }
      const app = await rig.client.create(StatefulApp, sampleApp(place, { desired: { state: 'Running' } }) as never)
      const index = shards.findIndex(shard => isOfShard(app.metadata.uid, shard))
      if ((owned[index]?.length ?? 2) >= 2) {
        await rig.client.delete(StatefulApp, app.metadata)
        continue
      }
      owned[index]?.push(place.name)
      await rig.client.create(StatefulSet, sampleStatefulSet(place))
    }
    await Promise.all([start(0), start(1)])
  }, 180_000)
  afterAll(async () => {
    await Promise.all(controllers.map(one => one.stop()))
    await rig?.stop()
  }, 60_000)

  const get = (name: string) => rig.client.get(StatefulApp, { namespace, name })
  const wish = (name: string, desired: object) =>
    rig.client.patch(StatefulApp, { namespace, name }, { merge: { spec: { desired } } })
  async function until(name: string, expected: string, holds: (status: Status) => unknown): Promise<Status> {
    let last: unknown
    try {
      return await rig.until(`${name}: ${expected}`, async () => {
        const { status = {}, metadata } = await get(name)
        last = status
        return status.observedGeneration === metadata.generation && holds(status as Status)
          ? (status as Status)
          : undefined
      })
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${JSON.stringify(last, null, 1)}`)
    }
  }
  const isReady = ({ conditions = [], state }: Status) =>
    state === 'Running' && conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
  const all = () => owned.flat()
  /** Who of the two has written what, of an app, its Operations and its Secret. */
  const writersOf = (name: string) =>
    lines.flatMap((line, index) =>
      line.requests.some(
        one =>
          ['create', 'update', 'patch', 'delete', 'apply'].includes(one.verb) &&
          ['statefulapps', 'operations', 'secrets'].includes(one.resource) &&
          (one.name === name || one.name === `shipmate-tls-${name}` || one.name?.startsWith(`${name}-`)),
      )
        ? [index]
        : [],
    )
  const followedBy = async (index: number) => {
    const text = (await controllers[index]?.manager.metrics.registry.metrics()) ?? ''
    return Number(/^shipmate_agents_connected(?:\{[^}]*\})? (\d+)$/m.exec(text)?.[1])
  }

  it('have a Lease each', async () => {
    const holders = await rig.until('both to be held', async () => {
      const leases = await rig.client.list(Lease, { namespace: 'default' })
      const held = leases.filter(({ spec }) => spec?.holderIdentity).map(({ metadata }) => metadata.name)
      return held.length >= 2 && held.sort()
    })
    expect(holders).toEqual(['shipmate-0-of-2', 'shipmate-1-of-2'])
  })

  it('look after every app, and no app is looked after by two', async () => {
    await Promise.all(all().map(name => until(name, 'Running', isReady)))
    await Promise.all(all().map(name => wish(name, { state: 'Servicing', action: 'backup', request: '1' })))
    await Promise.all(
      all().map(name => until(name, 'a backup', one => one.wish?.outcome === 'Succeeded' && isReady(one))),
    )
    for (const [index, names] of owned.entries())
      for (const name of names) expect({ name, by: writersOf(name) }).toEqual({ name, by: [index] })
    for (const [index, names] of owned.entries()) expect(await followedBy(index)).toBe(names.length)
    expect(rig.effects({ action: 'backup', at: 'begin' })).toHaveLength(all().length)
  })

  it("leave a dead one's apps as they are, and the dead one's successor goes on with them", async () => {
    const [[alive = ''] = [], [wished = '', doomed = ''] = []] = owned
    await controllers[1]?.kill()
    const before = (await get(wished)).status
    await Promise.all([wished, alive].map(name => wish(name, { state: 'Servicing', action: 'backup', request: '2' })))
    await rig.client.delete(StatefulApp, { namespace, name: doomed })
    // The other goes on, and has seen by then what happened to these.
    await until(alive, 'its second backup', one => one.wish?.serial === 3 && isReady(one) && one.wish.outcome)
    expect((await get(wished)).status).toEqual(before)
    expect((await get(doomed)).metadata.finalizers).toEqual(['shipmate.dev/app'])
    const operations = await rig.client.list(Operation, { namespace })
    expect(operations.filter(({ spec }) => spec.app === wished)).toHaveLength(1)

    await start(1)
    await until(wished, 'its second backup', one => one.wish?.serial === 3 && isReady(one) && one.wish.outcome)
    await rig.until('the deleted one to be gone', async () => {
      try {
        return !(await get(doomed))
      } catch (error) {
        return error instanceof NotFound
      }
    })
    // Orphan, the default over a workload that was there before: nothing was asked of it.
    expect(await rig.client.get(StatefulSet, { namespace, name: doomed })).toBeTruthy()
    expect(rig.effects({ action: 'backup', at: 'begin' })).toHaveLength(all().length + 2)
  })
})
