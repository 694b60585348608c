// The programs that look after Stacks, and how each is built. All take KUBECONFIG, BENCH_NAMESPACE, BENCH_CONCURRENCY
// and BENCH_PORT (for /metrics) from the environment and run until SIGTERM. What cannot be built is left out with a
// reason.

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'

export interface Command {
  line: [command: string, ...args: string[]]
  env?: Record<string, string>
}

export interface Program {
  name: string
  /** What it is, for the table's legend. */
  title: string
  /** Makes it ready to run. */
  build(): Promise<Command>
}

const run = promisify(execFile)
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const cached = (name: string) => here(`../../.cache/bench/${name}`)

/** Whom the bar is for. */
export const ours = 'shipmate'
/** The one that the others are compared to. */
export const reference = 'go'

export const programs: Program[] = [
  {
    name: ours,
    title: "Shipmate's toolkit",
    build: async () => ({ line: await packaged() }),
  },
  {
    name: reference,
    title: "Go's controller-runtime with CreateOrUpdate, as it is mostly written: only what is wished",
    build: async () => ({ line: await compiled() }),
  },
  {
    name: 'go-spelled-out',
    title: 'the same, with every default of the server written into the wishes',
    build: async () => ({ line: await compiled(), env: { BENCH_SPELL_OUT: '1' } }),
  },
]

/** Builds our package, which the Stacks' definition and our program import as a user does. */
export async function buildPackage(): Promise<void> {
  await run(process.execPath, [here('../../build.ts')])
}

/** Strips the types beforehand, as a package does for its users; the dependencies stay in node_modules. */
async function packaged(): Promise<[string, ...string[]]> {
  const outfile = cached('toolkit-shipmate.js')
  await build({
    entryPoints: [here('shipmate.ts')],
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

async function compiled(): Promise<[string, ...string[]]> {
  await run('go', ['version']).catch(() => {
    throw new Error('Go is not installed')
  })
  await run('go', ['build', '-trimpath', '-o', cached('toolkit-go'), '.'], { cwd: here('go') })
  return [cached('toolkit-go')]
}
