/**
 * A real API server for a test: etcd and kube-apiserver from `KUBEBUILDER_ASSETS`, as `setup-envtest use -p path` prints it, with the controllers of the embedded
 * cluster as its clients.
 *
 * Guarantee: processes and files go with this process, however it ends.
 */
import { generateKeyPairSync } from 'node:crypto'
import { openSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { connect } from '../../controller/kube/access.ts'
import { type Authority, createAuthority } from '../api/certificates.ts'
import { kubeconfigText } from '../api/kubeconfig.ts'
import { admin } from '../api/send.ts'
import type { User } from '../api/types.ts'
import type { ControllerName } from '../controllers/start.ts'
import { createKeeper, type Keeper } from '../node/keeper.ts'
import { type Server, startFew } from './server.ts'

const patience = 60_000

export async function startReal(options: {
  readonly controllers: readonly ControllerName[] | boolean
}): Promise<Server> {
  const assets = process.env.KUBEBUILDER_ASSETS
  if (!assets) throw new Error('KUBEBUILDER_ASSETS is not set: `setup-envtest use -p path` prints a folder for it')
  for (let tries = 1; ; tries++) {
    try {
      return await start(assets, options.controllers)
    } catch (error) {
      // Between choosing a free port and listening on it somebody else may have taken it.
      if (tries === 3 || !/address already in use/.test(String(error))) throw error
    }
  }
}

async function start(assets: string, controllers: readonly ControllerName[] | boolean): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), 'shipmate-testing-'))
  const keeper = createKeeper(folder, true)
  const closing: (() => Promise<unknown>)[] = []
  const stop = async () => {
    for (const close of closing.toReversed()) await close()
    await keeper.stop()
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const authority = createAuthority(Date.now())
    const [port, etcdPort] = await Promise.all([freePort(), freePort()])
    const url = `https://127.0.0.1:${port}`
    await writeFiles(folder, authority)
    const failed = spawnServers(keeper, assets, folder, port, etcdPort)
    const text = (user: User = admin) => {
      const groups = user.groups.filter(group => group !== 'system:authenticated')
      return kubeconfigText({ url, ca: authority.cert, name: user.name, ...authority.client(user.name, groups) })
    }
    await untilReady(url, authority, failed)
    let files = 0
    const fileOf = (content: string) => {
      const file = join(folder, `kubeconfig-${++files}`)
      writeFileSync(file, content, { mode: 0o600 })
      return { kubeconfig: { file } }
    }
    const access = fileOf(text())
    const own = connect(access)
    closing.push(() => own.close())
    const few = await startFew(controllers, access)
    if (few) closing.push(() => few.stop())
    return {
      client: own.client,
      access,
      clientFor(user) {
        const theirs = connect(fileOf(text(user)))
        closing.push(() => theirs.close())
        return theirs.client
      },
      async accessFor(account) {
        const { token } = await own.client.token(account)
        const config = JSON.parse(text()) as { users: { user: object }[] }
        for (const entry of config.users) entry.user = { token }
        return fileOf(JSON.stringify(config))
      },
      kubeconfig: async user => text(user),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

async function writeFiles(folder: string, authority: Authority): Promise<void> {
  const serving = authority.server(['localhost', 'kubernetes', 'kubernetes.default.svc'], ['127.0.0.1', '10.0.0.1'])
  const files = {
    'ca.crt': authority.cert,
    'serving.crt': serving.cert,
    'serving.key': serving.key,
    'accounts.key': newSigningKey(),
  }
  await mkdir(join(folder, 'etcd'), { mode: 0o700 })
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 })
}

/** Answers how to learn that one of them has ended, and why. */
function spawnServers(
  keeper: Keeper,
  assets: string,
  folder: string,
  port: number,
  etcdPort: number,
): () => Promise<string | undefined> {
  let failure: (() => Promise<string>) | undefined
  const run = (name: string, flags: Record<string, string>) => {
    const path = join(folder, `${name}.log`)
    const log = openSync(path, 'w')
    const given = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`)
    const child = keeper.spawn(join(assets, name), given, { cwd: folder, stdio: ['ignore', log, log] })
    const end = (how: string) => async () =>
      `${name} ${how}:\n${(await readFile(path, 'utf8').catch(() => '')).split('\n').slice(-20).join('\n')}`
    child.once('error', error => {
      failure = end(`cannot be started: ${error.message}`)
    })
    child.once('exit', (code, signal) => {
      failure = end(`ended (${signal ?? code})`)
    })
  }
  const etcdUrl = `http://127.0.0.1:${etcdPort}`
  run('etcd', {
    ...{ 'data-dir': 'etcd', 'unsafe-no-fsync': 'true', 'log-level': 'warn' },
    ...{ 'listen-client-urls': etcdUrl, 'advertise-client-urls': etcdUrl },
    // One member has no peers, so any port will do.
    'listen-peer-urls': 'http://127.0.0.1:0',
  })
  run('kube-apiserver', {
    ...{ 'etcd-servers': etcdUrl, 'bind-address': '127.0.0.1', 'advertise-address': '127.0.0.1' },
    ...{ 'secure-port': String(port), 'tls-cert-file': 'serving.crt', 'tls-private-key-file': 'serving.key' },
    ...{ 'client-ca-file': 'ca.crt', 'service-account-issuer': 'https://kubernetes.default.svc' },
    ...{ 'service-account-key-file': 'accounts.key', 'service-account-signing-key-file': 'accounts.key' },
    ...{ 'service-cluster-ip-range': '10.0.0.0/24', 'authorization-mode': 'RBAC' },
    // Pods of a test need no account.
    'disable-admission-plugins': 'ServiceAccount',
    ...{ 'endpoint-reconciler-type': 'none', 'allow-privileged': 'true', profiling: 'false' },
  })
  return async () => failure?.()
}

async function untilReady(url: string, authority: Authority, failed: () => Promise<string | undefined>): Promise<void> {
  const end = performance.now() + patience
  const { cert, key } = authority.client('admin', ['system:masters'])
  const isReady = () =>
    new Promise<boolean>(resolve => {
      const asked = request(`${url}/readyz`, { ca: authority.cert, cert, key, agent: false, timeout: 5000 }, answer => {
        answer.resume()
        resolve(answer.statusCode === 200)
      })
      asked.on('timeout', () => asked.destroy())
      asked.on('error', () => resolve(false))
      asked.end()
    })
  while (!(await isReady())) {
    const why = await failed()
    if (why !== undefined) throw new Error(why)
    if (performance.now() > end) throw new Error(`kube-apiserver was not ready within ${patience / 1000} s`)
    await wait(50)
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}

/** With which the server signs the tokens of service accounts. */
function newSigningKey(): string {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}
