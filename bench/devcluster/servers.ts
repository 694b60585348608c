// The servers that are measured, each started anew for every trial.

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { startApiServer } from '../../test/fixtures/apiserver.ts'
import { createKeeper } from '../../test/fixtures/keeper.ts'
import { connect } from '../api.ts'
import { buildPackage } from '../build.ts'

export interface Started extends AsyncDisposable {
  kubeconfig: string
  /** Its processes, for their memory. */
  pids: number[]
  /** Lets it give back what it does not use. */
  settle(): Promise<void>
}

export interface Inside {
  load: number
  start: number
  creates: number[]
  perSecond: number
}

export type Server = { name: string; title: string } & (
  | { start(): Promise<Started> }
  | { inside(count: number, concurrency: number): Promise<Inside> }
)

/** The one that the others are compared to. */
export const reference = 'real'

const folder = fileURLToPath(new URL('../../.cache/bench/devcluster', import.meta.url))

/** Stripped of types and put together beforehand, as a package has it; what is loaded later stays apart. */
export async function buildServers(): Promise<Server[]> {
  await buildPackage()
  await build({
    entryPoints: ['program', 'inside'].map(name => fileURLToPath(new URL(`${name}.ts`, import.meta.url))),
    outdir: folder,
    bundle: true,
    splitting: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node22',
    logLevel: 'error',
    // Without the paths of tsconfig.json, which lead to our sources: the client is the package's.
    tsconfigRaw: {},
  })
  return [
    { name: 'embedded', title: 'the embedded API server as a program', start: startEmbedded },
    { name: 'inside', title: "the same in the client's own process, without sockets", inside: runInside },
    { name: reference, title: 'etcd (without fsync) and kube-apiserver', start: startReal },
  ]
}

async function startEmbedded(): Promise<Started> {
  const dir = await mkdtemp(join(tmpdir(), 'shipmate-bench-'))
  const keeper = createKeeper(dir)
  const kubeconfig = join(dir, 'kubeconfig')
  const child = keeper.spawn(process.execPath, ['--expose-gc', join(folder, 'program.js'), kubeconfig], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = createInterface(child.stdout as Readable)
  await Promise.race([
    once(lines, 'line'),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`the embedded server ended (${code})`))),
  ])
  return {
    kubeconfig,
    pids: [child.pid ?? 0],
    async settle() {
      child.kill('SIGUSR2')
      await sleep(5_000)
    },
    [Symbol.asyncDispose]: () => keeper.stop(),
  }
}

async function startReal(): Promise<Started> {
  const server = await startApiServer()
  return {
    kubeconfig: server.kubeconfig,
    pids: [server.pids.etcd, server.pids.apiserver],
    settle: () => sleep(5_000),
    [Symbol.asyncDispose]: () => server.stop(),
  }
}

async function runInside(count: number, concurrency: number): Promise<Inside> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(folder, 'inside.js'), String(count), String(concurrency)],
    { maxBuffer: 64 << 20 },
  )
  return JSON.parse(stdout) as Inside
}

/** The first answer with what a client has: the kubeconfig. */
export async function firstAnswer(kubeconfig: string): Promise<void> {
  const api = connect(kubeconfig, 1)
  await api.request('GET', '/api/v1/namespaces/default/configmaps')
  await api.close()
}
