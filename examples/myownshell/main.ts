/**
 * Runs the operator: `node examples/myownshell/main.ts`. Health and metrics are served on PORT, 8081 unless that is set.
 */
import { run } from 'shipmate'
import { operator } from './operator.ts'

const port = Number(process.env.PORT ?? 8081)

await run(operator, {
  // Of several replicas, the one that holds this lease works.
  leaderElection: { name: 'myownshell' },
  // /healthz and /readyz
  health: { port },
  // /metrics
  metrics: { port },
})
