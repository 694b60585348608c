/**
 * From an empty folder to an operator that runs in pods, and back: a project as it is generated, its dependencies from npm, its image by the image tool of
 * this machine, on a real kubelet, in a namespace that takes none but restricted pods.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test, vi } from 'vitest'
import { parse } from 'yaml'
import { type Access, connect } from '../../controller/kube/access.ts'
import { defineKind, type Kind } from '../../controller/kube/kind.ts'
import {
  ClusterRole,
  ClusterRoleBinding,
  ConfigMap,
  CustomResourceDefinition,
  Deployment,
  Namespace,
  Pod,
} from '../../controller/kube/kinds.ts'
import manifest from '../../package.json' with { type: 'json' }
import { root, run } from './shipmate.ts'

/**
 * How an archive of an image, whose name follows, is loaded on the node, such as `kind load image-archive`; and, where the Dockerfile's own bases cannot be
 * had, others: `BUILDER=… BASE=…`.
 */
const { SHIPMATE_TEST_LOAD_IMAGE: load, SHIPMATE_TEST_BUILD_ARGS: buildArgs } = process.env
const kubeconfig = inject('kubeconfig')
const works = (tool: string, ...args: string[]) =>
  spawnSync(tool, ['version', ...args], { stdio: 'ignore' }).status === 0
const canBuild = () => works('docker', '--format', '{{.Server.Version}}') || works('podman') || works('buildah')
const missing = !load
  ? 'set SHIPMATE_TEST_LOAD_IMAGE to a command that loads an archive of an image on the node'
  : !canBuild()
    ? 'an image tool is needed, one of docker, podman and buildah'
    : undefined

const name = 'greeter-operator'
const ref = { name, namespace: name }
const sample = 'greeter-sample'
const crd = 'greeters.node.example.com'
interface Greeter {
  spec: { message: string }
  status?: { conditions?: { type: string; status: string }[] }
}
const Greeter = defineKind<Greeter>({ group: 'node.example.com', version: 'v1alpha1', kind: 'Greeter' })
const longest = 120_000
const patience = { timeout: 30_000, interval: 100 }

describe.skipIf(!kubeconfig || missing)(
  `an operator on a node${missing ? ` (skipped: ${missing})` : ''}`,
  { timeout: longest },
  () => {
    let folder: string
    let project: string
    let access: Access

    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'shipmate-node-'))
      project = join(folder, name)
      access = connect({ kubeconfig: { file: kubeconfig } })
      const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
      await access.client.create(Namespace, { metadata: { name, labels } })
      await succeed(process.execPath, ['build.ts'], root)
      await succeed('npm', ['pack', '--ignore-scripts', '--loglevel=error', '--pack-destination', folder], root)
    }, longest)
    afterAll(async () => {
      if (!access) return
      const mine: [Kind, string][] = [
        [CustomResourceDefinition, crd],
        [ClusterRoleBinding, name],
        [ClusterRole, name],
        [Namespace, name],
      ]
      for (const [kind, name] of mine) {
        if (await access.client.find(kind, { name })) await access.client.delete(kind, { name })
      }
      await access.close()
      rmSync(folder, { recursive: true, force: true })
    })

    // Each goes on from where the one before it left the cluster.
    let isBroken = false
    beforeEach(context => {
      context.skip(isBroken, 'one before it failed')
      context.onTestFailed(() => {
        isBroken = true
      })
    })

    async function succeed(command: string, args: string[], cwd = project): Promise<string> {
      const { status, stdout, stderr } = await run(command, args, { cwd, env: { KUBECONFIG: kubeconfig } })
      if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}${stderr}`)
      return stdout
    }
    const binary = () => join(project, 'node_modules/shipmate/bin/shipmate.cjs')
    const operator = (line: string) =>
      run(process.execPath, [binary(), 'operator', ...line.split(' ')], {
        cwd: project,
        env: { KUBECONFIG: kubeconfig },
      })
    /** What a command that succeeds says of each object. */
    const said = (line: string) => succeed(process.execPath, [binary(), 'operator', ...line.split(' ')])

    async function buildAndLoad(): Promise<string> {
      const archive = join(folder, 'image.tar')
      const args = (buildArgs ?? '').split(' ').flatMap(one => (one ? ['--build-arg', one] : []))
      const image = await said(['image', '--archive', archive, ...args].join(' '))
      await succeed('sh', ['-c', `${load} "$1"`, 'sh', archive], root)
      return image
    }
    const setTag = (tag: string) => edit('shipmate.yaml', text => text.replace(/^tag: .*$/m, `tag: ${tag}`))
    function edit(file: string, change: (text: string) => string): void {
      writeFileSync(join(project, file), change(readFileSync(join(project, file), 'utf8')))
    }

    async function applySample(): Promise<void> {
      const { client } = access
      await client.create(Greeter, parse(readFileSync(join(project, 'sample.yaml'), 'utf8')))
      await vi.waitFor(async () => {
        const { status } = await client.get(Greeter, { name: sample })
        expect(status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True')
      }, patience)
      expect((await client.get(ConfigMap, { name: sample })).data).toEqual({ message: 'Hello' })
    }
    const deleteSample = () => access.client.delete(Greeter, { name: sample })
    const pods = () => access.client.list(Pod, { namespace: name })

    test('the project is made, gets its dependencies, and passes its own tests', async () => {
      const tarball = join(folder, `shipmate-${manifest.version}.tgz`)
      const made = ['new', 'operator', name, '--group', 'node.example.com', '--shipmate', tarball]
      await succeed(process.execPath, [join(root, 'bin/shipmate.cjs'), ...made], folder)
      await succeed('npm', ['install', '--no-audit', '--no-fund'])
      await succeed('npm', ['run', 'build'])
      expect(await succeed('npm', ['test'])).toMatch(/4 passed/)
    })

    test('its image is built, and loaded on the node', async () => {
      expect(await buildAndLoad()).toBe(`${name}:0.1.0\n`)
    })

    test('deploy waits until it is available under restricted pod security, and can be repeated', async () => {
      expect((await said('deploy')).match(/ created$/gm)).toHaveLength(7)
      const { status } = await access.client.get(Deployment, ref)
      expect(status).toMatchObject({ availableReplicas: 2, updatedReplicas: 2 })
      expect((await said('deploy')).match(/ unchanged$/gm)).toHaveLength(8)
      expect(await pods()).toHaveLength(2)
    })

    test('a sample becomes Ready, by an account that may do no more than it needs', applySample)

    test('uninstall refuses while there is a custom resource, and lists it', async () => {
      const { status, stdout, stderr } = await operator('uninstall')
      expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
      expect(stderr).toContain(`delete them first:\n  Greeter default/${sample}\n`)
    })

    test('without the custom resource, uninstall comes before undeploy: the operator waits, and goes on when deploy brings the definition back', async () => {
      await deleteSample()
      const { status, stdout, stderr } = await operator('uninstall')
      expect({ status, stdout }).toEqual({ status: 0, stdout: `CustomResourceDefinition ${crd} deleted\n` })
      expect(stderr).toContain(`${name} is still deployed, and waits for its definitions`)
      expect(await said('deploy')).toContain(`CustomResourceDefinition ${crd} created\n`)
      await applySample()
      for (const { status, metadata } of await pods())
        expect(status?.containerStatuses?.[0]?.restartCount, metadata.name).toBe(0)
    })

    test('an image that the node has not is said at once, and the one before works on', async () => {
      setTag('0.0.0-nowhere')
      const { status, stderr } = await operator('deploy --timeout 10')
      expect(status).toBe(1)
      expect(stderr).toMatch(/^pod greeter-operator-\S+: \w+: the node has no image \S+:0\.0\.0-nowhere /m)
      expect((await access.client.get(Deployment, ref)).status).toMatchObject({ availableReplicas: 2 })
    })

    test('an operator that ends at once is said with what it printed, and the one before works on', async () => {
      setTag('0.2.0')
      edit('src/main.ts', text =>
        `${text}\nthrow new Error('no way to begin')\n`.replace('await run', 'if (!port) await run'),
      )
      // On the one before, as its dependencies are the same.
      writeFileSync(join(project, 'Dockerfile'), `FROM ${name}:0.1.0\nCOPY src src\n`)
      await buildAndLoad()
      const { status, stderr } = await operator('deploy --timeout 10')
      expect(status).toBe(1)
      expect(stderr).toMatch(/^pod greeter-operator-\S+: \w+: [\s\S]*no way to begin/m)
      expect((await access.client.get(Deployment, ref)).status).toMatchObject({ availableReplicas: 2 })
      setTag('0.1.0')
      expect((await said('deploy')).match(/ changed$/gm)).toHaveLength(1)
    })

    test('undeploy waits for the pods to go, leaves the custom resource, and can be repeated', async () => {
      expect((await said('undeploy')).match(/ deleted$/gm)).toHaveLength(7)
      expect(await pods()).toEqual([])
      expect((await said('undeploy')).match(/ not there$/gm)).toHaveLength(7)
      expect(await access.client.find(Greeter, { name: sample })).toBeDefined()
    })

    test('deployed again after an undeploy, it goes on where it was', async () => {
      await deleteSample()
      await said('deploy')
      await applySample()
      await deleteSample()
      await said('undeploy')
    })

    test('deploy waits for a namespace that is being deleted', async () => {
      await access.client.delete(Namespace, { name })
      const { status, stdout } = await operator('deploy')
      expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining(`Namespace ${name} created\n`) })
      await said('undeploy')
    })

    test('uninstall takes the definition off, and can be repeated', async () => {
      expect(await said('uninstall')).toBe(`CustomResourceDefinition ${crd} deleted\n`)
      expect(await said('uninstall')).toBe(`CustomResourceDefinition ${crd} not there\n`)
    })
  },
)
