/** The embedded API server, held against the cases that a real one passes. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe } from 'vitest'
import { authenticated } from '../../../controller/kube/auth.ts'
import { createConnection } from '../../../controller/kube/connection.ts'
import { credentialsFrom } from '../../../controller/kube/kubeconfig.ts'
import { createKubernetes } from '../../../devcluster/api/kubernetes.ts'
import { type Listening, listen } from '../../../devcluster/api/listen.ts'
import { type Server, serverOver } from './servers.ts'
import { suite } from './suite.ts'

describe('the embedded API server', () => {
  const api = createKubernetes()
  const connection = createConnection()
  let listening: Listening
  let folder: string
  let server: Server

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'shipmate-conformance-'))
    listening = await listen(api)
    const file = join(folder, 'kubeconfig')
    await listening.writeKubeconfig(file)
    server = serverOver(authenticated(connection, credentialsFrom({ file })))
  })
  afterAll(async () => {
    await connection.close()
    await listening.close()
    await api.close()
    await rm(folder, { recursive: true })
  })
  suite(() => server)
})
