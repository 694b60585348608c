/**
 * What stands in deploy/ is taken by an API server as a person applies it.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { parse } from 'yaml'
import { type Access, connect } from '../../controller/kube/access.ts'
import { Namespace } from '../../controller/kube/kinds.ts'
import { validateLifecycle } from '../../shared/lifecycle/validate.ts'
import { kubectl, kubectlMissing } from '../fixtures/kubectl.ts'
import { installOwnKinds } from '../fixtures/own-kinds.ts'
import { skipFile } from '../fixtures/skip-file.ts'

const file = inject('kubeconfig')
const folder = join(import.meta.dirname, '../../deploy')
const namespace = 'deploy'
const jsonpath = 'jsonpath={range .items[*]}{.metadata.name} {.metadata.resourceVersion}{"\\n"}{end}'

skipFile(kubectlMissing)

describe.skipIf(!file)('deploy', () => {
  let access: Access

  beforeAll(async () => {
    access = connect({ kubeconfig: { file } })
    await access.client.create(Namespace, { metadata: { name: namespace } })
    await installOwnKinds(access.client)
  })
  afterAll(() => access.close())

  const apply = (...args: string[]) => kubectl(file, '-n', namespace, 'apply', '--validate=strict', ...args)

  test('kubectl applies the CRDs', async () => {
    const said = await apply('--server-side', '--force-conflicts', '-f', join(folder, 'crds'))
    expect(said.trim().split('\n')).toHaveLength(4)
  })

  test.each(['lifecycles', 'samples'])('kubectl applies %s, with strict validation, again and again', async kind => {
    const said = await apply('-f', join(folder, kind))
    expect(said.trim().split('\n').length).toBeGreaterThan(3)
    // kubectl says "configured" of lists whose items have defaults; nothing is written all the same.
    const versions = () =>
      kubectl(file, '-n', namespace, 'get', 'lifecycles,statefulapps,operations,operationschedules', '-o', jsonpath)
    const before = await versions()
    await apply('-f', join(folder, kind))
    expect(await versions()).toBe(before)
  })

  test.each(['generic', 'memcached', 'postgres', 'redis'])('%s is still right with defaults filled in', async name => {
    const text = await kubectl(file, '-n', namespace, 'get', 'lifecycle', name, '-o', 'yaml')
    expect(validateLifecycle(parse(text).spec, { requireStates: true }).problems).toEqual([])
    expect(parse(await readFile(join(folder, 'lifecycles', `${name}.yaml`), 'utf8')).spec.states).toEqual(
      parse(text).spec.states,
    )
  })
})
