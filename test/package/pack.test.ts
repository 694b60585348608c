/**
 * What `npm pack` makes can be used by somebody who has nothing else: it holds what it should, installs in an empty project,
 * its modules load, its binaries run, and its types pass the strictest check a user may have.
 */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }

const root = join(import.meta.dirname, '../..')
const subpaths = Object.keys(manifest.exports)
  .filter(path => path !== './package.json')
  .map(path => `shipmate${path.slice(1)}`)
const quiet = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']

let project: string
let packed: string[]

async function run(command: string, args: string[], cwd = project): Promise<{ status: number; output: string }> {
  // npm hands its settings to what it runs; the project is to be a stranger to this one.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)))
  try {
    const { stdout, stderr } = await promisify(execFile)(command, args, { cwd, env, maxBuffer: 1 << 26 })
    return { status: 0, output: stdout + stderr }
  } catch (error) {
    if (!(error instanceof Error && 'stdout' in error && 'stderr' in error && 'code' in error)) throw error
    return { status: Number(error.code), output: `${error.stdout}${error.stderr}` }
  }
}

async function succeed(command: string, args: string[], cwd?: string): Promise<string> {
  const { status, output } = await run(command, args, cwd)
  if (status !== 0) throw new Error(`${basename(command)} ${args.join(' ')} failed:\n${output}`)
  return output
}

const node = (code: string) => run(process.execPath, ['--input-type=module', '--eval', code])

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'shipmate-pack-'))
  await succeed('npm', ['pack', '--pack-destination', project, '--loglevel=error'], root)
  const tarball = join(project, `shipmate-${manifest.version}.tgz`)
  packed = (await succeed('tar', ['tzf', tarball]))
    .trim()
    .split('\n')
    .map(path => path.replace(/^package\//, ''))
  await writeFile(join(project, 'package.json'), JSON.stringify({ name: 'stranger', private: true, type: 'module' }))
  await succeed('npm', ['install', ...quiet, tarball, `typescript@${manifest.devDependencies.typescript}`])
}, 300_000)

afterAll(() => rm(project, { recursive: true, force: true }))

test('holds what it should and nothing else', () => {
  const top = new Set(packed.map(path => path.split('/')[0]))
  expect([...top].sort()).toEqual([
    ...['CHANGELOG.md', 'LICENSE', 'NOTICE', 'README.md', 'bin', 'cli', 'deploy', 'dist', 'examples', 'package.json'],
  ])
  // What the demo applies and runs, and the templates of projects.
  const read = /^(cli\/templates\/.*\.liquid|deploy\/crds\/.*\.yaml|examples\/kv\/.*)$/
  const inside = packed.filter(path => path.includes('/') && !read.test(path))
  expect(inside.filter(path => !/\.(d\.ts|js|cjs|txt)$/.test(path))).toEqual([])
})

test.each(subpaths)('%s can be imported, and exports something', async subpath => {
  const { status, output } = await node(`console.log(Object.keys(await import('${subpath}')).length)`)
  expect({ status, output }).toEqual({ status: 0, output: expect.stringMatching(/^[1-9]\d*\n$/) })
})

test.each(['shipmate/nothing', 'shipmate/dist/kube.js', 'shipmate/cli'])('%s cannot be imported', async name => {
  const { output } = await node(`await import('${name}').catch(error => console.log(error.code))`)
  expect(output).toBe('ERR_PACKAGE_PATH_NOT_EXPORTED\n')
})

test.each(Object.keys(manifest.bin))('%s runs', async name => {
  expect(await succeed(join(project, 'node_modules/.bin', name), ['--version'])).toBe(`${manifest.version}\n`)
})

test.each([
  { module: 'node16', moduleResolution: 'node16' },
  { module: 'nodenext', moduleResolution: 'nodenext' },
  { module: 'esnext', moduleResolution: 'bundler' },
])('types pass under $moduleResolution resolution, libraries checked', async resolution => {
  const folder = join(project, `types-${resolution.moduleResolution}`)
  const uses = subpaths.flatMap((path, i) => [
    `import * as part${i} from '${path}'`,
    `// @ts-expect-error There is no such export: the types are really there.`,
    `part${i}.nothing`,
  ])
  const compilerOptions = { ...resolution, target: 'es2024', strict: true, skipLibCheck: false, noEmit: true }
  await mkdir(folder)
  await writeFile(join(folder, 'use.ts'), uses.join('\n'))
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['use.ts'] }))
  expect(await run(join(project, 'node_modules/.bin/tsc'), ['-p', folder])).toEqual({ status: 0, output: '' })
})

test('publint has nothing to say', async () => {
  const { messages, pkg } = await publint({ pkgDir: join(project, 'node_modules/shipmate'), strict: true, pack: false })
  expect(messages.map(message => formatMessage(message, pkg))).toEqual([])
})
