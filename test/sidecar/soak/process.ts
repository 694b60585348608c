/**
 * The agent as a real process, started as the image starts it, with what it costs: memory, descriptors, children. It and its runs end with the test.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished, vi } from 'vitest'
import { nodeEnvironment, nodeFlags } from '../../../shared/launch.ts'
import type { Run } from '../../../shared/protocol/schemas.ts'
import { compileInit } from '../../../sidecar/init/compile.ts'
import type { Bounds } from '../../../sidecar/runs/bounds.ts'
import { type Came, call, type Sent } from '../../fixtures/sidecar-server.ts'

const program = join(import.meta.dirname, '../../../.cache/init/shipmate-init')
/** Without a C compiler the twin does the work of a wrapper, with more memory. */
export const hasInit = await compileInit(program)

export interface StartOptions {
  readonly config: object
  /** Default: a new folder. */
  readonly stateDir?: string | undefined
  readonly bounds?: Bounds | undefined
  readonly umask?: string | undefined
}

export interface AgentProcess {
  readonly pid: number
  readonly port: number
  readonly publicPort: number
  readonly stateDir: string
  /** What it has written so far, to standard output and standard error. */
  output(): string
  ask(method: string, path: string, sent?: Sent): Promise<Came>
  /** Starts a run, and answers what came. */
  put(id: string, action: string, params?: object): Promise<Came>
  /** The run, once it has ended. */
  ended(id: string): Promise<Run>
  /** What `/readyz` says. */
  ready(): Promise<Came>
  /** Bytes of memory, after a garbage collection. */
  memory(): Promise<number>
  /** What its descriptors stand for, the connections of the API left out. */
  descriptors(): string[]
  /** Its children, with their states: Z is one that nobody has waited for. */
  children(): string[]
  /** SIGTERM, and the exit code. */
  stop(): Promise<number | null>
  kill(): Promise<void>
}

export function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), 'shipmate-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export async function start({ config, bounds, umask, ...options }: StartOptions): Promise<AgentProcess> {
  const folder = temporary()
  const stateDir = options.stateDir ?? join(folder, 'state')
  const file = join(folder, 'lifecycle.json')
  writeFileSync(file, JSON.stringify(config))
  const flags = ['--config', file, '--state-dir', stateDir, '--auth', 'none', '--drain-timeout', '2s']
  const listen = ['--listen', '127.0.0.1:0', '--public-listen', '127.0.0.1:0']
  const child = spawn(process.execPath, [...nodeFlags, join(import.meta.dirname, 'entry.ts'), ...flags, ...listen], {
    env: {
      ...nodeEnvironment,
      PATH: process.env.PATH,
      POD_UID: 'pod-uid',
      ...(hasInit && { SHIPMATE_INIT: program }),
      ...(bounds && { SHIPMATE_TEST_BOUNDS: JSON.stringify(bounds) }),
      ...(umask !== undefined && { SHIPMATE_TEST_UMASK: umask }),
      ...(process.env.SHIPMATE_CI !== undefined && { SHIPMATE_CI: process.env.SHIPMATE_CI }),
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', text => (output += text))
  const kill = () => ended(child, 'SIGKILL').then(() => undefined)
  onTestFinished(kill)
  const told = await vi
    .waitFor(
      () => {
        const line = /^.*"msg":"listening".*$/m.exec(output)?.[0]
        if (line === undefined && child.exitCode === null) throw new Error(`the agent does not listen:\n${output}`)
        return line
      },
      { timeout: 20_000 },
    )
    .catch(error => {
      child.kill('SIGKILL')
      throw error
    })
  if (told === undefined) throw new Error(`the agent has ended:\n${output}`)
  const place = JSON.parse(told) as { api: string; public: string }
  const [port, publicPort] = [portOf(place.api), portOf(place.public)]
  const kept = new Agent({ keepAlive: true, maxSockets: 32 })
  onTestFinished(() => kept.destroy())
  const { pid = 0 } = child

  const agent: AgentProcess = {
    pid,
    port,
    publicPort,
    stateDir,
    output: () => output,
    ask: (method, path, sent = {}) => call(port, method, path, { agent: kept, ...sent }),
    put: (id, action, params) => agent.ask('PUT', `/v1/runs/${id}`, { body: { action, ...(params && { params }) } }),
    async ended(id) {
      for (;;) {
        const { status, json } = await agent.ask('GET', `/v1/runs/${id}?wait=30s`)
        if (status !== 200) throw new Error(`${id}: ${JSON.stringify(json)}`)
        if (json.phase !== 'Accepted' && json.phase !== 'Running') return json
      }
    },
    ready: () => call(publicPort, 'GET', '/readyz'),
    async memory() {
      const answered = once(child, 'message')
      child.send('memory')
      return (await answered)[0]
    },
    descriptors: () =>
      readdirSync(`/proc/${pid}/fd`)
        .map(fd => linkOf(`/proc/${pid}/fd/${fd}`))
        .filter(target => target !== '' && !target.startsWith('socket:')),
    children: () =>
      readdirSync(`/proc/${pid}/task`).flatMap(task =>
        textOf(`/proc/${pid}/task/${task}/children`)
          .split(' ')
          .filter(Boolean)
          .map(one => `${one} ${/^State:\s+(\S)/m.exec(textOf(`/proc/${one}/status`))?.[1] ?? 'gone'}`),
      ),
    stop: () => ended(child, 'SIGTERM'),
    kill,
  }
  return agent
}

/** Bytes that a process has in memory now, or 0 if it is gone. */
export function memoryOf(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(textOf(`/proc/${pid}/status`))?.[1] ?? 0) * 1024
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const exit = once(child, 'exit')
    child.kill(signal)
    await exit
  }
  return child.exitCode
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

const portOf = (address: string) => Number(address.split(':').at(-1))
