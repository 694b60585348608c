// A program that looks after Stacks: besides, how often it has reconciled, by its own metrics.

import type { ApiServer } from '../../test/fixtures/apiserver.ts'
import { freePort } from '../../test/fixtures/free-port.ts'
import type { Keeper } from '../../test/fixtures/keeper.ts'
import { type ProgramOptions, type Running, start } from '../running.ts'

export interface Reconciling extends Running {
  /** Reconciliations so far; 0 while it does not answer. */
  reconciled(): Promise<number>
  /** Waits until it has done so many reconciliations and then neither asked nor worked for a second. */
  settled(reconciliations: number): Promise<void>
}

export async function startReconciling(
  server: ApiServer,
  keeper: Keeper,
  options: ProgramOptions,
): Promise<Reconciling> {
  const port = await freePort()
  const running = start(server, keeper, options, { BENCH_PORT: String(port) })

  async function reconciled(): Promise<number> {
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => undefined)
    const text = (await answer?.text()) ?? ''
    const counts = [...text.matchAll(/^controller_runtime_reconcile_total\{.*\} (\S+)$/gm)]
    return counts.reduce((sum, [, count]) => sum + Number(count), 0)
  }

  return {
    ...running,
    reconciled,
    async settled(reconciliations) {
      const deadline = Date.now() + 300_000
      do await running.quiet({ time: 1_000, slack: 0.03, limit: deadline - Date.now() })
      while ((await reconciled()) < reconciliations)
    },
  }
}
