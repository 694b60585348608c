/**
 * Hands the cluster that KUBECONFIG names to the tests that need a node; they find it by `inject('kubeconfig')`.
 */
import type { TestProject } from 'vitest/node'

export function setup(project: TestProject): void {
  const file = process.env.KUBECONFIG
  if (!file)
    throw new Error('SHIPMATE_TEST_NODE is set, but KUBECONFIG is not: set it to a cluster with a running kubelet')
  project.provide('kubeconfig', file)
}
