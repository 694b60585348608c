/**
 * What is generated for the examples is checked in, so that kubectl can apply it as it is.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { generated } from '../../examples/generate.ts'

const folder = join(import.meta.dirname, '../../examples')

test('is what the operators declare', async () => {
  const files = await generated()
  expect(Object.keys(files)).toEqual(expect.arrayContaining(['memcached/crd.yaml', 'myownshell/rbac.yaml']))
  for (const [path, text] of Object.entries(files)) {
    const there = await readFile(join(folder, path), 'utf8').catch(() => '')
    expect(there, `examples/${path} is stale: node examples/generate.ts`).toBe(text)
  }
})
