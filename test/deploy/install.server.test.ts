/**
 * What is shipped, as a person installs it: by helm, by kubectl from the kustomization and from one file, each taken by the API server with strict validation; and the controller
 * works under the rights that come with it, in all namespaces or in some.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { addShipmate } from '../../controller/app/controller.ts'
import { Lifecycle, StatefulApp } from '../../controller/app/kinds.ts'
import { type Access, connect } from '../../controller/kube/access.ts'
import type { Kind } from '../../controller/kube/kind.ts'
import * as kinds from '../../controller/kube/kinds.ts'
import {
  ConfigMap,
  CustomResourceDefinition,
  Deployment,
  Lease,
  Namespace,
  Secret,
  SubjectAccessReview,
} from '../../controller/kube/kinds.ts'
import type { Interceptor } from '../../controller/kube/transport.ts'
import { createManager } from '../../controller/runtime/index.ts'
import { plainObjects } from '../../deploy/source/plain.ts'
import { valuesSchema } from '../../deploy/source/values.ts'
import { accountConfig } from '../fixtures/account.ts'
import { type ApiServer, assetsMissing, startApiServer } from '../fixtures/apiserver.ts'
import { sampleApp, sampleLifecycle } from '../fixtures/app/samples.ts'
import { helm, helmMissing } from '../fixtures/helm.ts'
import { kubectlMissing } from '../fixtures/kubectl.ts'
import { skipFile } from '../fixtures/skip-file.ts'
import { folder, type Rendered } from './rendered.ts'

const namespace = 'shipmate-system'
const account = 'shipmate-controller'

skipFile(assetsMissing ?? kubectlMissing)

describe('what is shipped', { timeout: 120_000 }, () => {
  let server: ApiServer
  let access: Access
  let home: string

  beforeAll(async () => {
    server = await startApiServer()
    access = connect({ kubeconfig: { file: server.kubeconfig } })
    home = mkdtempSync(join(tmpdir(), 'shipmate-install-'))
  }, 120_000)
  afterAll(async () => {
    await access?.close()
    await server?.stop()
    if (home) rmSync(home, { recursive: true, force: true })
  })

  const ensure = async (...names: string[]) => {
    for (const name of names)
      if (!(await access.client.find(Namespace, { name })))
        await access.client.create(Namespace, { metadata: { name } })
  }
  const crds = async () =>
    (await access.client.list(CustomResourceDefinition)).map(({ metadata }) => metadata.name).sort()
  const own = ['lifecycles', 'operations', 'operationschedules', 'statefulapps'].map(name => `${name}.shipmate.dev`)

  describe.skipIf(helmMissing)(`by helm${helmMissing ? ` (skipped: ${helmMissing})` : ''}`, () => {
    const run = (...args: string[]) => helm([...args, '-n', namespace], { home, kubeconfig: server.kubeconfig })
    const chart = join(folder, 'chart')

    it('installs, upgrades, rolls back and uninstalls, and the CRDs stay with what is in them', async () => {
      await run('install', 'shipmate', chart, '--create-namespace')
      expect(await crds()).toEqual(own)
      await vi.waitFor(() => access.client.list(Lifecycle), { timeout: 30_000 })
      await access.client.create(Lifecycle, { metadata: { name: 'kept', namespace }, spec: sampleLifecycle() as never })

      const replicas = async () => (await access.client.get(Deployment, { name: account, namespace })).spec?.replicas
      expect(await replicas()).toBe(2)
      await run('upgrade', 'shipmate', chart, '--set', 'replicas=3')
      expect(await replicas()).toBe(3)
      await run('rollback', 'shipmate', '1')
      expect(await replicas()).toBe(2)

      await run('uninstall', 'shipmate')
      expect(await crds()).toEqual(own)
      expect(await access.client.find(Deployment, { name: account, namespace })).toBeUndefined()
      expect(await access.client.find(Lifecycle, { name: 'kept', namespace })).toBeDefined()
    })

    it('installs again over the CRDs that stayed', async () => {
      await run('install', 'shipmate', chart)
      await run('uninstall', 'shipmate')
      expect(await access.client.find(Lifecycle, { name: 'kept', namespace })).toBeDefined()
    })
  })

  it('kubectl applies the kustomization, with strict validation, and a second time nothing is written', async () => {
    const apply = () => server.kubectl('apply', '--validate=strict', '-k', folder)
    await apply()
    await vi.waitFor(() => Promise.all([Lifecycle, StatefulApp].map(kind => access.client.list(kind as Kind))), {
      timeout: 30_000,
    })
    const versions = async () => {
      const all = plainObjects() as Rendered[]
      return Promise.all(
        all.map(async ({ kind, metadata: { name, namespace } }) => {
          const known = Object.values(kinds).find(one => one.kind === kind) as Kind
          return `${kind} ${name} ${(await access.client.get(known, { name, namespace })).metadata.resourceVersion}`
        }),
      )
    }
    const before = await versions()
    expect(before.length).toBeGreaterThan(12)
    await apply()
    expect(await versions()).toEqual(before)
  })

  it('kubectl finds nothing to change in install.yaml then', async () => {
    const said = await server.kubectl('diff', '-f', join(folder, 'install.yaml'))
    expect(said).toBe('')
  })

  it('gives the namespace restricted pod security', async () => {
    const { metadata } = await access.client.get(Namespace, { name: namespace })
    expect(metadata.labels).toMatchObject({ 'pod-security.kubernetes.io/enforce': 'restricted' })
  })

  describe('the controller under the shipped rights', () => {
    /** The account with what some values give it, and with nothing else: whatever was bound before is taken away. */
    async function grant(watchNamespaces: string[]): Promise<void> {
      const { client } = access
      const mine = [kinds.ClusterRoleBinding, kinds.RoleBinding] as Kind[]
      for (const kind of mine)
        for (const { metadata } of await client.list(kind))
          if (metadata.name.startsWith(account)) await client.delete(kind, metadata)
      for (const object of plainObjects(valuesSchema.parse({ watchNamespaces }), ['account']) as Rendered[]) {
        const kind = Object.values(kinds).find(one => one.kind === object.kind) as Kind
        await client.apply(kind, object as never)
      }
    }

    async function may(verb: string, resource: string, where: string, group = ''): Promise<boolean> {
      const spec = {
        user: `system:serviceaccount:${namespace}:${account}`,
        groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
        resourceAttributes: { verb, resource, group, namespace: where },
      }
      const { status } = await access.client.create(SubjectAccessReview, { metadata: {}, spec } as never)
      return status?.allowed ?? false
    }

    it.each([
      { watched: [] as string[], name: 'everywhere' },
      { watched: ['watched-a', 'watched-b'], name: 'in some namespaces' },
    ])('looks after apps $name, and nothing is refused', async ({ watched }) => {
      const { client } = access
      await ensure('watched-a', 'watched-b', 'elsewhere')
      await grant(watched)
      const file = join(home, 'account')
      writeFileSync(file, await accountConfig(access, { name: account, namespace }))
      const refused: string[] = []
      const seen: Interceptor = next => async request => {
        const response = await next(request)
        if (response.status === 403) refused.push(`${request.method} ${JSON.stringify(request.target)}`)
        return response
      }
      const manager = createManager({
        ...{ name: account, kubeconfig: { file }, signals: false, gracePeriod: 2000, interceptors: [seen] },
        ...(watched.length > 0 && { namespaces: watched }),
        leaderElection: { name: account, namespace },
        log: { level: 'silent' },
      })
      addShipmate(manager, { namespace })
      const done = manager.start()
      try {
        const place = {
          namespace: 'watched-a',
          name: `app-${watched.length}`,
          lifecycle: `life-${watched.length}`,
          replicas: 1,
        }
        const life = { name: place.lifecycle, namespace: place.namespace }
        await client.create(Lifecycle, { metadata: life, spec: sampleLifecycle() as never })
        await client.create(StatefulApp, sampleApp(place, {}) as never)
        await vi.waitFor(
          async () => {
            const { status } = await client.get(StatefulApp, place)
            expect(status?.conditions?.length, JSON.stringify({ status, refused })).toBeGreaterThan(0)
            const { namespace } = place
            expect(
              await client.find(ConfigMap, { name: `shipmate-lifecycle-${place.lifecycle}`, namespace }),
            ).toBeDefined()
            expect(await client.find(Secret, { name: `shipmate-tls-${place.name}`, namespace })).toBeDefined()
          },
          { timeout: 60_000, interval: 100 },
        )
        expect((await client.get(Lease, { name: account, namespace })).spec?.holderIdentity).toBeTruthy()
        expect(await client.find(Secret, { name: 'shipmate-root', namespace })).toBeDefined()
      } finally {
        await manager.stop()
        await done
      }
      expect(refused).toEqual([])
    })

    it('reaches no namespace that it does not watch, its own neither', async () => {
      await grant(['watched-a'])
      expect(await may('list', 'secrets', 'watched-a')).toBe(true)
      for (const where of ['elsewhere', 'kube-system', namespace, ''])
        expect(await may('list', 'secrets', where), where).toBe(false)
      expect(await may('patch', 'statefulsets', 'elsewhere', 'apps')).toBe(false)
    })

    it('is no way to more rights', async () => {
      await grant([])
      for (const [verb, resource, group] of [
        ['create', 'pods', ''],
        ['create', 'pods/exec', ''],
        ['impersonate', 'users', ''],
        ['create', 'serviceaccounts/token', ''],
        ['patch', 'clusterroles', 'rbac.authorization.k8s.io'],
        ['create', 'rolebindings', 'rbac.authorization.k8s.io'],
        ['patch', 'nodes', ''],
        ['patch', 'customresourcedefinitions', 'apiextensions.k8s.io'],
        ['patch', 'mutatingwebhookconfigurations', 'admissionregistration.k8s.io'],
      ] as const)
        expect(await may(verb, resource, 'watched-a', group), `${verb} ${resource}`).toBe(false)
    })
  })

  it('every object that can be rendered is taken, the kinds of others aside', async () => {
    await ensure(namespace, 'watched-a')
    const values = valuesSchema.parse({
      webhooks: { enabled: true },
      shards: 3,
      watchNamespaces: ['watched-a'],
      pullSecrets: ['x'],
    })
    const file = join(home, 'all.json')
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: plainObjects(values) }))
    const args = ['apply', '--server-side', '--force-conflicts', '--dry-run=server', '--validate=strict', '-f', file]
    const said = await server.kubectl(...args)
    expect(said.trim().split('\n')).toHaveLength(plainObjects(values).length)
  })
})
