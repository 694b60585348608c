/**
 * Builds dist: one JavaScript file an entry, shared chunks, the type declarations beside them; the sidecar's program, agent.cjs, with
 * shipmate-init, where that can be compiled; the controller's for its image, controller.cjs; and what is in these two (`*.cdx.json`).
 *
 * dist is replaced in one move, and only when something changed, so that whoever reads it meanwhile never finds half of it.
 * `--strict` (what prepack uses) fails on a missing entry and on a type error; without it, both are only mentioned.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { build, type Metafile } from 'esbuild'
import { bundleAgent, compileWrapper } from './tools/agent.ts'
import { bundleController } from './tools/controller.ts'
import { dependencies } from './tools/dependencies.ts'
import { packagesIn, sbomOf } from './tools/sbom.ts'

const root = import.meta.dirname
const entries = {
  toolkit: 'controller/toolkit/index.ts',
  kube: 'controller/kube/index.ts',
  runtime: 'controller/runtime/index.ts',
  testing: 'devcluster/testing/index.ts',
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
    const [bundled, agent, controller, compiled, declared] = await Promise.allSettled([
      bundle(next),
      bundleAgent(next),
      bundleController(next),
      compileWrapper(next),
      declarations(next),
    ])
    if (bundled.status === 'rejected') throw bundled.reason
    if (agent.status === 'rejected') throw agent.reason
    if (controller.status === 'rejected') throw controller.reason
    if (compiled.status === 'rejected') throw compiled.reason
    if (declared.status === 'rejected') throw declared.reason
    const typeErrors = declared.value
    if (strict && typeErrors) throw new Error(`the types have errors:\n${typeErrors}`)
    const bundles = [bundled.value, agent.value, controller.value]
    await writeFile(join(next, 'THIRD-PARTY-LICENSES.txt'), await licenses(bundles))
    await writeFile(join(next, 'agent.cdx.json'), sbomOf('shipmate-sidecar', agent.value))
    await writeFile(join(next, 'controller.cdx.json'), sbomOf('shipmate-controller', controller.value))
    const changed = await publish(next, join(root, 'dist'))
    return [
      `${Object.keys(entries).length - absent.length} entries`,
      `${kib(bundled.value)} KiB`,
      `agent.cjs ${kib(agent.value)} KiB`,
      `controller.cjs ${kib(controller.value)} KiB`,
      `${((performance.now() - started) / 1000).toFixed(1)} s`,
      ...(changed ? [] : ['unchanged']),
      ...absent.map(file => `${file} is not there yet`),
      ...(compiled.value ? [] : ['no shipmate-init, as there is no C compiler or no Linux']),
      ...(typeErrors ? ['the types have errors: npm run typecheck'] : []),
    ]
  } finally {
    await rm(next, { recursive: true, force: true })
  }
}

function kib({ outputs }: Metafile): number {
  return Math.round(Object.values(outputs).reduce((sum, output) => sum + output.bytes, 0) / 1024)
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
async function licenses(metafiles: Metafile[]): Promise<string> {
  const texts = packagesIn(...metafiles).map(async folder => {
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
