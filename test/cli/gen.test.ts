/**
 * `gen crd`, `gen rbac` and `gen webhook`, on a project as it is generated and on modules of other shapes.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { newProject, shipmate } from './shipmate.ts'

let cwd: string
beforeEach(async () => {
  cwd = await newProject()
})
const gen = (line: string) => shipmate(['gen', ...line.split(' ')], { cwd })
const write = (file: string, text: string) => writeFileSync(join(cwd, file), text)

describe('gen crd', () => {
  test.each(['src/definition.ts', 'src/operator.ts'])(
    'prints the CRD of what %s exports, and nothing else',
    async file => {
      const { status, stdout, stderr } = await gen(`crd ${file}`)
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
      expect(parse(stdout)).toMatchObject({
        kind: 'CustomResourceDefinition',
        metadata: { name: 'hellos.example.com' },
      })
    },
  )

  test('writes files, by the custom of Kubernetes, once', async () => {
    expect((await gen('crd src/definition.ts -o deploy')).stdout).toBe('created deploy/example.com_hellos.yaml\n')
    expect((await gen('crd src/definition.ts -o deploy')).stdout).toBe('unchanged deploy/example.com_hellos.yaml\n')
    expect(await gen('crd src/definition.ts -o deploy --check')).toEqual({ status: 0, stdout: '', stderr: '' })
  })

  test('--check fails when a file is missing or stale, and writes nothing', async () => {
    const again = 'run shipmate gen crd src/definition.ts --output deploy\n'
    expect(await gen('crd src/definition.ts -o deploy --check')).toEqual({
      ...{ status: 1, stdout: '' },
      stderr: `shipmate: deploy/example.com_hellos.yaml is missing: ${again}`,
    })
    await gen('crd src/definition.ts -o deploy')
    const source = readFileSync(join(cwd, 'src/definition.ts'), 'utf8')
    write('src/definition.ts', source.replace('max(1000)', 'max(2000)'))
    expect((await gen('crd src/definition.ts -o deploy --check')).stderr).toBe(
      `shipmate: deploy/example.com_hellos.yaml is stale: ${again}`,
    )
    expect((await gen('crd src/definition.ts -o deploy')).stdout).toBe('updated deploy/example.com_hellos.yaml\n')
  })

  test('--check without a folder is misuse', async () => {
    expect(await gen('crd src/definition.ts --check')).toEqual({
      ...{ status: 2, stdout: '' },
      stderr: 'shipmate: --check compares with files: say where they are, by --output: see shipmate gen crd --help.\n',
    })
  })

  test('a version that stands in another definition has no file of its own', async () => {
    write(
      'src/versions.ts',
      `import { defineCustomResource } from 'shipmate'
       import { z } from 'zod'
       const names = { group: 'example.com', kind: 'Site', spec: z.object({ size: z.int() }) }
       export const Old = defineCustomResource({ ...names, version: 'v1alpha1', storage: false })
       export const Site = defineCustomResource({ ...names, version: 'v1', versions: [Old] })`,
    )
    const { stdout } = await gen('crd src/versions.ts')
    expect(parse(stdout).spec.versions.map(({ name }: { name: string }) => name)).toEqual(['v1', 'v1alpha1'])
  })

  test.each([
    [
      'export const nothing = 1',
      'src/odd.ts exports nothing that defineCustomResource made, and no operator for such a kind',
    ],
    ["throw new Error('it is broken')", 'src/odd.ts cannot be loaded: it is broken'],
    ["import 'not-installed'", "src/odd.ts cannot be loaded: Cannot find package 'not-installed'"],
  ])('%s is refused in one sentence', async (text, sentence) => {
    write('src/odd.ts', text)
    const { status, stdout, stderr } = await gen('crd src/odd.ts')
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toContain(`shipmate: ${sentence}`)
    expect(stderr.trim().split('\n')).toHaveLength(1)
  })
})

describe('gen rbac', () => {
  const rulesIn = (text: string) =>
    parseAllDocuments(text)
      .map(document => document.toJS())
      .filter(({ kind }) => kind === 'ClusterRole')
      .flatMap(({ rules }) => rules)

  test('has what the operator declares, and no more', async () => {
    const { status, stdout } = await gen('rbac src/operator.ts')
    expect(status).toBe(0)
    const rules = rulesIn(stdout) as { resources: string[]; verbs: string[] }[]
    expect(rules.flatMap(({ resources, verbs }) => verbs.map(verb => `${verb} ${resources}`))).not.toContainEqual(
      expect.stringMatching(/\*|secrets|pods/),
    )
    expect(rules.find(({ resources }) => resources[0] === 'configmaps')?.verbs).toEqual([
      ...['get', 'list', 'watch', 'create', 'patch', 'delete'],
    ])
  })

  test('name and namespace follow the setting, or the options', async () => {
    write('shipmate.yaml', 'name: one\ntag: 1\nnamespace: here\n')
    const account = async (line: string) => parseAllDocuments((await gen(line)).stdout)[0]?.toJS().metadata
    expect(await account('rbac src/operator.ts')).toEqual({ name: 'one', namespace: 'here' })
    expect(await account('rbac src/operator.ts --name two --namespace there')).toEqual({
      name: 'two',
      namespace: 'there',
    })
  })

  test('of several operators the lease is that of the first in their list', async () => {
    const two = `import { advancedReconciler } from 'shipmate'
      import { Hello } from './definition.ts'
      export const a = advancedReconciler(Hello, { name: 'second' })
      export const b = advancedReconciler(Hello, { name: 'first' })\n`
    write('src/two.ts', two)
    const unclear = await gen('rbac src/two.ts')
    expect(unclear.status).toBe(1)
    expect(unclear.stderr).toContain('export them as one list')
    write('src/two.ts', `${two}export const operators = [b, a]`)
    expect((await gen('rbac src/two.ts')).stdout).toContain('resourceNames:\n      - first\n')
  })

  test('a module without an operator is refused', async () => {
    expect(await gen('rbac src/definition.ts')).toEqual({
      ...{ status: 1, stdout: '', stderr: 'shipmate: src/definition.ts exports no operator\n' },
    })
  })
})

describe('gen webhook', () => {
  const definition = `import { advancedReconciler, defineCustomResource } from 'shipmate'
    import { z } from 'zod'
    const spec = z.object({ size: z.int() })
    const Old = defineCustomResource({ group: 'example.com', version: 'v1', kind: 'Boat', spec, storage: false })
    export const Boat = defineCustomResource({
      group: 'example.com', version: 'v2', kind: 'Boat', spec, versions: [Old],
      default() {},
      validate: () => [],
      convert: { v1: { up: ({ spec }) => ({ spec }), down: ({ spec }) => ({ spec }) } },
    })
    export const operator = advancedReconciler(Boat, { name: 'fleet' })\n`
  const objectsIn = (text: string) => parseAllDocuments(text).map(document => document.toJS())

  test('has the Service and the registrations, by the names that the operator uses', async () => {
    write('src/boat.ts', definition)
    write('shipmate.yaml', 'name: one\ntag: 1\nnamespace: here\n')
    const { status, stdout, stderr } = await gen('webhook src/boat.ts')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const [service, mutating, validating, ...others] = objectsIn(stdout)
    expect(others).toEqual([])
    expect(service).toMatchObject({
      ...{ kind: 'Service', metadata: { name: 'fleet-webhook', namespace: 'here' } },
      spec: { selector: { 'app.kubernetes.io/name': 'one' }, ports: [{ port: 443, targetPort: 'webhooks' }] },
    })
    const at = { name: 'fleet-webhook', namespace: 'here', port: 443 }
    expect(mutating).toMatchObject({
      ...{ kind: 'MutatingWebhookConfiguration', metadata: { name: 'fleet' } },
      webhooks: [
        {
          ...{ name: 'default.boats.example.com', failurePolicy: 'Fail', sideEffects: 'None' },
          clientConfig: { service: { ...at, path: '/default/boats.example.com' } },
          rules: [{ operations: ['CREATE', 'UPDATE'], apiVersions: ['v2'], resources: ['boats'] }],
        },
      ],
    })
    expect(validating).toMatchObject({
      ...{ kind: 'ValidatingWebhookConfiguration', metadata: { name: 'fleet' } },
      webhooks: [{ clientConfig: { service: { ...at, path: '/validate/boats.example.com' } } }],
    })
    expect(parse((await gen('crd src/boat.ts')).stdout).spec.conversion).toEqual({
      strategy: 'Webhook',
      webhook: {
        clientConfig: { service: { ...at, path: '/convert/boats.example.com' } },
        conversionReviewVersions: ['v1'],
      },
    })
  })

  test('all of it is among what deploy applies, and the registrations come last', async () => {
    write('src/operator.ts', definition)
    const { stdout } = await shipmate(['operator', 'manifests'], { cwd })
    const objects = objectsIn(stdout)
    expect(objects.map(({ kind }) => kind).slice(-4)).toEqual([
      ...['Service', 'Deployment', 'MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'],
    ])
    const rules = objects.filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role').flatMap(one => one.rules)
    expect(rules).toContainEqual({
      ...{ apiGroups: ['admissionregistration.k8s.io'], resources: ['validatingwebhookconfigurations'] },
      ...{ verbs: ['get', 'list', 'watch', 'patch'], resourceNames: ['fleet'] },
    })
    expect(rules).toContainEqual({
      ...{ apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list', 'watch', 'update'] },
      resourceNames: ['fleet-webhook-tls'],
    })
    expect(rules.filter(({ resources, resourceNames }) => resources.includes('secrets') && !resourceNames)).toEqual([
      { apiGroups: [''], resources: ['secrets'], verbs: ['create'] },
    ])
    const [container] = objects.find(({ kind }) => kind === 'Deployment').spec.template.spec.containers
    expect(container.ports).toContainEqual({ name: 'webhooks', containerPort: 9443 })
  })

  test('a module whose kinds have none is refused', async () => {
    expect(await gen('webhook src/operator.ts')).toEqual({
      ...{ status: 1, stdout: '' },
      stderr: 'shipmate: src/operator.ts exports no definition with default, validate or convert\n',
    })
  })
})
