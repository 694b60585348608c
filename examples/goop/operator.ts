/**
 * Runs a command for each `Goop`: in a number of Jobs, or once on every node. Its conditions say how far that is, and it goes only when nothing of it runs
 * any more.
 */
import {
  advancedReconciler,
  defineCustomResource,
  jobExits,
  mutable,
  podsOf,
  type ResourceOf,
  readinessOf,
  stepper,
  type Wanted,
  yamlTemplate,
} from 'shipmate'
import { type CachedClient, DaemonSet, Job, type Kind, type ShapeOf, type Snapshot } from 'shipmate/kube'
import { z } from 'zod'

const mostJobs = 100

export const Goop = defineCustomResource({
  group: 'goop.example.com',
  version: 'v1alpha1',
  kind: 'Goop',
  description: 'A command that is run to its end, several times or everywhere.',
  spec: z.object({
    job_count: z.int().min(0).max(mostJobs).default(1).describe('How many Jobs run the command, in mode Jobs.'),
    cmd: z.string().min(1).describe('What they run, by `sh -c`. Exit code 0 is success.'),
    mode: z
      .enum(['Jobs', 'Nodes'])
      .default('Jobs')
      .describe('Jobs: wherever there is room. Nodes: once on every node.'),
  }),
  status: z.object({
    done: z.string().describe('How many have ended with exit code 0, of how many.'),
  }),
  columns: {
    Mode: '.spec.mode',
    Done: '.status.done',
    Completed: '.status.conditions[?(@.type=="Completed")].status',
  },
  rules: [{ rule: 'self.metadata.name.size() <= 52', message: 'its Jobs have longer names: 52 characters at most' }],
})
type Goop = ResourceOf<typeof Goop>

const { GOOP_IMAGE: image = 'busybox:1.37', GOOP_PAUSE_IMAGE: pauseImage = 'registry.k8s.io/pause:3.10' } = process.env
const valuesOf = ({ metadata, spec }: Snapshot<Goop>) => ({ name: metadata.name, cmd: spec.cmd, image, pauseImage })
const job = yamlTemplate(new URL('./job.yaml', import.meta.url), valuesOf)
const daemonSet = yamlTemplate(new URL('./daemonset.yaml', import.meta.url), valuesOf)

/** A Job cannot run another command than it was made for: another one is made. */
const workers = Array.from({ length: mostJobs }, (_, index) =>
  mutable(Job, Goop, {
    name: cr => `${cr.metadata.name}-${index}`,
    mutateWithInitialData: job,
    recreate: true,
  }),
)
const everyNode = mutable(DaemonSet, Goop, { mutateWithInitialData: daemonSet })

interface Progress {
  readonly wished: number
  readonly deployed: number
  /** Ended with exit code 0. */
  readonly done: number
  /** Why it will not complete by itself. */
  readonly failure?: string | undefined
}

type LiveJob = Snapshot<ShapeOf<typeof Job>>

async function progressOfJobs(client: CachedClient, jobs: readonly (LiveJob | undefined)[]): Promise<Progress> {
  const deployed = jobs.filter(one => one !== undefined)
  const done = deployed.filter(one => readinessOf(Job, one).ready)
  const failed = deployed.find(one => readinessOf(Job, one).failed)
  const [exit] = failed ? await jobExits(client, failed) : []
  const how = exit ? `ended with exit code ${exit.exitCode}` : 'failed'
  const failure = failed && `Job ${failed.metadata.name} ${how}`
  return { wished: jobs.length, deployed: deployed.length, done: done.length, failure }
}

/** The command is an init container: a pod is ready once it has ended with exit code 0. */
function progressOfNodes(live: Snapshot<ShapeOf<typeof DaemonSet>> | undefined): Progress {
  if (!live) return { wished: 0, deployed: 0, done: 0 }
  const { replicas, updated, ready } = podsOf(live)
  return { wished: replicas, deployed: updated, done: Math.min(updated, ready) }
}

/** Of nothing, nothing is complete. */
function conditionsOf({ wished, deployed, done, failure }: Progress): Wanted[] {
  const nothing = { status: 'False', reason: 'NothingToDo', message: 'there is nothing to run' } as const
  const isDeployed = deployed === wished
  const isCompleted = done === wished
  return [
    { type: 'Initialized', status: 'True', reason: 'Accepted', message: 'it is known what to run' },
    wished === 0
      ? { type: 'Deployed', ...nothing }
      : {
          type: 'Deployed',
          status: isDeployed ? 'True' : 'False',
          reason: isDeployed ? 'AllThere' : 'Deploying',
          message: `${deployed} of ${wished} are there`,
        },
    wished === 0
      ? { type: 'Completed', ...nothing }
      : {
          type: 'Completed',
          status: isCompleted ? 'True' : 'False',
          reason: isCompleted ? 'AllSucceeded' : failure ? 'WorkerFailed' : 'Running',
          message: failure ?? `${done} of ${wished} have ended with exit code 0`,
        },
    { type: 'Finalized', status: 'False', reason: 'NotDeleted', message: 'nobody has asked to delete it' },
  ]
}

/** Deletes the children with their pods, and answers how many are still there. */
async function stop(client: CachedClient, cr: Snapshot<Goop>): Promise<number> {
  const kinds: readonly Kind[] = [Job, DaemonSet]
  for (const kind of kinds)
    for (const child of client.owned(kind, cr))
      if (!child.metadata.deletionTimestamp) await client.delete(kind, child, { propagation: 'Foreground' })
  return kinds.flatMap(kind => client.owned(kind, cr)).length
}

export const operator = advancedReconciler(Goop, {
  resources: [...workers, everyNode],
  pods: true,
  maxCreation: 10,
  engine: stepper({
    ObjectsGetter({ cr, register }) {
      if (cr.spec.mode === 'Nodes') register(everyNode)
      else for (const worker of workers.slice(0, cr.spec.job_count)) register(worker)
    },
    async SuccessManager({ cr, client, live, status, condition }) {
      const progress =
        cr.spec.mode === 'Nodes'
          ? progressOfNodes(live(everyNode))
          : await progressOfJobs(client, workers.slice(0, cr.spec.job_count).map(live))
      status.done = `${progress.done}/${progress.wished}`
      for (const one of conditionsOf(progress)) condition(one)
    },
    async CRFinalizer({ cr, client, condition, waitFor }) {
      const left = await stop(client, cr)
      if (left > 0) waitFor('Stopping', 'its workers are being stopped')
      condition(
        left > 0
          ? { type: 'Finalized', status: 'False', reason: 'Stopping', message: 'its workers are being stopped' }
          : { type: 'Finalized', status: 'True', reason: 'AllStopped', message: 'nothing of it runs any more' },
      )
    },
  }),
})
