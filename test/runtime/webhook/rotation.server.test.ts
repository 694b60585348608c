/**
 * Certificates of webhooks on an API server: made once by several replicas, renewed under a stream of calls, healed, or taken from files.
 */
import { randomUUID, X509Certificate } from 'node:crypto'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, inject, onTestFinished, test, vi } from 'vitest'
import { type Access, connect } from '../../../controller/kube/access.ts'
import { ConfigMap, Namespace, Secret, ValidatingWebhookConfiguration } from '../../../controller/kube/kinds.ts'
import {
  addWebhooks,
  createManager,
  type Manager,
  registrationsOf,
  validating,
  type WebhookOptions,
} from '../../../controller/runtime/index.ts'
import { createAuthority, issue } from '../../../shared/authority.ts'
import { freePort } from '../../fixtures/free-port.ts'

const kubeconfig = inject('kubeconfig')
const namespace = `rotation-${randomUUID().slice(0, 8)}`
const name = namespace
const secret = { name: `${name}-webhook-tls`, namespace }
const waiting = { timeout: 30_000 }

/** Refuses what has the name `no`, in this namespace alone. */
const hook = validating({
  ...{ name: `no.${namespace}.example.com`, path: '/no' },
  rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
  handle: async ({ name: asked }) => (asked === 'no' ? { problems: [{ message: 'no means no' }] } : undefined),
})

let access: Access
const managers: Manager[] = []

/** A replica. @param port on which the API server finds it */
function replica(port: number, options: Partial<WebhookOptions> = {}): Manager {
  const manager = createManager({
    ...{ name, kubeconfig: { file: kubeconfig }, signals: false, log: { level: 'silent' } },
    health: { host: '127.0.0.1', port: 0 },
  })
  addWebhooks(manager, {
    ...{ hooks: [hook], name, listen: { host: '127.0.0.1', port }, place: { url: `https://127.0.0.1:${port}` } },
    ...{ secret: { namespace }, linger: 0 },
    ...options,
  })
  managers.push(manager)
  void manager.start()
  return manager
}

async function readyz({ addresses: [health] }: Manager): Promise<string> {
  return (await fetch(`http://127.0.0.1:${health?.port}/readyz?verbose`)).text()
}

async function register(port: number, caBundle?: string): Promise<void> {
  const [one] = registrationsOf([hook], name, { url: `https://127.0.0.1:${port}` })
  const { webhooks = [], ...rest } = (one?.object ?? {}) as { webhooks?: { clientConfig: object }[] }
  const [webhook] = webhooks
  const clientConfig = { ...webhook?.clientConfig, ...(caBundle !== undefined && { caBundle }) }
  await access.client.apply(ValidatingWebhookConfiguration, {
    ...rest,
    webhooks: [{ ...webhook, clientConfig }],
  } as never)
}

const ask = (asked: string) =>
  access.client.create(ConfigMap, { metadata: { name: asked, namespace } }, { dryRun: true }).then(
    () => 'allowed',
    (error: Error) => error.message,
  )
const untilAsked = () => vi.waitFor(async () => expect(await ask('no')).toContain('no means no'), waiting)

const authoritiesIn = (text = '') =>
  Buffer.from(text, 'base64')
    .toString()
    .match(/-----BEGIN/g)?.length ?? 0
const bundle = async () => {
  const { webhooks: [webhook] = [] } = await access.client.get(ValidatingWebhookConfiguration, { name })
  return webhook?.clientConfig.caBundle
}
const serialOf = (cert = '') => new X509Certificate(Buffer.from(cert, 'base64')).serialNumber

beforeAll(async () => {
  access = connect({ kubeconfig: { file: kubeconfig } })
  await access.client.create(Namespace, { metadata: { name: namespace } })
})
afterEach(async () => {
  await access.client.delete(ValidatingWebhookConfiguration, { name }).catch(() => undefined)
  await Promise.all(managers.splice(0).map(manager => manager.stop()))
  await access.client.delete(Secret, secret).catch(() => undefined)
})
afterAll(() => access.close())

test('replicas that start at once agree on one authority, which the API server believes', async () => {
  const ports = await Promise.all([freePort(), freePort(), freePort()])
  await register(ports[0] as number)
  const started = ports.map(port => replica(port))
  for (const one of started)
    await vi.waitFor(async () => expect(await readyz(one)).toContain('[+]webhooks ok'), waiting)
  const { data = {}, metadata } = await access.client.get(Secret, secret)
  expect(authoritiesIn(data['ca.crt'])).toBe(1)
  await vi.waitFor(async () => expect(await bundle()).toBe(data['ca.crt']), waiting)
  // Each replica serves with the one certificate.
  for (const port of ports) {
    await register(port as number, data['ca.crt'])
    await untilAsked()
  }
  expect((await access.client.get(Secret, secret)).metadata.resourceVersion).toBe(metadata.resourceVersion)
})

test('a certificate is renewed again and again without one failed call', { timeout: 120_000 }, async () => {
  const port = await freePort()
  await register(port)
  const lifetimes = { certificate: 12_000, propagation: 1000, skew: 60_000 }
  replica(port, { lifetimes })
  replica(await freePort(), { lifetimes })
  await untilAsked()
  const seen = new Set<string>()
  const most = { authorities: 0 }
  const wrong: string[] = []
  let calls = 0
  let isOver = false
  const stream = async () => {
    while (!isOver) {
      const [no, yes] = [await ask('no'), await ask('yes')]
      if (!no.includes('no means no')) wrong.push(no)
      if (yes !== 'allowed') wrong.push(yes)
      calls += 2
    }
  }
  const streams = [stream(), stream()]
  await vi.waitFor(
    async () => {
      const { data = {} } = await access.client.get(Secret, secret)
      seen.add(serialOf(data['tls.crt']))
      most.authorities = Math.max(most.authorities, authoritiesIn(await bundle()))
      expect(seen.size, 'two renewals').toBeGreaterThan(2)
    },
    { timeout: 90_000, interval: 200 },
  )
  isOver = true
  await Promise.all(streams)
  expect(wrong).toEqual([])
  expect(calls).toBeGreaterThan(50)
  expect(most.authorities, 'the old and the new').toBe(2)
})

test.each([
  ['deleted', () => access.client.delete(Secret, secret)],
  [
    'garbled',
    () => access.client.patch(Secret, secret, { merge: { data: { 'tls.crt': btoa('garbage'), 'ca.crt': '' } } }),
  ],
])(
  'a Secret that is %s is made anew, with the certificate in use and a successor, and no call fails',
  async (_, harm) => {
    const port = await freePort()
    await register(port)
    replica(port, { lifetimes: { propagation: 1000 } })
    await untilAsked()
    const { data: before = {} } = await access.client.get(Secret, secret)
    await harm()
    const healed = await vi.waitFor(async () => {
      const { data = {} } = await access.client.get(Secret, secret)
      expect(data['tls.crt']).toBe(before['tls.crt'])
      expect(data['next.crt']).toBeTruthy()
      return data
    }, waiting)
    await vi.waitFor(async () => {
      expect(await ask('no')).toContain('no means no')
      const { data = {} } = await access.client.get(Secret, secret)
      expect(data['tls.crt'], 'the successor').toBe(healed['next.crt'])
      expect(authoritiesIn(data['ca.crt']), 'the one before is dropped').toBe(1)
      expect(await bundle()).toBe(data['ca.crt'])
    }, waiting)
    expect(await ask('no')).toContain('no means no')
  },
)

test('a certificate from files is taken up when they change, and neither Secret nor bundle is written', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'shipmate-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const span = { from: Date.now() - 60_000, until: Date.now() + 3_600_000 }
  const authorities = [createAuthority(span), createAuthority(span)]
  const pairs = authorities.map(one => issue(one, 'server', { addresses: ['127.0.0.1'] }, span))
  const write = (file: string, text = '') => {
    writeFileSync(join(folder, `.${file}`), text)
    renameSync(join(folder, `.${file}`), join(folder, file))
  }
  const port = await freePort()
  const both = Buffer.from(authorities.map(({ cert }) => cert).join('')).toString('base64')
  await register(port, both)
  const manager = replica(port, { certDir: folder, certDirEvery: 20 })
  await vi.waitFor(
    async () => expect(await readyz(manager)).toContain(`the certificate in ${folder} cannot be used`),
    waiting,
  )
  const served = async () => {
    const { connect: dial } = await import('node:tls')
    return new Promise<string>((resolve, reject) => {
      const socket = dial({ host: '127.0.0.1', port, ca: authorities.map(({ cert }) => cert) }, () => {
        resolve(socket.getPeerCertificate().serialNumber)
        socket.destroy()
      }).on('error', reject)
    })
  }
  write('tls.key', pairs[0]?.key)
  write('tls.crt', pairs[0]?.cert)
  await vi.waitFor(async () => expect(await readyz(manager)).toContain('[+]webhooks ok'), waiting)
  await untilAsked()
  // Half of a change is none.
  write('tls.key', pairs[1]?.key)
  expect(await ask('no')).toContain('no means no')
  write('tls.crt', pairs[1]?.cert)
  const serial = new X509Certificate(pairs[1]?.cert ?? '').serialNumber
  await vi.waitFor(async () => expect(await served()).toBe(serial), waiting)
  expect(await ask('no')).toContain('no means no')
  expect(await access.client.find(Secret, secret)).toBeUndefined()
  expect(await bundle()).toBe(both)
})
