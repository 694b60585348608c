import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { emptyFolder, newProject, root, run, shipmate } from './shipmate.ts'

let cwd: string
beforeEach(async () => {
  cwd = await newProject()
})
const gen = (line: string, folder = cwd) => shipmate(['gen', 'resource', ...line.split(' ')], { cwd: folder })
const read = (file: string) => readFileSync(join(cwd, file), 'utf8')
const write = (file: string, text: string) => writeFileSync(join(cwd, file), text)
const compiles = () => run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', '.'], { cwd })

const statefulSet = `# A server.
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: somewhere, labels: {a: b}}
spec:
  replicas: 2 # two
  serviceName: db
status: {replicas: 2}
`

test('code for each built-in kind passes the type check of a project', async () => {
  const { stdout } = await gen('--list')
  const types = stdout
    .trim()
    .split('\n')
    .slice(1)
    .map(line => line.split(' ')[0] ?? '')
  expect(types.length).toBeGreaterThan(30)
  for (const type of ['StatefulSet', 'Secret', 'ClusterRole', 'Ingress', 'Event']) {
    expect((await gen(`--type ${type}`)).stdout).toMatch(/^created src\/.*\.ts\n$/)
  }
  write('db.yaml', statefulSet)
  await gen('--name db db.yaml')
  write('dictionary.yaml', '- {group: kmm.sigs.x-k8s.io, version: v1beta1, kind: Module}\n')
  await gen('--dictionary dictionary.yaml --type Module')
  await gen('--type Pod --kind Elsewhere --group other.example.com --version v1')
  mkdirSync(join(cwd, 'node_modules/@types'))
  symlinkSync(join(root, 'node_modules/@types/node'), join(cwd, 'node_modules/@types/node'))
  symlinkSync(join(root, 'node_modules/vitest'), join(cwd, 'node_modules/vitest'))
  expect(await compiles()).toEqual({ status: 0, stdout: '', stderr: '' })
})

test('it has the three places to fill in', async () => {
  await gen('--type ConfigMap --name settings')
  expect(read('src/settings.ts')).toBe(`/**
 * The ConfigMap of a Hello.
 */
import { mutable } from 'shipmate'
import { ConfigMap } from 'shipmate/kube'
import { Hello } from './definition.ts'

export const settings = mutable(ConfigMap, Hello, {
  name: cr => \`\${cr.metadata.name}-settings\`,

  // What it begins with.
  mutateWithInitialData: cr => ({ metadata: { labels: { 'app.kubernetes.io/instance': cr.metadata.name } } }),

  // What of the Hello it follows: \`object.spec.size = cr.spec.size\`.
  mutateWithCR(_object, _cr) {},

  // Which parts count: while these are as wished, nothing is written. Without it: every field.
  getHashableRef: () => ['labels', 'data'],
})
`)
})

test('a manifest becomes a template beside it, without what the operator gives, its comments kept', async () => {
  write('db.yaml', statefulSet)
  expect((await gen('db.yaml')).stdout).toBe('created src/stateful-set.ts\ncreated src/stateful-set.yaml\n')
  expect(read('src/stateful-set.yaml')).toBe(
    '# A server.\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: { labels: { a: b } }\nspec:\n  replicas: 2 # two\n  serviceName: db\n',
  )
  expect(read('src/stateful-set.ts')).toContain(
    "yamlTemplate(new URL('./stateful-set.yaml', import.meta.url), () => ({}))",
  )
})

test('a manifest that is a template already is taken as it is', async () => {
  const text = 'apiVersion: v1\nkind: Secret\ndata:\n  {% for k in keys %}{{ k }}: x{% endfor %}\n'
  write('secret.yaml', text)
  await gen('secret.yaml')
  expect(read('src/secret.yaml')).toBe(text)
})

test('--list prints type, group, version and kind; without a cluster, those built in', async () => {
  const { status, stdout, stderr } = await gen('--list', emptyFolder())
  expect(status).toBe(0)
  expect(stderr).toMatch(/^types are those built in, as no cluster answers: .*\n$/)
  expect(stdout).toMatch(/^TYPE +GROUP +VERSION +KIND\n/)
  expect(stdout).toMatch(/^Deployment +apps +v1 +Deployment$/m)
  expect(stdout).toMatch(/^ConfigMap +core +v1 +ConfigMap$/m)
})

test('a dictionary adds types, and replaces them', async () => {
  write(
    'd.yaml',
    '- {type: Module, group: kmm.example.com, version: v1beta1, kind: Module}\n- {group: apps, version: v2, kind: Deployment}\n',
  )
  const { stdout } = await gen('--list --dictionary d.yaml')
  expect(stdout).toMatch(/^Module +kmm\.example\.com +v1beta1 +Module$/m)
  expect(stdout).toMatch(/^Deployment +apps +v2 +Deployment$/m)
  await gen('--type deployments --dictionary d.yaml')
  expect(read('src/deployment.ts')).toContain(
    "{ group: 'apps', version: 'v2', kind: 'Deployment', plural: 'deployments' }",
  )
})

test('once more changes nothing; what somebody has filled in is not overwritten', async () => {
  await gen('--type Service')
  expect((await gen('--type Service')).stdout).toBe('unchanged src/service.ts\n')
  write('src/service.ts', `${read('src/service.ts')}// mine\n`)
  const { status, stderr } = await gen('--type Service')
  expect(status).toBe(1)
  expect(stderr).toContain('src/service.ts is there already, with another text')
  expect(read('src/service.ts')).toContain('// mine')
})

test.each([
  ['--name x', 2, 'say what it is, by --type or by a manifest (--list prints the types)'],
  ['--type Deploymnt', 2, 'the dictionary has no type "Deploymnt"; did you mean "Deployment"?'],
  ['--type Service --kind Other', 2, 'say whose child it is, by --kind, --group and --version'],
  ['--type Service --group other.example.com', 2, 'the group of Hello in src/definition.ts is example.com'],
  ['--type Service --kind lower --group g.example.com --version v1', 2, 'kind: "lower" is not accepted'],
  ['--type Service none.yaml', 2, 'the manifest cannot be read'],
  ['--type Service db.yaml', 2, 'db.yaml is a StatefulSet of apps/v1, and Service is a Service of v1'],
  ['two.yaml', 1, 'two.yaml has to be one object, and has several'],
  ['odd.yaml', 1, 'odd.yaml has to be one object, with an apiVersion and a kind'],
  ['--list --dictionary odd.yaml', 1, 'the dictionary odd.yaml has to be a list'],
])('%s is refused in one sentence', async (line, code, sentence) => {
  write('db.yaml', statefulSet)
  write('two.yaml', `${statefulSet}---\n${statefulSet}`)
  write('odd.yaml', 'a: b\n')
  const { status, stdout, stderr } = await gen(line)
  expect({ status, stdout }).toEqual({ status: code, stdout: '' })
  expect(stderr).toContain(`shipmate: ${sentence}`)
})
