/**
 * One app, as it changes: each state that it comes to, in order, and how far its operation is.
 *
 * Guarantee: no change that the API server tells of is passed over, however short it lasts.
 */
import { Operation, StatefulApp } from '../../controller/app/kinds.ts'
import type { Client } from '../../controller/kube/client.ts'
import { Informer } from '../../controller/kube/informer.ts'
import type { Ref, Snapshot } from '../../controller/kube/kind.ts'

export type AppStatus = NonNullable<Snapshot<StatefulApp>['status']>
type OperationStatus = NonNullable<Snapshot<Operation>['status']>

export interface Follower {
  readonly app: Snapshot<StatefulApp> | undefined
  /** The one of the present wish. */
  operation(): Snapshot<Operation> | undefined
  /** Calls for each new state from now on. */
  onState(told: (state: string, status: AppStatus) => void): void
  /** Calls with each change of the operation that is in progress. */
  onOperation(told: (status: OperationStatus) => void): void
  stop(): Promise<void>
}

/** What a sidecar that does not answer yet makes of an app is no state of its life. */
const unknown = 'Unknown'

export async function follow(client: Client, ref: Ref & { readonly namespace: string }): Promise<Follower> {
  const stopping = new AbortController()
  const namespaces = [ref.namespace]
  const apps = new Informer(client, StatefulApp, { namespaces })
  const operations = new Informer(client, Operation, { namespaces })
  let toldState: Parameters<Follower['onState']>[0] = () => {}
  let toldOperation: Parameters<Follower['onOperation']>[0] = () => {}
  let last: string | undefined
  apps.subscribe(change => {
    const { metadata, status } = change.object
    if (metadata.name !== ref.name || change.type === 'removed') return
    const state = status?.state
    if (state === undefined || state === unknown || state === last) return
    last = state
    toldState(state, status ?? {})
  })
  operations.subscribe(change => {
    if (change.object.spec.app === ref.name && change.type !== 'removed') toldOperation(change.object.status ?? {})
  })
  const running = Promise.all([apps.run(stopping.signal), operations.run(stopping.signal)])
  await Promise.all([apps.synced, operations.synced])
  return {
    get app() {
      return apps.get(ref)
    },
    operation() {
      const name = apps.get(ref)?.status?.wish?.operation?.name
      return name === undefined ? undefined : operations.get({ ...ref, name })
    },
    onState(told) {
      toldState = told
    },
    onOperation(told) {
      toldOperation = told
    },
    async stop() {
      stopping.abort()
      await running
    },
  }
}
