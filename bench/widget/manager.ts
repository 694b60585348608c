/**
 * What both of our programs for the Widget work have: the kind, a manager for the bench's namespace, and its controller, to which each gives its own reconciler.
 */
import { ConfigMap, defineKind } from 'shipmate/kube'
import { createManager } from 'shipmate/runtime'

interface Widget {
  spec: { value: string }
  status?: { observedValue?: string }
}

export const Widget = defineKind<Widget>({ group: 'bench.example.com', version: 'v1', kind: 'Widget' })

const { BENCH_NAMESPACE: namespace, BENCH_CONCURRENCY = '10' } = process.env

export const manager = createManager({ name: 'widget-shipmate', namespaces: namespace ? [namespace] : undefined })

export const controller = manager.controller(Widget, { concurrency: Number(BENCH_CONCURRENCY) }).owns(ConfigMap)
