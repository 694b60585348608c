/**
 * One start of an operator: a manager of its own over a line of its own. It can be stopped as a cluster stops it, or killed.
 *
 * Guarantee: after `kill` nothing of it reaches the server, and no timer of it runs.
 */
import { Writable } from 'node:stream'
import { createManager, type Manager, type ManagerOptions } from '../../controller/runtime/manager.ts'
import type { Clock } from '../../shared/clock.ts'
import { createLine, type Ledger, type Weather } from './line.ts'
import type { Operator } from './operator.ts'

export interface ProcessOptions {
  readonly operators: readonly Operator[]
  readonly user: string
  /** How the server is reached. */
  readonly access: Pick<ManagerOptions, 'send' | 'kubeconfig'>
  readonly ledger: Ledger
  readonly weather: Weather
  readonly clock: (Clock & { die?(): void }) | undefined
  readonly random?: (() => number) | undefined
  /** Told each line of its log. */
  readonly onLog: (line: string) => void
  readonly onDeath: () => void
}

export interface OperatorProcess {
  readonly manager: Manager
  /** What ended it, if that was an error of its own. */
  readonly failure: unknown
  /** How many reconciliations are under way. */
  working(): Promise<number>
  kill(): void
  stop(): Promise<void>
}

export function startProcess(options: ProcessOptions): OperatorProcess {
  const { operators, ledger, weather, clock, random, onLog, onDeath } = options
  const line = createLine(options.user, ledger, weather, () => {
    clock?.die?.()
    onDeath()
  })
  const manager = createManager({
    ...options.access,
    ...{ name: operators[0]?.name, clock, random },
    interceptors: [line.interceptor],
    // A guest in the test's process: its signals, its rejections and its heap are not the operator's.
    ...{ signals: false, containRejections: false, compact: false, gracePeriod: 5000 },
    // In pages: what is listed can be of an older state, what is streamed cannot.
    cache: { streaming: weather.instead === undefined },
    log: { level: 'info', destination: linesTo(onLog) },
  })
  for (const operator of operators) operator.addTo(manager)
  let failure: unknown
  const ended = manager.start().catch(error => {
    failure = error
  })
  return {
    manager,
    get failure() {
      return failure
    },
    async working() {
      const gauge = manager.metrics.registry.getSingleMetric('controller_runtime_active_workers')
      const { values = [] } = (await gauge?.get()) ?? {}
      return line.isCut ? 0 : values.reduce((sum, { value }) => sum + value, 0)
    },
    kill() {
      line.cut()
      clock?.die?.()
    },
    async stop() {
      if (line.isCut) return
      await manager.stop()
      await ended
    },
  }
}

function linesTo(tell: (line: string) => void): Writable {
  return new Writable({
    write(piece, _encoding, done) {
      tell(String(piece).trimEnd())
      done()
    },
  })
}
