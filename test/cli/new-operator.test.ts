import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import manifest from '../../package.json' with { type: 'json' }
import { emptyFolder, shipmate } from './shipmate.ts'

const filesOf = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort()

test('writes a project, names each file, and says what comes next', async () => {
  const cwd = emptyFolder()
  const { status, stdout, stderr } = await shipmate(['new', 'operator', 'cache-operator'], { cwd })
  expect(status).toBe(0)
  const files = filesOf(join(cwd, 'cache-operator'))
  expect(stdout).toBe(files.map(file => `created cache-operator/${file}\n`).join(''))
  expect(stderr).toBe('next: cd cache-operator && npm install && npm test; README.md goes on from there\n')
  expect(files.map(file => readFileSync(join(cwd, 'cache-operator', file), 'utf8')).join('')).not.toMatch(/\{\{|\{%/)
  expect(files).toEqual(
    expect.arrayContaining([
      'Dockerfile',
      'README.md',
      'package.json',
      'sample.yaml',
      'shipmate.yaml',
      'src/definition.ts',
    ]),
  )
})

test('its names follow from the options', async () => {
  const cwd = emptyFolder()
  const options = ['--kind', 'Memcached', '--group', 'cache.example.com', '--version', 'v1', '--path', 'there']
  await shipmate(['new', 'operator', 'mc', ...options, '--registry', 'registry.example.com:5000/team'], { cwd })
  const read = (file: string) => readFileSync(join(cwd, 'there', file), 'utf8')
  expect(parse(read('shipmate.yaml'))).toEqual({
    ...{ registry: 'registry.example.com:5000/team', name: 'mc', tag: '0.1.0', namespace: 'mc' },
  })
  expect(parse(read('sample.yaml'))).toMatchObject({ apiVersion: 'cache.example.com/v1', kind: 'Memcached' })
  expect(read('src/definition.ts')).toContain("group: 'cache.example.com',\n  version: 'v1',\n  kind: 'Memcached',")
})

test('depends on what this package was tested with', async () => {
  const cwd = emptyFolder()
  await shipmate(['new', 'operator', 'mc'], { cwd })
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(cwd, 'mc/package.json'), 'utf8'))
  expect(dependencies).toEqual({ shipmate: `^${manifest.version}`, zod: `^${manifest.dependencies.zod}` })
  expect(devDependencies.vitest).toBe(`^${manifest.devDependencies.vitest}`)
})

test('takes a packed shipmate with it', async () => {
  const cwd = emptyFolder()
  writeFileSync(join(cwd, 'shipmate-1.tgz'), 'packed')
  await shipmate(['new', 'operator', 'mc', '--shipmate', './shipmate-1.tgz'], { cwd })
  const { dependencies } = JSON.parse(readFileSync(join(cwd, 'mc/package.json'), 'utf8'))
  expect(dependencies.shipmate).toBe('file:vendor/shipmate-1.tgz')
  expect(readFileSync(join(cwd, 'mc/vendor/shipmate-1.tgz'), 'utf8')).toBe('packed')
  expect(readFileSync(join(cwd, 'mc/Dockerfile'), 'utf8')).toContain('\nCOPY vendor vendor\n')
  await shipmate(['new', 'operator', 'published'], { cwd })
  expect(readFileSync(join(cwd, 'published/Dockerfile'), 'utf8')).not.toContain('vendor')
})

test('once more changes nothing, and puts back what is missing', async () => {
  const cwd = emptyFolder()
  const args = ['new', 'operator', 'mc', '--path', '.']
  await shipmate(args, { cwd })
  const again = await shipmate(args, { cwd })
  expect(again.status).toBe(0)
  expect(
    new Set(
      again.stdout
        .trim()
        .split('\n')
        .map(line => line.split(' ')[0]),
    ),
  ).toEqual(new Set(['unchanged']))
})

test('what somebody has changed is not overwritten, and then nothing is written', async () => {
  const cwd = emptyFolder()
  writeFileSync(join(cwd, 'README.md'), 'mine\n')
  const { status, stdout, stderr } = await shipmate(['new', 'operator', 'mc', '--path', '.'], { cwd })
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
  expect(stderr).toBe(
    'shipmate: README.md is there already, with another text: move or delete that one, or choose another place; nothing was written\n',
  )
  expect(filesOf(cwd)).toEqual(['README.md'])
})

test.each([
  [['Bad_Name'], 'the name "Bad_Name" has to be lower-case letters'],
  [['x'.repeat(51)], 'at most 50'],
  [['../up'], 'the name "../up" has to be'],
  [['config-map-operator'], "ConfigMap is a kind of Kubernetes' own: say another by --kind"],
  [['x', '--kind', 'lower'], 'kind: "lower" is not accepted'],
  [['x', '--group', 'nodot'], 'group: "nodot" is not accepted'],
  [['x', '--group', 'apps.k8s.io'], 'belongs to Kubernetes itself'],
  [['x', '--version', '1'], 'version: "1" is not accepted'],
  [['x', '--registry', 'Not A Registry'], '--registry "Not A Registry" has to be a registry'],
  [['x', '--shipmate', 'none.tgz'], 'there is no file none.tgz'],
])('%j is refused, and nothing is written', async (args, sentence) => {
  const cwd = emptyFolder()
  const { status, stdout, stderr } = await shipmate(['new', 'operator', ...args], { cwd })
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
  expect(stderr).toContain(sentence)
  expect(filesOf(cwd)).toEqual([])
})
