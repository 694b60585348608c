/** A real API server, held against the same cases as the embedded one: they say what is so, not what we would like. */
import { afterAll, beforeAll, describe, inject } from 'vitest'
import { authenticated } from '../../../controller/kube/auth.ts'
import { createConnection } from '../../../controller/kube/connection.ts'
import { credentialsFrom } from '../../../controller/kube/kubeconfig.ts'
import { type Server, serverOver } from './servers.ts'
import { suite } from './suite.ts'

const kubeconfig = inject('kubeconfig')

describe.skipIf(!kubeconfig)('a real API server', () => {
  const connection = createConnection()
  let server: Server
  beforeAll(() => {
    server = serverOver(authenticated(connection, credentialsFrom({ file: kubeconfig })))
  })
  afterAll(() => connection.close())
  suite(() => server)
})
