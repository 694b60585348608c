/**
 * Stock kubectls, each version that this machine has once: in $KUBEBUILDER_ASSETS, in PATH, and those that $SHIPMATE_KUBECTLS names
 * (separated like PATH). A cluster of their own to use them on, with one node.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll, describe } from 'vitest'
import { type ClusterOptions, type RunningCluster, startCluster } from '../../../devcluster/cluster.ts'

interface Binary {
  readonly file: string
  /** `1.36` */
  readonly version: string
}

export interface Printed {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly input?: string | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  /** Has kubectl at a terminal of its own, by the program `script`. */
  readonly isAtTerminal?: boolean | undefined
}

/** One that goes on. */
export interface Lasting {
  readonly printed: () => string
  /** Resolves with its match when what it prints has one. Rejects with all of it when it ends without. */
  until(pattern: RegExp): Promise<RegExpExecArray>
  readonly ended: Promise<Printed>
  readonly child: ChildProcess
}

export interface Kubectl {
  readonly minor: number
  /** Its namespace on the cluster, which is nobody else's. */
  readonly namespace: string
  readonly cluster: RunningCluster
  /** Its folder, for files. */
  readonly folder: string
  run(args: readonly string[], options?: RunOptions): Promise<Printed>
  /** What it prints, both outputs together. Throws with all of it where it fails. */
  ok(line: string, options?: RunOptions): Promise<string>
  /** The same where it must fail. */
  fails(line: string, options?: RunOptions): Promise<string>
  start(line: string): Lasting
  /** Writes a file and answers its path. */
  file(name: string, text: string): string
  /** Another cluster's, or another person's. */
  at(kubeconfig: string): Kubectl
}

const found: readonly Binary[] = (() => {
  const { KUBEBUILDER_ASSETS: assets, SHIPMATE_KUBECTLS: more = '' } = process.env
  const files = [...(assets ? [join(assets, 'kubectl')] : []), 'kubectl', ...more.split(delimiter).filter(Boolean)]
  const byVersion = new Map<string, string>()
  for (const file of files) {
    try {
      const told = execFileSync(file, ['version', '--client', '-o', 'json'], { encoding: 'utf8', stdio: 'pipe' })
      const { major, minor } = JSON.parse(told).clientVersion as { major: string; minor: string }
      const version = `${major}.${Number.parseInt(minor, 10)}`
      if (!byVersion.has(version)) byVersion.set(version, file)
    } catch {
      // There is none.
    }
  }
  return [...byVersion].map(([version, file]) => ({ version, file }))
})()

/** A suite for each kubectl, on one cluster. */
export function withKubectl(
  what: string,
  suite: (kubectl: () => Kubectl) => void,
  options: ClusterOptions = { nodes: 1 },
): void {
  if (found.length === 0) {
    const how = 'put kubectl into PATH, or set KUBEBUILDER_ASSETS to a folder with one'
    describe.skip(`${what} (skipped: there is no kubectl; ${how})`, () => suite(() => ({}) as Kubectl))
    return
  }
  describe(what, () => {
    let cluster: RunningCluster
    let folder: string
    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'shipmate-kubectl-'))
      cluster = await startCluster(options)
      await cluster.listening?.writeKubeconfig(join(folder, 'kubeconfig'))
    })
    afterAll(async () => {
      // Those of a test that has failed.
      for (const child of living) child.kill('SIGKILL')
      await cluster?.stop()
      rmSync(folder, { recursive: true, force: true })
    })
    describe.each(found)('kubectl $version', ({ file, version }) => {
      const namespace = `k${version.replace('.', '-')}`
      let kubectl: Kubectl
      beforeAll(async () => {
        kubectl = kubectlOf(cluster, { file, version }, folder, namespace, join(folder, 'kubeconfig'))
        await kubectl.ok(`create namespace ${namespace}`)
      })
      suite(() => kubectl)
    })
  })
}

const living = new Set<ChildProcess>()

/** Words of a line; those in single quotes are one. */
const words = (line: string): string[] =>
  [...line.matchAll(/(?:'[^']*'|[^\s'])+/g)].map(([word]) => word.replaceAll("'", ''))

function kubectlOf(
  cluster: RunningCluster,
  binary: Binary,
  folder: string,
  namespace: string,
  kubeconfig: string,
): Kubectl {
  const begin = (args: readonly string[], { input, env, isAtTerminal }: RunOptions = {}) => {
    const quoted = [binary.file, ...args].map(word => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
    const [file, given] = isAtTerminal ? ['script', ['-qec', quoted, '/dev/null']] : [binary.file, [...args]]
    const child = spawn(file, given, {
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '', HOME: folder, KUBECONFIG: kubeconfig, TZ: 'UTC', ...env },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    })
    living.add(child)
    child.once('close', () => living.delete(child))
    child.stdin?.on('error', () => {}).end(input)
    return child
  }
  const inNamespace = (args: readonly string[]) => {
    const end = args.indexOf('--')
    const at = end < 0 ? args.length : end
    const isSaid = args.slice(0, at).some(word => /^(-n|-A|--namespace|--all-namespaces)\b/.test(word))
    return isSaid ? args : [...args.slice(0, at), '--namespace', namespace, ...args.slice(at)]
  }
  const ended = (child: ChildProcess, told: { stdout: string; stderr: string }) =>
    new Promise<Printed>((resolve, reject) => {
      for (const name of ['stdout', 'stderr'] as const)
        child[name]?.setEncoding('utf8').on('data', (text: string) => {
          told[name] += text
        })
      child.once('error', reject)
      child.once('close', (code, signal) => resolve({ code: code ?? (signal ? 255 : 0), ...told }))
    })
  const run = (args: readonly string[], options?: RunOptions) =>
    ended(begin(inNamespace(args), options), { stdout: '', stderr: '' })
  const judged = async (line: string, options: RunOptions | undefined, mayFail: boolean) => {
    const { code, stdout, stderr } = await run(words(line), options)
    const all = stdout + stderr
    if ((code !== 0) !== mayFail) throw new Error(`kubectl ${line}: exit code ${code}\n${all}`)
    return all
  }
  return {
    minor: Number(binary.version.split('.')[1]),
    namespace,
    cluster,
    folder,
    run,
    ok: (line, options) => judged(line, options, false),
    fails: (line, options) => judged(line, options, true),
    start(line) {
      const child = begin(inNamespace(words(line)))
      const told = { stdout: '', stderr: '' }
      const end = ended(child, told)
      const printed = () => told.stdout + told.stderr
      return {
        child,
        printed,
        ended: end,
        until(pattern) {
          return new Promise((resolve, reject) => {
            const look = () => {
              const match = pattern.exec(printed())
              if (match) resolve(match)
              return match
            }
            if (look()) return
            for (const stream of [child.stdout, child.stderr]) stream?.on('data', () => void look())
            const over = () => look() ?? reject(new Error(`kubectl ${line} ended; it printed\n${printed()}`))
            end.then(over, reject)
          })
        },
      }
    },
    file(name, text) {
      writeFileSync(join(folder, name), text)
      return join(folder, name)
    },
    at: other => kubectlOf(cluster, binary, folder, namespace, other),
  }
}
