/**
 * An injected StatefulSet on a real kubelet, in a namespace that takes restricted pods only: the application starts without a controller, the agent gets well when its
 * certificate and its lifecycle come, and when the pod ends the preStop action is first, the application second, the sidecar last.
 */
import { generateKeyPairSync, sign } from 'node:crypto'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { parse } from 'yaml'
import { injectTexts } from '../../../cli/inject/text.ts'
import { ConfigMap, Namespace, Pod, Secret, StatefulSet } from '../../../controller/kube/kinds.ts'
import { logLines } from '../../../controller/kube/logs.ts'
import { forwardPort } from '../../../controller/kube/portforward.ts'
import type { Action, LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import { signedBytes } from '../../../sidecar/config/signature.ts'
import { createAuthority } from '../../fixtures/certificates.ts'
import { type Cluster, useCluster } from '../../fixtures/pods.ts'
import { describeOnNode, images, longest } from '../../sidecar/image/pod.ts'
import { settings } from './pods.ts'

const node = process.env.SHIPMATE_TEST_IMAGE ?? 'localhost/node:24'
/** A kubelet looks at what it has mounted about once a minute. */
const patience = { timeout: 150_000, interval: 250 }

type Stop = Pick<Action, 'exec' | 'signal'>

/** Stopping takes a second, so that an application that does not wait for it is found out. @param stop by what the sidecar's image, or the pod, has for it */
const lifecycleWith = (stop: Stop): LifecycleSpec => ({
  states: [
    { name: 'Start', verb: 'Create', next: ['Running', 'Stopping'] },
    { name: 'Running', when: 'probes.up.ok', next: ['Stopping'] },
    { name: 'Stopping', actions: ['stop'], next: ['End'] },
    { name: 'End', verb: 'Delete' },
  ],
  preStop: 'stop',
  probes: [{ name: 'up', file: { path: '/work/up' }, every: '1s' }],
  actions: [{ name: 'stop', ...stop, timeout: '20s' }],
})
const byNode = "setTimeout(() => fs.writeFileSync('/work/stop', 'brought to rest\\n'), 1000)"
/** What a signal has the application do itself: nobody waits for that. */
const atOnce = 'echo brought to rest > /work/stop'
const byShell = `sleep 1; ${atOnce}`

interface Given {
  readonly app: string
  readonly image: string
  readonly annotations: string
  readonly user: string
  readonly stop: Stop
}

const text = ({ app, image, annotations, user, stop }: Given) => `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: ${app}}
spec:
  serviceName: ${app}
  selector: {matchLabels: {app: ${app}}}
  template:
    metadata:
      labels: {app: ${app}, shipmate.dev/lifecycle: ${app}}
      annotations: {${annotations}}
    spec:
      automountServiceAccountToken: false
      securityContext: {runAsNonRoot: true, ${user}, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: main
          image: ${image}
          imagePullPolicy: Never
          command:
            - sh
            - -c
            - trap "cat /work/stop; echo asked to end; exit" TERM; trap "${atOnce}" USR1; touch /work/up; echo up; while :; do sleep 0.1; done
          securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
          volumeMounts: [{name: work, mountPath: /work}]
      volumes: [{name: work, emptyDir: {}}]
---
${JSON.stringify({ apiVersion: 'shipmate.dev/v1alpha1', kind: 'Lifecycle', metadata: { name: app }, spec: lifecycleWith(stop) })}
`

describeOnNode('a StatefulSet that shipmate inject wrote', kubeconfig => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await useCluster(kubeconfig)
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
    await cluster.client.patch(Namespace, { name: cluster.namespace }, { merge: { metadata: { labels } } })
  }, longest)
  afterAll(() => cluster?.[Symbol.asyncDispose]())

  it.each<Given>([
    // As OpenShift gives them: any number, and group 0.
    {
      app: 'own',
      image: node,
      annotations: 'shipmate.dev/volumes: work',
      user: 'runAsUser: 1000650000, runAsGroup: 0',
      stop: { exec: { command: ['node', '-e', byNode] } },
    },
    {
      app: 'copied',
      image: images.busybox,
      annotations: 'shipmate.dev/image-of: main',
      user: 'runAsUser: 1000',
      stop: { exec: { command: ['sh', '-c', byShell] } },
    },
    {
      app: 'shared',
      image: images.busybox,
      annotations: 'shipmate.dev/share-process-namespace: "true"',
      user: 'runAsUser: 1000',
      stop: { signal: { process: 'sh', signal: 'SIGUSR1' } },
    },
  ])('lives and ends as it should: $annotations', { timeout: 2 * longest }, async given => {
    const { client, namespace, source } = cluster
    const image = images.sidecar
    const { texts, problems } = injectTexts([{ file: 'set.yaml', text: text(given) }], [], { ...settings, image })
    expect(problems).toEqual([])
    const set = parse(texts[0]?.split('\n---\n')[0] ?? '')
    await client.create(StatefulSet, { ...set, metadata: { ...set.metadata, namespace } })
    const name = `${given.app}-0`
    const ref = { name, namespace }

    // Without a certificate and without a lifecycle the application runs, and is ready.
    await cluster.until(name, pod =>
      pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'),
    )
    const ask = async (path: string) => {
      await using local = await forwardPort(source, ref, 7080)
      return (await fetch(`http://${local.host}:${local.port}${path}`)).status
    }
    await vi.waitFor(async () => expect([await ask('/livez'), await ask('/readyz')]).toEqual([200, 503]), patience)
    await bringTrust(given)
    await vi.waitFor(async () => expect(await ask('/readyz')).toBe(200), patience)

    const printed = linesOf(name)
    const { uid = '' } = (await client.get(Pod, ref)).metadata
    const ends = lastStatus(name, uid)
    await client.delete(Pod, ref)
    expect(await printed).toEqual(['up', 'brought to rest', 'asked to end'])
    const { main, sidecar } = await ends
    expect(main).toBeDefined()
    // Native: after the application. A kubelet tells times in seconds.
    expect(Date.parse(sidecar ?? '')).toBeGreaterThanOrEqual(Date.parse(main ?? ''))
    await client.delete(StatefulSet, { name: given.app, namespace })
  })

  /** All that the application prints, to its end. */
  async function linesOf(name: string): Promise<string[]> {
    const lines: string[] = []
    const { client, namespace } = cluster
    for await (const line of logLines(client, { name, namespace }, { container: 'main', follow: true }))
      lines.push(line)
    return lines
  }

  /** When each of the two ended, as the last that is seen of a pod says. */
  async function lastStatus(name: string, uid: string): Promise<{ main?: string; sidecar?: string }> {
    const ended: { main?: string; sidecar?: string } = {}
    const place = { namespace: cluster.namespace, fields: `metadata.name=${name}` }
    const { resourceVersion } = await cluster.client.page(Pod, place)
    for await (const event of cluster.client.watch(Pod, { ...place, resourceVersion })) {
      if (event.type === 'BOOKMARK' || event.object.metadata.uid !== uid) continue
      const { containerStatuses = [], initContainerStatuses = [] } = event.object.status ?? {}
      for (const { name, state } of [...containerStatuses, ...initContainerStatuses]) {
        const at = state?.terminated?.finishedAt
        if (at && name === 'main') ended.main = at
        if (at && name === 'shipmate-sidecar') ended.sidecar = at
      }
      if (event.type === 'DELETED') break
    }
    return ended
  }

  /** What the controller makes: the certificate of an app, and the signed lifecycle. */
  async function bringTrust({ app, stop }: Given): Promise<void> {
    const lifecycle = lifecycleWith(stop)
    const { client, namespace } = cluster
    const authority = createAuthority()
    const { publicKey, privateKey } = generateKeyPairSync('ed25519')
    const { cert, key } = authority.issue({ commonName: app, dns: [`${app}.${namespace}.sidecar.shipmate.dev`] })
    const signed = sign(null, signedBytes({ namespace, name: app, spec: lifecycle }), privateKey)
    await client.create(Secret, {
      metadata: { name: `shipmate-tls-${app}`, namespace },
      stringData: {
        ...{ 'tls.crt': cert, 'tls.key': key, 'ca.crt': authority.cert },
        'lifecycle.pub': String(publicKey.export({ type: 'spki', format: 'pem' })),
      },
    })
    await client.create(ConfigMap, {
      metadata: { name: `shipmate-lifecycle-${app}`, namespace },
      data: { 'lifecycle.yaml': JSON.stringify(lifecycle), 'lifecycle.sig': signed.toString('base64') },
    })
  }
})
