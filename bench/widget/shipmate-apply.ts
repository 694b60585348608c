/**
 * The Widget work as one would write it: by server-side apply, which sends nothing when nothing would change.
 *
 * A server takes longer to apply than to create, as it keeps account of every field; that is what the difference to shipmate.ts shows.
 */
import { ConfigMap, defineKind } from 'shipmate/kube'
import { createManager } from 'shipmate/runtime'

interface Widget {
  spec: { value: string }
  status?: { observedValue?: string }
}

const Widget = defineKind<Widget>({ group: 'bench.example.com', version: 'v1', kind: 'Widget' })

const manager = createManager({
  name: 'widget-shipmate',
  namespaces: process.env.BENCH_NAMESPACE ? [process.env.BENCH_NAMESPACE] : undefined,
})
manager
  .controller(Widget, { concurrency: Number(process.env.BENCH_CONCURRENCY ?? 10) })
  .owns(ConfigMap)
  .reconcile(async ({ object, client }) => {
    const { name } = object.metadata
    const { value } = object.spec
    await client.apply(ConfigMap, { metadata: { name }, data: { value } }, { owner: object })
    await client.status(Widget, object, { observedValue: value })
  })
await manager.start()
