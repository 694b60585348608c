/**
 * What is generated is checked in, so that kubectl and helm can take it as it is.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { generated, generatedFolders } from '../../deploy/generate.ts'

const folder = join(import.meta.dirname, '../../deploy')
const files = generated()

test.each(Object.keys(files))('deploy/%s is what its source is', async path => {
  const there = await readFile(join(folder, path), 'utf8').catch(() => '')
  expect(there, `deploy/${path} is stale: npm run gen`).toBe(files[path])
})

test('nothing else stands beside it', async () => {
  const found = await Promise.all(
    generatedFolders.map(async name => {
      const entries = await readdir(join(folder, name), { recursive: true, withFileTypes: true })
      return entries.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name))
    }),
  )
  const expected = Object.keys(files).filter(path => generatedFolders.includes(path.split('/')[0] ?? ''))
  expect(found.flat().sort()).toEqual(expected.map(path => join(folder, path)).sort())
})
