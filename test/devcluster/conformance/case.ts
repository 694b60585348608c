/** What a user expects of a Kubernetes API server, as a case that any server can be held against. */
import type { Answer, AskOptions, Server } from './servers.ts'

export interface World {
  readonly server: Server
  /** A namespace of the case's own. */
  readonly namespace: string
  /** `/api/v1/namespaces/NAMESPACE` */
  readonly core: string
  ask(line: string, body?: unknown, options?: AskOptions): Promise<Answer>
}

export interface Case {
  readonly name: string
  run(world: World): Promise<void>
}

export const configMap = (name: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...more },
  data: { a: '1' },
})

export const pod = (name: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, ...more },
  spec: { containers: [{ name: 'c', image: 'i' }] },
})

export const deployment = (name: string) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
  },
})
