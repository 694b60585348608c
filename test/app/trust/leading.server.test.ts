/**
 * A controller that loses its lease while it waits for the root of trust.
 */
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { addShipmate } from '../../../controller/app/controller.ts'
import { Lifecycle } from '../../../controller/app/kinds.ts'
import { configNameOf } from '../../../controller/app/trust/lifecycle-config.ts'
import { type Access, connect } from '../../../controller/kube/access.ts'
import { ConfigMap, Lease, Namespace, Secret } from '../../../controller/kube/kinds.ts'
import { createManager } from '../../../controller/runtime/index.ts'
import { createLog } from '../../../shared/log.ts'
import { sampleLifecycle } from '../../fixtures/app/samples.ts'
import { installOwnKinds } from '../../fixtures/own-kinds.ts'

const file = inject('kubeconfig')
const namespace = 'trust-and-lease'
const lease = { namespace, name: 'shipmate' }

describe.skipIf(!file)('a controller that has lost its lease', () => {
  let access: Access
  beforeAll(async () => {
    access = connect({ kubeconfig: { file } })
    await installOwnKinds(access.client)
    await access.client.create(Namespace, { metadata: { name: namespace } })
  })
  afterAll(() => access.close())

  test('before there was a root of trust leads again, and goes on', async () => {
    const { client } = access
    const root = { namespace, name: 'shipmate-root' }
    await client.create(Secret, { metadata: root, data: { 'root.json': Buffer.from('{}').toString('base64') } })
    await client.create(Lifecycle, { metadata: { name: 'sample', namespace }, spec: sampleLifecycle() as never })
    const lines: string[] = []
    const log = createLog({ level: 'debug', destination: { write: (text: string) => void lines.push(text) } } as never)
    const manager = createManager({
      ...{ kubeconfig: { file }, namespaces: [namespace], log, signals: false },
      leaderElection: { ...lease, leaseDuration: 2000, renewDeadline: 1500, retryPeriod: 200 },
    })
    addShipmate(manager, { namespace })
    const running = manager.start()
    const said = (text: string) =>
      vi.waitFor(() => expect(lines.join('')).toContain(text), { timeout: 30_000, interval: 20 })
    try {
      await said('"controller":"lifecycle","object":"trust-and-lease/sample"')
      await said('the root of trust could not be kept')
      const { metadata } = await client.get(Lease, lease)
      const other = { holderIdentity: 'another', renewTime: new Date().toISOString().replace('Z', '000Z') }
      await client.patch(Lease, metadata, { merge: { spec: other } })
      await said('is lost')
      await client.delete(Secret, root)
      const config = { namespace, name: configNameOf('sample') }
      await vi.waitFor(() => client.get(ConfigMap, config), { timeout: 30_000, interval: 50 })
      expect((await client.get(Lease, lease)).spec?.holderIdentity).not.toBe('another')
    } finally {
      await manager.stop()
      await running
    }
  })
})
