// The programs that are compared, started as they are in a container: the agent as the image does it, and a bare server.
//
// Each says on standard output where it listens, and runs until it is stopped.

import { type ChildProcess, execFileSync } from 'node:child_process'
import { generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { nodeEnvironment, nodeFlags } from '../../shared/launch.ts'
import type { LifecycleSpec } from '../../shared/lifecycle/model.ts'
import { signedBytes } from '../../sidecar/config/signature.ts'
import { createAuthority, type KeyPair } from '../../test/fixtures/certificates.ts'
import type { Keeper } from '../../test/fixtures/keeper.ts'
import { bundleAgent, compileWrapper } from '../../tools/agent.ts'
import { childrenOf } from '../process.ts'

/** What the image holds, in a folder. */
export interface Image {
  folder: string
  /** A copy, so that no other process that runs the same file counts in PSS. */
  node: string
}

export interface Program {
  /** Of the process that is measured: the agent, not who supervises it. */
  pid: number
  /** Of the process that was started; the same for the bare server. */
  root: number
  /** HOST:PORT of what anybody may ask. */
  open: string
  /** HOST:PORT of the agent's API. */
  api: string
  /** Milliseconds from the start of the process to the first 200. */
  ready: number
  /** Set for an agent with mTLS: what its client shows. */
  client: (KeyPair & { ca: string }) | undefined
  /** SIGTERM, and SIGKILL to what is still there after 10 s. */
  stop(): Promise<void>
}

export const pod = { name: 'orders-db-0', namespace: 'shop', uid: 'bench' }
const lifecycleName = 'orders'

/** Five probes every 2 s, and the same program as an action, alone and as one that may run beside others. */
const probes = ['accepting', 'role', 'lag', 'disk', 'peers'].map(name => {
  return { name, exec: { command: ['true'] }, every: '2s', timeout: '1s' }
})
const lifecycle: LifecycleSpec = {
  states: [
    { name: 'Start', next: ['Running'] },
    { name: 'Running', when: 'probes.accepting.ok', next: ['Working'] },
    { name: 'Working', actions: ['alone', 'beside'], next: ['Running'] },
  ],
  probes,
  actions: [
    { name: 'alone', exec: { command: ['true'] } },
    { name: 'beside', exec: { command: ['true'] }, shared: true },
  ],
}

const bareServer = fileURLToPath(import.meta.resolve('./bare.cjs'))
const heapReporter = fileURLToPath(import.meta.resolve('./heap.cjs'))

/** The files as the build makes them. Throws where there is no C compiler or no Linux. */
export async function makeImage(folder: string): Promise<Image> {
  mkdirSync(folder)
  await bundleAgent(folder)
  if (!(await compileWrapper(folder))) throw new Error('bench:sidecar needs Linux and a C compiler, for shipmate-init')
  const node = join(folder, 'node')
  copyFileSync(process.execPath, node)
  // The first start reads it from disk.
  execFileSync(node, ['--version'])
  return { folder, node }
}

/** The same, with the agent's libraries as they are: nothing left out, nothing loaded later (tools/slim.ts). */
export async function makeWholeImage(folder: string, { folder: slim, node }: Image): Promise<Image> {
  mkdirSync(folder)
  await build({
    entryPoints: { agent: fileURLToPath(import.meta.resolve('../../sidecar/bundle.ts')) },
    outdir: folder,
    outExtension: { '.js': '.cjs' },
    bundle: true,
    minify: true,
    format: 'cjs',
    platform: 'node',
    target: 'node22',
    define: { SHIPMATE_VERSION: '"0.0.0"' },
    footer: { js: 'if (require.main === module) module.exports.main()' },
    logLevel: 'error',
    logOverride: { 'empty-import-meta': 'silent' },
  })
  copyFileSync(join(slim, 'shipmate-init'), join(folder, 'shipmate-init'))
  return { folder, node }
}

export function startBare(keeper: Keeper, { node }: Image, heapFile?: string): Promise<Program> {
  return start(keeper, [node, ...heapFlags(heapFile), bareServer], { ...heapVariables(heapFile) }, '/')
}

export interface AgentOptions {
  auth: 'none' | 'mtls'
  /** For its configuration, certificates and state; does not exist yet. */
  folder: string
  /** Default: those of the image. */
  flags?: readonly string[]
  /** Default: that of the image. */
  environment?: Readonly<Record<string, string>>
  /** Where it writes what V8 holds when it is asked to. Default: it cannot be asked. */
  heapFile?: string
}

export async function startAgent(keeper: Keeper, image: Image, options: AgentOptions): Promise<Program> {
  const { auth, folder, flags = nodeFlags, environment = nodeEnvironment, heapFile } = options
  mkdirSync(folder)
  const config = join(folder, 'lifecycle.json')
  writeFileSync(config, JSON.stringify(lifecycle))
  const client = auth === 'mtls' ? certify(folder) : undefined
  const command = [join(image.folder, 'shipmate-init'), 'supervise', '--', image.node, ...flags, ...heapFlags(heapFile)]
  command.push(join(image.folder, 'agent.cjs'), 'sidecar', '--config', config, '--state-dir', join(folder, 'state'))
  command.push('--listen', '127.0.0.1:0', '--public-listen', '127.0.0.1:0')
  command.push(...(client ? ['--tls-dir', folder] : ['--auth', 'none']))
  const env = {
    ...environment,
    ...heapVariables(heapFile),
    POD_NAME: pod.name,
    POD_NAMESPACE: pod.namespace,
    POD_UID: pod.uid,
    SHIPMATE_LIFECYCLE: lifecycleName,
  }
  const program = await start(keeper, command, env, '/readyz')
  const [pid] = childrenOf(program.root)
  if (pid === undefined) throw new Error('the agent has ended')
  return { ...program, pid, client }
}

const heapFlags = (file: string | undefined) => (file === undefined ? [] : ['--require', heapReporter])
const heapVariables = (file: string | undefined) => (file === undefined ? {} : { BENCH_HEAP: file })

/** What V8 holds, in MB: of its heap what is resident, of its own buffers outside, of the program's buffers outside. */
export interface Heap {
  heap: number
  malloced: number
  external: number
}

export async function heapOf({ pid }: Program, heapFile: string): Promise<Heap> {
  process.kill(pid, 'SIGUSR2')
  for (let i = 0; !existsSync(heapFile); i++) {
    if (i === 500) throw new Error('the program did not say what V8 holds')
    await sleep(10)
  }
  return JSON.parse(readFileSync(heapFile, 'utf8'))
}

/** Certificates for the server and its client, and the signature on the configuration. */
function certify(folder: string): KeyPair & { ca: string } {
  const authority = createAuthority()
  const server = authority.issue({ commonName: pod.name, ip: ['127.0.0.1'] })
  const signer = generateKeyPairSync('ed25519')
  const signed = signedBytes({ namespace: pod.namespace, name: lifecycleName, spec: lifecycle })
  const files = {
    'tls.crt': server.cert,
    'tls.key': server.key,
    'ca.crt': authority.cert,
    'lifecycle.pub': signer.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    'lifecycle.sig': sign(null, signed, signer.privateKey).toString('base64'),
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return { ...authority.issue({ commonName: 'controller', dns: ['controller.shipmate.dev'] }), ca: authority.cert }
}

async function start(
  keeper: Keeper,
  [command = '', ...args]: string[],
  env: Record<string, string>,
  page: string,
): Promise<Program> {
  const began = performance.now()
  const child = keeper.spawn(command, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'], ...env },
  })
  const stop = stopper(child)
  try {
    const { open, api } = await addresses(child)
    while ((await statusOf(`http://${open}${page}`)) !== 200) await sleep(1)
    const ready = performance.now() - began
    const pid = child.pid ?? 0
    return { pid, root: pid, open, api, ready, client: undefined, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function addresses(child: ChildProcess): Promise<{ open: string; api: string }> {
  return new Promise((resolve, reject) => {
    const said: string[] = []
    child.once('error', reject)
    child.once('exit', code => reject(new Error(`${child.spawnfile} ended with ${code}:\n${said.join('\n')}`)))
    if (!child.stdout) return
    createInterface({ input: child.stdout }).on('line', line => {
      if (said.length < 20) said.push(line)
      if (!line.includes('"msg":"listening"')) return
      const { public: open, api = '' } = JSON.parse(line)
      resolve({ open, api })
    })
  })
}

function statusOf(url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, response => {
      response.resume()
      resolve(response.statusCode ?? 0)
    }).once('error', reject)
  })
}

function stopper(child: ChildProcess): () => Promise<void> {
  const exit = once(child, 'exit').catch(() => {})
  return async () => {
    const agents = childrenOf(child.pid ?? 0)
    child.kill('SIGTERM')
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      for (const pid of agents) kill(pid)
    }, 10_000)
    await exit
    clearTimeout(timer)
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
