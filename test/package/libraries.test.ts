/**
 * What few operators use is not loaded by the others: what was loaded is asked of Node itself, in a process that imports the package as it is built.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const costly = ['yaml', 'liquidjs', '@marcbachmann/cel-js']

/** Which of the costly packages are loaded once an operator's process has done this. */
async function loadedBy(code: string): Promise<string[]> {
  const program = `
    import { registerHooks } from 'node:module'
    const loaded = new Set()
    registerHooks({
      load(url, context, next) {
        const name = url.match(/node_modules\\/((?:@[^/]+\\/)?[^/]+)/)?.[1]
        if (name) loaded.add(name)
        return next(url, context)
      },
    })
    const { defineCustomResource, mutable, rbacOf, yamlTemplate } = await import(${JSON.stringify(join(root, 'dist/toolkit.js'))})
    const { ConfigMap } = await import(${JSON.stringify(join(root, 'dist/kube.js'))})
    const { z } = await import('zod')
    const define = spec => defineCustomResource({ group: 'example.com', version: 'v1', kind: 'Hello', spec: z.object(spec) })
    ${code}
    console.log(JSON.stringify([...loaded]))`
  const args = ['--input-type=module', '--eval', program]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root })
  const loaded: string[] = JSON.parse(stdout)
  expect(loaded, 'the watch itself').toContain('zod')
  return loaded.filter(name => costly.includes(name)).sort()
}

test('an operator without templates and rules loads neither engine nor parser', async () => {
  const plain =
    "mutable(ConfigMap, define({ message: z.string() }), { mutateWithInitialData: () => ({ data: { a: 'b' } }) })"
  expect(await loadedBy(plain)).toEqual([])
})

test('a template works at once where one is used', async () => {
  const template = `
    const made = yamlTemplate({ text: 'data: { message: {{ message }} }' }, cr => cr)({ message: 'hello' })
    if (made.data.message !== 'hello') throw new Error(JSON.stringify(made))`
  expect(await loadedBy(template)).toEqual(['liquidjs', 'yaml'])
})

test('so does YAML, and a rule', async () => {
  expect(await loadedBy("if (!define({}).crdYaml().includes('kind: Hello')) throw new Error('no CRD')")).toEqual([
    'yaml',
  ])
  const rule = "define({ size: z.int().meta({ rules: [{ rule: 'self > 0' }] }) })"
  expect(await loadedBy(rule)).toEqual(['@marcbachmann/cel-js'])
})
