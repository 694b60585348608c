/**
 * Keeps a number of shells to log in to for each `MyOwnShell`: pods of a Deployment, with a profile that they share.
 */
import { advancedReconciler, defineCustomResource, mutable, podsOf, stepper } from 'shipmate'
import { ConfigMap, Deployment } from 'shipmate/kube'
import { z } from 'zod'

export const MyOwnShell = defineCustomResource({
  group: 'shells.example.com',
  version: 'v1alpha1',
  kind: 'MyOwnShell',
  shortNames: ['mos'],
  description: 'Shells to log in to.',
  spec: z.object({
    size: z.int().min(0).max(20).describe('How many shells there are.'),
    image: z.string().min(1).default('busybox:1.37').describe('What is in them. It needs `sh` and `sleep`.'),
  }),
  status: z.object({
    size: z.int().describe('How many shells can be logged in to.'),
  }),
  columns: {
    Size: '.spec.size',
    Open: '.status.size',
    Ready: `.status.conditions[?(@.type=="Ready")].status`,
  },
  scale: { spec: '.spec.size', status: '.status.size' },
})

type Named = { readonly metadata: { readonly name: string } }

const labelsOf = ({ metadata }: Named) => ({
  'app.kubernetes.io/name': 'myownshell',
  'app.kubernetes.io/instance': metadata.name,
})
const profileOf = ({ metadata }: Named) => `${metadata.name}-profile`

/** Stands for all that Kubernetes does not collect, as what is in another namespace: it has no owner, and CRFinalizer removes it. */
const profile = mutable(ConfigMap, MyOwnShell, {
  name: profileOf,
  owner: false,
  mutateWithInitialData: cr => ({
    metadata: { labels: labelsOf(cr) },
    data: { profile: `PS1='${cr.metadata.name} $ '\n` },
  }),
})

const shells = mutable(Deployment, MyOwnShell, {
  mutateWithInitialData(cr) {
    const labels = labelsOf(cr)
    return {
      metadata: { labels },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            automountServiceAccountToken: false,
            terminationGracePeriodSeconds: 1,
            containers: [
              {
                name: 'shell',
                image: cr.spec.image,
                command: ['sleep', 'infinity'],
                // Every `sh` that somebody opens begins with it.
                env: [{ name: 'ENV', value: '/etc/myownshell/profile' }],
                volumeMounts: [{ name: 'profile', mountPath: '/etc/myownshell' }],
              },
            ],
            volumes: [{ name: 'profile', configMap: { name: profileOf(cr) } }],
          },
        },
      },
    }
  },
  mutateWithCR(deployment, cr) {
    deployment.spec.replicas = cr.spec.size
  },
  /** The Deployment is held until this has succeeded, whoever deletes it. */
  finalizer({ object, log }) {
    log.info(`the shells of ${object.metadata.name} are closed`)
  },
})

export const operator = advancedReconciler(MyOwnShell, {
  resources: [profile, shells],
  engine: stepper({
    SuccessManager({ status, live }) {
      const deployment = live(shells)
      status.size = deployment ? podsOf(deployment).available : 0
    },
    /** While this fails the custom resource stays, with the reason in its conditions, and it is tried again. */
    async CRFinalizer({ register, deleteResource }) {
      await deleteResource(register(profile))
    },
  }),
})
