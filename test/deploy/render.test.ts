/**
 * One source, three ways to install: `kubectl apply -k deploy/`, deploy/install.yaml and the Helm chart give the same objects; and for whatever values, helm gives what the
 * source says.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { plainObjects } from '../../deploy/source/plain.ts'
import { defaults, valuesSchema } from '../../deploy/source/values.ts'
import { imageOf } from '../../shared/images.ts'
import { helm, helmMissing } from '../fixtures/helm.ts'
import { kubectl, kubectlMissing } from '../fixtures/kubectl.ts'
import { byName, chart, documents, folder, type Given, newFolder, overlay, type Rendered } from './rendered.ts'

const needsHelm = helmMissing ? ` (skipped: ${helmMissing})` : ''
const needsBoth = helmMissing ?? kubectlMissing
const kustomize = async (path: string) =>
  documents(await kubectl('/dev/null', 'kustomize', '--load-restrictor=LoadRestrictionsNone', path))
const install = documents(readFileSync(join(folder, 'install.yaml'), 'utf8'))
const isCrd = ({ kind }: Rendered) => kind === 'CustomResourceDefinition'
const keep = 'helm.sh/resource-policy'

/** What the chart has differently: Helm makes the namespace, and keeps the CRDs. */
function asChart(objects: readonly Rendered[]): Rendered[] {
  return objects
    .filter(({ kind }) => kind !== 'Namespace')
    .map(one =>
      isCrd(one)
        ? { ...one, metadata: { ...one.metadata, annotations: { ...one.metadata.annotations, [keep]: 'keep' } } }
        : one,
    )
}

describe.skipIf(needsBoth)(`the three${needsBoth ? ` (skipped: ${needsBoth})` : ''}`, () => {
  test('are the same, object by object', async () => {
    const fromChart = byName(await chart())
    expect(byName(await kustomize(folder))).toEqual(byName(install))
    expect(fromChart).toEqual(byName(asChart(install)))
    expect(Object.keys(fromChart).length).toBeGreaterThan(15)
  })

  test('are the same with monitoring', async () => {
    const metrics = { serviceMonitor: true, podMonitor: true, rules: true, dashboard: true }
    expect(byName(asChart(await kustomize(overlay(['monitoring']))))).toEqual(byName(await chart({ metrics })))
  })

  test('are the same with another registry and a pull secret', async () => {
    const images = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'shipmate-images', annotations: { 'config.kubernetes.io/local-config': 'true' } },
      data: { registry: 'registry.example.com:5000/mirror/of', pullSecret: 'mirror' },
    }
    const made = overlay(['registry', 'pull-secret'], { 'images.yaml': images })
    const values = { registry: images.data.registry, pullSecrets: ['mirror'] }
    expect(byName(asChart(await kustomize(made)))).toEqual(byName(await chart(values)))
  })
})

const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } }
const cases: Given[] = [
  {},
  { registry: '', tag: 'dev', pullPolicy: 'Never', replicas: 1 },
  { registry: 'localhost:5000', pullSecrets: ['a', 'b'] },
  { shards: 3 },
  { watchNamespaces: ['shop'] },
  { watchNamespaces: ['shop', 'bank'], shards: 2, webhooks: { enabled: true } },
  { webhooks: { enabled: true, certManager: true } },
  { webhooks: { certManager: true } },
  { metrics: { auth: false } },
  { metrics: { serviceMonitor: true, podMonitor: true, rules: true, dashboard: true } },
  { networkPolicy: { enabled: false } },
  { networkPolicy: { apiServerPorts: [16443], sidecarPorts: [7443, 17443] } },
  { rbac: { aggregate: false } },
  {
    resources: {},
    affinity,
    nodeSelector: { 'kubernetes.io/os': 'linux' },
    tolerations: [{ key: 'x', operator: 'Exists' }],
    priorityClassName: 'system-cluster-critical',
    podAnnotations: { 'a.example/b': '"quoted": {{ not }} a template\n- nor YAML' },
    serviceAccountAnnotations: { 'a.example/c': 'd' },
    logLevel: 'debug',
  },
]

describe.skipIf(helmMissing)(`the chart${needsHelm}`, () => {
  test('has nothing that helm would warn of', async () => {
    const said = await helm(['lint', '--strict', join(folder, 'chart')], { home: newFolder() })
    expect(said).toContain('1 chart(s) linted, 0 chart(s) failed')
    expect(said).not.toContain('WARNING')
  })

  test.each(cases.map(values => [JSON.stringify(values), values] as const))(
    'with %s gives what the source says',
    async (_, given) => {
      const found = (await chart(given)).filter(one => !isCrd(one))
      const values = valuesSchema.parse(merged(defaults, given))
      expect(byName(found)).toEqual(byName(plainObjects(values)))
    },
  )

  test('leaves the CRDs to who installs them otherwise', async () => {
    expect((await chart({ crds: { install: false } })).filter(isCrd)).toEqual([])
  })

  test('has the values that the source has', async () => {
    const [values] = documents(readFileSync(join(folder, 'chart/values.yaml'), 'utf8'))
    expect(values).toEqual(defaults)
  })

  test.each([
    [{ registri: 'x' }, 'registri'],
    [{ replicas: 0 }, 'replicas'],
    [{ replicas: '2' }, 'replicas'],
    [{ registry: 'https://x' }, 'registry'],
    [{ logLevel: 'loud' }, 'logLevel'],
    [{ watchNamespaces: ['Not A Name'] }, 'watchNamespaces'],
    [{ metrics: { oauth: true } }, 'oauth'],
  ])('refuses %j, and names what is wrong', async (values, named) => {
    await expect(chart(values as never)).rejects.toThrow(named)
  })

  test('names every image by the one registry, and no other image', async () => {
    const source = { registry: 'mirror.example.com/x', tag: '1.2.3' }
    const text = JSON.stringify(await chart(source))
    const found = [...new Set(text.match(/[\w./:-]*(?:shipmate-(?:controller|sidecar)):[\w.-]+/g))].sort()
    expect(found).toEqual([imageOf('controller', source), imageOf('sidecar', source)])
    expect([...text.matchAll(/"image":"([^"]+)"/g)].map(([, image]) => image)).toEqual([imageOf('controller', source)])
  })
})

/** As Helm lays values over the defaults: maps are merged, anything else is replaced. */
function merged(under: unknown, over: unknown): unknown {
  const isMap = (one: unknown): one is Record<string, unknown> =>
    typeof one === 'object' && one !== null && !Array.isArray(one)
  if (!isMap(under) || !isMap(over)) return over
  const keys = Object.entries(over).map(([key, value]) => [key, key in under ? merged(under[key], value) : value])
  return { ...under, ...Object.fromEntries(keys) }
}
