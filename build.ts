/**
 * Builds dist: one JavaScript file an entry, shared chunks, and the type declarations beside them.
 *
 * dist is replaced in one move, and only when something changed, so that whoever reads it meanwhile never finds half of it.
 * `--strict` (what prepack uses) fails on a missing entry and on a type error; without it, both are only mentioned.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire, isBuiltin } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { build, type ImportKind, type Metafile, type Plugin } from 'esbuild'
import manifest from './package.json' with { type: 'json' }

const root = import.meta.dirname
const entries = {
  kube: 'controller/kube/index.ts',
  runtime: 'controller/runtime/index.ts',
  cli: 'cli/main.ts',
}

const { strict } = parseArgs({ options: { strict: { type: 'boolean', default: false } } }).values
const absent = Object.values(entries).filter(file => !existsSync(join(root, file)))

try {
  console.log(`dist: ${(await main()).join(', ')}`)
} catch (error) {
  // esbuild has told its own errors already.
  const isTold = error instanceof Error && 'errors' in error
  console.error(`build: ${isTold ? 'failed' : error instanceof Error ? error.message : error}`)
  process.exitCode = 1
}

async function main(): Promise<string[]> {
  const started = performance.now()
  if (strict && absent.length > 0) throw new Error(`these entries do not exist: ${absent.join(', ')}`)
  await mkdir(join(root, '.cache'), { recursive: true })
  const next = await mkdtemp(join(root, '.cache/dist-'))
  try {
    // Both to their end, or the compiler would write into a folder that is gone.
    const [bundled, declared] = await Promise.allSettled([bundle(next), declarations(next)])
    if (bundled.status === 'rejected') throw bundled.reason
    if (declared.status === 'rejected') throw declared.reason
    const metafile = bundled.value
    const typeErrors = declared.value
    if (strict && typeErrors) throw new Error(`the types have errors:\n${typeErrors}`)
    await writeFile(join(next, 'THIRD-PARTY-LICENSES.txt'), await licenses(metafile))
    const changed = await publish(next, join(root, 'dist'))
    return [
      `${Object.keys(entries).length - absent.length} entries`,
      `${Math.round(Object.values(metafile.outputs).reduce((sum, output) => sum + output.bytes, 0) / 1024)} KiB`,
      `${((performance.now() - started) / 1000).toFixed(1)} s`,
      ...(changed ? [] : ['unchanged']),
      ...absent.map(file => `${file} is not there yet`),
      ...(typeErrors ? ['the types have errors: npm run typecheck'] : []),
    ]
  } finally {
    await rm(next, { recursive: true, force: true })
  }
}

async function bundle(outdir: string): Promise<Metafile> {
  const present = Object.entries(entries).filter(([, file]) => !absent.includes(file))
  const result = await build({
    absWorkingDir: root,
    entryPoints: Object.fromEntries(present),
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    chunkNames: 'chunks/[name]-[hash]',
    legalComments: 'none',
    metafile: true,
    plugins: [dependencies()],
    logLevel: 'warning',
  })
  return result.metafile
}

/**
 * Dependencies stay outside, but for parts of two that are costly as a whole: @kubernetes/client-node's KubeConfig (the whole package takes
 * 80 MB of memory), and undici's pool (its fetch, WebSocket and caches take 10). What those files need is taken in too, unless it is a
 * dependency of ours.
 */
function dependencies(): Plugin {
  return {
    name: 'dependencies',
    setup(esbuild) {
      const clientFile = /^@kubernetes\/client-node\/dist\//
      const ours = new Set(Object.keys(manifest.dependencies).filter(name => name !== 'undici'))
      const builtins = 'builtin'
      const parts = 'parts'

      esbuild.onResolve({ filter: /^[^./]/ }, ({ path, importer, kind }) => {
        if (isBuiltin(path)) return isSwallowed(path, kind) ? { path, namespace: builtins } : { path, external: true }
        if (path === 'isomorphic-ws') return { path: 'ws', external: true }
        if (path === 'undici') return { path, namespace: parts }
        if (kind === 'entry-point' || clientFile.test(path) || path.startsWith('undici/')) return undefined
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
      // KubeConfig needs the generated client for one method of its own, which nobody here calls.
      esbuild.onLoad({ filter: /client-node[/]dist[/]gen[/]index\.js$/ }, () => ({
        contents: `
          const none = () => { throw new TypeError("makeApiClient is client-node's own: import it from @kubernetes/client-node") }
          export { none as createConfiguration, none as ServerConfiguration }`,
      }))
    },
  }
}

/**
 * Whether a module of Node's own is asked for at run time instead of imported. An ES module has no `require` for the CommonJS packages in the
 * bundle; and importing node:http makes Node load its own fetch with it, 10 MB, for names that nobody uses.
 */
function isSwallowed(path: string, kind: ImportKind): boolean {
  return kind === 'require-call' || /^(node:)?https?$/.test(path)
}

/** Writes the declarations of everything the exported entries reach; answers what the compiler complained of, if anything. */
async function declarations(outdir: string): Promise<string | undefined> {
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')
  const args = [tsc, '-p', join(root, 'tsconfig.build.json'), '--outDir', outdir]
  try {
    await promisify(execFile)(process.execPath, args, { cwd: root, maxBuffer: 1 << 26 })
    return undefined
  } catch (error) {
    if (!(error instanceof Error && 'stdout' in error)) throw error
    return String(error.stdout).trim() || error.message
  }
}

/** The licences of the packages whose code is in the bundle: they ask to be passed on with it. */
async function licenses(metafile: Metafile): Promise<string> {
  const inputs = Object.values(metafile.outputs).flatMap(output => Object.keys(output.inputs))
  const folders = new Set(inputs.flatMap(input => input.match(/^.*node_modules\/(@[^/]+\/)?[^/]+/)?.[0] ?? []))
  const texts = [...folders].sort().map(async folder => {
    const { name, version, license } = JSON.parse(await readFile(join(root, folder, 'package.json'), 'utf8'))
    const file = (await readdir(join(root, folder))).find(name => /^licen[cs]e/i.test(name))
    const text = file ? await readFile(join(root, folder, file), 'utf8') : `License: ${license}`
    return `${name} ${version}\n${'-'.repeat(name.length + version.length + 1)}\n\n${text.trim()}\n`
  })
  return ['dist contains code of these packages.\n', ...(await Promise.all(texts))].join('\n\n')
}

/** Puts `from` in the place of `to`, unless they are the same. */
async function publish(from: string, to: string): Promise<boolean> {
  const aside = `${from}-old`
  for (let attempt = 1; ; attempt++) {
    if (existsSync(to) && (await contents(from)) === (await contents(to))) return false
    try {
      if (existsSync(to)) await rename(to, aside)
      await rename(from, to)
      return true
    } catch (error) {
      // Another build moved its own in between: compare with that one.
      if (attempt === 3) throw error
    } finally {
      await rm(aside, { recursive: true, force: true })
    }
  }
}

async function contents(folder: string): Promise<string> {
  const files = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = files.filter(file => file.isFile()).map(file => join(file.parentPath, file.name))
  const read = paths.sort().map(async path => [relative(folder, path), await readFile(path, 'utf8')])
  return JSON.stringify(await Promise.all(read))
}
