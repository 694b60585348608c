/**
 * `shipmate sidecar` refuses in one sentence what cannot work, and ends; called the right way it works from any folder.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'

const binary = join(import.meta.dirname, '../../bin/shipmate.cjs')

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'shipmate-cli-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function sidecar(...args: string[]) {
  const { PATH = '' } = process.env
  const options = { encoding: 'utf8', env: { PATH }, timeout: 60_000 } as const
  const { status, stdout, stderr } = spawnSync(process.execPath, [binary, 'sidecar', ...args], options)
  return { status, stdout, stderr }
}

const needed = ['--config', 'x', '--auth', 'none', '--listen', '127.0.0.1:0', '--public-listen', '127.0.0.1:0']

test.each([
  [['--confg', 'x'], 'unknown option "--confg"; did you mean "--config"? See shipmate sidecar --help.'],
  [['--config', 'x'], '--state-dir is missing; see shipmate sidecar --help'],
  [
    ['--config', 'x', '--state-dir', 'y', '--tls-dir', 'z'],
    '--auth mtls needs the variable POD_UID: every call names the pod that it is meant for; see shipmate sidecar --help',
  ],
  [
    [...needed, '--state-dir', binary],
    `--state-dir is "${binary}", which is a file; it must be a folder, or not there yet; see shipmate sidecar --help`,
  ],
])('%j is refused in one sentence', (args, sentence) => {
  expect(sidecar(...args)).toEqual({
    status: 2,
    stdout: expect.not.stringContaining('started'),
    stderr: `shipmate sidecar: ${sentence}\n`,
  })
})

test.runIf(process.platform === 'linux')('a state folder that cannot be made ends it at once', () => {
  expect(sidecar(...needed, '--state-dir', '/proc/x')).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^shipmate sidecar: --state-dir is "\/proc\/x", which cannot be made: ENOENT.*\n$/),
  })
})

test('a whole Lifecycle is checked by its spec', () => {
  const file = join(newFolder(), 'lifecycle.yaml')
  writeFileSync(file, 'apiVersion: shipmate.dev/v1alpha1\nkind: Lifecycle\nmetadata: {name: x}\nspec: {probes: []}\n')
  expect(sidecar('--check-config', file)).toEqual({ status: 0, stdout: `${file}: no problems\n`, stderr: '' })
})

test('a relative state folder is where it was called: commands run, and SIGTERM ends it with 0', async () => {
  const folder = newFolder()
  writeFileSync(join(folder, 'lifecycle.yaml'), 'actions: [{name: greet, exec: {command: [echo, hello]}}]\n')
  const args = ['--config', 'lifecycle.yaml', '--state-dir', 'state', ...needed.slice(2)]
  const child = spawn(process.execPath, [binary, 'sidecar', ...args], {
    cwd: folder,
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<number | null>(resolve => child.once('exit', resolve))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const said: Record<string, string>[] = []
  const listening = Promise.withResolvers<string>()
  createInterface({ input: child.stdout }).on('line', line => {
    const message = JSON.parse(line)
    said.push(message)
    if (message.msg === 'listening') listening.resolve(message.api)
  })
  const runs = `http://${await listening.promise}/v1/runs`
  await fetch(`${runs}/g`, { method: 'PUT', body: '{"action": "greet"}' })
  expect(await (await fetch(`${runs}/g?wait=30s`)).json()).toMatchObject({ phase: 'Succeeded', error: null })
  expect(said).toContainEqual(
    expect.objectContaining({ level: 'warn', msg: expect.stringContaining('POD_UID is empty') }),
  )
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
  expect(said.at(-1)?.['msg']).toBe('drained')
})
