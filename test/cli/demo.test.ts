/**
 * `npm start`: what it tells happens in that order, its exit code is true, and nothing of it is left behind, however it ends.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { emptyFolder, root, shipmate } from './shipmate.ts'

const isLinux = process.platform === 'linux'

/** Processes that were started with that folder for temporary files, or in it. */
function processesOf(folder: string): number[] {
  if (!isLinux) return []
  const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  return pids.map(Number).filter(pid => {
    try {
      return pid !== process.pid && readFileSync(`/proc/${pid}/environ`, 'latin1').includes(folder)
    } catch {
      return false
    }
  })
}

async function untilNothingIsLeft(folder: string): Promise<void> {
  while (readdirSync(folder).length > 0 || processesOf(folder).length > 0) await pause(50)
}

/** Each of them, after the one before it. */
function inOrder(text: string, parts: readonly (string | RegExp)[]): void {
  let rest = text
  for (const part of parts) {
    const at = typeof part === 'string' ? rest.indexOf(part) : rest.search(part)
    expect(at, `${part} in:\n${rest}`).toBeGreaterThanOrEqual(0)
    rest = rest.slice(at + 1)
  }
}

const walk = [
  /s {2}cluster /,
  /s {2}controller /,
  '$ kubectl apply -f examples/kv/lifecycle.yaml -f examples/kv/app.yaml',
  /s {2}Start /,
  /s {2}Running /,
  '"action":"backup"',
  /s {2}Servicing /,
  /\[#*\.*\] +\d+ %/,
  /s {2}Running /,
  /sha256 [0-9a-f]{12}/,
  '"action":"reconfigure"',
  /s {2}Servicing /,
  /s {2}Running /,
  'are refused now (413)',
  '"value":{"state":"End"}',
  /s {2}Stopping /,
  /s {2}End /,
  '>Start>(Running<>Servicing)x2>Running>Stopping>End',
  'a second kv has all 1,000 keys',
  'What to try next',
]

test('the walk tells each step as it happens, in a pipe without escape sequences, and leaves nothing', async () => {
  const folder = emptyFolder()
  const { status, stdout, stderr } = await shipmate(['demo'], { env: { TMPDIR: folder } })
  expect({ status, stderr }, stdout).toEqual({ status: 0, stderr: '' })
  inOrder(stdout, walk)
  for (const control of ['\r', '\u001b']) expect(stdout).not.toContain(control)
  await untilNothingIsLeft(folder)
})

test('a sidecar that is killed in the middle of the backup has done it once', async () => {
  const folder = emptyFolder()
  const { status, stdout, stderr } = await shipmate(['demo', '--fault'], { env: { TMPDIR: folder } })
  expect({ status, stderr }, stdout).toEqual({ status: 0, stderr: '' })
  inOrder(stdout, [/s {2}SIGKILL +to the (agent|whole)/, '.runs', 'begun ', 'done ', 'it was done exactly once'])
  expect(stdout.match(/^ +done /gm)).toHaveLength(1)
  await untilNothingIsLeft(folder)
})

test.each([
  [['--keeep'], 'did you mean "--keep"?'],
  [['--example', 'memcache'], '--example memcache: one of kv, '],
  [['--example', 'goop', '--fault'], '--fault is for the walk'],
])('demo %s is a misuse', async (args, sentence) => {
  const { status, stdout, stderr } = await shipmate(['demo', ...args])
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
  expect(stderr).toContain(sentence)
})

/** Starts it, and resolves when it has printed that. */
async function started(folder: string, args: readonly string[], printed: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [join(root, 'bin/shipmate.cjs'), 'demo', ...args], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let said = ''
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', piece => {
      said += piece
      if (said.includes(printed)) resolve()
    })
    child.once('exit', code => reject(new Error(`it ended with ${code}:\n${said}`)))
  })
  return child
}

const endOf = (child: ChildProcess) =>
  new Promise<number | string | null>(resolve => child.once('exit', (code, signal) => resolve(code ?? signal)))

test.each([
  ['SIGINT', 'An embedded cluster', 130],
  ['SIGTERM', 'Servicing', 143],
  ['SIGKILL', 'Servicing', 'SIGKILL'],
] as const)('%s after "%s" leaves nothing', async (signal, printed, expected) => {
  const folder = emptyFolder()
  const child = await started(folder, [], printed)
  const ended = endOf(child)
  child.kill(signal)
  expect(await ended).toBe(expected)
  await untilNothingIsLeft(folder)
})

test.runIf(isLinux)('what is left when its guard is killed with it is gone after the next start', async () => {
  const folder = emptyFolder()
  const child = await started(folder, [], 'Servicing')
  const guards = processesOf(folder).filter(pid => {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')
    return words.includes('keeper')
  })
  expect(guards).not.toEqual([])
  const ended = endOf(child)
  for (const pid of [...guards, child.pid ?? 0]) process.kill(pid, 'SIGKILL')
  await ended
  expect(readdirSync(folder)).toHaveLength(1)
  const next = await started(folder, [], 'controller')
  const nextEnded = endOf(next)
  next.kill('SIGTERM')
  await nextEnded
  await untilNothingIsLeft(folder)
})

test('--keep starts the app again, names a kubeconfig, and ends well when it is asked to', async () => {
  const folder = emptyFolder()
  const child = await started(folder, ['--keep'], `export KUBECONFIG=${folder}`)
  const ended = endOf(child)
  child.kill('SIGINT')
  expect(await ended).toBe(0)
  await untilNothingIsLeft(folder)
})
