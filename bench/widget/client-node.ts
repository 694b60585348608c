// The Widget work on @kubernetes/client-node alone: its informers, its API classes, and the smallest queue that is
// honest: by key, never twice at once for one key, so many workers, a failure tried again after a second.

import {
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  type KubernetesListObject,
  type KubernetesObject,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
} from '@kubernetes/client-node'

interface Widget extends KubernetesObject {
  spec: { value: string }
  status?: { observedValue?: string }
}

const { BENCH_NAMESPACE: namespace = 'default', BENCH_CONCURRENCY = '10' } = process.env
const kind = { group: 'bench.example.com', version: 'v1', plural: 'widgets', namespace }

const config = new KubeConfig()
config.loadFromDefault()
const core = config.makeApiClient(CoreV1Api)
const custom = config.makeApiClient(CustomObjectsApi)

const widgets = makeInformer<Widget>(
  config,
  `/apis/${kind.group}/${kind.version}/namespaces/${namespace}/${kind.plural}`,
  async () => (await custom.listNamespacedCustomObject(kind)) as KubernetesListObject<Widget>,
)
const children = makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`, () =>
  core.listNamespacedConfigMap({ namespace }),
)

async function reconcile(name: string): Promise<void> {
  const widget = widgets.get(name, namespace)
  if (widget === undefined || widget.metadata?.deletionTimestamp !== undefined) return
  const { value } = widget.spec
  const child = children.get(name, namespace)
  const isOwned = child?.metadata?.ownerReferences?.some(({ uid }) => uid === widget.metadata?.uid) ?? false
  if (child === undefined || child.data?.value !== value || !isOwned) {
    const owner = {
      apiVersion: `${kind.group}/${kind.version}`,
      kind: 'Widget',
      name,
      uid: widget.metadata?.uid ?? '',
      controller: true,
      blockOwnerDeletion: true,
    }
    const body = { metadata: { name, namespace, ownerReferences: [owner] }, data: { value } }
    if (child === undefined) await core.createNamespacedConfigMap({ namespace, body })
    else await core.replaceNamespacedConfigMap({ namespace, name, body })
  }
  if (widget.status?.observedValue === value) return
  await custom.patchNamespacedCustomObjectStatus(
    { ...kind, name, body: { status: { observedValue: value } } },
    setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
  )
}

const concurrency = Number(BENCH_CONCURRENCY)
const waiting = new Set<string>()
const working = new Set<string>()
let isReady = false

function add(name: string | undefined): void {
  if (name === undefined) return
  waiting.add(name)
  next()
}

function next(): void {
  if (!isReady) return
  for (const name of waiting) {
    if (working.size >= concurrency) return
    if (working.has(name)) continue
    waiting.delete(name)
    working.add(name)
    reconcile(name)
      .catch((error: unknown) => {
        console.error(`${name}: ${error}`)
        setTimeout(add, 1_000, name)
      })
      .finally(() => {
        working.delete(name)
        next()
      })
  }
}

widgets.on('change', ({ metadata }) => add(metadata?.name))
children.on('change', ({ metadata }) => add(metadata?.ownerReferences?.find(({ controller }) => controller)?.name))
for (const informer of [widgets, children]) {
  informer.on('error', error => {
    console.error(`watch: ${error}`)
    setTimeout(() => informer.start(), 1_000)
  })
}

process.once('SIGTERM', () => process.exit(0))
await children.start()
await widgets.start()
isReady = true
next()
