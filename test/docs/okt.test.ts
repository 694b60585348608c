/**
 * docs/okt.md names a test for each of OKT's ideas and bugs. Here it is seen that each is there, by its file and its words.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/okt.md'), 'utf8')
const named = [...page.matchAll(/\| ([\w./-]+\.test\.ts): ?(.*?) \|$/gm)].map(([, file = '', words = '']) => ({
  file,
  words,
}))

it('every row of the two tables names a test', () => {
  const rows = page.split('\n').filter(line => line.startsWith('| ') && !/^\| (OKT|bug) \|/.test(line))
  expect(named).toHaveLength(rows.length)
  expect(rows.filter(row => /^\| \d+\. /.test(row))).toHaveLength(14)
})

it.each(named)('$file has the test "$words"', ({ file, words }) => {
  const path = join(root, 'test/toolkit', file)
  expect(existsSync(path), `${file} is not there`).toBe(true)
  expect(readFileSync(path, 'utf8')).toContain(words)
})
