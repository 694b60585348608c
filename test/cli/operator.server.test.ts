/**
 * From an empty folder to a working resource on a real API server, and back, with the package as it is packed and by the commands that docs/cli.md has; no
 * generated file is edited. And what the commands of a project do on a cluster that is not as they would expect.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { parse } from 'yaml'
import { type Access, connect } from '../../controller/kube/access.ts'
import { defineKind } from '../../controller/kube/kind.ts'
import { ClusterRole, ConfigMap, CustomResourceDefinition, Deployment, Lease } from '../../controller/kube/kinds.ts'
import manifest from '../../package.json' with { type: 'json' }
import { freePort } from '../fixtures/free-port.ts'
import { linkDependencies, type RunOptions, root, run } from './shipmate.ts'

interface Hello {
  spec: { message: string }
  status?: { conditions?: { type: string; status: string }[] }
}
const Hello = defineKind<Hello>({ group: 'example.com', version: 'v1alpha1', kind: 'Hello' })
const lease = { name: 'hello-operator', namespace: 'hello-operator' }
const patience = { timeout: 30_000, interval: 100 }

const page = readFileSync(join(root, 'docs/cli.md'), 'utf8')
const documented = [...page.matchAll(/```sh\n(.*?)```/gs)].flatMap(([, block = '']) => block.trim().split('\n'))

let folder: string
let project: string
let env: { KUBECONFIG: string }
let access: Access
let here: string
const done = new Set<string>()

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'shipmate-flow-'))
  project = join(folder, 'hello-operator')
  env = { KUBECONFIG: inject('kubeconfig') }
  access = connect({ kubeconfig: { file: env.KUBECONFIG } })
  const config = access.credentials.kubeConfig()
  here = `cluster ${config.getCurrentCluster()?.server}, context ${config.getCurrentContext()}, namespace hello-operator\n`
  await succeed(process.execPath, ['build.ts'], { cwd: root })
  await succeed('npm', ['pack', '--ignore-scripts', '--loglevel=error', '--pack-destination', folder], { cwd: root })
  // The package as a stranger has it; its dependencies are linked, so that no registry is asked.
  const packed = join(folder, 'node_modules/shipmate')
  mkdirSync(packed, { recursive: true })
  await succeed('tar', ['xzf', `shipmate-${manifest.version}.tgz`, '--strip-components=1', '-C', packed], {
    cwd: folder,
  })
  linkDependencies(folder, ['shipmate', '.bin'])
}, 120_000)
afterAll(async () => {
  await access.close()
  rmSync(folder, { recursive: true, force: true })
})

async function succeed(
  command: string,
  args: string[],
  options: RunOptions,
): Promise<{ stdout: string; stderr: string }> {
  const { status, ...said } = await run(command, args, options)
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed:\n${said.stdout}${said.stderr}`)
  return said
}

const binary = () => join(folder, 'node_modules/shipmate/bin/shipmate.cjs')

/** A command, as `npx` would run it: as the page has it, if it is on it. */
function npx(line: string, cwd = project) {
  done.add(`npx shipmate ${line}`)
  return run(process.execPath, [binary(), ...line.split(' ')], { cwd, env })
}

/** npm run, without npm. */
async function script(name: 'build' | 'test') {
  done.add(name === 'test' ? 'npm test' : `npm run ${name}`)
  const [program = '', ...args] = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')).scripts[name].split(
    ' ',
  )
  const own = join(folder, 'node_modules', { tsc: 'typescript/bin/tsc', vitest: 'vitest/vitest.mjs' }[program as 'tsc'])
  return run(process.execPath, [own, ...args], { cwd: project })
}

async function isReady(name: string): Promise<void> {
  await vi.waitFor(async () => {
    const { status } = await access.client.get(Hello, { name })
    expect(status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True')
  }, patience)
}

const sample = () => parse(readFileSync(join(project, 'sample.yaml'), 'utf8'))

describe('from an empty folder to a working resource', () => {
  test('the project is made, builds, and passes its own tests', async () => {
    const { status, stderr } = await npx('new operator hello-operator --group example.com', folder)
    expect({ status, stderr }).toMatchObject({ status: 0 })
    done.add('cd hello-operator').add('npm install')
    expect(await script('build')).toEqual({ status: 0, stdout: '', stderr: '' })
    expect(await script('test')).toMatchObject({ status: 0, stdout: expect.stringMatching(/4 passed/) })
  })

  test('before anything is there, there is nothing to take off', async () => {
    for (const name of ['undeploy', 'uninstall']) {
      const { status, stdout, stderr } = await npx(`operator ${name}`)
      expect({ status, stderr }).toEqual({ status: 0, stderr: here })
      for (const line of stdout.trim().split('\n')) expect(line).toMatch(/ not there$/)
    }
  })

  test('install names the cluster first, dry or not, and can be repeated', async () => {
    const crd = 'CustomResourceDefinition hellos.example.com'
    const ended = (is: string) => ({ status: 0, stdout: `${crd} ${is}\n`, stderr: here })
    expect(await npx('operator install --dry-run')).toEqual(ended('would be created'))
    expect(await access.client.find(CustomResourceDefinition, { name: 'hellos.example.com' })).toBeUndefined()
    expect(await npx('operator install')).toEqual(ended('created'))
    expect(await npx('operator install')).toEqual(ended('unchanged'))
    expect(await npx('operator install --dry-run')).toEqual(ended('unchanged'))
  })

  test('run makes a sample Ready, and keeps what it follows', async () => {
    done.add('npx shipmate operator run')
    const child = spawn(process.execPath, [binary(), 'operator', 'run', '--port', String(await freePort())], {
      cwd: project,
      env: { ...process.env, ...env },
    })
    const said = textOf(child)
    try {
      await access.client.create(Hello, sample())
      await isReady('hello-sample')
      expect((await access.client.get(ConfigMap, { name: 'hello-sample' })).data).toEqual({ message: 'Hello' })
      await access.client.patch(Hello, { name: 'hello-sample' }, { merge: { spec: { message: 'Bye' } } })
      await vi.waitFor(async () => {
        expect((await access.client.get(ConfigMap, { name: 'hello-sample' })).data).toEqual({ message: 'Bye' })
      }, patience)
    } catch (error) {
      throw new Error(`${error}\n${said.all()}`)
    } finally {
      child.kill('SIGTERM')
      await said.ended
    }
    expect(child.exitCode, said.all()).toBe(0)
    expect(said.all()).toContain(here)
    expect(said.all(), 'the lease is where a deployed operator has it').toContain(
      'lease hello-operator/hello-operator is ours',
    )
  })

  test('uninstall refuses while there is a custom resource, and lists it', async () => {
    for (const more of ['', ' --dry-run']) {
      expect(await npx(`operator uninstall${more}`)).toEqual({
        ...{ status: 1, stdout: '' },
        stderr: `${here}shipmate: there are custom resources, which would go with their definition; delete them first:\n  Hello default/hello-sample\n`,
      })
    }
    expect(await access.client.find(Hello, { name: 'hello-sample' })).toBeDefined()
  })

  test('deploy applies all of it, once, and says what is missing when it does not get ready', async () => {
    const dry = await npx('operator deploy --dry-run')
    expect(dry).toMatchObject({ status: 0, stderr: here })
    expect(dry.stdout).toContain('Deployment hello-operator/hello-operator would be created\n')
    const first = await npx('operator deploy --no-wait')
    expect(first).toMatchObject({ status: 0, stderr: here })
    expect(first.stdout.match(/ created$/gm)).toHaveLength(6)
    // No controller runs here, so no pod does.
    const second = await npx('operator deploy --timeout 1')
    done.add('npx shipmate operator deploy')
    expect(second.status).toBe(1)
    expect(second.stdout.match(/ unchanged$/gm)).toHaveLength(8)
    expect(second.stderr).toContain('shipmate: Deployment hello-operator is not ready after 1 s: ')
    const { spec } = await access.client.get(Deployment, { name: 'hello-operator', namespace: 'hello-operator' })
    expect(spec?.template.spec?.containers[0]?.image).toBe('hello-operator:0.1.0')
  })

  test('another tag in the one setting is another image, and nothing else', async () => {
    const file = join(project, 'shipmate.yaml')
    const before = readFileSync(file, 'utf8')
    writeFileSync(file, before.replace('tag: 0.1.0', 'tag: 1.10'))
    const { stdout } = await npx('operator deploy --no-wait')
    writeFileSync(file, before)
    expect(stdout.match(/^.* changed$/gm)).toEqual(['Deployment hello-operator/hello-operator changed'])
    const { spec } = await access.client.get(Deployment, { name: 'hello-operator', namespace: 'hello-operator' })
    expect(spec?.template.spec?.containers[0]?.image).toBe('hello-operator:1.10')
  })

  test('with what it may do as deployed, the operator does its work', async () => {
    const { token } = await access.client.token({ name: 'hello-operator', namespace: 'hello-operator' })
    const config = parse(readFileSync(env.KUBECONFIG, 'utf8'))
    config.users[0].user = { token }
    const file = join(folder, 'account.kubeconfig')
    config.contexts[0].context.namespace = 'hello-operator'
    writeFileSync(file, JSON.stringify(config))
    const child = spawn(process.execPath, ['src/main.ts'], {
      cwd: project,
      env: { ...process.env, KUBECONFIG: file, PORT: String(await freePort()) },
    })
    const said = textOf(child)
    try {
      await access.client.create(Hello, { ...sample(), metadata: { name: 'other' } })
      await isReady('other')
      await access.client.delete(Hello, { name: 'other' })
    } finally {
      child.kill('SIGTERM')
      await said.ended
    }
    expect(child.exitCode, said.all()).toBe(0)
    expect(said.all()).not.toMatch(/forbidden|"level":"(warn|error)"/i)
  })

  test('undeploy leaves the definition and the custom resource, and can be repeated', async () => {
    const first = await npx('operator undeploy')
    expect(first).toMatchObject({ status: 0, stderr: here })
    expect(first.stdout.match(/ deleted$/gm)).toHaveLength(7)
    expect(first.stdout).toContain('Lease hello-operator/hello-operator deleted\n')
    expect(await access.client.find(Lease, lease)).toBeUndefined()
    const hold = (finalizers: string[]) =>
      access.client.patch(Hello, { name: 'hello-sample' }, { merge: { metadata: { finalizers } } })
    await hold(['example.com/finalizer'])
    const second = await npx('operator undeploy')
    await hold([])
    expect(second.stdout.match(/ not there$/gm)).toHaveLength(7)
    expect(second.stderr, 'who waits for the operator is counted').toBe(
      `${here}1 hellos stay, with a finalizer of the operator's: until it runs again, they cannot be deleted\n`,
    )
    expect(await access.client.find(Hello, { name: 'hello-sample' })).toBeDefined()
  })

  test('undeploy leaves a lease that is renewed, and takes one whose holder has ended', async () => {
    const { client } = access
    const spec = { holderIdentity: 'laptop', leaseDurationSeconds: 1 }
    await client.create(Lease, { metadata: lease, spec })
    let isOver = false
    const renewing = (async () => {
      for (let i = 1; !isOver; i++)
        await client.patch(Lease, lease, { merge: { spec: { leaseTransitions: i } } }).then(() => sleep(50))
    })()
    const held = await npx('operator undeploy')
    isOver = true
    await renewing
    expect(held.status, held.stderr).toBe(0)
    expect(held.stdout).toContain('Lease hello-operator/hello-operator left alone, as laptop holds it\n')
    expect(await client.find(Lease, lease)).toBeDefined()
    expect((await npx('operator undeploy --dry-run')).stdout).toContain(
      'Lease hello-operator/hello-operator would be deleted\n',
    )
    expect(await client.find(Lease, lease)).toBeDefined()
    expect((await npx('operator undeploy')).stdout).toContain('Lease hello-operator/hello-operator deleted\n')
    expect(await client.find(Lease, lease)).toBeUndefined()
  })

  test('a child is generated and compiles', async () => {
    const manifest = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' }, spec: { replicas: 1 } }
    writeFileSync(join(project, 'web.yaml'), JSON.stringify(manifest))
    expect((await npx('gen resource --type Service')).stdout).toBe('created src/service.ts\n')
    const web =
      'gen resource --type Deployment --kind Hello --group example.com --version v1alpha1 --path src --name web web.yaml'
    expect((await npx(web)).stdout).toBe('created src/web.ts\ncreated src/web.yaml\n')
    expect(await script('build')).toEqual({ status: 0, stdout: '', stderr: '' })
    const { stdout, stderr } = await npx('gen resource --list')
    expect(stderr).toBe(here.replace(', namespace hello-operator', ''))
    expect(stdout, 'what the cluster serves, its custom resources too').toMatch(
      /^Hello +example\.com +v1alpha1 +Hello$/m,
    )
    expect(
      (await npx('gen resource --type hellos --path other --kind A --group a.example.com --version v1')).status,
    ).toBe(0)
  })

  test('manifests are generated and checked', async () => {
    for (const line of documented.filter(line => /^npx shipmate gen (crd|rbac)/.test(line)))
      expect(await npx(line.replace('npx shipmate ', ''))).toMatchObject({ status: 0, stderr: '' })
    expect(existsSync(join(project, 'deploy/example.com_hellos.yaml'))).toBe(true)
  })

  test('what is printed for others to use is printed', async () => {
    const set = {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'orders-db' },
      spec: {
        template: {
          metadata: { labels: { 'shipmate.dev/lifecycle': 'postgres' } },
          spec: { containers: [{ name: 'db', image: 'db' }] },
        },
      },
    }
    writeFileSync(join(project, 'orders-db.yaml'), JSON.stringify(set))
    const { status, stdout } = await npx('inject -f orders-db.yaml')
    expect(status).toBe(0)
    expect(stdout).toContain('shipmate-sidecar:')
    for (const line of documented.filter(line => line.startsWith('npx shipmate images')))
      expect((await npx(line.replace('npx shipmate ', ''))).stdout).toMatch(/shipmate-sidecar:/)
  })

  test('when the custom resource is gone, uninstall takes the definition off, and can be repeated', async () => {
    await access.client.delete(Hello, { name: 'hello-sample' })
    expect((await npx('operator uninstall')).stdout).toBe('CustomResourceDefinition hellos.example.com deleted\n')
    expect((await npx('operator uninstall')).stdout).toBe('CustomResourceDefinition hellos.example.com not there\n')
  })

  test('docs/cli.md has no command that was not run', () => {
    // The image is built in operator.node.test.ts, and `dev` runs in dev.test.ts; npm install is what linking stands for, and deploy was not left to wait for a pod.
    const elsewhere = ['npx shipmate dev manifests/', 'npx shipmate operator image']
    expect(documented.filter(line => !done.has(line))).toEqual(elsewhere)
  })
})

test("what is somebody else's is neither overwritten nor deleted", async () => {
  const cwd = join(folder, 'view-operator')
  const name = 'somebody-elses'
  await run(process.execPath, [binary(), 'new', 'operator', name, '--path', cwd, '--group', 'foreign.example.com'])
  symlinkSync(join(folder, 'node_modules'), join(cwd, 'node_modules'))
  const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }]
  await access.client.create(ClusterRole, { metadata: { name }, rules })
  const deploy = await npx('operator deploy --no-wait', cwd)
  expect(deploy).toMatchObject({ status: 1, stdout: '' })
  expect(deploy.stderr).toContain(`shipmate: ClusterRole ${name} is there already, and is not this operator's`)
  expect(
    await access.client.find(CustomResourceDefinition, { name: 'somebodyelses.foreign.example.com' }),
  ).toBeUndefined()
  const undeploy = await npx('operator undeploy', cwd)
  expect(undeploy.stdout).toContain(`ClusterRole ${name} left alone, as it has not the labels`)
  expect((await access.client.get(ClusterRole, { name })).rules).toEqual(rules)
})

test('a context that is not there is refused before anything is asked', async () => {
  const { status, stdout, stderr } = await npx('operator install --context nowhere')
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
  expect(stderr).toMatch(/^shipmate: context "nowhere" is not in the kubeconfig .*\n$/)
})

/** All that a process says, and its end. */
function textOf(child: ChildProcess): { all(): string; ended: Promise<void> } {
  const chunks: string[] = []
  child.stdout?.on('data', chunk => chunks.push(String(chunk)))
  child.stderr?.on('data', chunk => chunks.push(String(chunk)))
  return { all: () => chunks.join(''), ended: new Promise(resolve => child.once('close', () => resolve())) }
}
