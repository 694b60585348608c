import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Draft, Kind } from '../../../controller/kube/kind.ts'
import { ControllerRevision, DaemonSet, StatefulSet } from '../../../controller/kube/kinds.ts'
import { startCluster } from '../../../devcluster/cluster.ts'

test.each<Kind>([DaemonSet, StatefulSet])(
  '$kind that is deleted in the foreground goes, with its history',
  async kind => {
    await using cluster = await startCluster({ controllers: true })
    const { client } = cluster
    const ref = { name: 'a', namespace: 'default' }
    const labels = { app: 'a' }
    const template = { metadata: { labels }, spec: { containers: [{ name: 'a', image: 'a' }] } }
    const spec = {
      selector: { matchLabels: labels },
      template,
      ...(kind === StatefulSet && { serviceName: 'a', replicas: 0 }),
    }
    await client.create(kind, { metadata: ref, spec } as Draft<object>)
    while ((await client.list(ControllerRevision)).length === 0) await pause(5)
    await client.delete(kind, ref, { propagation: 'Foreground' })
    while (await client.find(kind, ref)) await pause(5)
    expect(await client.list(ControllerRevision)).toEqual([])
  },
)
