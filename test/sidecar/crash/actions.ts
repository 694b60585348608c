/**
 * Actions whose effects can be counted: in a file, at a server, by a process that gets a signal.
 *
 * Guarantee: an effect that has happened is counted, even if everybody who knows of it is killed at once.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import type { Action, LifecycleSpec } from '../../../shared/lifecycle/model.ts'

/** Begins, waits, is done; each a line with the run's id, appended and synced. */
const work =
  'echo "$SHIPMATE_RUN_ID $4begun" >> "$1"; sync "$1"; echo "log of $SHIPMATE_RUN_ID"; sleep "$2"; echo "$SHIPMATE_RUN_ID $4done" >> "$1"; exit "$3"'

const params = {
  for: { type: 'string', pattern: '^[0-9.]+$', default: '0' },
  code: { type: 'string', pattern: '^[0-9]+$', default: '0' },
} as const
const cancel = { signal: 'SIGTERM', grace: '500ms' } as const

export interface Effects {
  /** How often this run has begun; an action with steps counts each. */
  begun(id: string, step?: number): number
  done(id: string, step?: number): number
  /** How often a run's call has come to the server. */
  called(id: string): number
  /** How often the signal was received, by anybody's doing. Counts every one that was sent before the call. */
  signalled(): Promise<number>
  readonly config: LifecycleSpec
  close(): void
}

/** How the server treats the calls of runs: holds its answer back for so long, or never gives one. */
export interface Manners {
  delay: number
  cuts: boolean
}

export async function createEffects(folder: string, manners: Manners): Promise<Effects> {
  mkdirSync(folder, { recursive: true })
  const file = join(folder, 'effects')
  const signals = join(folder, 'signals')
  const target = `target-${process.pid}-${Math.random().toString(36).slice(2, 8)}`
  appendFileSync(file, '')
  appendFileSync(signals, '')
  const calls = new Map<string, number>()
  const server = await listen(calls, manners)
  const address = server.address()
  const base = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
  const receiver = await receive(target, signals)
  const lines = (line: string) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter(one => one === line).length

  return {
    begun: (id, step) => lines(`${id} ${step ?? ''}begun`),
    done: (id, step) => lines(`${id} ${step ?? ''}done`),
    called: id => calls.get(id) ?? 0,
    async signalled() {
      // The kernel delivers the lower number first, so when this one is answered, SIGUSR2 has been.
      const heard = new Promise(resolve => receiver.stdout?.once('data', resolve))
      receiver.kill('SIGWINCH')
      await heard
      return readFileSync(signals, 'utf8').length
    },
    config: {
      states: [
        { name: 'Start', next: ['Up'] },
        { name: 'Up', when: 'probes.up.ok', next: ['End'] },
        { name: 'End', verb: 'Delete' },
      ],
      probes: [{ name: 'up', file: { path: file }, every: '1h' }],
      actions: actions(file, base, target),
    },
    close() {
      server.close()
      server.closeAllConnections()
      receiver.kill('SIGKILL')
    },
  }
}

function actions(file: string, base: string, target: string): Action[] {
  const command = (label: string) => ['sh', '-c', work, 'sh', file, '$(params.for)', '$(params.code)', label]
  const happened = (line: string) => ({
    exec: { command: ['sh', '-c', `grep -qx "$SHIPMATE_RUN_ID ${line}" "$1"`, 'sh', file] },
  })
  const id = { id: { type: 'string' } } as const
  const call = { url: `${base}/calls/$(params.id)`, method: 'POST' } as const
  const asked = { http: { url: `${base}/calls/$(params.id)` } }
  const steps = [{ exec: { command: command('0') } }, { http: call }, { exec: { command: command('2') } }]
  const common = { cancel, timeout: '30s' }
  return [
    { ...common, name: 'exec', exec: { command: command('') }, params },
    { ...common, name: 'exec-verified', exec: { command: command('') }, params, verify: happened('begun') },
    { ...common, name: 'exec-idempotent', exec: { command: command('') }, params, idempotent: true },
    { ...common, name: 'steps', steps, params: { ...params, ...id } },
    { ...common, name: 'steps-verified', steps, params: { ...params, ...id }, verify: happened('2done') },
    { ...common, name: 'http', http: call, params: id },
    { ...common, name: 'http-verified', http: call, params: id, verify: asked, idempotent: true },
    { ...common, name: 'big', http: call, params: { ...id, blob: { type: 'string' } } },
    { ...common, name: 'signal', signal: { process: target, signal: 'SIGUSR2' } },
  ]
}

function listen(calls: Map<string, number>, manners: Manners): Promise<Server> {
  const server = createServer((request, response) => {
    const id = request.url?.replace('/calls/', '') ?? ''
    if (request.method !== 'POST') {
      response.writeHead(calls.has(id) ? 200 : 404).end()
      return
    }
    calls.set(id, (calls.get(id) ?? 0) + 1)
    if (manners.cuts) request.socket.destroy()
    else setTimeout(() => response.end('{"done":true}'), manners.delay)
  })
  return new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(server)))
}

/** A process of that name which counts SIGUSR2. Resolves when it does. */
async function receive(name: string, file: string): Promise<ChildProcess> {
  const script = `
    process.on('SIGUSR2', () => require('node:fs').appendFileSync(process.argv[1], 'x'))
    process.on('SIGWINCH', () => console.log('heard'))
    setInterval(() => {}, 1e6)
    console.log('ready')`
  const child = spawn(process.execPath, ['-e', script, file], { argv0: name, stdio: ['ignore', 'pipe', 'inherit'] })
  await new Promise((resolve, reject) => {
    child.once('error', reject)
    child.stdout.once('data', resolve)
  })
  if (!existsSync(file)) throw new Error(`${file} is not there`)
  return child
}
