// The Stacks on the server: made before a trial, touched and changed in it, looked at, and taken away after it. The
// namespace itself stays: without controllers nothing finishes the deletion of one.

import { type Api, eachOf, type Meta } from '../api.ts'

interface Stack {
  metadata: Meta & { generation: number }
  spec: { message: string }
  status?: { observedGeneration?: number; conditions?: { type: string; status: string }[] }
}

interface Child {
  metadata: Meta
  data?: Record<string, string>
}

interface List<T> {
  items: T[]
}

const stacksPath = (namespace: string) => `/apis/bench.example.com/v1/namespaces/${namespace}/stacks`
const childrenPaths = (namespace: string) => [
  ...['configmaps', 'secrets', 'services'].map(plural => `/api/v1/namespaces/${namespace}/${plural}`),
  ...['deployments', 'statefulsets'].map(plural => `/apis/apps/v1/namespaces/${namespace}/${plural}`),
]
const nameOf = (i: number) => `stack-${String(i).padStart(4, '0')}`
/** How many of the bench's own requests go at once: fewer than would keep a program from its cores. */
const atOnce = 8

export async function createStacks(api: Api, namespace: string, n: number): Promise<void> {
  await api.request('POST', '/api/v1/namespaces', { metadata: { name: namespace } })
  await eachOf(Array(n).keys(), atOnce, i =>
    api.request('POST', stacksPath(namespace), {
      apiVersion: 'bench.example.com/v1',
      kind: 'Stack',
      metadata: { name: nameOf(i) },
      spec: { image: 'example.com/web:1', replicas: 2, message: 'at first', password: 'a password' },
    }),
  )
}

/** A reason to reconcile each, and nothing to do. */
export async function touchStacks(api: Api, namespace: string, n: number, value: string): Promise<void> {
  const body = { metadata: { annotations: { 'bench.example.com/touched': value } } }
  await eachOf(Array(n).keys(), atOnce, i => api.request('PATCH', `${stacksPath(namespace)}/${nameOf(i)}`, body))
}

/** Changes what one of the ten children has to be. */
export async function changeStacks(api: Api, namespace: string, n: number, message: string): Promise<void> {
  const body = { spec: { message } }
  await eachOf(Array(n).keys(), atOnce, i => api.request('PATCH', `${stacksPath(namespace)}/${nameOf(i)}`, body))
}

/** What is not yet as wished, in words; undefined when all is. */
export async function whatIsWrong(api: Api, namespace: string, n: number): Promise<string | undefined> {
  const { items: stacks } = await api.request<List<Stack>>('GET', stacksPath(namespace))
  const late = stacks.find(stack => !isDone(stack))
  if (late) return `${late.metadata.name} is not ready`
  const lists = await Promise.all(childrenPaths(namespace).map(path => api.request<List<Child>>('GET', path)))
  const children = lists.flatMap(({ items }) => items)
  const owners = new Set(stacks.map(({ metadata }) => metadata.uid))
  const owned = children.filter(({ metadata }) =>
    metadata.ownerReferences?.some(({ uid, controller }) => controller && owners.has(uid)),
  )
  if (owned.length !== n * 10) return `there are ${owned.length} children, not ${n * 10}`
  const byName = new Map(lists[0]?.items.map(child => [child.metadata.name, child]))
  const stale = stacks.find(
    ({ metadata, spec }) => byName.get(`${metadata.name}-settings`)?.data?.['message'] !== spec.message,
  )
  return stale && `the settings of ${stale.metadata.name} are old`
}

function isDone({ metadata, status }: Stack): boolean {
  const isReady = status?.conditions?.some(one => one.type === 'Ready' && one.status === 'True') ?? false
  return isReady && status?.observedGeneration === metadata.generation
}

export async function deleteAll(api: Api, namespace: string): Promise<void> {
  await Promise.all([stacksPath(namespace), ...childrenPaths(namespace)].map(path => api.request('DELETE', path)))
}
