/**
 * What goes into the images: the controller's program works by itself, and what is in both is written down, in CycloneDX as its schema has it.
 */
import { execFile } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Spec, Validation } from '@cyclonedx/cyclonedx-library'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import lock from '../../package-lock.json' with { type: 'json' }

const dist = join(import.meta.dirname, '../../dist')
const read = (name: string) => readFileSync(join(dist, name), 'utf8')

interface Component {
  name: string
  group?: string
  version: string
  purl: string
  'bom-ref': string
  hashes: { alg: string; content: string }[]
  licenses?: object[]
}

describe.each([
  ['agent', 'shipmate-sidecar'],
  ['controller', 'shipmate-controller'],
])('what is in %s.cjs', (file, name) => {
  const text = read(`${file}.cdx.json`)
  const bom = JSON.parse(text)
  const components: Component[] = bom.components
  const folders = components.map(one => one['bom-ref'])

  test('is CycloneDX, by its own schema', async () => {
    const problems = await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(text)
    expect(problems).toBeNull()
  })

  test('a wrong document would be found out', async () => {
    const wrong = JSON.stringify({ ...bom, specVersion: '1.6', components: [{ type: 'thing', name: 1 }] })
    expect(await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(wrong)).not.toBeNull()
  })

  test('is named, and has no time in it', () => {
    expect(bom.metadata.component).toMatchObject({ name, version: manifest.version })
    expect(bom.metadata.timestamp).toBeUndefined()
    expect(bom.serialNumber).toBeUndefined()
  })

  test('is in the lock file, with that version and hash, and has a licence', () => {
    const packages: Record<string, { version?: string; integrity?: string }> = lock.packages
    for (const one of components) {
      const { version, integrity } = packages[one['bom-ref']] ?? {}
      expect({ of: one['bom-ref'], version: one.version }).toEqual({ of: one['bom-ref'], version })
      const [hash] = one.hashes
      expect(`sha512-${Buffer.from(hash?.content ?? '', 'hex').toString('base64')}`).toBe(integrity)
      expect(one.licenses, one.name).toHaveLength(1)
    }
  })

  test('depends on nothing that is not there', () => {
    const known = new Set([name, ...folders])
    for (const { ref, dependsOn = [] } of bom.dependencies)
      for (const one of [ref, ...dependsOn]) expect(known).toContain(one)
  })

  test('has no native module', () => {
    expect(read(`${file}.cjs`)).not.toMatch(/require\("[^"]*\.node"\)/)
  })
})

test('what is left out of the agent is not listed, what both have is', () => {
  const names = (file: string) => JSON.parse(read(file)).components.map(({ name }: Component) => name)
  expect(names('agent.cdx.json')).toEqual(expect.arrayContaining(['express', 'yaml', 'ws', 'pino']))
  for (const absent of ['body-parser', 'serve-static', 'undici', 'commander'])
    expect(names('agent.cdx.json')).not.toContain(absent)
  expect(names('controller.cdx.json')).toEqual(expect.arrayContaining(['undici', 'commander', 'ws', 'pino', 'yaml']))
  expect(names('controller.cdx.json')).not.toContain('express')
})

test('nothing is listed that is not passed on with its licence', () => {
  const licenses = read('THIRD-PARTY-LICENSES.txt')
  const all: Component[] = ['agent', 'controller'].flatMap(file => JSON.parse(read(`${file}.cdx.json`)).components)
  for (const { group, name, version } of all)
    expect(licenses).toContain(`${group ? `${group}/` : ''}${name} ${version}\n---`)
})

describe('controller.cjs', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'shipmate-controller-'))
    copyFileSync(join(dist, 'controller.cjs'), join(folder, 'controller.cjs'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  const run = async (...args: string[]) => {
    const done = promisify(execFile)(process.execPath, [join(folder, 'controller.cjs'), ...args], {
      cwd: folder,
      env: {},
    })
    return done.catch(error => error as { code: number; stdout: string; stderr: string })
  }

  test('needs nothing beside it, and knows its version', async () => {
    expect((await run('--version')).stdout).toBe(`${manifest.version}\n`)
    expect((await run('controller', '--help')).stdout).toContain('--metrics-auth')
  })

  test.each([
    [['controller', '--metric-port', '1'], 'did you mean "--metrics-port"?'],
    [['controller', '--metrics-port', 'x'], '--metrics-port x: a number up to 65535'],
    [['controller', '--metrics-port', '8081'], '--metrics-port 8081: another than --port, which is served without TLS'],
  ])('refuses %j in one sentence', async (args, sentence) => {
    const { code, stderr } = (await run(...args)) as { code: number; stderr: string }
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(sentence) })
  })
})
