/**
 * The operator of ../memcached, one iteration later: its servers have a life. What is wished of it stands in `spec.desired`, where it is in the condition AppState.
 */
import {
  advancedReconciler,
  appResource,
  defineCustomResource,
  lifecycleResource,
  mutable,
  podsOf,
  stepper,
  yamlTemplate,
} from 'shipmate'
import { Deployment } from 'shipmate/kube'
import { z } from 'zod'
import { memcached } from './lifecycle.ts'

export const Memcached = defineCustomResource({
  group: 'cache.example.com',
  version: 'v1alpha1',
  kind: 'Memcached',
  shortNames: ['mc'],
  description: 'A number of memcached servers, and their life.',
  spec: z.object({
    size: z.int().min(1).max(5).describe('How many servers run.'),
    memory: z.int().min(16).max(1024).default(64).describe('How many megabytes each of them caches.'),
  }),
  status: z.object({
    size: z.int().describe('How many servers are available.'),
    nodes: z.array(z.string()).describe('The names of their pods.'),
  }),
  columns: {
    Size: '.spec.size',
    Available: '.status.size',
    Ready: `.status.conditions[?(@.type=="Ready")].status`,
  },
  scale: { spec: '.spec.size', status: '.status.size' },
  lifecycle: { spec: memcached },
})

const lifecycle = lifecycleResource(Memcached)

const servers = mutable(Deployment, Memcached, {
  mutateWithInitialData: yamlTemplate(new URL('./deployment.yaml', import.meta.url), cr => ({
    name: cr.metadata.name,
    memory: cr.spec.memory,
  })),
  mutateWithCR(deployment, cr) {
    deployment.spec.replicas = cr.spec.size
  },
})

/** Who says nothing wishes it to run, as one iteration before. */
const running = { state: 'Running' }

const app = appResource(Memcached, {
  lifecycle,
  desired: cr => cr.spec.desired ?? running,
  workload: cr => ({ kind: Deployment.kind, name: cr.metadata.name }),
  // The servers are this operator's own: it takes them away itself, see below.
  onEnd: 'Orphan',
  endingDeadline: '2m',
})

export const operator = advancedReconciler(Memcached, {
  resources: [lifecycle, app, servers],
  pods: true,
  engine: stepper({
    async ObjectsGetter({ cr, register, fetchPeers, live }) {
      // The app comes first: the sidecars' certificates are made for it, and that the servers are not there yet is a state of its life.
      register(lifecycle)
      register(app)
      await fetchPeers()
      const isEnded = cr.spec.desired?.state === 'End' && live(app)?.status?.state === 'End'
      if (!isEnded) register(servers)
    },
    async SuccessManager({ status, registry, live, pods }) {
      const deployment = live(servers)
      const nodes = registry.of(servers) ? await pods(servers) : []
      status.size = deployment ? podsOf(deployment).available : 0
      status.nodes = nodes.map(pod => pod.metadata.name).sort()
    },
    CRFinalizer({ cr, event }) {
      event('Normal', 'Deleting', `${cr.metadata.name} goes when its clients have gone`)
    },
  }),
})
