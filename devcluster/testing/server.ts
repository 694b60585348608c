/**
 * The API server of a test: the embedded one in this very process, or a real one.
 */
import type { Client } from '../../controller/kube/client.ts'
import type { ManagerOptions } from '../../controller/runtime/manager.ts'
import type { Clock } from '../../shared/clock.ts'
import type { Listening } from '../api/listen.ts'
import { sendTo } from '../api/send.ts'
import type { User } from '../api/types.ts'
import { type ClusterOptions, type RunningCluster, startCluster } from '../cluster.ts'
import type { ControllerName, Controllers, ControllersOptions } from '../controllers/start.ts'
import { userOf } from './account.ts'

export interface Server {
  /** May everything. */
  readonly client: Client
  clientFor(user: User): Client
  /** How a service account reaches it. */
  accessFor(account: { readonly name: string; readonly namespace: string }): Promise<Access>
  /** The same for who may everything. */
  readonly access: Access
  /** For kubectl and any other program. */
  kubeconfig(user?: User): Promise<string>
  /** Absent where it is a real one. */
  readonly embedded?: RunningCluster | undefined
  stop(): Promise<void>
}

export type Access = Pick<ManagerOptions, 'send' | 'kubeconfig'>

export interface ServerOptions extends Pick<ClusterOptions, 'nodes' | 'images' | 'labels'> {
  readonly controllers: readonly ControllerName[] | boolean
  readonly clock?: Clock | undefined
}

export async function startEmbedded({ controllers, clock, ...options }: ServerOptions): Promise<Server> {
  const isWhole = controllers === true || (options.nodes ?? 0) > 0
  const cluster = await startCluster({ ...options, controllers: isWhole, clock })
  const { api } = cluster
  let few: Controllers | undefined
  let listening: Promise<Listening> | undefined
  try {
    if (!isWhole) few = await startFew(controllers, { send: sendTo(api), clock })
  } catch (error) {
    await cluster.stop()
    throw error
  }
  return {
    client: cluster.client,
    clientFor: user => cluster.clientFor(user),
    access: { send: sendTo(api) },
    accessFor: async account => ({ send: sendTo(api, userOf(account)) }),
    async kubeconfig(user) {
      if (cluster.listening) return cluster.listening.kubeconfig(user)
      listening ??= import('../api/listen.ts').then(({ listen }) => listen(api))
      return (await listening).kubeconfig(user)
    },
    embedded: cluster,
    async stop() {
      // On a clock of its own nobody lets time pass for those who wait: closing the server ends them.
      if (!clock) await few?.stop()
      await (await listening)?.close()
      if (clock) await api.close()
      else await cluster.stop()
    },
  }
}

/** Those of them that a test wishes, on any server. */
export async function startFew(
  wished: readonly ControllerName[] | boolean,
  options: Pick<ControllersOptions, 'send' | 'kubeconfig' | 'clock'>,
): Promise<Controllers | undefined> {
  const only = typeof wished === 'boolean' ? undefined : wished
  if (wished === false || only?.length === 0) return undefined
  const { startControllers } = await import('../controllers/start.ts')
  const controllers = await startControllers({ ...options, only })
  await controllers.ready
  return controllers
}
