/**
 * The commands of a project, as far as they need no cluster: the setting that everything follows, the image.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { emptyFolder, newProject, shipmate } from './shipmate.ts'

let cwd: string
beforeEach(async () => {
  cwd = await newProject()
})
const operator = (line: string, env: Record<string, string> = {}) =>
  shipmate(['operator', ...line.split(' ')], { cwd, env })
const setting = (text: string) => writeFileSync(join(cwd, 'shipmate.yaml'), text)

test('every manifest follows the one setting', async () => {
  setting('registry: registry.example.com:5000/team\nname: cache\ntag: 1.10\nnamespace: caches\nreplicas: 3\n')
  const { status, stdout, stderr } = await operator('manifests')
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout).not.toContain('hello-operator\n  namespace')
  const objects = parseAllDocuments(stdout).map(document => document.toJS())
  expect(objects.map(({ kind, metadata }) => [kind, metadata.namespace ?? '-', metadata.name])).toEqual([
    ['Namespace', '-', 'caches'],
    ['CustomResourceDefinition', '-', 'hellos.example.com'],
    ['ServiceAccount', 'caches', 'cache'],
    ['ClusterRole', '-', 'cache'],
    ['ClusterRoleBinding', '-', 'cache'],
    ['Role', 'caches', 'cache'],
    ['RoleBinding', 'caches', 'cache'],
    ['Deployment', 'caches', 'cache'],
  ])
  const { replicas, template } = objects.at(-1).spec
  expect(replicas).toBe(3)
  expect(template.spec).toMatchObject({
    serviceAccountName: 'cache',
    containers: [{ image: 'registry.example.com:5000/team/cache:1.10' }],
  })
})

test.each([
  ['name: a\n', 'tag is missing'],
  ['name: a\ntag: 1\nregistri: x\n', 'there is no setting "registri"; did you mean "registry"?'],
  ['name: Bad\ntag: 1\n', 'name: "Bad" has to be lower-case letters'],
  ['name: a\ntag: "not a tag"\n', 'tag: "not a tag" has to be a tag of an image, such as 0.1.0'],
  ['name: a\ntag: [1]\n', 'tag: ["1"] has to be a text'],
  ['name: a\ntag: 1\nregistry: "http://x"\n', 'registry: "http://x" has to be a registry'],
  ['name: a\ntag: 1\nreplicas: many\n', 'replicas: "many" has to be a number from 0 to 99'],
  ['- a\n', 'it has to be a map with registry, name and tag'],
  ['name: "a\n', 'shipmate.yaml is no YAML'],
])('a setting of %j is refused, by name', async (text, sentence) => {
  setting(text)
  const { status, stdout, stderr } = await operator('manifests')
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
  expect(stderr).toContain(sentence)
  expect(stderr.trim().split('\n')).toHaveLength(1)
})

test.each(['install', 'run', 'image', 'deploy', 'undeploy', 'uninstall', 'manifests'])(
  '%s outside a project is misuse',
  async name => {
    const folder = emptyFolder()
    const { status, stdout, stderr } = await shipmate(['operator', name], { cwd: folder })
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toBe(
      `shipmate: there is no shipmate.yaml in ${folder}: go to the folder of an operator's project: see shipmate operator ${name} --help.\n`,
    )
  },
)

test.each(['install', 'run', 'deploy', 'undeploy', 'uninstall'])('%s without a kubeconfig says so', async name => {
  const { status, stdout, stderr } = await operator(name)
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
  expect(stderr).toMatch(/^shipmate: cannot read a kubeconfig from \/nonexistent\/kubeconfig: .*\.\n$/)
})

describe('image', () => {
  /** Programs that write down how they were called. @param works those whose answer to `version` is good */
  function tools(names: string[], works: string[]): { PATH: string } {
    const bin = join(cwd, 'bin')
    mkdirSync(bin)
    for (const name of ['npm', ...names]) {
      const script = `#!/bin/sh\ncase "$1" in version) exit ${works.includes(name) ? 0 : 1};; esac\necho building >&1\necho "${name} $*" >> calls\n[ ! -e fail ] || exit 7\n`
      writeFileSync(join(bin, name), script)
      chmodSync(join(bin, name), 0o755)
    }
    return { PATH: bin }
  }
  const lockFile = () => join(cwd, 'package-lock.json')
  beforeEach(() => writeFileSync(lockFile(), '{}'))
  const calls = () => readFileSync(join(cwd, 'calls'), 'utf8').trim().split('\n')

  test('is built with the first tool that works, and its name is the answer', async () => {
    const env = tools(['docker', 'podman', 'buildah'], ['podman', 'buildah'])
    expect(await operator('image --build-arg BASE=x --push', env)).toEqual({
      status: 0,
      stdout: 'hello-operator:0.1.0\n',
      stderr: 'building hello-operator:0.1.0 with podman\nbuilding\nbuilding\n',
    })
    expect(calls()).toEqual([
      'podman build --build-arg BASE=x --tag hello-operator:0.1.0 .',
      'podman push hello-operator:0.1.0',
    ])
  })

  test('is built with the one that was asked for', async () => {
    await operator('image --with buildah', tools(['docker', 'buildah'], ['docker', 'buildah']))
    expect(calls()).toEqual(['buildah build --isolation chroot --format docker --tag hello-operator:0.1.0 .'])
  })

  test.each([
    ['docker', (file: string) => `docker save --output ${file} hello-operator:0.1.0`],
    ['podman', (file: string) => `podman push hello-operator:0.1.0 docker-archive:${file}:hello-operator:0.1.0`],
    ['buildah', (file: string) => `buildah push hello-operator:0.1.0 docker-archive:${file}:hello-operator:0.1.0`],
  ])('is written to an archive with %s, under its own name, in the place of an older one', async (tool, call) => {
    const file = join(cwd, 'image.tar')
    writeFileSync(file, 'older')
    const { status, stderr } = await operator(`image --with ${tool} --archive image.tar`, tools([tool], [tool]))
    expect({ status, stderr }).toMatchObject({ status: 0 })
    expect(calls().at(-1)).toBe(call(file))
    expect(existsSync(file)).toBe(false)
  })

  test('gets what the lock file says; where there is none, npm makes it first', async () => {
    expect(readFileSync(join(cwd, 'Dockerfile'), 'utf8')).toMatch(/^RUN .*npm ci --omit=dev/m)
    rmSync(lockFile())
    const { status, stderr } = await operator('image', tools(['docker'], ['docker']))
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringContaining('making package-lock.json') })
    expect(calls()).toEqual([
      'npm install --package-lock-only --no-audit --no-fund',
      'docker build --tag hello-operator:0.1.0 .',
    ])
  })

  test('by a Dockerfile that asks for no lock file needs none', async () => {
    rmSync(lockFile())
    writeFileSync(join(cwd, 'Dockerfile'), 'FROM scratch\nCOPY src src\n')
    await operator('image', tools(['docker'], ['docker']))
    expect(calls()).toEqual(['docker build --tag hello-operator:0.1.0 .'])
  })

  test.each([
    ['image', [], 1, 'an image is built with docker, podman, buildah, and none of them works here: install one'],
    ['image --with podman', [], 1, 'podman cannot be started: install it, or leave --with out'],
    ['image --with kaniko', [], 2, 'Allowed choices are docker, podman, buildah'],
  ])('%s is refused in one sentence', async (line, works, code, sentence) => {
    const { status, stdout, stderr } = await operator(line, tools(works, works))
    expect({ status, stdout }).toEqual({ status: code, stdout: '' })
    expect(stderr).toContain(sentence)
  })

  test('that cannot be built is a failure', async () => {
    writeFileSync(join(cwd, 'fail'), '')
    const { status, stdout, stderr } = await operator('image', tools(['docker'], ['docker']))
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toContain('shipmate: docker build failed, with exit code 7')
  })
})
