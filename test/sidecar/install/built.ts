/**
 * The agent and shipmate-init as they are shipped, in a folder to install from; made once per test file.
 */
import { copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, onTestFinished } from 'vitest'
import manifest from '../../../package.json' with { type: 'json' }
import { compileInit } from '../../../sidecar/init/compile.ts'
import { readElf } from '../../../sidecar/install/elf.ts'
import { bundleAgent } from '../../../tools/agent.ts'

const program = join(import.meta.dirname, '../../../.cache/init/shipmate-init')

/** Why the agent cannot be installed from here, if it cannot. */
export const notInstallable = await reason()

async function reason(): Promise<string | undefined> {
  if (!(await compileInit(program))) return 'there is no Linux or no C compiler'
  return readElf(program)?.interpreter === undefined ? undefined : 'there is no static C library'
}

/** A folder with `agent.cjs` and `shipmate-init`. */
export const built = mkdtempSync(join(tmpdir(), 'shipmate-built-'))
afterAll(() => rmSync(built, { recursive: true, force: true }))
if (!notInstallable) {
  await bundleAgent(built)
  copyFileSync(program, join(built, 'shipmate-init'))
}

/** The same, of another version. */
export function builtAs(version: string): string {
  const folder = temporary()
  cpSync(built, folder, { recursive: true })
  const bundle = join(folder, 'agent.cjs')
  const text = readFileSync(bundle, 'utf8')
  writeFileSync(bundle, text.replaceAll(JSON.stringify(manifest.version), JSON.stringify(version)))
  return folder
}

/** A folder for one test. */
export function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), 'shipmate-install-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
