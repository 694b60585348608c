/**
 * The command line tells what it is, and refuses in one sentence what it does not know.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }

const binary = join(import.meta.dirname, '../../bin/shipmate.cjs')

function shipmate(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [binary, ...args], { encoding: 'utf8' })
  return { status, stdout, stderr }
}

test.each(['--version', '-V'])('%s prints the version alone', option => {
  expect(shipmate(option)).toEqual({ status: 0, stdout: `${manifest.version}\n`, stderr: '' })
})

test.each([['--help'], ['-h'], []])('%s prints the help', (...args) => {
  const { status, stdout, stderr } = shipmate(...args)
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout).toMatch(/^Usage: shipmate/)
})

test.each([
  [['frobnicate'], 'shipmate: unknown command "frobnicate": see shipmate --help.\n'],
  [['--frobnicate'], 'shipmate: unknown option "--frobnicate": see shipmate --help.\n'],
  [['--version', 'frobnicate'], 'shipmate: unknown command "frobnicate": see shipmate --help.\n'],
])('%j is refused in one sentence', (args, sentence) => {
  expect(shipmate(...args)).toEqual({ status: 2, stdout: '', stderr: sentence })
})
