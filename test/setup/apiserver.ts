/**
 * Starts one real API server for all tests that need one; they find its kubeconfig by `inject('kubeconfig')`.
 */
import type { TestProject } from 'vitest/node'
import { startApiServer } from '../fixtures/apiserver.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The file that says how to reach the cluster under test, as its administrator. */
    kubeconfig: string
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startApiServer()
  project.provide('kubeconfig', server.kubeconfig)
  return () => server.stop()
}
