/**
 * Compiles shipmate-init, where there is a Linux and a C compiler.
 *
 * Guarantee: the output is replaced in one move, and only if a source is newer; builds at the same time do each other no harm.
 */
import { execFile } from 'node:child_process'
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

export interface CompileOptions {
  /** With the address and undefined behaviour sanitizers: aborts at the first mistake. Default false. */
  readonly sanitize?: boolean | undefined
  /** With the points at which SHIPMATE_FAULT kills the wrapper. Default false. */
  readonly faults?: boolean | undefined
}

const warnings = ['-Wall', '-Wextra']

/** @returns false where there is no Linux or no compiler; `CC` names another than `cc` */
export async function compileInit(output: string, options: CompileOptions = {}): Promise<boolean> {
  if (process.platform !== 'linux') return false
  const folder = import.meta.dirname
  const files = (await readdir(folder)).filter(name => /\.[ch]$/.test(name)).map(name => join(folder, name))
  if ((await newest([output])) > (await newest(files))) return true
  const sources = files.filter(name => name.endsWith('.c'))
  const common = ['-std=c11', '-D_GNU_SOURCE', ...(options.faults ? ['-DSHIPMATE_FAULTS'] : []), ...sources]
  const sanitized = [
    '-g',
    '-O1',
    '-fsanitize=address,undefined',
    '-fno-sanitize-recover=all',
    '-fno-omit-frame-pointer',
  ]
  // Without a static libc a dynamic program will do; a warning of a compiler that we have not met is no reason to have none at all.
  const attempts = options.sanitize
    ? [['-Werror', ...sanitized]]
    : [
        ['-Werror', '-O2', '-s', '-static'],
        ['-Werror', '-O2', '-s'],
        ['-O2', '-s'],
      ]
  await mkdir(dirname(output), { recursive: true })
  const next = `${output}.${process.pid}.${Math.random().toString(36).slice(2)}`
  try {
    let failure: unknown
    for (const flags of attempts) {
      try {
        await promisify(execFile)(process.env.CC ?? 'cc', [...common, ...warnings, ...flags, '-o', next])
        await rename(next, output)
        return true
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false
        failure = error
      }
    }
    throw new Error(`shipmate-init does not compile: ${failure instanceof Error ? failure.message : failure}`)
  } finally {
    await rm(next, { force: true })
  }
}

/** When the last of them was changed; 0 if one is not there. */
async function newest(files: string[]): Promise<number> {
  try {
    return Math.max(...(await Promise.all(files.map(async file => (await stat(file)).mtimeMs))))
  } catch {
    return 0
  }
}
