/**
 * What the agent's bundle leaves out of its libraries, as a plugin of esbuild: every megabyte here is paid once per pod.
 *
 * A part that nobody here calls becomes a stub that throws a sentence when somebody does; a module of Node's own that is costly to load (TLS, zlib,
 * crypto) is loaded at its first use. What is left behaves as the whole does: test/package/agent.test.ts holds that.
 */
import { createRequire } from 'node:module'
import { build, type Plugin } from 'esbuild'

const require = createRequire(import.meta.url)

/** Throws when it is used, not when it is loaded. */
const absent = (what: string) => `() => { throw new Error(${JSON.stringify(`${what} is not in this build`)}) }`

const stubs: Record<string, string> = {
  // express: no static files, no views, no bodies read by it, no proxies trusted, the simple query parser.
  'body-parser': `const none = ${absent('body-parser')}; module.exports = { json: none, raw: none, text: none, urlencoded: none }`,
  'serve-static': `module.exports = ${absent('serve-static')}`,
  send: `module.exports = ${absent('send')}`,
  qs: `module.exports = { parse: ${absent('qs')} }`,
  'proxy-addr': `
    const address = request => request.socket.remoteAddress
    module.exports = Object.assign(address, { all: request => [address(request)], compile: () => () => false })`,
  // The whole table of media types, three times over: 150 KB of source each.
  'mime-types': `
    const types = { html: 'text/html', txt: 'text/plain', text: 'text/plain', json: 'application/json', bin: 'application/octet-stream' }
    const lookup = name => types[String(name).toLowerCase().replace(/^.*[.]/, '')] || false
    const contentType = name => {
      const type = name.includes('/') ? name : lookup(name)
      return type && /^(text[/]|application[/]json$)/.test(type) && !type.includes('charset') ? type + '; charset=utf-8' : type
    }
    module.exports = { lookup, contentType, types }`,
  debug: 'const silent = () => {}; module.exports = () => silent',
  depd: `
    const silent = () => {}
    const same = wrapped => wrapped
    module.exports = () => Object.assign(() => {}, { function: same, property: silent })`,
  // pino: it writes lines by itself, in this thread.
  assert: "module.exports = (holds, message) => { if (!holds) throw new Error(message || 'an assertion failed') }",
  worker_threads: 'module.exports = { isMainThread: true }',
  'thread-stream': `module.exports = ${absent('thread-stream')}`,
}

/** Files inside packages, by the end of their path. */
const files: [RegExp, string][] = [
  [/[/]express[/]lib[/]view\.js$/, `module.exports = ${absent("express' view")}`],
  [/[/]pino[/]lib[/]transport\.js$/, `module.exports = ${absent("pino's transport")}`],
  [/[/]pino[/]lib[/]multistream\.js$/, `module.exports = ${absent("pino's multistream")}`],
  [/[/]ws[/]lib[/]stream\.js$/, `module.exports = ${absent("ws' stream")}`],
]

/** Loaded at the first look at one of its properties. Libraries must not take it apart when they load. */
const atUse = ['https', 'tls', 'zlib']
/** The same, but libraries take functions out of it when they load: each is a function that finds the real one when it is called. */
const atCall = ['crypto']

/** Needed when a configuration is read, for a moment: loaded then, and collected when nobody holds anything of it. */
const passing = ['yaml']

export function slim(): Plugin {
  return {
    name: 'slim',
    setup(esbuild) {
      const names = Object.keys(stubs).join('|')
      const passers = new RegExp(`^(${passing.join('|')})$`)
      const builtins = new RegExp(`^(node:)?(${[...atUse, ...atCall].join('|')})$`)

      esbuild.onResolve({ filter: new RegExp(`^(${names})$`) }, ({ path }) => ({ path, namespace: 'stub' }))
      esbuild.onLoad({ filter: /./, namespace: 'stub' }, ({ path }) => ({ contents: stubs[path] ?? '' }))
      for (const [filter, contents] of files) esbuild.onLoad({ filter }, () => ({ contents }))

      esbuild.onResolve({ filter: passers }, ({ path }) => ({
        path: require.resolve(path),
        namespace: 'passing',
        pluginData: path,
        sideEffects: false,
      }))
      esbuild.onLoad({ filter: /./, namespace: 'passing' }, async ({ path, pluginData }) => ({
        contents: await whileUsed(path, Object.keys(require(pluginData))),
      }))

      // Only what packages require: our own files import what they use.
      esbuild.onResolve({ filter: builtins }, ({ path, kind }) =>
        kind === 'require-call' ? { path: path.replace(/^node:/, ''), namespace: 'late' } : undefined,
      )
      esbuild.onLoad({ filter: /./, namespace: 'late' }, ({ path }) => ({
        contents: late(path, atCall.includes(path)),
      }))
    },
  }
}

/** A module that is made when a function of it is called, and again when it was collected since. What it exports are functions and classes. */
async function whileUsed(path: string, names: string[]): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [path],
    bundle: true,
    write: false,
    minify: true,
    format: 'cjs',
    platform: 'node',
    target: 'node22',
  })
  return `
    const make = module => { (exports => { ${outputFiles[0]?.text} })(module.exports); return module.exports }
    let kept
    const used = () => {
      const known = kept?.deref()
      if (known) return known
      const made = make({ exports: {} })
      kept = new WeakRef(made)
      return made
    }
    const at = name => function (...args) {
      const real = used()[name]
      return new.target ? new real(...args) : real(...args)
    }
    ${names.map(name => `export const ${name} = /* @__PURE__ */ at('${name}')`).join('\n')}`
}

function late(name: string, isTakenApart: boolean): string {
  const found = isTakenApart ? '(...args) => real()[name](...args)' : 'real()[name]'
  return `
    const real = () => process.getBuiltinModule('node:${name}')
    module.exports = new Proxy({}, { get: (_, name) => ${found} })`
}
