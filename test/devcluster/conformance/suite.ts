/** All cases, as tests of one server. */
import { test } from 'vitest'
import { access } from './access.ts'
import { custom } from './custom.ts'
import { objects } from './objects.ts'
import { reading } from './reading.ts'
import type { Server } from './servers.ts'

const stamp = Date.now().toString(36)

export function suite(server: () => Server): void {
  for (const [at, { name, run }] of [...objects, ...reading, ...custom, ...access].entries()) {
    test(name, async () => {
      const namespace = `case-${at}-${stamp}`
      await server().ask('POST /api/v1/namespaces', { metadata: { name: namespace } })
      await server().ask(`POST /api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: 'default' } })
      await run({
        server: server(),
        namespace,
        core: `/api/v1/namespaces/${namespace}`,
        ask: (...given) => server().ask(...given),
      })
    })
  }
}
