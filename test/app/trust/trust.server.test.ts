/**
 * The root of trust where it is kept: on a real API server.
 */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { secretNameOf } from '../../../controller/app/trust/app-secret.ts'
import { createTrust } from '../../../controller/app/trust/trust.ts'
import { type Access, connect } from '../../../controller/kube/access.ts'
import { Namespace, Secret } from '../../../controller/kube/kinds.ts'
import { systemClock } from '../../../shared/clock.ts'
import { createLog } from '../../../shared/log.ts'

const file = inject('kubeconfig')
const nobody = { apps: [], signatures: [] }
const log = createLog({ level: 'silent' }).logger

describe.skipIf(!file)('the root of trust', () => {
  let access: Access
  let spaces = 0

  beforeAll(() => {
    access = connect({ kubeconfig: { file } })
  })
  afterAll(() => access.close())

  async function newNamespace() {
    const name = `trust-${++spaces}`
    await access.client.create(Namespace, { metadata: { name } })
    return name
  }
  const trustIn = (namespace: string) => createTrust({ client: access.client, namespace, clock: systemClock, log })
  const rootIn = (namespace: string) => access.client.get(Secret, { namespace, name: 'shipmate-root' })

  test('is made once, and read by the next process without a write', async () => {
    const namespace = await newNamespace()
    const first = trustIn(namespace)
    expect(first.current()).toBeUndefined()
    expect(await first.keep(nobody)).toBeGreaterThan(Date.now())
    const { resourceVersion } = (await rootIn(namespace)).metadata
    const second = trustIn(namespace)
    await second.keep(nobody)
    expect(second.current()).toEqual(first.current())
    expect((await rootIn(namespace)).metadata.resourceVersion).toBe(resourceVersion)
  })

  test('that two processes make at once is one', async () => {
    const namespace = await newNamespace()
    const both = [trustIn(namespace), trustIn(namespace), trustIn(namespace)]
    await Promise.all(both.map(one => one.keep(nobody)))
    for (const one of both) expect(one.root).toEqual(both[0]?.root)
    expect(both[0]?.root?.authorities).toHaveLength(1)
  })

  test('that cannot be read is never written over, and the words say what to do', async () => {
    const namespace = await newNamespace()
    await access.client.create(Secret, {
      metadata: { namespace, name: 'shipmate-root' },
      data: { 'root.json': Buffer.from('{"authorities": 7}').toString('base64') },
    })
    const { resourceVersion } = (await rootIn(namespace)).metadata
    await expect(trustIn(namespace).keep(nobody)).rejects.toThrow(/shipmate-root.*mend it from a backup, or delete it/s)
    expect((await rootIn(namespace)).metadata.resourceVersion).toBe(resourceVersion)
  })

  test('gives an app a certificate, and refuses a Secret of its name that somebody else made', async () => {
    const namespace = await newNamespace()
    const trust = trustIn(namespace)
    await trust.keep(nobody)
    const app = { namespace, name: 'orders', uid: 'app-uid' }
    const plan = trust.plan(app, undefined)
    if (plan.do !== 'write') throw new Error(plan.do)
    const written = await access.client.create(Secret, plan.secret)
    expect(written.metadata.name).toBe(secretNameOf('orders'))
    expect(trust.plan(app, written as never).do).toBe('nothing')
    const { labels: _, ...metadata } = written.metadata
    expect(trust.plan(app, { ...written, metadata } as never)).toMatchObject({
      do: 'refuse',
      reason: expect.stringContaining('orders'),
    })
  })
})
