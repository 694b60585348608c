/**
 * docs/tutorial.md, done as it says, with an API server: its files are written as they stand there, and run under the rules that they generate.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { type Access, connect } from '../../controller/kube/access.ts'
import { defineKind, type Kind, type Live } from '../../controller/kube/kind.ts'
import { ConfigMap, CustomResourceDefinition, Deployment, Secret } from '../../controller/kube/kinds.ts'
import type { Condition } from '../../controller/toolkit/index.ts'
import { accountConfig } from '../fixtures/account.ts'
import { kubectlMissing, kubectlPath } from '../fixtures/kubectl.ts'
import { skipFile } from '../fixtures/skip-file.ts'

const file = inject('kubeconfig')
const root = join(import.meta.dirname, '../..')
const run = promisify(execFile)
const patience = { timeout: 30_000, interval: 50 }
const book = { name: 'welcome', namespace: 'default' }
const Guestbook = defineKind<{ spec: object; status?: { url?: string; conditions?: Condition[] } }>({
  group: 'tutorial.example.com',
  version: 'v1',
  kind: 'Guestbook',
})

skipFile(kubectlMissing)

describe.skipIf(!file)('the tutorial', () => {
  let access: Access
  let folder: string
  let account: string
  let operator: ChildProcess | undefined
  let output = ''

  const kubectl = (...args: string[]) => run(kubectlPath, args, { env: { ...process.env, KUBECONFIG: file } })
  const condition = async (type: string) => {
    const { status } = (await access.client.get(Guestbook, book)) as Live<{ status?: { conditions?: Condition[] } }>
    return status?.conditions?.find(one => one.type === type)
  }
  const server = () => access.client.get(Deployment, book)

  beforeAll(async () => {
    access = connect({ kubeconfig: { file } })
    await mkdir(join(root, '.cache'), { recursive: true })
    // Inside of the package: so `shipmate` is this one, as built.
    folder = await mkdtemp(join(root, '.cache/tutorial-'))
    const page = await readFile(join(root, 'docs/tutorial.md'), 'utf8')
    const blocks = [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language, text]) => ({
      language,
      text: text ?? '',
    }))
    const code = blocks.filter(({ language }) => language === 'ts').map(({ text }) => text)
    const yaml = blocks.filter(({ language }) => language === 'yaml').map(({ text }) => text)
    const [main, manifests] = [code.at(-2) ?? '', code.at(-1) ?? '']
    await writeFile(join(folder, 'guestbook.ts'), code.slice(0, -2).join('\n'))
    await writeFile(join(folder, 'deployment.yaml'), yaml[0] ?? '')
    await writeFile(join(folder, 'sample.yaml'), yaml[1] ?? '')
    await writeFile(join(folder, 'manifests.ts'), manifests)
    // Port 8081 may be in use where tests run.
    await writeFile(
      join(folder, 'main.ts'),
      main.replace('run(operator)', 'run(operator, { health: { port: 0 }, metrics: { port: 0 } })'),
    )
    const { stdout } = await run(process.execPath, [join(folder, 'manifests.ts')])
    await writeFile(join(folder, 'manifests.yaml'), stdout)
    await kubectl('apply', '--validate=strict', '-f', join(folder, 'manifests.yaml'))
    account = join(folder, 'kubeconfig')
    await writeFile(account, await accountConfig(access, { name: 'guestbook', namespace: 'default' }))
  })
  afterEach(() => stop())
  afterAll(async () => {
    await access.client.delete(CustomResourceDefinition, { name: 'guestbooks.tutorial.example.com' })
    await access.close()
    await rm(folder, { recursive: true, force: true })
  })

  function start(): void {
    operator = spawn(process.execPath, [join(folder, 'main.ts')], { env: { ...process.env, KUBECONFIG: account } })
    for (const stream of [operator.stdout, operator.stderr]) stream?.on('data', piece => (output += piece))
  }

  async function stop(): Promise<void> {
    if (!operator || operator.exitCode !== null) return
    const ended = once(operator, 'exit')
    operator.kill('SIGTERM')
    await ended
    operator = undefined
  }

  it('goes as the page says', async () => {
    start()
    await kubectl('apply', '--validate=strict', '-f', join(folder, 'sample.yaml'))
    await vi.waitFor(async () => expect((await condition('Ready'))?.reason).toBe('NotObserved'), patience)
    const first = await server()
    expect(first.spec?.replicas).toBe(2)
    expect(first.spec?.template.spec?.containers[0]?.envFrom).toHaveLength(2)
    expect((await access.client.get(ConfigMap, book)).data).toMatchObject({ theme: 'plain', title: 'Hello' })
    const password = (await access.client.get(Secret, book)).data
    const { status } = (await access.client.get(Guestbook, book)) as Live<{ status?: { url?: string } }>
    expect(status?.url).toBe('http://welcome.default')
    expect((await kubectl('get', 'gb')).stdout).toMatch(/NAME\s+SIZE\s+READY\s+AGE\nwelcome\s+2\s+False/)

    await kubectl('patch', 'gb', 'welcome', '--type', 'merge', '-p', '{"spec":{"size":3}}')
    await vi.waitFor(async () => expect((await server()).spec?.replicas).toBe(3), patience)
    await kubectl('scale', 'deployment', 'welcome', '--replicas', '9')
    await vi.waitFor(async () => expect((await server()).spec?.replicas).toBe(3), patience)
    await kubectl('delete', 'configmap', 'welcome')
    await vi.waitFor(
      async () => expect((await access.client.find(ConfigMap, book))?.data?.title).toBe('Hello'),
      patience,
    )
    await expect(kubectl('patch', 'gb', 'welcome', '--type', 'merge', '-p', '{"spec":{"size":9}}')).rejects.toThrow(
      'should be less than or equal to 5',
    )

    await kubectl('patch', 'gb', 'welcome', '--type', 'merge', '-p', '{"spec":{"frozen":true}}')
    await vi.waitFor(
      async () => expect(await condition('Ready')).toMatchObject({ status: 'Unknown', message: 'it is frozen' }),
      patience,
    )
    await kubectl('scale', 'deployment', 'welcome', '--replicas', '9')
    await kubectl('patch', 'gb', 'welcome', '--type', 'merge', '-p', '{"spec":{"frozen":false}}')
    await vi.waitFor(async () => expect((await server()).spec?.replicas).toBe(3), patience)
    await vi.waitFor(async () => expect((await condition('Ready'))?.status).toBe('False'), patience)

    await stop()
    const versions = () =>
      Promise.all(
        ([Guestbook, ConfigMap, Secret] as Kind[]).map(
          async kind => (await access.client.get(kind, book)).metadata.resourceVersion,
        ),
      )
    const before = await versions()
    start()
    await kubectl('scale', 'deployment', 'welcome', '--replicas', '9')
    await vi.waitFor(async () => expect((await server()).spec?.replicas).toBe(3), patience)
    expect(await versions(), 'what a restart writes').toEqual(before)
    expect((await access.client.get(Secret, book)).data).toEqual(password)

    await kubectl('delete', 'gb', 'welcome', '--wait=true', '--timeout=30s')
    expect(await access.client.find(Guestbook, book)).toBeUndefined()
    expect(output).toContain('the guestbook welcome is closed')
    expect(output).not.toMatch(/forbidden/i)
    expect(output).not.toContain('"level":"error"')
  }, 120_000)
})
