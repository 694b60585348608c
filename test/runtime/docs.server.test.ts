/**
 * docs/runtime.md shows an operator in under 40 lines. This runs it, as it stands there, as a program against a real
 * API server.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { type Access, connect } from '../../controller/kube/access.ts'
import { defineKind, type Live } from '../../controller/kube/kind.ts'
import {
  ClusterRoleBinding,
  CustomResourceDefinition,
  Deployment,
  Lease,
  ServiceAccount,
} from '../../controller/kube/kinds.ts'
import { accountConfig } from '../fixtures/account.ts'
import { kubectlMissing, kubectlPath } from '../fixtures/kubectl.ts'
import { skipFile } from '../fixtures/skip-file.ts'

skipFile(kubectlMissing)

const kubeconfig = inject('kubeconfig')
const root = join(import.meta.dirname, '../..')
const run = promisify(execFile)

const Website = defineKind<{ spec: { image: string; replicas: number }; status?: { ready?: number } }>({
  group: 'example.com',
  version: 'v1',
  kind: 'Website',
})
const hello = { name: 'hello', namespace: 'default' }

/** The blocks of a language on the page. */
async function blocks(language: string): Promise<string[]> {
  const page = await readFile(join(root, 'docs/runtime.md'), 'utf8')
  return [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
    .filter(([, name]) => name === language)
    .map(([, , text]) => text as string)
}

async function program(): Promise<string> {
  const found = (await blocks('ts')).find(block => block.includes('createManager'))
  if (!found) throw new Error('docs/runtime.md shows no operator: no ```ts block has createManager in it')
  return found
}

/** A document on the page that has `words` in it. */
async function manifest(words: string): Promise<string> {
  const found = (await blocks('yaml')).find(block => block.includes(words))
  if (!found) throw new Error(`docs/runtime.md has no \`\`\`yaml block with "${words}"`)
  return found
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}

describe.skipIf(!kubeconfig)('the operator in docs/runtime.md', () => {
  let folder: string
  let access: Access
  let port: number
  let account: string
  let operator: { process: ChildProcess; lines: string[] } | undefined

  beforeAll(async () => {
    access = connect({ kubeconfig: { file: kubeconfig } })
    // Inside of the package: so `shipmate/runtime` is this one, as built.
    await mkdir(join(root, '.cache'), { recursive: true })
    folder = await mkdtemp(join(root, '.cache/docs-'))
    port = await freePort()
    account = await accountOfThePage()
    await writeFile(join(folder, 'website.ts'), (await program()).replaceAll('8081', String(port)))
  })

  /** A kubeconfig of a service account that may do what the page's ClusterRole says, and nothing else. */
  async function accountOfThePage(): Promise<string> {
    const ref = { name: 'websites', namespace: 'default' }
    await kubectl(await manifest('kind: ClusterRole'))
    await access.client.apply(ServiceAccount, { metadata: ref })
    await access.client.apply(ClusterRoleBinding, {
      metadata: { name: 'websites' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'websites' },
      subjects: [{ kind: 'ServiceAccount', ...ref }],
    })
    const file = join(folder, 'kubeconfig')
    await writeFile(file, await accountConfig(access, ref))
    return file
  }

  afterEach(async () => {
    operator?.process.kill('SIGKILL')
    operator = undefined
  })

  afterAll(async () => {
    await access.client.delete(CustomResourceDefinition, { name: 'websites.example.com' }).catch(() => undefined)
    await access.client.delete(Deployment, hello).catch(() => undefined)
    await access.close()
    await rm(folder, { recursive: true, force: true })
  })

  function start() {
    const child = spawn(process.execPath, [join(folder, 'website.ts')], {
      env: { ...process.env, KUBECONFIG: account },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const lines: string[] = []
    for (const stream of [child.stdout, child.stderr])
      createInterface({ input: stream }).on('line', line => lines.push(line))
    operator = { process: child, lines }
    return operator
  }

  async function stop(): Promise<number | null> {
    if (!operator) throw new Error('the operator does not run')
    const { process } = operator
    const ended = process.exitCode === null ? once(process, 'exit') : [process.exitCode]
    process.kill('SIGTERM')
    const [code] = (await ended) as [number | null]
    expect(
      operator.lines.filter(line => /forbidden/i.test(line)),
      "what the page's ClusterRole lacks",
    ).toEqual([])
    operator = undefined
    return code
  }

  /** Waits for what is expected; if it does not come, what the operator said is part of the failure. */
  async function until(what: string, expectation: () => Promise<void>): Promise<void> {
    try {
      await vi.waitFor(expectation, { timeout: 40_000, interval: 100 })
    } catch (error) {
      const said = operator?.lines.slice(-20).join('\n')
      throw new Error(`expected: ${what}; the operator said:\n${said}`, { cause: error })
    }
  }

  const get = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, init)
  const deployment = () => access.client.get(Deployment, hello)

  async function kubectl(text: string): Promise<void> {
    const applying = run(kubectlPath, ['apply', '-f', '-'], {
      env: { ...process.env, KUBECONFIG: kubeconfig, HOME: folder },
    })
    applying.child.stdin?.end(text)
    await applying
  }

  test('has 40 lines at most', async () => {
    expect((await program()).trimEnd().split('\n').length).toBeLessThanOrEqual(40)
  })

  test('passes the type check, strictly, as a program of somebody else', async () => {
    const options = [
      '--noEmit',
      '--strict',
      '--module',
      'nodenext',
      '--target',
      'es2024',
      '--types',
      'node',
      '--skipLibCheck',
      'false',
    ]
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    const checked = run(process.execPath, [tsc, '--ignoreConfig', ...options, join(folder, 'website.ts')], {
      cwd: folder,
    })
    const complaints = await checked.then(
      () => '',
      error => String(error.stdout),
    )
    expect(complaints).toBe('')
  })

  test('makes, repairs and scales a Deployment, and says how many are ready', { timeout: 180_000 }, async () => {
    await kubectl(await manifest('kind: CustomResourceDefinition'))
    await until('the CRD is served', async () => void (await access.client.list(Website)))
    await kubectl(await manifest('kind: Website\nmetadata'))
    start()

    await until('a Deployment as the sample wishes it', async () => {
      const made = await deployment()
      expect(made.spec).toMatchObject({
        replicas: 2,
        template: { spec: { containers: [{ image: 'example.com/hello:1' }] } },
      })
      const website = await access.client.get(Website, hello)
      expect(made.metadata.ownerReferences).toMatchObject([
        { kind: 'Website', uid: website.metadata.uid, controller: true },
      ])
      expect(website.status).toEqual({ ready: 0 })
    })

    const { uid } = (await deployment()).metadata
    await access.client.delete(Deployment, hello)
    await until('another Deployment in the place of the deleted one', async () => {
      expect((await deployment()).metadata.uid).not.toBe(uid)
    })

    await access.client.patch(Website, hello, { merge: { spec: { replicas: 5 } } })
    await until('5 replicas', async () => expect((await deployment()).spec?.replicas).toBe(5))

    await access.client.patch(Deployment, hello, { merge: { spec: { replicas: 1 } } })
    await until('5 replicas again, after somebody else changed them', async () => {
      expect((await deployment()).spec?.replicas).toBe(5)
    })

    await access.client.patch(
      Deployment,
      hello,
      { merge: { status: { replicas: 5, readyReplicas: 4 } } },
      { subresource: 'status' },
    )
    await until('4 ready ones in the status', async () => {
      expect((await access.client.get(Website, hello)).status?.ready).toBe(4)
    })
    expect(await stop(), 'its exit code').toBe(0)
  })

  test('serves health and metrics, changes its log level, and stops when asked to', { timeout: 180_000 }, async () => {
    const before = await versions()
    const { lines } = start()
    await until('/readyz is ok', async () => expect((await get('/readyz')).status).toBe(200))
    await until('it has looked after the sample', async () => {
      const metrics = await (await get('/metrics')).text()
      expect(metrics).toMatch(/^controller_runtime_reconcile_total\{controller="website",result="success"\} [1-9]/m)
    })
    expect(await versions(), 'a restart writes nothing').toEqual(before)

    expect(
      lines.some(line => line.includes('"reconciling"')),
      'debug lines before anyone asked for them',
    ).toBe(false)
    expect((await get('/log-level', { method: 'PUT', body: 'debug' })).status).toBe(200)
    await access.client.patch(Website, hello, { merge: { metadata: { labels: { touched: 'yes' } } } })
    await until('a debug line that says why', async () => {
      expect(lines.find(line => line.includes('"reconciling"'))).toContain('Website default/hello changed')
    })

    expect(await stop(), 'its exit code').toBe(0)
    const lease = await access.client.get(Lease, { name: 'websites', namespace: 'default' })
    expect(lease.spec?.holderIdentity, 'who holds the lease').toBe('')
  })

  /** What the operator could write, by version. */
  async function versions() {
    const [website, there] = await Promise.all([access.client.get(Website, hello), deployment()])
    return [website, there].map((object: Live) => object.metadata.resourceVersion)
  }
})
