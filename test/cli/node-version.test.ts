/**
 * On a Node that is too old each binary says so in one sentence and exits with 1; on any other it runs.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }

const root = join(import.meta.dirname, '../..')
const binaries = Object.entries(manifest.bin)

function run(node: string, args: string[], env: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(node, args, { encoding: 'utf8', env: { ...process.env, ...env } })
  return { status, stdout, stderr }
}

function pretend(version: string, binary: string) {
  const args = ['--require', join(import.meta.dirname, 'old-node.cjs'), join(root, binary), '--version']
  return run(process.execPath, args, { SHIPMATE_FAKE_NODE: version })
}

function isOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < 22 || (major === 22 && minor < 19)
}

/** The oldest real Node on the PATH that is too old. */
function oldNode(): { path: string; version: string } | undefined {
  const paths = (process.env.PATH ?? '').split(delimiter).map(folder => join(folder, 'node'))
  const nodes = [...new Set(paths.filter(existsSync).map(path => realpathSync(path)))]
  return nodes
    .map(path => ({ path, version: run(path, ['--version']).stdout.trim().slice(1) }))
    .find(({ version }) => version && isOld(version))
}

function refusal(version: string) {
  const sentence = `shipmate: Node.js 22.19 or newer is needed, but this is ${version}: install a newer one from https://nodejs.org, or put it first on your PATH.\n`
  return { status: 1, stdout: '', stderr: sentence }
}

describe.each(binaries)('%s', (_, binary) => {
  test.each(['16.20.2', '20.20.2', '22.18.0', '22.9.0'])('refuses to run on Node %s', version => {
    expect(pretend(version, binary)).toEqual(refusal(version))
  })

  test.each(['22.19.0', '23.0.0', '24.1.0', '100.0.0'])('runs on Node %s', version => {
    expect(pretend(version, binary)).toEqual({ status: 0, stdout: `${manifest.version}\n`, stderr: '' })
  })

  test('refuses to run on a real old Node', context => {
    const old = oldNode()
    if (!old) return context.skip('no Node older than 22.19 is on the PATH')
    expect(run(old.path, [join(root, binary), '--version'])).toEqual(refusal(old.version))
  })
})
