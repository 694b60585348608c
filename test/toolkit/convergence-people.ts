/**
 * People in a random schedule: they wish, change their wishes, damage, delete and hold children, put objects of their own where a child would be, and cut the lines. And what a
 * cluster does besides: it collects what has lost its owner.
 */
import type { Client } from '../../controller/kube/client.ts'
import { type Live, type Ref, resourceOf } from '../../controller/kube/kind.ts'
import type { ModelServer } from '../fixtures/model-server.ts'
import type { Judge } from './convergence-judge.ts'
import { type AnyKind, type Draw, finalizer, type Scenario, type Wish } from './convergence-scenario.ts'

export interface People {
  /** uids of custom resources that had our finalizer when they were deleted. */
  readonly promised: ReadonlySet<string>
  readonly count: { deleted: number; damaged: number; squatted: number; replaced: number }
  /** Somebody does something. */
  act(): Promise<void>
  wish(ref: Ref, value: string): Promise<void>
  /** Puts an object of somebody else's where a child of the custom resource would be, unless one is there. */
  squat(ref: Ref): Promise<void>
  /** Takes every object of somebody else's away. */
  clear(): Promise<void>
  /** What a garbage collector does. */
  collect(): Promise<void>
}

/** By what an object shows that it is somebody else's; the first shows nothing. */
const marks: readonly object[] = [
  {},
  {
    ownerReferences: [
      { apiVersion: 'apps/v1', kind: 'Deployment', name: 'theirs', uid: 'their-uid', controller: true },
    ],
  },
  { annotations: { 'shipmate.dev/hash': 'x', 'shipmate.dev/maker': 'gadgets/Gadget.example.com/default/g' } },
  { annotations: { 'shipmate.dev/hash': 'x' } },
]

export function createPeople(
  at: Draw & { server: ModelServer; client: Client; scenario: Scenario; judge: Judge; refs: readonly Ref[] },
): People {
  const { server, client, scenario, judge, refs, below, chance } = at
  const { kind, wishes } = scenario
  const { said, foreign, find } = judge
  const promised = new Set<string>()
  const count = { deleted: 0, damaged: 0, squatted: 0, replaced: 0 }
  const one = <T>(of: readonly T[]) => of[below(of.length)] as T

  async function say(ref: Ref, value: string): Promise<void> {
    const there = await client.find(kind, ref)
    if (there?.metadata.deletionTimestamp) return
    const { metadata } = there
      ? await client.patch(kind, ref, { merge: { spec: { value } } })
      : await client.create(kind, { metadata: { ...ref }, spec: { value } })
    const { values } = said.get(metadata.uid) ?? { values: [] }
    said.set(metadata.uid, { name: ref.name, values: [...values, value] })
  }

  /** A child that a custom resource wishes, or would. */
  async function wished(ref: Ref): Promise<Wish> {
    const value = (await client.find(kind, ref))?.spec.value ?? String(below(100))
    return one(wishes(ref.name, value))
  }

  async function squat(ref: Ref, wish?: Wish): Promise<void> {
    const { sort, ref: place, content } = wish ?? (await wished(ref))
    if (find(sort.kind, place)) return
    count.squatted++
    const theirs = chance(0.5) ? { ...content, ...('data' in content && { data: { value: btoa('theirs') } }) } : {}
    const object = await client.create(sort.kind, { metadata: { ...place, ...one(marks) }, ...theirs })
    foreign.set(object.metadata.uid, { kind: sort.kind, ref: place, object: find(sort.kind, place) as Live })
  }

  async function erase(of: AnyKind, ref: Ref): Promise<void> {
    const there = find(of, ref)
    if (!there) return
    await client.delete(of, ref)
    foreign.delete(there.metadata.uid)
  }

  async function deleteCr(ref: Ref): Promise<void> {
    const there = await client.find(kind, ref)
    if (!there) return
    if (there.metadata.finalizers?.includes(finalizer)) promised.add(there.metadata.uid)
    count.deleted++
    await client.delete(kind, ref)
  }

  async function damage({ sort, ref, content }: Wish): Promise<void> {
    const there = find(sort.kind, ref)
    if (!there || foreign.has(there.metadata.uid)) return
    count.damaged++
    const wrong = {
      ...('data' in content && { data: { value: btoa(`damaged ${below(1e6)}`), mode: null } }),
      ...('description' in content && { description: null }),
      ...('spec' in content && { spec: { hard: { pods: '-1' }, type: 'NodePort' } }),
    }
    const isLabelled = chance(0.5)
    const labels = { metadata: { labels: { app: null, theirs: 'x' } } }
    await client.patch(sort.kind, ref, { merge: isLabelled ? labels : wrong })
  }

  async function act(): Promise<void> {
    const ref = one(refs)
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
        return say(ref, String(below(100)))
      case 3:
        if (chance(0.6)) await deleteCr(ref)
        return
      case 4: {
        const { sort, ref: place } = await wished(ref)
        return erase(sort.kind, place)
      }
      case 5:
      case 6:
        return damage(await wished(ref))
      case 7:
        return squat(ref)
      case 8: {
        // At once, so that nobody sees the place empty.
        const wish = await wished(ref)
        if (find(wish.sort.kind, wish.ref)) count.replaced++
        await erase(wish.sort.kind, wish.ref)
        await squat(ref, wish)
        // And a reason to write it, before the news has come.
        if (chance(0.5) && find(kind, ref)) await say(ref, String(below(100)))
        return
      }
      case 9:
        return clear()
      case 10:
        return server.cutWatches()
      case 11:
        return server.compact()
    }
  }

  async function clear(): Promise<void> {
    for (const { kind: of, ref } of [...foreign.values()]) await erase(of, ref)
  }

  async function collect(): Promise<void> {
    const uids = new Set(judge.crs().map(({ metadata }) => metadata.uid))
    for (const of of new Set(scenario.sorts.map(sort => sort.kind))) {
      for (const { metadata } of server.list(resourceOf(of))) {
        const owner = metadata.ownerReferences?.find(({ kind: name }) => name === kind.kind)
        if (owner && !uids.has(owner.uid) && !metadata.deletionTimestamp) await client.delete(of, metadata)
      }
    }
  }

  return { promised, count, act, wish: say, squat, clear, collect }
}
