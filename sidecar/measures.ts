export function createAgentMetrics(_options: unknown) {
  return { probed(..._a: unknown[]) {}, ended(..._a: unknown[]) {}, answered(..._a: unknown[]) {}, page: () => '' }
}
