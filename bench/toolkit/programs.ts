// The programs that look after Stacks. All take KUBECONFIG, BENCH_NAMESPACE, BENCH_CONCURRENCY and BENCH_PORT (for
// /metrics) from the environment and run until SIGTERM.

import { goProgram, nodeProgram, type Program } from '../build.ts'

/** Whom the bar is for. */
export const ours = 'shipmate'
/** The one that the others are compared to. */
export const reference = 'go'

export const programs: Program[] = [
  {
    name: ours,
    title: "Shipmate's toolkit",
    build: () => nodeProgram('toolkit/shipmate'),
  },
  {
    name: reference,
    title: "Go's controller-runtime with CreateOrUpdate, as it is mostly written: only what is wished",
    build: () => goProgram('stack'),
  },
  {
    name: 'go-spelled-out',
    title: 'the same, with every default of the server written into the wishes',
    build: async () => ({ ...(await goProgram('stack')), env: { BENCH_SPELL_OUT: '1' } }),
  },
]
