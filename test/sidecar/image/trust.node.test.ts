/**
 * The image as it is, without arguments: it waits for its certificates and for a signed lifecycle, and then answers the controller alone.
 */
import { generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { request as plain } from 'node:http'
import { request } from 'node:https'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { ConfigMap, Pod, Secret } from '../../../controller/kube/kinds.ts'
import { forwardPort } from '../../../controller/kube/portforward.ts'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import { signedBytes } from '../../../sidecar/config/signature.ts'
import { createAuthority } from '../../fixtures/certificates.ts'
import { describeOnNode, longest, restrictedNamespace, type SidecarPods } from './pod.ts'

const lifecycle: LifecycleSpec = { actions: [{ name: 'greet', exec: { command: ['true'] } }] }

describeOnNode("the sidecar's image without arguments", kubeconfig => {
  const authority = createAuthority()
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const serverName = 'app.shop.sidecar.shipmate.dev'
  const asItIs = (secretName: string) => ({
    sidecar: { args: [], volumeMounts: [{ name: 'tls', mountPath: '/etc/shipmate/tls', readOnly: true }] },
    volumes: [{ name: 'tls', secret: { secretName, optional: true } }],
  })
  let pods: SidecarPods

  beforeAll(async () => {
    pods = await restrictedNamespace(kubeconfig, lifecycle)
    const { client, namespace } = pods.cluster
    const signed = sign(null, signedBytes({ namespace, name: 'lifecycle', spec: lifecycle }), privateKey)
    const data = { 'lifecycle.sig': signed.toString('base64') }
    await client.patch(ConfigMap, { name: 'lifecycle', namespace }, { merge: { data } })
    const { cert, key } = authority.issue({ commonName: 'app', dns: [serverName] })
    const trusted = String(publicKey.export({ type: 'spki', format: 'pem' }))
    await client.create(Secret, {
      metadata: { name: 'tls', namespace },
      stringData: { 'tls.crt': cert, 'tls.key': key, 'ca.crt': authority.cert, 'lifecycle.pub': trusted },
    })
  }, longest)
  afterAll(() => pods?.[Symbol.asyncDispose]())

  it('is alive without a certificate, and says that it waits for it', async () => {
    await pods.create('early', asItIs('absent'))
    await using local = await forwardPort(
      pods.cluster.source,
      { name: 'early', namespace: pods.cluster.namespace },
      7080,
    )
    const ask = async (path: string) => {
      const [answer] = await once(plain({ ...at(local), path, agent: false }).end(), 'response')
      return [answer.statusCode, await text(answer)]
    }
    await vi.waitFor(async () => expect(await ask('/livez')).toEqual([200, expect.anything()]), { timeout: 30_000 })
    expect(await ask('/readyz')).toEqual([503, expect.stringContaining('/etc/shipmate/tls')])
  })

  it('answers the controller, by its certificate, and nobody else', async () => {
    await pods.start('app', asItIs('tls'))
    const ref = { name: 'app', namespace: pods.cluster.namespace }
    const { uid = '' } = (await pods.cluster.client.get(Pod, ref)).metadata
    await using local = await forwardPort(pods.cluster.source, ref, 7443)
    const ask = async (name?: string) => {
      const tls = {
        ca: authority.cert,
        servername: serverName,
        ...(name && authority.issue({ commonName: 'x', dns: [name] })),
      }
      const headers = { 'shipmate-pod-uid': uid }
      const [answer] = await once(
        request({ ...at(local), ...tls, path: '/v1/state', headers, agent: false }).end(),
        'response',
      )
      return [answer.statusCode, JSON.parse(await text(answer))]
    }
    expect(await ask('controller.shipmate.dev')).toEqual([200, expect.objectContaining({ pod: { ...ref, uid } })])
    expect(await ask('somebody.else')).toEqual([403, expect.objectContaining({ code: 'Forbidden' })])
    expect(await ask()).toEqual([401, expect.objectContaining({ code: 'Unauthorized' })])
  })
})

const at = ({ host, port }: { host: string; port: number }) => ({ host, port })
