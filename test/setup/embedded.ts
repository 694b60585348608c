/**
 * Starts one embedded API server for all tests that need one; they find its kubeconfig by `inject('kubeconfig')`.
 */
import type { TestProject } from 'vitest/node'
import { startEmbeddedApiServer } from '../fixtures/embedded-apiserver.ts'

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startEmbeddedApiServer()
  project.provide('kubeconfig', server.kubeconfig)
  return () => server.stop()
}
