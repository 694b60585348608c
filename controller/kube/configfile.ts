/**
 * Kubeconfig files, read as kubectl reads them, into a KubeConfig of @kubernetes/client-node.
 *
 * Guarantees: of several files the first that says something wins, and one that is missing is passed over. Paths in a file are relative
 * to it. What cannot be done as it is written is refused, by name, before anything is asked of a server.
 */
import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, dirname, isAbsolute, join } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node/dist/config.js'
import type { Cluster, Context, User } from '@kubernetes/client-node/dist/config_types.js'
import { load as parseYaml, YAMLException } from 'js-yaml'
import { messageOf, ShipmateError } from '../../shared/errors.ts'

export interface ConfigFileOptions {
  /** A kubeconfig file. Default: `KUBECONFIG`, `~/.kube/config`, then the pod's service account. */
  readonly file?: string | undefined
  /** A context of it. Default: the current one. */
  readonly context?: string | undefined
  /** The folder in which a pod's `/var/run/secrets` is. Default `/`. */
  readonly root?: string | undefined
}

interface Parts {
  clusters: Cluster[]
  contexts: Context[]
  users: User[]
  currentContext: string | undefined
}

/** What a user's entry says and KubeConfig does not read. */
interface RawUser {
  name?: string
  user?: { tokenFile?: string; exec?: Exec; 'as-groups'?: unknown; 'as-uid'?: unknown; 'as-user-extra'?: unknown }
}

interface Exec {
  apiVersion?: string
  command?: string
  env?: { name: string; value: string }[]
}

const account = 'var/run/secrets/kubernetes.io/serviceaccount'
/** The user of a context that names none. */
const nobody: User = { name: '(nobody)' }

export function loadConfig(options: ConfigFileOptions): KubeConfig {
  const files = filesOf(options)
  const config = files.length > 0 ? fromFiles(files) : fromPod(options.root ?? '/')
  if (options.context) config.setCurrentContext(options.context)
  check(config, files)
  return config
}

function filesOf({ file }: ConfigFileOptions): string[] {
  if (file) return [file]
  const named = (process.env.KUBECONFIG ?? '').split(delimiter).filter(Boolean)
  const there = named.filter(name => existsSync(name))
  if (named.length > 0) return there.length > 0 ? there : named
  const home = join(process.env.HOME || homedir(), '.kube', 'config')
  return existsSync(home) ? [home] : []
}

function fromFiles(files: readonly string[]): KubeConfig {
  const all = files.map(file => {
    try {
      return readConfig(file)
    } catch (error) {
      throw misuse(`cannot read a kubeconfig from ${file}: ${withoutContent(error)}`)
    }
  })
  const config = new KubeConfig()
  const contexts = firstOfEach(all.flatMap(parts => parts.contexts))
  config.loadFromOptions({
    clusters: firstOfEach(all.flatMap(parts => parts.clusters)).map(withoutTls),
    contexts: contexts.map(context => (context.user ? context : { ...context, user: nobody.name })),
    users: [...firstOfEach(all.flatMap(parts => parts.users)), nobody],
    currentContext: all.find(parts => parts.currentContext)?.currentContext,
  })
  return config
}

function readConfig(file: string): Parts {
  const text = readFileSync(file, 'utf8')
  const raw = parseYaml(text) as { users?: RawUser[] } | undefined
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) throw new Error('it is not a kubeconfig')
  const config = new KubeConfig()
  config.loadFromFile(file)
  const users = config.getUsers().map(user => {
    const more = raw.users?.find(one => one.name === user.name)?.user
    return more ? completed(user, more, dirname(file)) : user
  })
  return {
    clusters: config.getClusters(),
    contexts: config.getContexts(),
    users,
    currentContext: config.getCurrentContext(),
  }
}

function completed(user: User, raw: NonNullable<RawUser['user']>, folder: string): User {
  for (const field of ['as-groups', 'as-uid', 'as-user-extra'] as const) {
    if (raw[field]) throw new Error(`user "${user.name}" has ${field}, which is not supported`)
  }
  if (raw.tokenFile) {
    const tokenFile = isAbsolute(raw.tokenFile) ? raw.tokenFile : join(folder, raw.tokenFile)
    const { token: _, ...rest } = user
    return { ...rest, authProvider: { name: 'tokenFile', config: { tokenFile } } }
  }
  if (!raw.exec) return user
  const { command = '', apiVersion = 'client.authentication.k8s.io/v1', env = [] } = raw.exec
  // By itself it is looked for in PATH.
  const isRelative = command.includes('/') && !isAbsolute(command)
  const told = JSON.stringify({ apiVersion, kind: 'ExecCredential', spec: { interactive: false } })
  const exec = {
    ...raw.exec,
    command: isRelative ? join(folder, command) : command,
    env: [...env, { name: 'KUBERNETES_EXEC_INFO', value: told }],
  }
  return { ...user, exec }
}

function fromPod(root: string): KubeConfig {
  if (!existsSync(join(root, account, 'token'))) {
    throw misuse(
      'there is no kubeconfig: KUBECONFIG is not set, ~/.kube/config is not there, and neither is a service account of a pod',
    )
  }
  const config = new KubeConfig()
  config.loadFromCluster(root === '/' ? '' : root)
  return config
}

function check(config: KubeConfig, files: readonly string[]): void {
  const where = files.join(', ') || 'the pod'
  const name = config.getCurrentContext()
  const context = config.getContextObject(name)
  const cluster = config.getCurrentCluster()
  if (!context || !cluster) {
    const contexts = config.getContexts().map(one => one.name)
    const has = contexts.join(', ') || 'none'
    throw misuse(
      `context "${name ?? ''}" is not in the kubeconfig ${where}, or names no cluster in it (it has: ${has})`,
    )
  }
  if (!config.getCurrentUser())
    throw misuse(`context "${name}" names user "${context.user}", who is not in the kubeconfig ${where}`)
  checkUrl(cluster.server, /^https?:$/, `the server of cluster "${cluster.name}" in ${where}`)
  if (cluster.proxyUrl)
    checkUrl(cluster.proxyUrl, /^(https?|socks5?):$/, `the proxy-url of cluster "${cluster.name}" in ${where}`)
}

function checkUrl(text: string, protocol: RegExp, what: string): void {
  if (!URL.canParse(text) || !protocol.test(new URL(text).protocol))
    throw misuse(`${what} is no URL that can be used: ${text}`)
}

/** KubeConfig refuses plain HTTP unless it is told that nothing is to be verified: there is nothing to. */
function withoutTls(cluster: Cluster): Cluster {
  return cluster.server.startsWith('http:') ? { ...cluster, skipTLSVerify: true } : cluster
}

function firstOfEach<N extends { readonly name: string }>(named: readonly N[]): N[] {
  const first = new Map<string, N>()
  for (const one of named) if (!first.has(one.name)) first.set(one.name, one)
  return [...first.values()]
}

/** What is wrong and where. What stands there, a parser's error quotes, is often a secret. */
function withoutContent(error: unknown): string {
  if (!(error instanceof YAMLException)) return messageOf(error)
  const { line, column } = error.mark ?? {}
  return line === undefined ? error.reason : `${error.reason} (line ${line + 1}, column ${(column ?? 0) + 1})`
}

function misuse(message: string, cause?: unknown): ShipmateError {
  return new ShipmateError('Misuse', message, 'never', cause === undefined ? undefined : { cause })
}
