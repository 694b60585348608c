/**
 * Builds dist before the tests that use it. When that fails they fail with its reason, and all others still run.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** Why there is no dist to test, if there is none. */
    buildError: string | undefined
  }
}

export async function setup(project: TestProject): Promise<void> {
  const root = join(import.meta.dirname, '../..')
  const failure = await promisify(execFile)(process.execPath, ['build.ts'], { cwd: root }).then(
    () => undefined,
    error => String(error.stderr || error.message),
  )
  project.provide('buildError', failure)
}
