/**
 * docs/testing.md, done as it says: its files are written as they stand there, and pass in a vitest of their own, with the package as it is built.
 */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'

const root = join(import.meta.dirname, '../..')

async function filesOfThePage(): Promise<Map<string, string>> {
  const page = await readFile(join(root, 'docs/testing.md'), 'utf8')
  const files = new Map<string, string>()
  for (const [, name = '', text = ''] of page.matchAll(/^```ts\n\/\/ (\S+)\n(.*?)^```$/gms))
    files.set(name, `${files.get(name) ?? ''}${text}\n`)
  return files
}

it('the examples pass', async () => {
  await mkdir(join(root, '.cache'), { recursive: true })
  // Inside of the package: so `shipmate` is this one, as built.
  const folder = await mkdtemp(join(root, '.cache/testing-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const files = await filesOfThePage()
  expect([...files.keys()].sort()).toEqual(['greeting.test.ts', 'greeting.ts', 'plain.test.ts'])
  for (const [name, text] of files) await writeFile(join(folder, name), text)
  await writeFile(join(folder, 'vitest.config.ts'), 'export default { test: { include: ["*.test.ts"] } }\n')
  const { KUBEBUILDER_ASSETS: _, ...env } = process.env
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const { stdout } = await promisify(execFile)(process.execPath, [vitest, 'run', '--root', folder], {
    cwd: folder,
    env: { ...env, NO_COLOR: '1' },
    maxBuffer: 1 << 26,
  }).catch(error => {
    throw new Error(`${error.stdout}${error.stderr}`)
  })
  expect(stdout).toMatch(/Tests {2}4 passed/)
  expect(stdout).toMatch(/everyFault: \d+ runs .* seed 1$/m)
})
