/**
 * The lease of an operator that is taken off the cluster: it goes too, unless somebody holds it, such as `operator run` on some machine.
 *
 * Guarantee: a lease that is still renewed is left alone. Clocks are not compared: one with a holder is looked at for as long as it says that it lasts, and goes
 * if nobody wrote it meanwhile, since its holder ended without releasing it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../controller/kube/client.ts'
import { Conflict, NotFound } from '../controller/kube/errors.ts'
import type { Live, Ref, ShapeOf } from '../controller/kube/kind.ts'
import { Lease } from '../controller/kube/kinds.ts'
import { type ApplyingOptions, tell } from './objects.ts'

type LiveLease = Live<ShapeOf<typeof Lease>>

const poll = 250
/** Nobody waits longer for it: it stays. */
const longest = 60_000

export async function removeLease(client: Client, ref: Ref, { dryRun = false }: ApplyingOptions): Promise<void> {
  const say = (is: string) => tell({ kind: Lease, object: { metadata: ref } }, is)
  const lease = await client.find(Lease, ref)
  if (!lease) return say('not there')
  if (dryRun) return say('would be deleted')
  if (holderOf(lease)) process.stderr.write(`waiting until ${holderOf(lease)} no longer holds Lease ${ref.name}\n`)
  const free = await whenFree(client, ref, lease)
  if (!free) return say('not there')
  if (free === 'held') return say(`left alone, as ${holderOf(lease)} holds it`)
  const { uid, resourceVersion } = free.metadata
  try {
    await client.delete(Lease, ref, { preconditions: { uid, resourceVersion } })
    say('deleted')
  } catch (error) {
    if (error instanceof NotFound) return say('not there')
    if (!(error instanceof Conflict)) throw error
    say('left alone, as somebody has just taken it')
  }
}

/** The lease once nobody holds it; undefined if it has gone; `held` if it was renewed, or lasts too long to be waited for. */
async function whenFree(client: Client, ref: Ref, first: LiveLease): Promise<LiveLease | 'held' | undefined> {
  const lasts = (first.spec?.leaseDurationSeconds ?? 15) * 1000
  if (holderOf(first) !== '' && lasts > longest) return 'held'
  const until = performance.now() + lasts
  for (let lease: LiveLease | undefined = first; lease; lease = await client.find(Lease, ref)) {
    if (holderOf(lease) === '') return lease
    if (lease.metadata.resourceVersion !== first.metadata.resourceVersion) return 'held'
    if (performance.now() >= until) return lease
    await sleep(poll)
  }
  return undefined
}

function holderOf({ spec }: LiveLease): string {
  return spec?.holderIdentity ?? ''
}
