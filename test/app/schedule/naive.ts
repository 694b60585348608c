/**
 * Schedules as they are often written, each with one mistake: what the stories have to find.
 */
import { randomBytes } from 'node:crypto'
import { Operation, OperationSchedule } from '../../../controller/app/kinds.ts'
import { childName, scheduleFinalizer } from '../../../controller/app/schedule/child.ts'
import { ticksOf } from '../../../controller/app/schedule/ticks.ts'
import { AlreadyExists } from '../../../controller/kube/errors.ts'
import type { Snapshot } from '../../../controller/kube/kind.ts'
import type { Manager } from '../../../controller/runtime/manager.ts'

export type Mistake =
  /** `lastTick` is written before the child is created. */
  | 'writesFirst'
  /** Each attempt has a name of its own. */
  | 'randomNames'
  /** The child can go before its tick is written down. */
  | 'holdsNothing'
  /** What is made is decided from the cache. */
  | 'readsNothing'

const tickNote = 'example.com/tick'

export function tickByNote({ metadata }: Snapshot<Operation>): number | undefined {
  return Number(metadata.annotations?.[tickNote])
}

export function naive(mistake: Mistake) {
  return (manager: Manager): void => {
    manager
      .controller(OperationSchedule)
      .owns(Operation)
      .reconcile(async ({ object: cr, client }) => {
        if (cr.metadata.deletionTimestamp || cr.spec.suspend) return
        const now = manager.clock.now()
        const ticks = ticksOf(cr.spec.schedule, cr.spec.timeZone)
        const seen = mistake === 'readsNothing' ? cr : await client.live.get(OperationSchedule, cr.metadata)
        const last = Date.parse(seen.status?.lastTick ?? cr.metadata.creationTimestamp)
        const due = ticks.newest(last, now, 100).reverse()
        const { resourceVersion } = seen.metadata
        const write = async () => {
          const lastTick = due.at(-1)
          if (lastTick !== undefined)
            await client.patch(
              OperationSchedule,
              cr.metadata,
              { merge: { metadata: { resourceVersion }, status: { lastTick: new Date(lastTick).toISOString() } } },
              { subresource: 'status' },
            )
        }
        if (mistake === 'writesFirst') await write()
        for (const tick of due) {
          const isRandom = mistake === 'randomNames'
          const name = isRandom
            ? `${cr.metadata.name}-${randomBytes(4).toString('hex')}`
            : childName(cr.metadata.name, tick)
          const finalizers = mistake === 'holdsNothing' ? [] : [scheduleFinalizer]
          const metadata = { name, finalizers, annotations: { [tickNote]: String(tick) } }
          const draft = Operation.draft({
            metadata,
            spec: cr.spec.template as never,
          })
          await client.create(Operation, draft, { owner: cr }).catch(error => {
            if (!(error instanceof AlreadyExists)) throw error
          })
        }
        if (mistake !== 'writesFirst') await write()
        for (const child of client.owned(Operation, cr))
          if ((tickByNote(child) ?? 0) <= Math.max(last, due.at(-1) ?? 0) && child.metadata.finalizers?.length)
            await client.patch(Operation, child.metadata, { merge: { metadata: { finalizers: [] } } })
        return { requeueAfter: (ticks.next(now) ?? now) - now }
      })
  }
}
