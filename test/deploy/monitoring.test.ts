/**
 * Every metric that an alert or the dashboard names is one that the controller or the sidecar exports, with the labels by which it is asked for.
 */
import { describe, expect, test } from 'vitest'
import { createAgentMetrics } from '../../controller/app/agents/metrics.ts'
import { createAppMetrics } from '../../controller/app/metrics.ts'
import { createMetrics } from '../../controller/runtime/metrics.ts'
import { alertGroups } from '../../deploy/source/alerts.ts'
import { dashboard } from '../../deploy/source/dashboard.ts'
import { systemClock } from '../../shared/clock.ts'
import { createMeasures } from '../../sidecar/measures.ts'

/** What the controller exports, by name, with its labels. */
async function controllerMetrics(): Promise<Map<string, Set<string>>> {
  const metrics = createMetrics()
  metrics.collectProcess()
  createAppMetrics(metrics.registry, systemClock)
  createAgentMetrics(metrics.registry)
  const all = await metrics.registry.getMetricsAsJSON()
  return new Map(
    all.flatMap(({ name, type }) => {
      const metric = metrics.registry.getSingleMetric(name) as unknown as { labelNames?: string[] }
      const labels = new Set(metric?.labelNames ?? [])
      const names = String(type) === 'histogram' ? ['_bucket', '_sum', '_count'].map(end => name + end) : [name]
      return names.map(one => [one, new Set([...labels, ...(one.endsWith('_bucket') ? ['le'] : [])])] as const)
    }),
  )
}

/** The sidecar's page names a metric before anything of it was counted. */
function sidecarMetrics(): Set<string> {
  const nothing = { inside: () => undefined, readers: () => 0, refused: () => false, state: () => undefined }
  const measures = createMeasures({ ...nothing, events: { seq: 0 } as never })
  return new Set([...measures.page().matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name))
}

/** What Prometheus puts to each series by itself. */
const added = ['job', 'namespace', 'pod']

const expressions = (of: unknown): string[] =>
  typeof of !== 'object' || of === null
    ? []
    : Object.entries(of).flatMap(([key, value]) => (key === 'expr' ? [String(value)] : expressions(value)))

/** Functions, operators and the like: what stands in an expression and names no metric. */
const words = /^(sum|min|max|count|by|rate|increase|absent|histogram_quantile|time|or|vector|and|on)$/

const namesIn = (expression: string) =>
  [...expression.replace(/\{[^}]*\}|\[[^\]]*\]|by \([^)]*\)/g, '').matchAll(/[a-z_]\w*/gi)]
    .map(([name]) => name)
    .filter(name => !words.test(name))
const labelsIn = (expression: string) => [
  ...[...expression.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(',').map(one => one.trim())),
  ...[...expression.matchAll(/[{,]\s*(\w+)\s*[=!]/g)].map(([, label = '']) => label),
]

describe.each([
  ['alerts', expressions(alertGroups)],
  ['the dashboard', expressions(dashboard)],
])('%s', (_, all) => {
  test('name metrics that there are, by labels that they have', async () => {
    expect(all.length).toBeGreaterThan(8)
    const [ours, sidecars] = [await controllerMetrics(), sidecarMetrics()]
    for (const expression of all) {
      const names = namesIn(expression)
      expect(names.length, expression).toBeGreaterThan(0)
      for (const name of names) {
        expect(ours.has(name) || sidecars.has(name), `${name}, in ${expression}`).toBe(true)
        const labels = ours.get(name)
        if (!labels) continue
        for (const label of labelsIn(expression))
          expect(labels.has(label) || added.includes(label), `${label} of ${name}, in ${expression}`).toBe(true)
      }
    }
  })
})

test('a name that there is not is found out', () => {
  expect(namesIn('sum by (a) (rate(shipmate_nothing_total{x="y"}[5m])) > 0')).toEqual(['shipmate_nothing_total'])
  expect(labelsIn('sum by (a, b) (rate(m{x="y",z!="1"}[5m]))')).toEqual(['a', 'b', 'x', 'z'])
})
