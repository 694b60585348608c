/**
 * `startCluster` of `shipmate/testing` with a real API server: the same test, unchanged.
 */
import { join } from 'node:path'
import { ConfigMap, Deployment, Forbidden } from 'shipmate/kube'
import { startCluster } from 'shipmate/testing'
import { expect, it } from 'vitest'
import { operator } from '../../../examples/memcached/operator.ts'
import { note, withoutRule } from './faulty-operators.ts'

it('is a real one where KUBEBUILDER_ASSETS is set', async () => {
  await using cluster = await startCluster({ operator })
  await cluster.apply(join(import.meta.dirname, '../../../examples/memcached/sample.yaml'))
  await cluster.until(Deployment, 'sample', d => d.spec?.replicas === 2)
  await cluster.delete(Deployment, 'sample')
  await cluster.until(Deployment, 'sample', d => d.spec?.replicas === 2)
  expect(await cluster.writesWhileIdle()).toEqual([])
  await expect(cluster.clientFor('jane').list(ConfigMap)).rejects.toThrow(Forbidden)
})

it('finds a missing rule there too', async () => {
  const cluster = await startCluster({ operator: withoutRule })
  await cluster.apply(note)
  await expect(cluster.until(ConfigMap, 'sample')).rejects.toThrow("resources: ['configmaps'], verbs: ['patch']")
  await cluster.stop()
})
