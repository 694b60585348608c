/**
 * What injection makes is taken by an API server, every field of it known: random pods by a dry run, and a StatefulSet in a namespace under the restricted pod
 * security standard.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, inject as provided } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { type Access, connect } from '../../../controller/kube/access.ts'
import type { Draft, ShapeOf } from '../../../controller/kube/kind.ts'
import { Namespace, Pod, StatefulSet } from '../../../controller/kube/kinds.ts'
import { inject } from '../../../controller/webhook/inject/inject.ts'
import { cases, settings } from './pods.ts'

const seed = Number(process.env.SHIPMATE_SEED ?? 1)
const numRuns = Number(process.env.SHIPMATE_SCHEDULES ?? 20)

describe('an API server takes', () => {
  let access: Access
  let namespace: string
  beforeAll(async () => {
    access = connect({ kubeconfig: { file: provided('kubeconfig') } })
    namespace = (await access.client.create(Namespace, { metadata: { generateName: 'inject-' } })).metadata.name
  })
  afterAll(() => access.close())

  const create = (pod: object, name: string, where = namespace) => {
    const { metadata, spec } = pod as Draft<ShapeOf<typeof Pod>>
    const named = { ...metadata, name, namespace: where }
    // Its account's token is not there to be mounted.
    const wanted = { metadata: named, spec: { automountServiceAccountToken: false, ...spec } } as Draft<
      ShapeOf<typeof Pod>
    >
    return access.client.apply(Pod, wanted, { dryRun: true, fieldValidation: 'Strict' })
  }

  it('every pod with a sidecar, and what it makes of it is injected already', async () => {
    await fc.assert(
      fc.asyncProperty(cases, async one => {
        await create(one.pod, 'before')
        const result = inject(one.pod, one.facts, one.settings)
        if (!('pod' in result)) throw new Error(JSON.stringify(result))
        const live = await create(result.pod, 'after')
        // With what the server fills in, and once more: the same pod.
        const again = inject(live, one.facts, one.settings)
        if (!('pod' in again)) throw new Error(JSON.stringify(again))
        const { metadata, spec } = await create({ metadata: result.pod.metadata, spec: again.pod.spec }, 'after')
        expect(spec).toEqual(live.spec)
        expect(metadata.annotations).toEqual(live.metadata.annotations)
      }),
      { seed, numRuns },
    )
  })

  it('the StatefulSet that shipmate inject wrote', async () => {
    const text = readFileSync(join(import.meta.dirname, '../../cli/inject/orders.injected.yaml'), 'utf8')
    const set = parseAllDocuments(text, { version: '1.1' })[1]?.toJS()
    const metadata = { ...set.metadata, namespace }
    const live = await access.client.apply(
      StatefulSet,
      { ...set, metadata },
      { dryRun: true, fieldValidation: 'Strict' },
    )
    expect(live.spec?.template).toMatchObject(JSON.parse(JSON.stringify(set.spec.template)))
  })

  it.each<[string, Record<string, string>]>([
    ['in its own image', {}],
    ["in the application's image", { 'shipmate.dev/image-of': 'main' }],
    ['as a plain container', { 'shipmate.dev/native-sidecar': 'false' }],
  ])('a sidecar %s under the restricted pod security standard', async (_, annotations) => {
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
    const { name: where } = (await access.client.create(Namespace, { metadata: { generateName: 'inject-', labels } }))
      .metadata
    const restricted = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }
    const pod = {
      metadata: { labels: { 'shipmate.dev/lifecycle': 'postgres' }, annotations },
      spec: {
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [{ name: 'main', image: 'postgres:17', securityContext: restricted }],
      },
    }
    const result = inject(pod, { app: 'orders' }, settings)
    if (!('pod' in result)) throw new Error(JSON.stringify(result))
    const { spec } = await create(result.pod, 'restricted', where)
    expect(JSON.stringify(spec)).toContain('"name":"shipmate-sidecar"')
  })
})
