// How the programs of a bench are built: ours and others in Node with their types stripped, Go's compiled. What cannot
// be built is left out, with a reason.

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

export type Built<P extends Program> = P & { command: Command }

const run = promisify(execFile)
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const cached = (name: string) => here(`../.cache/bench/${name}`)

/** Those of the programs that are asked for. */
export async function buildAll<P extends Program>(programs: P[], names: string[]) {
  const built: Built<P>[] = []
  const leftOut: { name: string; reason: string }[] = []
  for (const program of programs.filter(({ name }) => names.includes(name))) {
    try {
      built.push({ ...program, command: await program.build() })
    } catch (error) {
      leftOut.push({ name: program.name, reason: (error as Error).message })
    }
  }
  for (const { name, reason } of leftOut) console.log(`${name} is left out: ${reason}`)
  return { built, leftOut }
}

/** Builds our package, which some programs import as a user does. */
export async function buildPackage(): Promise<void> {
  await run(process.execPath, [here('../build.ts')])
}

/** Strips the types beforehand, as a package does for its users; the dependencies stay in node_modules. @param entry from this folder, without `.ts` */
export async function nodeProgram(entry: string): Promise<Command> {
  const outfile = cached(`${entry.replace('/', '-')}.js`)
  await build({
    entryPoints: [here(`${entry}.ts`)],
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
  return { line: [process.execPath, outfile] }
}

/** @param name of its folder in `go` */
export async function goProgram(name: string): Promise<Command> {
  await run('go', ['version']).catch(() => {
    throw new Error('Go is not installed')
  })
  const outfile = cached(`${name}-go`)
  await run('go', ['build', '-trimpath', '-o', outfile, `./${name}`], { cwd: here('go') })
  return { line: [outfile] }
}
