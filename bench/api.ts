// The little of a Kubernetes client that the bench itself needs: JSON requests and watches over undici, with the
// certificate of a kubeconfig in JSON. It neither retries nor caches, so that what it does is what is measured.

import { readFileSync } from 'node:fs'
import { Pool } from 'undici'

export interface Meta {
  name: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  ownerReferences?: { uid: string; controller?: boolean }[]
}

export interface Widget {
  metadata: Meta
  spec: { value: string }
  status?: { observedValue?: string }
}

export interface ConfigMap {
  metadata: Meta
  data?: Record<string, string>
}

export interface WatchEvent<T> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  object: T
}

export interface Api {
  /** Sends a request and returns the answer; an answer that is not a success is thrown. */
  request<T = unknown>(method: Method, path: string, body?: unknown): Promise<T>
  /** Calls back for each event until the signal aborts; resolves then, rejects if the stream ends by itself. */
  watch<T>(path: string, onEvent: (event: WatchEvent<T>) => void, signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export const widgetsPath = (namespace: string) => `/apis/bench.example.com/v1/namespaces/${namespace}/widgets`
export const configMapsPath = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps`

/** The ConfigMap a Widget asks for. */
export function configMapOf({ metadata, spec }: Widget) {
  const owner = {
    apiVersion: 'bench.example.com/v1',
    kind: 'Widget',
    name: metadata.name,
    uid: metadata.uid ?? '',
    controller: true,
    blockOwnerDeletion: true,
  }
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: metadata.name, namespace: metadata.namespace ?? '', ownerReferences: [owner] },
    data: { value: spec.value },
  }
}

/** @param connections how many requests go at once, each on a connection of its own; a watch holds one */
export function connect(kubeconfig: string, connections: number): Api {
  const { clusters, users } = JSON.parse(readFileSync(kubeconfig, 'utf8')) as {
    clusters: { cluster: { server: string; 'certificate-authority-data': string } }[]
    users: { user: { 'client-certificate-data': string; 'client-key-data': string } }[]
  }
  const [cluster, user] = [clusters[0]?.cluster, users[0]?.user]
  if (cluster === undefined || user === undefined) throw new Error(`${kubeconfig} names no cluster or no user`)
  const text = (base64: string) => Buffer.from(base64, 'base64').toString()
  const pool = new Pool(cluster.server, {
    connections,
    allowH2: false,
    bodyTimeout: 0,
    keepAliveTimeout: 60_000,
    connect: {
      ca: text(cluster['certificate-authority-data']),
      cert: text(user['client-certificate-data']),
      key: text(user['client-key-data']),
    },
  })

  return {
    async request<T>(method: Method, path: string, body?: unknown) {
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
      const answer = await pool.request({
        method,
        path,
        ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': type } }),
      })
      const text = await answer.body.text()
      if (answer.statusCode >= 300) throw new Error(`${method} ${path}: ${answer.statusCode} ${text}`)
      return JSON.parse(text) as T
    },

    async watch<T>(path: string, onEvent: (event: WatchEvent<T>) => void, signal: AbortSignal) {
      try {
        const { statusCode, body } = await pool.request({ method: 'GET', path, signal })
        if (statusCode !== 200) throw new Error(`GET ${path}: ${statusCode} ${await body.text()}`)
        body.setEncoding('utf8')
        let rest = ''
        for await (const chunk of body as AsyncIterable<string>) {
          const lines = (rest + chunk).split('\n')
          rest = lines.pop() ?? ''
          for (const line of lines) onEvent(JSON.parse(line) as WatchEvent<T>)
        }
      } catch (error) {
        if (signal.aborted) return
        throw error
      }
      throw new Error(`GET ${path}: the watch ended`)
    },

    close: () => pool.destroy(),
  }
}

/** Runs the work for each item, so many at once. */
export async function eachOf<T>(items: Iterable<T>, concurrency: number, work: (item: T) => Promise<unknown>) {
  const iterator = items[Symbol.iterator]()
  const worker = async () => {
    for (let next = iterator.next(); !next.done; next = iterator.next()) await work(next.value)
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
}
