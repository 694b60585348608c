/**
 * What is generated is checked in, so that kubectl can apply it as it is.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { generated } from '../../deploy/generate.ts'

const folder = join(import.meta.dirname, '../../deploy')

test('deploy/crds is what the kinds are', async () => {
  const files = generated()
  expect(Object.keys(files)).toHaveLength(4)
  for (const [path, text] of Object.entries(files)) {
    const there = await readFile(join(folder, path), 'utf8').catch(() => '')
    expect(there, `deploy/${path} is stale: npm run gen`).toBe(text)
  }
  const found = await readdir(join(folder, 'crds'))
  expect(found.map(name => join('crds', name)).sort()).toEqual(Object.keys(files).sort())
})
