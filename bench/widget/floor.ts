// The floor under the Widget work: lists once, then writes each ConfigMap and status without watching or looking back.
// A controller does at least this much, so none can be expected to converge much sooner.

import { configMapOf, configMapsPath, connect, eachOf, type Widget, widgetsPath } from '../api.ts'

const { KUBECONFIG = '', BENCH_NAMESPACE: namespace = 'default', BENCH_CONCURRENCY = '10' } = process.env
const concurrency = Number(BENCH_CONCURRENCY)
const api = connect(KUBECONFIG, concurrency)

const running = setInterval(() => {}, 60_000)
process.once('SIGTERM', async () => {
  clearInterval(running)
  await api.close()
})

const { items } = await api.request<{ items: Widget[] }>('GET', widgetsPath(namespace))
await eachOf(items, concurrency, async widget => {
  await api.request('POST', configMapsPath(namespace), configMapOf(widget))
  await api.request('PATCH', `${widgetsPath(namespace)}/${widget.metadata.name}/status`, {
    status: { observedValue: widget.spec.value },
  })
})
