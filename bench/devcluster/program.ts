/**
 * The embedded API server as a program: `program KUBECONFIG` writes that file, says `ready` and runs until SIGTERM. SIGUSR2 collects garbage, so that
 * what is measured afterwards is in use.
 */
import { createKubernetes } from '../../devcluster/api/kubernetes.ts'
import { listen } from '../../devcluster/api/listen.ts'

const api = createKubernetes({ onError: error => console.error(error) })
const listening = await listen(api)
await listening.writeKubeconfig(process.argv[2] ?? '')
process.stdout.write('ready\n')
process.on('SIGUSR2', () => globalThis.gc?.())
process.on('SIGTERM', async () => {
  await listening.close()
  await api.close()
})
