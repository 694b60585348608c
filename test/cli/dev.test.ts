/**
 * `shipmate dev` as a person uses it: one process, a project as it is generated, its code changed while it runs, and every way of stopping it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { type Access, connect } from '../../controller/kube/access.ts'
import { defineKind } from '../../controller/kube/kind.ts'
import { ConfigMap, Namespace, Node } from '../../controller/kube/kinds.ts'
import { emptyFolder, newProject, root, shipmate } from './shipmate.ts'

const patience = { timeout: 60_000, interval: 50 }
const Hello = defineKind<{ spec: { message: string } }>({ group: 'example.com', version: 'v1alpha1', kind: 'Hello' })

interface Dev {
  readonly child: ChildProcess
  readonly output: { out: string; err: string }
  readonly kubeconfig: string
  readonly access: Access
  /** Asks it to stop, and answers its exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

async function dev(cwd: string, ...args: string[]): Promise<Dev> {
  const child = spawn(process.execPath, [join(root, 'bin/shipmate.cjs'), 'dev', ...args], {
    cwd,
    env: { ...process.env, KUBECONFIG: '/nonexistent/kubeconfig', PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { out: '', err: '' }
  child.stdout?.on('data', piece => (output.out += piece))
  child.stderr?.on('data', piece => (output.err += piece))
  const gone = once(child, 'exit')
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await gone
  })
  await vi.waitFor(() => {
    if (child.exitCode !== null) throw new Error(`it ended: ${output.err}`)
    expect(output.out, output.err).toMatch(/^ready after \d+ ms: https:\/\/127\.0\.0\.1:\d+, kubeconfig /m)
  }, patience)
  const [, kubeconfig = ''] = /kubeconfig ([^,\n]+)/.exec(output.out) ?? []
  const access = connect({ kubeconfig: { file: kubeconfig } })
  onTestFinished(() => access.close())
  return {
    ...{ child, output, kubeconfig, access },
    async stop(signal = 'SIGINT') {
      child.kill(signal)
      const [code] = (await gone) as [number | null]
      return code
    },
  }
}

it('runs the operator of a project on a cluster of its own, and leaves nothing', async () => {
  const project = await newProject()
  const manifests = emptyFolder()
  writeFileSync(join(manifests, 'a.yaml'), readFileSync(join(project, 'sample.yaml')))
  const { access, output, stop, kubeconfig } = await dev(project, manifests)
  expect(output.out.split('\n').filter(line => line.startsWith('ready '))).toEqual([
    expect.stringMatching(/, running hello-operator$/),
  ])
  const ref = { name: 'hello-sample', namespace: 'default' }
  await vi.waitFor(
    async () => expect((await access.client.get(ConfigMap, ref)).data?.['message']).toBe('Hello'),
    patience,
  )
  expect(await access.client.list(Node)).toHaveLength(1)

  // Its code changes: another label on every ConfigMap.
  const file = join(project, 'src/config-map.ts')
  writeFileSync(file, readFileSync(file, 'utf8').replace('labels: {', "labels: { changed: 'yes',"))
  await vi.waitFor(
    async () => expect((await access.client.get(ConfigMap, ref)).metadata.labels?.['changed']).toBe('yes'),
    patience,
  )
  expect(output.err).toContain('the code has changed: the operator is started again')
  expect(output.err).not.toContain('Declare it')

  // It asks for what it has not declared.
  const operator = join(project, 'src/operator.ts')
  const code = readFileSync(operator, 'utf8')
  writeFileSync(
    operator,
    code
      .replace('import { configMap }', "import { Secret } from 'shipmate/kube'\nimport { configMap }")
      .replace(
        'SuccessManager({ cr, status }) {',
        'async SuccessManager({ cr, status, client }) {\n      await client.live.list(Secret)',
      ),
  )
  await vi.waitFor(() => expect(output.err).toContain('Declare it'), patience)
  expect(output.err).toContain('system:serviceaccount:hello-operator:hello-operator may not list secrets')
  expect(output.err).toContain(
    "permissions: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list', 'watch'] }]",
  )
  expect(output.err).toContain('- apiGroups: [""]\n      resources: ["secrets"]')

  expect(await access.client.find(Hello, ref)).toBeDefined()
  expect(await stop()).toBe(0)
  expect(existsSync(dirname(kubeconfig)), 'its folder').toBe(false)
})

it('is the API server alone where that is asked for, with a kubeconfig of one’s own', async () => {
  const folder = emptyFolder()
  const file = join(folder, 'kubeconfig')
  const { access, output, stop, kubeconfig } = await dev(folder, '--bare', '--kubeconfig', file)
  expect(kubeconfig).toBe(file)
  expect(output.out).toMatch(/^ready [^\n]*\n$/)
  expect((await access.client.list(Namespace)).map(({ metadata }) => metadata.name)).toContain('default')
  expect(await access.client.list(Node)).toEqual([])
  expect(await stop('SIGTERM')).toBe(0)
  expect(existsSync(file)).toBe(false)
})

it('keeps its objects where that is asked for, for one at a time', async () => {
  const folder = emptyFolder()
  const keep = join(folder, 'kept')
  const first = await dev(folder, '--bare', '--keep', keep)
  await first.access.client.create(Namespace, { metadata: { name: 'mine' } })
  const second = await shipmate(['dev', '--bare', '--keep', keep], { cwd: folder })
  expect(second).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^shipmate: --keep .* is in use by process \d+/),
  })
  expect(await first.stop()).toBe(0)
  const again = await dev(folder, '--bare', '--keep', keep)
  expect(await again.access.client.find(Namespace, { name: 'mine' })).toBeDefined()
  expect(await again.stop()).toBe(0)
})

it('runs a command in the stead of the operator; when it is killed, so is that', async () => {
  const folder = emptyFolder()
  const script = `require('node:fs').writeFileSync('pid', String(process.pid)); setInterval(() => {}, 1000)`
  const { child, output, kubeconfig } = await dev(folder, '--nodes', '0', '--', process.execPath, '-e', script)
  expect(output.out).toContain('running ')
  await vi.waitFor(() => expect(existsSync(join(folder, 'pid'))).toBe(true), patience)
  const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'))
  child.kill('SIGKILL')
  await once(child, 'exit').catch(() => undefined)
  await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'), patience)
  await vi.waitFor(() => expect(existsSync(dirname(kubeconfig))).toBe(false), patience)
})

it('says what is wrong with how it was called', async () => {
  const folder = emptyFolder()
  const config = join(folder, 'config')
  writeFileSync(config, 'apiVersion: v1\nkind: Config\n')
  const said = async (...args: string[]) => {
    const { status, stderr } = await shipmate(['dev', ...args], { cwd: folder })
    return `${status} ${stderr}`
  }
  expect(await said('nowhere')).toMatch(/^2 shipmate: there is no folder nowhere/)
  expect(await said('--nodes', 'many')).toMatch(/^2 shipmate: --nodes many: a number up to 100/)
  expect(await said('--kubeconfig', config)).toMatch(/^2 .*not of an embedded cluster/)
  expect(await said('--bare', '--', 'true')).toMatch(/^2 shipmate: --bare runs no command/)
  expect(readFileSync(config, 'utf8')).toContain('kind: Config')
  writeFileSync(
    join(folder, 'wrong.yaml'),
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndatta: {}\n',
  )
  expect(await said('--nodes', '0', folder)).toMatch(/^1 shipmate: .*wrong.yaml: .*datta/s)
})
