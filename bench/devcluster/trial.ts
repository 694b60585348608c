// One server, from its start to its end: the figures of a trial.

import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Api, connect, eachOf } from '../api.ts'
import { percentile } from '../statistics.ts'
import type { BenchOptions } from './options.ts'
import { firstAnswer, type Server, type Started } from './servers.ts'

interface Times {
  p50: number
  p99: number
}

/** Times in ms. */
export interface Figures {
  /** Start of the process to the first answer; within a process, without the loading of the code. */
  start: number
  /** Loading the code, within a process. */
  load?: number
  /** One after the other. */
  create: Times
  /** At once. */
  perSecond: number
  /** From sending a change until a watcher has it, and until all have it. */
  watch?: { each: Times; all: Times }
  memory?: { idle: number; perThousand: number }
}

const path = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps`
const times = (values: number[]): Times => ({ p50: percentile(values, 50), p99: percentile(values, 99) })
const configMap = (name: string, size = 0) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: { value: name.padEnd(size, '.') },
})

export async function runTrial(server: Server, options: BenchOptions): Promise<Figures> {
  if ('inside' in server) {
    const { load, start, creates, perSecond } = await server.inside(options.creates, options.concurrency)
    return { load, start, create: times(creates), perSecond }
  }
  const began = performance.now()
  await using started = await server.start()
  await firstAnswer(started.kubeconfig)
  const start = performance.now() - began
  const api = connect(started.kubeconfig, options.watchers + options.concurrency)
  try {
    for (const name of ['warm', 'create', 'watch', 'memory']) {
      await api.request('POST', '/api/v1/namespaces', { metadata: { name } })
    }
    // Both are warm then: a server that has just started answers more slowly than it will later.
    await burst(api, 'warm', options)
    const create = await sequence(api, options.creates)
    const perSecond = await burst(api, 'create', options)
    const watch = await fanOut(api, options)
    const memory = options.memory > 0 ? await measureMemory(api, started, options) : undefined
    return { start, create, perSecond, watch, ...(memory ? { memory } : {}) }
  } finally {
    await api.close()
  }
}

async function sequence(api: Api, count: number): Promise<Times> {
  const taken: number[] = []
  for (let i = 0; i < count; i++) {
    const sent = performance.now()
    await api.request('POST', path('create'), configMap(`one-${i}`))
    taken.push(performance.now() - sent)
  }
  return times(taken)
}

async function burst(api: Api, namespace: string, { creates, concurrency }: BenchOptions): Promise<number> {
  const began = performance.now()
  await eachOf(Array(creates).keys(), concurrency, i => api.request('POST', path(namespace), configMap(`burst-${i}`)))
  return (creates / (performance.now() - began)) * 1000
}

async function fanOut(api: Api, { watchers, changes, pace }: BenchOptions) {
  const stop = new AbortController()
  const sent = new Map<string, number>()
  const each: number[] = []
  const all: number[] = []
  const heard = new Map<string, number>()
  let done = () => {}
  const finished = new Promise<void>(resolve => {
    done = resolve
  })
  const onEvent = ({ object }: { object: { metadata: { name: string } } }) => {
    const { name } = object.metadata
    const at = sent.get(name)
    if (at === undefined) return
    const taken = performance.now() - at
    each.push(taken)
    const count = (heard.get(name) ?? 0) + 1
    heard.set(name, count)
    if (count === watchers) all.push(taken)
    if (each.length === watchers * changes) done()
  }
  const list = await api.request<{ metadata: { resourceVersion: string } }>('GET', path('watch'))
  const query = `watch=1&timeoutSeconds=3600&resourceVersion=${list.metadata.resourceVersion}`
  const watches = Array.from({ length: watchers }, () => api.watch(`${path('watch')}?${query}`, onEvent, stop.signal))
  const failed = Promise.all(watches).then(() => undefined)
  failed.catch(() => {})
  for (let i = 0; i < changes; i++) {
    const name = `change-${i}`
    sent.set(name, performance.now())
    await api.request('POST', path('watch'), configMap(name))
    await sleep(pace)
  }
  await Promise.race([finished, failed])
  stop.abort()
  await failed
  return { each: times(each), all: times(all) }
}

async function measureMemory(api: Api, { pids, settle }: Started, { memory, concurrency }: BenchOptions) {
  await settle()
  const idle = megabytes(pids)
  await eachOf(Array(memory).keys(), concurrency, i =>
    api.request('POST', path('memory'), configMap(`object-${i}`, 1000)),
  )
  await settle()
  return { idle, perThousand: ((megabytes(pids) - idle) / memory) * 1000 }
}

/** Resident memory of all, MB (10^6 bytes). */
function megabytes(pids: number[]): number {
  const kib = pids.map(pid => Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]))
  return (kib.reduce((sum, one) => sum + one, 0) * 1024) / 1e6
}
