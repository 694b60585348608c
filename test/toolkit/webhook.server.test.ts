/**
 * `default`, `validate` and `convert` of a definition, asked by an API server: what people see of them.
 */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { type Access, connect } from '../../controller/kube/access.ts'
import { Invalid } from '../../controller/kube/errors.ts'
import type { Live } from '../../controller/kube/kind.ts'
import {
  ClusterRole,
  ClusterRoleBinding,
  CustomResourceDefinition,
  MutatingWebhookConfiguration,
  Namespace,
  Role,
  RoleBinding,
  Secret,
  ServiceAccount,
  ValidatingWebhookConfiguration,
} from '../../controller/kube/kinds.ts'
import { type Manager, registrationsOf } from '../../controller/runtime/index.ts'
import {
  advancedReconciler,
  type CustomResource,
  defineCustomResource,
  managerFor,
  type ResourceOf,
  type RunOptions,
  rbacManifests,
  rbacOf,
} from '../../controller/toolkit/index.ts'
import { accountConfig } from '../fixtures/account.ts'
import { freePort } from '../fixtures/free-port.ts'
import { kubectlMissing, kubectlPath, needsKubectl } from '../fixtures/kubectl.ts'

const kubeconfig = inject('kubeconfig')
const namespace = `webhooks-${randomUUID().slice(0, 8)}`
const group = `${namespace}.example.com`
const loopback = { host: '127.0.0.1', port: 0 }
const here = {
  listen: loopback,
  place: (port: number) => ({ url: `https://127.0.0.1:${port}` }),
  linger: 0,
  secret: { namespace },
}

const Fleet = defineCustomResource({
  ...{ group, version: 'v1', kind: 'Fleet' },
  spec: z.object({ ships: z.array(z.string()).default([]), flagship: z.string().optional(), size: z.int().optional() }),
  default({ spec }) {
    const [first] = spec.ships
    if (first !== undefined) spec.flagship ??= first
  },
  validate({ object: { spec }, old, user, warn }) {
    if (spec.ships.length > 2) warn(`${spec.ships.length} ships are many for ${user.name}`)
    const { flagship } = spec
    return [
      ...(flagship !== undefined && !spec.ships.includes(flagship)
        ? [{ field: 'spec.flagship', message: `has to be one of spec.ships: ${spec.ships.join(', ')}` }]
        : []),
      ...(old && old.spec.ships.length > spec.ships.length
        ? [{ field: 'spec.ships', message: `may not become fewer than ${old.spec.ships.length}` }]
        : []),
      ...(spec.size === 13 ? ['a fleet of 13 does not sail'] : []),
    ]
  },
})

const ConvoyBefore = {
  ...{ group, version: 'v1alpha1', kind: 'Convoy' },
  spec: z.object({ ships: z.string().optional() }),
}
const Convoy1 = defineCustomResource({ ...ConvoyBefore, storage: false })
type Convoy1 = Live<ResourceOf<typeof Convoy1>>

/** What the old version has no field for. */
const kept = 'example.com/flagship'

const Convoy = defineCustomResource({
  ...{ group, version: 'v1', kind: 'Convoy', versions: [Convoy1] },
  spec: z.object({ ships: z.array(z.string()).default([]), flagship: z.string().optional() }),
  convert: {
    v1alpha1: {
      up({ spec, metadata: { annotations = {} } }: Convoy1) {
        const { [kept]: flagship, ...others } = annotations
        if (spec.ships === '!') throw new Error('"!" is no ship')
        const ships = spec.ships?.split(' ') ?? []
        return { spec: flagship === undefined ? { ships } : { ships, flagship }, annotations: others }
      },
      down({ spec, metadata: { annotations = {} } }) {
        const { ships, flagship } = spec
        return {
          spec: { ships: ships.join(' ') },
          annotations: flagship === undefined ? annotations : { ...annotations, [kept]: flagship },
        }
      },
    },
  },
})

const operator = advancedReconciler(Fleet, { name: namespace })

let access: Access
const managers: Manager[] = []

/** An operator as a process, ready. */
async function start(one: typeof operator, options: RunOptions = {}): Promise<Manager> {
  const manager = managerFor(one, {
    kubeconfig: { file: kubeconfig },
    ...{ election: false, health: loopback, metrics: undefined, signals: false, log: { level: 'silent' } },
    ...options,
  })
  managers.push(manager)
  void manager.start()
  await vi.waitFor(async () => expect(await readyz(manager)).toBe('ok\n'), waiting)
  return manager
}

async function readyz({ addresses: [health] }: Manager): Promise<string> {
  return (await fetch(`http://127.0.0.1:${health?.port}/readyz`)).text()
}

const waiting = { timeout: 30_000 }

/** Until the API server asks them: what no validation lets pass is refused. */
async function untilAsked(): Promise<void> {
  await vi.waitFor(async () => {
    const answer = await create({ size: 13 }, { dryRun: true }).catch((error: unknown) => error)
    expect(String(answer)).toContain('does not sail')
    expect((await create({ ships: ['Ada'] }, { dryRun: true })).spec.flagship).toBe('Ada')
  }, waiting)
}

async function established(crd: ReturnType<CustomResource['crd']>): Promise<void> {
  await access.client.apply(CustomResourceDefinition, crd)
  await vi.waitFor(async () => {
    const { status } = await access.client.get(CustomResourceDefinition, crd.metadata)
    expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'Established', status: 'True' }))
  }, waiting)
}

const unique = () => `fleet-${randomUUID().slice(0, 8)}`
const create = (spec: object, options = {}, metadata: object = {}) =>
  access.client.create(Fleet, { metadata: { name: unique(), namespace, ...metadata }, spec: spec as never }, options)

beforeAll(async () => {
  access = connect({ kubeconfig: { file: kubeconfig } })
  await access.client.create(Namespace, { metadata: { name: namespace } })
  await established(Fleet.crd())
})
afterEach(async () => {
  await Promise.all(managers.splice(0).map(manager => manager.stop()))
  for (const kind of [MutatingWebhookConfiguration, ValidatingWebhookConfiguration])
    await access.client.delete(kind, { name: namespace }).catch(() => undefined)
})
afterAll(async () => {
  for (const kind of [Fleet, Convoy]) await access.client.delete(CustomResourceDefinition, kind.crd().metadata)
  await access.close()
})

describe('an operator whose definition has default and validate', () => {
  const register = { webhooks: { ...here, register: true } }

  test('fills in, and refuses with field, value and what is accepted', async () => {
    await start(operator, register)
    await untilAsked()
    const made = await create({ ships: ['Ada', 'Bea'] })
    expect(made.spec).toEqual({ ships: ['Ada', 'Bea'], flagship: 'Ada' })
    const refused = await create({ ships: ['Ada'], flagship: 'Cleo', size: 13 }).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(Invalid)
    expect((refused as Error).message).toContain(
      'spec.flagship is "Cleo", but has to be one of spec.ships: Ada; a fleet of 13 does not sail',
    )
    const fewer = { merge: { spec: { ships: ['Ada'] } } }
    await expect(access.client.patch(Fleet, made.metadata, fewer)).rejects.toThrow(
      'spec.ships is ["Ada"], but may not become fewer than 2',
    )
  })

  test('leaves what the schema refuses to the server, although its default cannot cope with it', async () => {
    await start(operator, register)
    await untilAsked()
    await expect(create({ ships: null, size: 'large' })).rejects.toThrow(/spec.size: Invalid value: "string"/)
  })

  test('is not in the way of a status, of finalizers and of deletion', async () => {
    const old = await create({ size: 13 }, {}, { finalizers: ['example.com/held'] })
    await start(operator, register)
    await untilAsked()
    const { client } = access
    const ready = {
      type: 'Told',
      status: 'True',
      reason: 'Told',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    }
    await client.patch(Fleet, old.metadata, { merge: { status: { conditions: [ready] } } }, { subresource: 'status' })
    const release = { merge: { metadata: { finalizers: null } } }
    await expect(client.patch(Fleet, old.metadata, release)).rejects.toThrow('does not sail')
    await client.delete(Fleet, old.metadata)
    await client.patch(Fleet, old.metadata, release)
    expect(await client.find(Fleet, old.metadata)).toBeUndefined()
  })

  test.skipIf(kubectlMissing)(`reads well in kubectl${needsKubectl}`, async () => {
    await start(operator, register)
    await untilAsked()
    const folder = mkdtempSync(join(tmpdir(), 'shipmate-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const name = unique()
    const file = join(folder, 'fleet.json')
    const ask = (verb: string, spec: object) => {
      const object = { apiVersion: `${group}/v1`, kind: 'Fleet', metadata: { name, namespace }, spec }
      writeFileSync(file, JSON.stringify(object))
      return run(verb, '-f', file)
    }
    const run = async (...args: string[]) => {
      const options = { env: { ...process.env, KUBECONFIG: kubeconfig } }
      const { stdout, stderr } = await promisify(execFile)(kubectlPath, args, options).catch(
        (error: { stdout: string; stderr: string }) => error,
      )
      return stdout + stderr
    }
    expect(await ask('create', { ships: ['Ada'], flagship: 'Cleo', size: 13 })).toBe(
      `The Fleet "${name}" is invalid: \n` +
        '* spec.flagship: Invalid value: "Cleo": has to be one of spec.ships: Ada\n' +
        '* object: a fleet of 13 does not sail\n',
    )
    expect(await ask('create', { ships: ['Ada', 'Bea', 'Cleo'] })).toBe(
      `fleet.${group}/${name} created\nWarning: 3 ships are many for admin\n`,
    )
    expect(await ask('replace', { ships: ['Ada'] })).toBe(
      `The Fleet "${name}" is invalid: spec.ships: Invalid value: ["Ada"]: may not become fewer than 3\n`,
    )
  })

  test('needs no more than the rules that follow from its definition, where others have registered it', async () => {
    const { client } = access
    const server = await freePort()
    const url = `https://127.0.0.1:${server}`
    for (const { kind, object } of registrationsOf(Fleet.webhooks, namespace, { url }))
      await client.create(kind, object)
    const kinds = [ServiceAccount, ClusterRole, ClusterRoleBinding, Role, RoleBinding]
    for (const object of rbacManifests(rbacOf([operator]), { name: namespace, namespace })) {
      const kind = kinds.find(one => one.kind === (object as { kind: string }).kind)
      await client.apply(kind as typeof ServiceAccount, object as never)
    }
    const file = join(mkdtempSync(join(tmpdir(), 'shipmate-')), 'kubeconfig')
    onTestFinished(() => rmSync(file))
    writeFileSync(file, await accountConfig(access, { name: namespace, namespace }))
    await start(operator, {
      kubeconfig: { file },
      webhooks: { ...here, listen: { host: '127.0.0.1', port: server }, place: { url } },
    })
    await untilAsked()
    const { data = {}, type } = await client.get(Secret, { name: `${namespace}-webhook-tls`, namespace })
    expect([type, Object.keys(data).sort()]).toEqual(['kubernetes.io/tls', ['ca.crt', 'tls.crt', 'tls.key']])
    // And a bundle that somebody garbles is put right.
    const { webhooks: [hook] = [] } = await client.get(ValidatingWebhookConfiguration, { name: namespace })
    const garbled = { op: 'replace', path: '/webhooks/0/clientConfig/caBundle', value: data['tls.crt'] } as const
    await client.patch(ValidatingWebhookConfiguration, { name: namespace }, { json: [garbled] })
    await vi.waitFor(async () => {
      const { webhooks: [again] = [] } = await client.get(ValidatingWebhookConfiguration, { name: namespace })
      expect(again?.clientConfig.caBundle).toBe(hook?.clientConfig.caBundle)
    }, waiting)
  })
})

describe('a kind whose stored version changes', () => {
  test('is read and written in both, before and after', async () => {
    const { client } = access
    // The first life: one version, which is stored.
    await established(defineCustomResource({ ...ConvoyBefore, storage: true }).crd())
    const at = { name: 'first', namespace }
    await client.create(Convoy1, { metadata: at, spec: { ships: 'Ada Bea' } })
    const started = start(advancedReconciler(Convoy, { name: namespace }) as never, {
      webhooks: { ...here, register: true },
    })
    await client.apply(CustomResourceDefinition, Convoy.crd())
    await started

    await vi.waitFor(async () => expect((await client.get(Convoy, at)).spec.ships).toEqual(['Ada', 'Bea']), waiting)
    expect((await client.get(Convoy1, at)).spec).toEqual({ ships: 'Ada Bea' })
    const named = await client.patch(Convoy, at, { merge: { spec: { flagship: 'Bea' } } })
    expect(named.spec).toEqual({ ships: ['Ada', 'Bea'], flagship: 'Bea' })
    // By way of the old version nothing of the new is lost.
    await client.patch(Convoy1, at, { merge: { spec: { ships: 'Ada Bea Cleo' } } })
    expect((await client.get(Convoy, at)).spec).toEqual({ ships: ['Ada', 'Bea', 'Cleo'], flagship: 'Bea' })
    await client.create(Convoy, { metadata: { name: 'second', namespace }, spec: { ships: ['Dot'] } })
    const all = await client.list(Convoy1, { namespace })
    expect(all.map(({ metadata, spec }) => [metadata.name, spec.ships])).toEqual([
      ['first', 'Ada Bea Cleo'],
      ['second', 'Dot'],
    ])
    await expect(
      client.create(Convoy1, { metadata: { name: 'third', namespace }, spec: { ships: '!' } }),
    ).rejects.toThrow(
      `Convoy ${namespace}/third cannot be converted from ${group}/v1alpha1 to ${group}/v1: "!" is no ship`,
    )
    expect((await client.get(CustomResourceDefinition, Convoy.crd().metadata)).status?.storedVersions).toEqual([
      'v1alpha1',
      'v1',
    ])
  })
})
