// The programs that do the Widget work, and how each is built. All take KUBECONFIG, BENCH_NAMESPACE and
// BENCH_CONCURRENCY from the environment and run until SIGTERM. What cannot be built is left out with a reason.

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'

export interface Program {
  name: string
  /** What it is, for the table's legend. */
  title: string
  /** False for one that writes once and looks at nothing: only its convergence is measured. */
  isController: boolean
  /** Makes it ready to run and returns the command line. */
  build(): Promise<[command: string, ...args: string[]]>
}

const run = promisify(execFile)
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const cached = (name: string) => here(`../.cache/bench/${name}`)

/** The one that the others are compared to. */
export const reference = 'go'

export const programs: Program[] = [
  {
    name: 'shipmate',
    title: 'shipmate/runtime',
    isController: true,
    build: () => packaged('shipmate'),
  },
  {
    name: 'shipmate-apply',
    title: 'shipmate/runtime, by server-side apply',
    isController: true,
    build: () => packaged('shipmate-apply'),
  },
  {
    name: reference,
    title: "Go's controller-runtime",
    isController: true,
    async build() {
      await run('go', ['version']).catch(() => {
        throw new Error('Go is not installed')
      })
      await run('go', ['build', '-trimpath', '-o', cached('widget-go'), '.'], { cwd: here('widget/go') })
      return [cached('widget-go')]
    },
  },
  {
    name: 'client-node',
    title: "@kubernetes/client-node's informers",
    isController: true,
    build: () => nodeProgram('client-node'),
  },
  {
    name: 'floor',
    title: 'raw writes from Node, without watching',
    isController: false,
    build: () => nodeProgram('floor'),
  },
]

/** One that imports our package as a user does: so the package is built first. */
async function packaged(name: string): Promise<[string, ...string[]]> {
  await run(process.execPath, [here('../build.ts')])
  const absent = ['kube.js', 'runtime.js'].find(file => !existsSync(here(`../dist/${file}`)))
  if (absent !== undefined) throw new Error(`the build makes no dist/${absent}`)
  return nodeProgram(name)
}

/** Strips the types beforehand, as a package does for its users; the dependencies stay in node_modules. */
async function nodeProgram(name: string): Promise<[string, ...string[]]> {
  const entry = here(`widget/${name}.ts`)
  if (!existsSync(entry)) throw new Error(`bench/widget/${name}.ts does not exist yet`)
  const outfile = cached(`${name}.js`)
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node22',
    logLevel: 'error',
    // Without the paths of tsconfig.json, which lead to our sources: what is measured is the package.
    tsconfigRaw: {},
  })
  return [process.execPath, outfile]
}
