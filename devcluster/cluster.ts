/**
 * The whole embedded cluster: API server, controllers, nodes. Each part only where it is wanted, so that a test that needs objects alone has them at once.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { connectThrough } from '../controller/kube/access.ts'
import type { Client } from '../controller/kube/client.ts'
import type { Clock } from '../shared/clock.ts'
import { createKubernetes } from './api/kubernetes.ts'
import type { Listening } from './api/listen.ts'
import { sendTo } from './api/send.ts'
import type { Api } from './api/server.ts'
import type { User } from './api/types.ts'
import type { Scheduler } from './controllers/scheduler.ts'
import type { Controllers } from './controllers/start.ts'
import type { Images } from './node/images.ts'
import type { Nodes, NodesOptions } from './node/nodes.ts'

export interface ClusterOptions {
  /** Nodes that run pods. Default 0: pods stay Pending. */
  readonly nodes?: number | undefined
  /** Those of a control plane: workloads, garbage collection, namespaces. Default: with nodes. */
  readonly controllers?: boolean | undefined
  /** Whether it is reached by HTTPS. Default: with nodes; else by clients of this process alone. */
  readonly listen?: boolean | { readonly port?: number | undefined } | undefined
  /** What runs in the stead of images. */
  readonly images?: Images | undefined
  /** The folder that all is kept in, over restarts. Default: nothing is kept. */
  readonly folder?: string | undefined
  /** Labels for each node, by its number from 1. */
  readonly labels?: NodesOptions['labels']
  readonly backoff?: NodesOptions['backoff']
  readonly addressing?: NodesOptions['addressing']
  readonly isolation?: NodesOptions['isolation']
  readonly onPort?: NodesOptions['onPort']
  readonly clock?: Clock | undefined
  /** Told what went wrong inside. Default: nobody is. */
  readonly onError?: ((error: unknown) => void) | undefined
}

export interface RunningCluster extends AsyncDisposable {
  readonly api: Api
  /** May everything, without a network between. */
  readonly client: Client
  /** The same for somebody else. */
  clientFor(user: User): Client
  readonly listening: Listening | undefined
  readonly nodes: Nodes | undefined
  readonly controllers: Controllers | undefined
  stop(): Promise<void>
}

export async function startCluster(options: ClusterOptions = {}): Promise<RunningCluster> {
  const {
    nodes: count = 0,
    controllers: isControlled = count > 0,
    listen: listening = count > 0,
    folder,
    clock,
  } = options
  if (folder) await mkdir(folder, { recursive: true })
  const api = createKubernetes({ file: folder && join(folder, 'objects.sqlite'), clock, onError: options.onError })
  const clientFor = (user?: User) => connectThrough(sendTo(api, user), { clock }).client
  const client = clientFor()
  const parts: { listening?: Listening; controllers?: Controllers; scheduler?: Scheduler; nodes?: Nodes } = {}
  const stop = async () => {
    await parts.scheduler?.stop()
    await parts.nodes?.stop()
    await parts.controllers?.stop()
    await parts.listening?.close()
    await api.close()
  }
  try {
    if (listening) {
      const { listen } = await import('./api/listen.ts')
      parts.listening = await listen(api, listening === true ? {} : listening)
    }
    if (isControlled) {
      const { startControllers } = await import('./controllers/start.ts')
      parts.controllers = await startControllers({ send: sendTo(api), ca: parts.listening?.ca, clock })
      await parts.controllers.ready
    }
    if (count > 0) {
      const { startNodes } = await import('./node/nodes.ts')
      parts.nodes = await startNodes({
        client,
        count,
        images: options.images,
        folder: folder && join(folder, 'nodes'),
        server: serverOf(parts.listening),
        labels: options.labels,
        backoff: options.backoff,
        addressing: options.addressing,
        isolation: options.isolation,
        onPort: options.onPort,
        clock,
      })
      const { startScheduler } = await import('./controllers/scheduler.ts')
      parts.scheduler = await startScheduler(client, clock)
      for (const { name } of parts.nodes.all) api.runtimes.set(name, parts.nodes.runtime)
    }
  } catch (error) {
    await stop()
    throw error
  }
  return {
    api,
    client,
    clientFor,
    listening: parts.listening,
    nodes: parts.nodes,
    controllers: parts.controllers,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

function serverOf(listening: Listening | undefined): { host: string; port: number; ca: string } | undefined {
  if (!listening) return undefined
  const { hostname, port } = new URL(listening.url)
  return { host: hostname, port: Number(port), ca: listening.ca }
}
