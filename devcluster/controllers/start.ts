/**
 * The controllers of a cluster, in one process and over one cache: what kube-controller-manager is to a real one.
 *
 * Guarantees: they are clients of the API like any other; each kind is watched once, however many look at it; starting waits for no list: `ready` tells when
 * all has been read. After `stop` nothing of them is left.
 */

import type { KubeConfigOptions } from '../../controller/kube/kubeconfig.ts'
import type { Send } from '../../controller/kube/transport.ts'
import { createManager, type Manager } from '../../controller/runtime/manager.ts'
import { type Clock, systemClock } from '../../shared/clock.ts'
import type { LogOptions } from '../../shared/log.ts'
import { installBudgets } from './budget/controller.ts'
import { type Everything, watchEverything } from './common/everything.ts'
import type { Surroundings } from './common/surroundings.ts'
import { installCronJobs } from './cronjob/controller.ts'
import { installDaemonSets } from './daemonset/controller.ts'
import { installDeployments } from './deployment/controller.ts'
import { installEndpoints } from './endpoints/controller.ts'
import { installGarbageCollector } from './garbage/controller.ts'
import { installJobs } from './job/controller.ts'
import { installAccounts } from './namespace/accounts.ts'
import { installNamespaces } from './namespace/controller.ts'
import { installReplicaSets } from './replicaset/controller.ts'
import { installRoles } from './roles.ts'
import { installStatefulSets } from './statefulset/controller.ts'
import { installVolumes } from './volumes.ts'

type InstallAll = (around: Surroundings, everything: Everything, read: Promise<void>) => void

const all = {
  garbage: installGarbageCollector,
  namespaces: installNamespaces,
  accounts: installAccounts,
  statefulsets: installStatefulSets,
  replicasets: installReplicaSets,
  deployments: installDeployments,
  daemonsets: installDaemonSets,
  jobs: installJobs,
  cronjobs: installCronJobs,
  endpoints: installEndpoints,
  budgets: installBudgets,
  volumes: installVolumes,
  roles: installRoles,
} as const satisfies Record<string, InstallAll>

export type ControllerName = keyof typeof all

/** Those that look at objects of every kind. */
const needsEverything: readonly ControllerName[] = ['garbage', 'namespaces']

export interface ControllersOptions {
  /** How the API server is reached: in the same process, */
  readonly send?: Send | undefined
  /** or by a kubeconfig. Default: as for any client. */
  readonly kubeconfig?: KubeConfigOptions | undefined
  /** Which of them. Default: all. */
  readonly only?: readonly ControllerName[] | undefined
  /** The certificate of the cluster's authority, PEM: each namespace gets it in `kube-root-ca.crt`. Default: none does. */
  readonly ca?: string | undefined
  readonly clock?: Clock | undefined
  /** Default: silent. */
  readonly log?: LogOptions | undefined
  /** Stops them. */
  readonly signal?: AbortSignal | undefined
}

export interface Controllers {
  /** Resolves when everything they need has been read. */
  readonly ready: Promise<void>
  /** Resolves when all have stopped. */
  stop(): Promise<void>
}

export async function startControllers(options: ControllersOptions = {}): Promise<Controllers> {
  const { clock = systemClock, only = Object.keys(all) as ControllerName[], ca } = options
  const manager = createManager({
    ...{ name: 'kube-controller-manager', send: options.send, kubeconfig: options.kubeconfig, clock },
    // They are a guest in somebody's process: its signals, its rejections and its heap are not theirs.
    ...{ signals: false, containRejections: false, compact: false, gracePeriod: 5000 },
    log: options.log ?? { level: 'silent' },
  })
  const around: Surroundings = { manager, clock, ca }
  const everything = watchEverything(manager)
  const read = Promise.withResolvers<void>()
  for (const name of only) (all[name] as InstallAll)(around, everything, read.promise)
  if (only.some(name => needsEverything.includes(name)))
    manager.task(signal => watchAll(manager, everything, read, signal))
  else read.resolve()
  const started = manager.start(options.signal)
  // Who waits for the end hears of it; who does not is not to be ended by it.
  started.catch(() => undefined)
  return {
    ready: Promise.all([manager.ready, read.promise]).then(() => undefined),
    stop: async () => {
      await manager.stop()
      await started
    },
  }
}

/** After the kinds that somebody waits for. */
async function watchAll(
  manager: Manager,
  everything: Everything,
  read: PromiseWithResolvers<void>,
  signal: AbortSignal,
): Promise<void> {
  read.promise.catch(() => undefined)
  await manager.ready.catch(() => undefined)
  if (signal.aborted) return
  try {
    await everything.run()
    read.resolve()
  } catch (error) {
    if (signal.aborted) return
    read.reject(error)
    throw error
  }
}
