import { execFile, execFileSync } from 'node:child_process'
import { existsSync, readdirSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { describe, expect, it, vi } from 'vitest'
import { compileInit } from '../../../sidecar/init/compile.ts'
import { folder, hasCompiler, run, start, wrappers } from './wrappers.ts'

const sources = join(import.meta.dirname, '../../../sidecar/init')

describe.skipIf(!hasCompiler)('the C program', () => {
  it('compiles without a warning, plain and with fault points', { timeout: 60_000 }, async () => {
    const files = readdirSync(sources).filter(name => name.endsWith('.c'))
    const flags = [
      '-std=c11',
      '-D_GNU_SOURCE',
      '-Wall',
      '-Wextra',
      '-Wshadow',
      '-Wstrict-prototypes',
      '-Wvla',
      '-Werror',
      '-O2',
    ]
    for (const faults of [[], ['-DSHIPMATE_FAULTS']]) {
      const args = [...flags, ...faults, '-c', '-o', '/dev/null']
      for (const file of files) await promisify(execFile)('cc', [...args, join(sources, file)])
    }
  })

  it('is compiled once, and again when a source is newer, by several at once', { timeout: 60_000 }, async () => {
    const dir = folder()
    const output = join(dir, 'deep', 'shipmate-init')
    expect(await Promise.all([compileInit(output), compileInit(output)])).toEqual([true, true])
    expect(readdirSync(join(dir, 'deep'))).toEqual(['shipmate-init'])
    const { ino } = statSync(output)
    await compileInit(output)
    expect(statSync(output).ino).toBe(ino)
    utimesSync(output, 0, 0)
    await compileInit(output)
    expect(statSync(output).ino).not.toBe(ino)
  })

  it('needs nothing at all where it runs, if there is a static libc', { timeout: 60_000 }, async () => {
    const output = join(folder(), 'shipmate-init')
    await compileInit(output)
    const { stdout } = await promisify(execFile)('sh', ['-c', 'ldd "$1" 2>&1 || true', 'sh', output])
    if (existsSync('/usr/lib/x86_64-linux-gnu/libc.a')) expect(stdout).toContain('not a dynamic executable')
  })

  it('is no more without a compiler, and nothing is thrown', async () => {
    vi.stubEnv('CC', '/no/such/compiler')
    try {
      const output = join(folder(), 'shipmate-init')
      expect(await compileInit(output)).toBe(false)
      expect(existsSync(output)).toBe(false)
    } finally {
      vi.unstubAllEnvs()
    }
  })
})

describe('the twin', () => {
  it('is bundled to one CommonJS file, and does the same there', async () => {
    const dir = folder()
    const outfile = join(dir, 'twin.cjs')
    await build({
      stdin: {
        contents: `import { execRun } from './twin.ts'; execRun(process.argv.slice(2)).then(code => { process.exitCode = code })`,
        resolveDir: sources,
      },
      bundle: true,
      platform: 'node',
      format: 'cjs',
      outfile,
      logLevel: 'error',
    })
    const twin = wrappers.find(({ kind }) => kind === 'twin')
    if (!twin) throw new Error('there is no twin')
    const bundled = { ...twin, argv: [process.execPath, outfile] as [string, string] }
    const { log, json, dir: claimed } = await run(bundled, ['echo', 'hello'])
    expect(log()).toBe('hello\n')
    expect(json('exit')).toMatchObject({ cause: 'exited', code: 0 })
    expect((await start(bundled, ['true'], { dir: claimed }).ended).code).toBe(3)
    expect(execFileSync('grep', ['-c', 'require("node:', outfile]).toString().trim()).not.toBe('0')
  })
})
