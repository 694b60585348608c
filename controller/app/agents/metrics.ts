/**
 * What is counted of sidecars: the round trips of calls, by call and answer, and the connections.
 */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

export type AgentMetrics = ReturnType<typeof createAgentMetrics>

export function createAgentMetrics(registry: Registry) {
  const registers = [registry]
  const seconds = new Histogram({
    name: 'shipmate_agent_call_seconds',
    help: 'Round trips of calls to sidecars, by call and by the code of the answer.',
    labelNames: ['call', 'code'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers,
  })
  const connected = new Gauge({ name: 'shipmate_agents_connected', help: 'Sidecars that are connected.', registers })
  const followed = new Gauge({ name: 'shipmate_agents_followed', help: 'Sidecars that should be.', registers })
  const reconnects = new Counter({
    name: 'shipmate_agent_reconnects_total',
    help: 'Attempts to connect to a sidecar after the first one.',
    registers,
  })
  return {
    /** @param code the HTTP status, or the code of what happened instead */
    called: (call: string, code: string, ms: number) => seconds.labels({ call, code }).observe(ms / 1000),
    connected,
    followed,
    reconnects,
  }
}
