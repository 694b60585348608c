/**
 * Keeps a Deployment of memcached servers for each `Memcached`, and says in its status which pods serve.
 */
import {
  advancedReconciler,
  defineCustomResource,
  mutable,
  type Operation,
  operations,
  podsOf,
  stepper,
  type Wanted,
  yamlTemplate,
} from 'shipmate'
import { Deployment } from 'shipmate/kube'
import { z } from 'zod'

export const Memcached = defineCustomResource({
  group: 'cache.example.com',
  version: 'v1alpha1',
  kind: 'Memcached',
  shortNames: ['mc'],
  description: 'A number of memcached servers.',
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
})

const servers = mutable(Deployment, Memcached, {
  mutateWithInitialData: yamlTemplate(new URL('./deployment.yaml', import.meta.url), cr => ({
    name: cr.metadata.name,
    memory: cr.spec.memory,
  })),
  mutateWithCR(deployment, cr) {
    deployment.spec.replicas = cr.spec.size
  },
})

/** Available: somebody is served. Degraded: by fewer servers than wished. */
function conditionsOf(available: number, wished: number): Wanted[] {
  const message = `${available} of ${wished} servers are available`
  return [
    available > 0
      ? { type: 'Available', status: 'True', reason: 'Serving', message }
      : { type: 'Available', status: 'False', reason: 'NoServer', message },
    available < wished
      ? { type: 'Degraded', status: 'True', reason: 'ServersMissing', message }
      : { type: 'Degraded', status: 'False', reason: 'AllServing', message },
  ]
}

/** As `Deployment sample was created`. */
const sentence = ({ on, code }: Operation) => `${on} ${operations[code]}`

export const operator = advancedReconciler(Memcached, {
  resources: [servers],
  pods: true,
  engine: stepper({
    async SuccessManager({ cr, status, live, pods, results, condition, event }) {
      const deployment = live(servers)
      const available = deployment ? podsOf(deployment).available : 0
      const nodes = await pods(servers)
      status.size = available
      status.nodes = nodes.map(pod => pod.metadata.name).sort()
      for (const one of conditionsOf(available, cr.spec.size)) condition(one)
      for (const one of results.operations)
        if (one.code === 'Created' || one.code === 'Updated') event('Normal', one.code, sentence(one))
    },
    ErrorManager({ results, condition }) {
      const failed = results.operations.find(({ error }) => error)
      if (failed) condition({ type: 'Degraded', status: 'True', reason: failed.code, message: sentence(failed) })
    },
    CRFinalizer({ cr, event }) {
      event('Normal', 'Deleting', `${cr.metadata.name} goes, and what it has cached with it`)
    },
  }),
})
