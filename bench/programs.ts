// The programs that do the Widget work. All take KUBECONFIG, BENCH_NAMESPACE and BENCH_CONCURRENCY from the environment
// and run until SIGTERM.

import { buildPackage, goProgram, nodeProgram, type Program } from './build.ts'

export interface WidgetProgram extends Program {
  /** False for one that writes once and looks at nothing: only its convergence is measured. */
  isController: boolean
}

/** The one that the others are compared to. */
export const reference = 'go'

export const programs: WidgetProgram[] = [
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
    build: () => goProgram('widget'),
  },
  {
    name: 'client-node',
    title: "@kubernetes/client-node's informers",
    isController: true,
    build: () => nodeProgram('widget/client-node'),
  },
  {
    name: 'floor',
    title: 'raw writes from Node, without watching',
    isController: false,
    build: () => nodeProgram('widget/floor'),
  },
]

/** One that imports our package as a user does: so the package is built first. */
async function packaged(name: string) {
  await buildPackage()
  return nodeProgram(`widget/${name}`)
}
