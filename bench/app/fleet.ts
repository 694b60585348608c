// The bench's side of the process of simulated sidecars: starts it, and tells it what to do.

import { once } from 'node:events'
import { openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Keeper } from '../../test/fixtures/keeper.ts'
import { logFile } from '../turns.ts'
import type { SimulatedPod } from './sidecar.ts'

export type Order =
  | { do: 'listen' }
  | { do: 'serve'; pods: SimulatedPod[]; hash: string; kubeconfig: string; namespace: string }
  | { do: 'say'; app: string; state: string }
  | { do: 'ping'; times: number }
  | { do: 'count' }
  | { do: 'expect'; sockets: number }

export type Word =
  | { is: 'answer'; id: number; answer: object }
  /** A run begins. */
  | { is: 'begun'; app: string; at: number }
  /** As many are connected as were expected. */
  | { is: 'up'; first: number; all: number }

/** Whatever is waited for rejects when the process ends by itself. */
export interface Fleet {
  readonly pid: number
  /** Which port the sidecars listen on. */
  readonly port: number
  serve(order: Omit<Extract<Order, { do: 'serve' }>, 'do'>): Promise<void>
  /** Answers when it was said, on the monotonic clock, ms. */
  say(app: string, state: string): Promise<number>
  /** So many times as often as a sidecar does. */
  ping(times: number): Promise<void>
  /** Pings so far; connections and remembered runs now. */
  count(): Promise<{ pings: number; sockets: number; runs: number }>
  /** Resolves when so many are connected, with the times of the first and the last, on the monotonic clock. */
  connected(sockets: number, timeout: number): Promise<{ first: number; all: number }>
  /** Resolves with the time at which the app's next run begins. */
  begun(app: string, timeout: number): Promise<number>
}

export async function startFleet(keeper: Keeper): Promise<Fleet> {
  const file = logFile('app-sidecars')
  const log = openSync(file, 'a')
  const program = fileURLToPath(new URL('sidecars.ts', import.meta.url))
  const child = keeper.spawn(process.execPath, [program], { stdio: ['ignore', log, log, 'ipc'] })
  // While its answer is waited for, nothing else may keep the bench running.
  child.ref()
  const answers = new Map<number, (answer: object) => void>()
  const beginnings = new Map<string, (at: number) => void>()
  let up: ((times: { first: number; all: number }) => void) | undefined
  let orders = 0
  const ended = once(child, 'exit').then(([code, signal]): never => {
    throw new Error(`the sidecars' process ended by itself (${signal ?? code}); see ${file}`)
  })
  // Only who waits for something is told.
  ended.catch(() => {})
  const orEnded = <T>(wanted: Promise<T>): Promise<T> => Promise.race([wanted, ended])

  child.on('message', (word: Word) => {
    if (word.is === 'up') return up?.(word)
    if (word.is === 'begun') {
      beginnings.get(word.app)?.(word.at)
      return void beginnings.delete(word.app)
    }
    answers.get(word.id)?.(word.answer)
    answers.delete(word.id)
  })
  const order = (one: Order): Promise<object> =>
    orEnded(
      new Promise(resolve => {
        const id = ++orders
        answers.set(id, resolve)
        // That it could not be sent shows by the process's end.
        child.send({ ...one, id }, () => {})
      }),
    )

  const { port } = (await order({ do: 'listen' })) as { port: number }
  return {
    pid: child.pid ?? 0,
    port,
    serve: async rest => void (await order({ do: 'serve', ...rest })),
    say: async (app, state) => ((await order({ do: 'say', app, state })) as { at: number }).at,
    ping: async times => void (await order({ do: 'ping', times })),
    count: async () => (await order({ do: 'count' })) as { pings: number; sockets: number; runs: number },
    async connected(sockets, timeout) {
      const times = new Promise<{ first: number; all: number }>(resolve => {
        up = resolve
      })
      await order({ do: 'expect', sockets })
      return within(orEnded(times), timeout, `${sockets} connections`)
    },
    begun(app, timeout) {
      const begun = within<number>(
        orEnded(new Promise(resolve => beginnings.set(app, resolve))),
        timeout,
        `a run of ${app} to begin`,
      )
      // Whoever waits may look later.
      begun.catch(() => {})
      return begun
    },
  }
}

/** @param what it was that did not come, in words */
export async function within<T>(wanted: Promise<T>, timeout: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${timeout / 1000} s: ${what}`)), timeout)
  })
  return Promise.race([wanted, late]).finally(() => clearTimeout(timer))
}
