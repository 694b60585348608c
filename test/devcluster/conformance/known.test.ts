/** What the fuzzer lets pass is what docs/devcluster.md tells of, in the same words. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ending, known } from './known.ts'

test('every difference that the fuzzer knows is listed, and every one that is listed it knows', async () => {
  const page = await readFile(join(import.meta.dirname, '../../../docs/devcluster.md'), 'utf8')
  const [, section = ''] = page.split('### Found by the fuzzer\n')
  const listed = [...(section.split('\n## ')[0] ?? '').matchAll(/^- (.*)$/gm)].map(([, words]) => words)
  expect(listed.sort()).toEqual([...known.map(({ words }) => words), ...ending].sort())
})
