/**
 * What becomes of dependencies in the bundle, as a plugin of esbuild.
 *
 * They stay outside, unless they are asked in, but for parts of two that are costly as a whole: @kubernetes/client-node's KubeConfig (the package takes 80 MB of
 * memory), and undici's pool (its fetch, WebSocket and caches take 10). What those files need is taken in too, unless it is a dependency
 * of ours.
 */
import { isBuiltin } from 'node:module'
import { basename, join } from 'node:path'
import type { ImportKind, Plugin } from 'esbuild'
import manifest from '../package.json' with { type: 'json' }

const root = join(import.meta.dirname, '..')
/** Marks the import of a file that is otherwise replaced. */
const whole = '?whole'

/** @param inside whether all of them are taken in, for a file that stands alone */
export function dependencies({ inside = false }: { inside?: boolean } = {}): Plugin {
  return {
    name: 'dependencies',
    setup(esbuild) {
      const clientFile = /^@kubernetes\/client-node\/dist\//
      const ours = new Set(Object.keys(manifest.dependencies).filter(name => name !== 'undici'))
      const builtins = 'builtin'
      const parts = 'parts'

      esbuild.onResolve({ filter: /\?whole$/ }, ({ path, resolveDir }) => ({
        path: join(resolveDir, path.slice(0, -whole.length)),
        suffix: whole,
      }))
      esbuild.onResolve({ filter: /^(socks|socks-proxy-agent|hpagent)$/ }, ({ path }) => ({
        path,
        namespace: 'unused',
      }))
      esbuild.onResolve({ filter: /^[^./]/ }, ({ path, importer, kind }) => {
        if (isBuiltin(path)) return isSwallowed(path, kind) ? { path, namespace: builtins } : { path, external: true }
        if (path === 'isomorphic-ws')
          return inside ? esbuild.resolve('ws', { resolveDir: root, kind }) : { path: 'ws', external: true }
        if (path === 'undici') return { path, namespace: parts }
        if (kind === 'entry-point' || clientFile.test(path) || path.startsWith('undici/')) return undefined
        if (inside) return undefined
        return !importer.includes('/node_modules/') || ours.has(path) ? { path, external: true } : undefined
      })
      esbuild.onLoad({ filter: /./, namespace: builtins }, ({ path }) => ({
        contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)})`,
      }))
      esbuild.onLoad({ filter: /^undici$/, namespace: parts }, () => ({
        resolveDir: root,
        contents: `
          export { default as Agent } from 'undici/lib/dispatcher/agent.js'
          export { default as Pool } from 'undici/lib/dispatcher/pool.js'
          export { default as ProxyAgent } from 'undici/lib/dispatcher/proxy-agent.js'
          export { default as buildConnector } from 'undici/lib/core/connect.js'
          export { default as errors } from 'undici/lib/core/errors.js'`,
      }))
      // Another HTTP parser, for who asks for it by an environment variable: half a megabyte that is never loaded.
      esbuild.onLoad({ filter: /undici[/]lib[/]milo[/]/ }, () => ({ contents: `throw new Error('not in this build')` }))
      // Ways to sign in that few use: loaded when a kubeconfig names one.
      esbuild.onLoad({ filter: /client-node[/]dist[/](azure|gcp|oidc)_auth\.js$/ }, ({ path, suffix }) =>
        suffix === whole ? undefined : { contents: signIn(basename(path)) },
      )
      // The agents that KubeConfig makes for client-node's own requests, of which there are none.
      esbuild.onLoad({ filter: /./, namespace: 'unused' }, () => ({
        contents:
          'class Unused {} export { Unused as SocksClient, Unused as SocksProxyAgent, Unused as HttpProxyAgent, Unused as HttpsProxyAgent }',
      }))
      // KubeConfig needs the generated client for one method of its own, which nobody here calls.
      esbuild.onLoad({ filter: /client-node[/]dist[/]gen[/]index\.js$/ }, () => ({
        contents: `
          const none = () => { throw new TypeError("makeApiClient is client-node's own: import it from @kubernetes/client-node") }
          export { none as createConfiguration, none as ServerConfiguration }`,
      }))
    },
  }
}

/** An Authenticator of client-node that loads the real one when it is first used. */
function signIn(file: string): string {
  const [name, type] = {
    'azure_auth.js': ['azure', 'AzureAuth'],
    'gcp_auth.js': ['gcp', 'GoogleCloudPlatformAuth'],
    'oidc_auth.js': ['oidc', 'OpenIDConnectAuth'],
  }[file] as [string, string]
  return `
    export class ${type} {
      isAuthProvider(user) {
        return user?.authProvider?.name === '${name}'
      }
      async applyAuthentication(user, options) {
        this.real ??= import('./${file}${whole}').then(module => new module.${type}())
        return (await this.real).applyAuthentication(user, options)
      }
    }`
}

/**
 * Whether a module of Node's own is asked for at run time instead of imported. An ES module has no `require` for the CommonJS packages in the
 * bundle; and importing node:http makes Node load its own fetch with it, 10 MB, for names that nobody uses.
 */
function isSwallowed(path: string, kind: ImportKind): boolean {
  return kind === 'require-call' || /^(node:)?https?$/.test(path)
}
