/**
 * Builds the sidecar's program: one minified CommonJS file with everything in it, and beside it shipmate-init, where that can be compiled.
 *
 * CommonJS, as Node's loader of ES modules brings its own fetch, TLS and zlib with it: 10 MB in every pod.
 */
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build, type Metafile } from 'esbuild'
import manifest from '../package.json' with { type: 'json' }
import { compileInit } from '../sidecar/init/compile.ts'
import { slim } from './slim.ts'

const root = join(import.meta.dirname, '..')

/** Writes `agent.cjs` into the folder; answers what is in it. */
export async function bundleAgent(folder: string): Promise<Metafile> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: { agent: 'sidecar/bundle.ts' },
    outdir: folder,
    outExtension: { '.js': '.cjs' },
    bundle: true,
    minify: true,
    format: 'cjs',
    platform: 'node',
    target: 'node22',
    define: { SHIPMATE_VERSION: JSON.stringify(manifest.version) },
    // `shipmate` loads the file as well, and calls `run` itself.
    footer: { js: 'if (require.main === module) module.exports.main()' },
    legalComments: 'none',
    metafile: true,
    plugins: [slim()],
    // Read only where the version is not defined.
    logOverride: { 'empty-import-meta': 'silent' },
    logLevel: 'warning',
  })
  return metafile
}

/** Writes `shipmate-init` into the folder; false where it cannot be compiled, as without a Linux or a compiler. */
export async function compileWrapper(folder: string): Promise<boolean> {
  // Kept aside, where the next build finds it as new as its sources.
  const kept = join(root, '.cache/shipmate-init')
  if (!(await compileInit(kept))) return false
  await copyFile(kept, join(folder, 'shipmate-init'))
  return true
}
