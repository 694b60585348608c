/**
 * Runs the operator: `node examples/memcached-lifecycle/main.ts`. Health and metrics are served on PORT, 8081 unless that is set.
 */
import { run } from 'shipmate'
import { operator } from './operator.ts'

const port = Number(process.env.PORT ?? 8081)

await run(operator, { health: { port }, metrics: { port } })
