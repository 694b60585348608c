/** An embedded cluster as somebody else's operator finds it: HTTPS, a kubeconfig, the controllers that every cluster has. */
import { openSync } from 'node:fs'
import { mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectThrough } from '../../../controller/kube/access.ts'
import type { Client } from '../../../controller/kube/client.ts'
import { createKubernetes } from '../../../devcluster/api/kubernetes.ts'
import { listen } from '../../../devcluster/api/listen.ts'
import { sendTo } from '../../../devcluster/api/send.ts'
import type { Answered } from '../../../devcluster/api/server.ts'
import { startControllers } from '../../../devcluster/controllers/start.ts'
import { createKeeper } from '../../fixtures/keeper.ts'

export interface ForeignCluster extends AsyncDisposable {
  readonly client: Client
  /** What others than the test and the controllers asked for so far. */
  readonly asked: readonly Answered[]
  /** What went wrong inside the server. */
  readonly errors: readonly unknown[]
  /** Starts the operator, with the kubeconfig of one who may everything. */
  run(command: string, args?: string[], env?: Record<string, string>): void
  /** What the operator printed. */
  log(): Promise<string>
}

const foreign = { name: 'foreign', groups: ['system:masters', 'system:authenticated'] }

export async function startCluster(): Promise<ForeignCluster> {
  const dir = await mkdtemp(join(tmpdir(), 'shipmate-foreign-'))
  const keeper = createKeeper(dir)
  const errors: unknown[] = []
  const api = createKubernetes({ onError: error => errors.push(error) })
  const asked: Answered[] = []
  api.onRequest(answered => {
    if (answered.user.name === foreign.name) asked.push(answered)
  })
  const listening = await listen(api)
  const kubeconfig = join(dir, 'kubeconfig')
  await listening.writeKubeconfig(kubeconfig, foreign)
  const send = sendTo(api)
  const { client, close } = connectThrough(send)
  const controllers = await startControllers({ send, only: ['garbage'] })
  const log = join(dir, 'operator.log')
  return {
    client,
    asked,
    errors,
    run(command, args = [], env = {}) {
      const file = openSync(log, 'a')
      keeper.spawn(command, args, {
        cwd: dir,
        stdio: ['ignore', file, file],
        env: { ...process.env, HOME: dir, ...env, KUBECONFIG: kubeconfig },
      })
    },
    log: () => readFile(log, 'utf8').catch(() => ''),
    async [Symbol.asyncDispose]() {
      await keeper.stop()
      await controllers.stop()
      await close()
      await listening.close()
      await api.close()
    },
  }
}
