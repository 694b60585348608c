/**
 * Builds the controller's program for its image: one minified CommonJS file with everything in it, so that the image has no node_modules.
 *
 * CommonJS for the reason that the agent has (tools/agent.ts); of its libraries the same parts are taken as in dist (tools/dependencies.ts).
 */
import { join } from 'node:path'
import { build, type Metafile, type Plugin } from 'esbuild'
import manifest from '../package.json' with { type: 'json' }
import { dependencies } from './dependencies.ts'

const root = join(import.meta.dirname, '..')

/** Writes `controller.cjs` into the folder; answers what is in it. */
export async function bundleController(folder: string): Promise<Metafile> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: { controller: 'cli/image.ts' },
    outdir: folder,
    outExtension: { '.js': '.cjs' },
    bundle: true,
    minify: true,
    // Names of classes stand in logs and metrics.
    keepNames: true,
    format: 'cjs',
    platform: 'node',
    target: 'node24',
    define: { SHIPMATE_VERSION: JSON.stringify(manifest.version) },
    footer: { js: 'module.exports.main()' },
    legalComments: 'none',
    metafile: true,
    plugins: [required(), dependencies({ inside: true })],
    logLevel: 'warning',
  })
  return metafile
}

/** What is required at run time by a name that esbuild does not see is required where it does: it is in the file, and evaluated when it is first asked for. */
function required(): Plugin {
  return {
    name: 'required',
    setup(esbuild) {
      esbuild.onLoad({ filter: /controller[/]toolkit[/]libraries\.ts$/ }, () => ({
        loader: 'ts',
        contents: `
          export const yaml = () => require('yaml')
          export const cel = () => require('@marcbachmann/cel-js')
          export const liquid = () => require('liquidjs')`,
      }))
    },
  }
}
