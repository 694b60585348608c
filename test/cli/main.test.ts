/**
 * The command line tells what it is, and refuses in one sentence what it does not know.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { root, shipmate } from './shipmate.ts'

const leaves = {
  new: ['operator'],
  operator: ['install', 'run', 'image', 'deploy', 'undeploy', 'uninstall', 'manifests'],
  gen: ['resource', 'crd', 'rbac'],
}

test.each(['--version', '-V'])('%s prints the version alone', async option => {
  expect(await shipmate([option])).toEqual({ status: 0, stdout: `${manifest.version}\n`, stderr: '' })
})

test.each([['--help'], ['-h'], ['help'], []])('%s prints the help', async (...args) => {
  const { status, stdout, stderr } = await shipmate(args)
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout).toMatch(/^Usage: shipmate COMMAND/)
  for (const name of [...Object.keys(leaves), 'images', 'sidecar', 'install-agent'])
    expect(stdout).toContain(`  ${name} `)
})

test.each(Object.entries(leaves))('%s by itself prints its help, with each of its commands', async (group, names) => {
  for (const args of [[group], [group, '--help'], ['help', group]]) {
    const { status, stdout, stderr } = await shipmate(args)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    for (const name of names) expect(stdout).toContain(`  ${name} `)
  }
})

test.each(Object.entries(leaves).flatMap(([group, names]) => names.map(name => [group, name])))(
  '%s %s has a help',
  async (...words) => {
    const { status, stdout, stderr } = await shipmate([...words, '--help'])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toMatch(new RegExp(`^Usage: shipmate ${words.join(' ')} `))
  },
)

test.each([
  ['frobnicate', 'unknown command "frobnicate": see shipmate --help.'],
  ['--frobnicate', 'unknown option "--frobnicate": see shipmate --help.'],
  ['--version frobnicate', 'unknown command "frobnicate": see shipmate --help.'],
  ['oprator', 'unknown command "oprator", did you mean "operator"? See shipmate --help.'],
  ['sidecra', 'unknown command "sidecra", did you mean "sidecar"? See shipmate --help.'],
  ['--versoin', 'unknown option "--versoin", did you mean "--version"? See shipmate --help.'],
  ['gen resouce', 'unknown command "resouce", did you mean "resource"? See shipmate gen --help.'],
  ['operator instal --dry-run', 'unknown option "--dry-run": see shipmate operator --help.'],
  [
    'operator deploy --dryrun',
    'unknown option "--dryrun", did you mean "--dry-run"? See shipmate operator deploy --help.',
  ],
  ['gen crd', 'missing required argument "file": see shipmate gen crd --help.'],
  ['gen crd --output', 'option "-o, --output <DIR>" argument missing: see shipmate gen crd --help.'],
  [
    'gen crd a.ts b.ts',
    'too many arguments for "crd". Expected 1 argument but got 2: a.ts, b.ts: see shipmate gen crd --help.',
  ],
  ['gen crd none.ts', 'there is no file none.ts: see shipmate gen crd --help.'],
])('%s is refused in one sentence', async (line, sentence) => {
  expect(await shipmate(line.split(' '))).toEqual({ status: 2, stdout: '', stderr: `shipmate: ${sentence}\n` })
})

test('what it loads to print its help is the parser of the command line, and nothing of a command', () => {
  const loaded = new Set(['dist/cli.js'])
  const packages = new Set<string>()
  for (const file of loaded) {
    const text = readFileSync(join(root, file), 'utf8')
    for (const [, from = ''] of text.matchAll(/^(?:import|export)\b[^'"()]*["']([^'"]+)["']/gm)) {
      if (from.startsWith('.')) loaded.add(join(file, '..', from))
      else if (!from.startsWith('node:')) packages.add(from)
    }
  }
  expect([...packages].sort()).toEqual(['commander', 'fastest-levenshtein'])
})
