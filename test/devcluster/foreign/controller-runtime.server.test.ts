/** The Widget operator of the benchmark, on Go's controller-runtime, which speaks protobuf where it can. */
import { expect, test, vi } from 'vitest'
import { goProgram } from '../../../bench/build.ts'
import type { Client } from '../../../controller/kube/client.ts'
import { ConfigMap } from '../../../controller/kube/kinds.ts'
import { goMissing } from '../../fixtures/go.ts'
import { installWidgets } from '../../fixtures/widget.ts'
import { startCluster } from './cluster.ts'

const namespace = 'default'
const patience = { timeout: 60_000, interval: 50 }

test.skipIf(goMissing)(
  `an operator on controller-runtime comes to what its Widgets ask for${goMissing ? ` (skipped: ${goMissing})` : ''}`,
  { timeout: 600_000 },
  async () => {
    const { line } = await goProgram('widget')
    await using cluster = await startCluster()
    const { client } = cluster
    const Widget = await installWidgets(client, 'bench.example.com')
    const names = Array.from({ length: 40 }, (_, i) => `widget-${i}`)
    const create = (name: string) => client.create(Widget, { metadata: { name, namespace }, spec: { value: 'first' } })
    await Promise.all(names.slice(0, 20).map(create))
    cluster.run(line[0], line.slice(1), { BENCH_NAMESPACE: namespace, BENCH_CONCURRENCY: '10' })
    await Promise.all(names.slice(20).map(create))

    const observed = async () => (await client.list(Widget, { namespace })).map(({ status }) => status?.observedValue)
    const converged = (value: string) =>
      vi.waitFor(async () => {
        expect(await values(client), await cluster.log()).toEqual(names.map(() => value))
        expect(await observed()).toEqual(names.map(() => value))
      }, patience)
    await converged('first')
    await Promise.all(
      names.map(name => client.patch(Widget, { name, namespace }, { merge: { spec: { value: 'then' } } })),
    )
    await converged('then')
    await client.delete(ConfigMap, { name: 'widget-7', namespace })
    await client.patch(ConfigMap, { name: 'widget-8', namespace }, { merge: { data: { value: 'wrong' } } })
    await converged('then')
    await Promise.all(names.map(name => client.delete(Widget, { name, namespace })))
    await vi.waitFor(async () => expect(await values(client)).toEqual([]), patience)

    expect(cluster.errors).toEqual([])
    expect(cluster.asked.filter(({ code }) => code >= 400 && code !== 404 && code !== 409)).toEqual([])
  },
)

async function values(client: Client): Promise<(string | undefined)[]> {
  const items = await client.list(ConfigMap, { namespace })
  return items.filter(({ metadata }) => metadata.name.startsWith('widget-')).map(({ data }) => data?.value)
}
