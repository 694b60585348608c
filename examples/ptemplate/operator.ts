/**
 * Gives the pods of a DaemonSet a device that a kernel module makes, for each `Ptemplate`. The module is loaded by KMM, an operator of somebody else's: without
 * it, all the rest is done.
 */
import { Counter, Gauge } from 'prom-client'
import {
  advancedReconciler,
  defineCustomResource,
  mutable,
  type Readiness,
  stepper,
  type Wanted,
  yamlTemplate,
} from 'shipmate'
import { DaemonSet, defineKind, type Snapshot } from 'shipmate/kube'
import { z } from 'zod'

export const Ptemplate = defineCustomResource({
  group: 'pt.example.com',
  version: 'v1alpha1',
  kind: 'Ptemplate',
  description: 'Devices of a kernel module, and pods that use them.',
  spec: z.object({
    maxdev: z.int().min(1).max(256).default(1).describe('How many devices a node offers.'),
    defaultmsg: z
      .string()
      .regex(/^[A-Za-z0-9_.-]{1,64}$/)
      .default('ptemplate')
      .describe('What a device answers until somebody writes to it.'),
    consumerimage: z.string().min(1).describe('The image of the pods that use the devices.'),
    requiredDevices: z.int().min(1).max(256).default(1).describe('How many devices each of these pods gets.'),
    imageRepoSecret: z
      .object({ name: z.string().min(1) })
      .optional()
      .describe('A Secret with which the images are pulled.'),
    selector: z.record(z.string(), z.string()).default({}).describe('Labels of the nodes that are meant.'),
  }),
  status: z.object({
    consumers: z.array(z.string()).describe('The names of the pods that use the devices.'),
  }),
  columns: {
    Devices: '.spec.requiredDevices',
    Loaded: '.status.conditions[?(@.type=="ModuleLoaded")].status',
    Ready: '.status.conditions[?(@.type=="Ready")].status',
  },
  rules: [
    {
      rule: 'self.spec.requiredDevices <= self.spec.maxdev',
      message: 'requiredDevices is more than a node has: maxdev',
    },
    { rule: 'self.metadata.name.size() <= 52', message: 'what it makes has longer names: 52 characters at most' },
  ],
})

/** KMM's own kind, as far as it is written and read here. */
export interface Module {
  spec: object
  status?: { devicePlugin?: { desiredNumber?: number; availableNumber?: number } }
}
export const Module = defineKind<Module>({ group: 'kmm.sigs.x-k8s.io', version: 'v1beta1', kind: 'Module' })

const { PTEMPLATE_IMAGES: images = 'registry.example.com/ptemplate' } = process.env

const module = mutable(Module, Ptemplate, {
  optional: true,
  mutateWithInitialData: yamlTemplate(new URL('./module.yaml', import.meta.url), ({ spec }) => ({
    images,
    maxdev: spec.maxdev,
    defaultmsg: spec.defaultmsg,
    secret: spec.imageRepoSecret?.name,
    selector: spec.selector,
  })),
  ready: loaded,
})

const consumers = mutable(DaemonSet, Ptemplate, {
  name: cr => `${cr.metadata.name}-consumer`,
  mutateWithInitialData: yamlTemplate(new URL('./consumer.yaml', import.meta.url), ({ metadata, spec }) => ({
    name: metadata.name,
    image: spec.consumerimage,
    devices: spec.requiredDevices,
    secret: spec.imageRepoSecret?.name,
    selector: spec.selector,
  })),
})

/** KMM leaves a number out while it is 0. */
function loaded({ status }: Snapshot<Module>): Readiness {
  const { desiredNumber = 0, availableNumber = 0 } = status?.devicePlugin ?? {}
  return status?.devicePlugin && availableNumber >= desiredNumber
    ? { ready: true, reason: 'Loaded', message: 'every node that should offers the devices' }
    : { ready: false, reason: 'Loading', message: 'the devices are not offered on every node yet' }
}

function moduleLoaded(live: Snapshot<Module> | undefined, isServed: boolean): Wanted {
  const type = 'ModuleLoaded'
  if (!isServed) {
    const message =
      'KMM is not installed: the module is loaded as soon as it is; until then somebody else has to load it'
    return { type, status: 'Unknown', reason: 'KmmAbsent', message }
  }
  const { ready, reason, message } = live ? loaded(live) : { ready: false, reason: 'Missing', message: 'not there yet' }
  return { type, status: ready ? 'True' : 'False', reason, message }
}

const writes = new Counter({
  name: 'ptemplate_writes_total',
  help: 'Modules and DaemonSets that were created, or put back to what they should be.',
  labelNames: ['operation'],
  registers: [],
})
const consuming = new Gauge({
  name: 'ptemplate_consumers',
  help: 'Pods that use the devices of a Ptemplate.',
  labelNames: ['namespace', 'name'],
  registers: [],
})

export const operator = advancedReconciler(Ptemplate, {
  resources: [module, consumers],
  pods: true,
  metrics: [writes, consuming],
  gone: ({ namespace = '', name }) => consuming.remove({ namespace, name }),
  engine: stepper({
    ObjectsGetter({ register }) {
      register(module)
      register(consumers, { after: module })
    },
    async SuccessManager({ cr, client, live, pods, results, status, condition }) {
      const { namespace = '', name } = cr.metadata
      status.consumers = (await pods(consumers)).map(pod => pod.metadata.name).sort()
      condition(moduleLoaded(live(module), client.isServed(Module)))
      consuming.set({ namespace, name }, status.consumers.length)
      const { Created = 0, Updated = 0 } = results.counters()
      writes.inc({ operation: 'create' }, Created)
      writes.inc({ operation: 'update' }, Updated)
    },
  }),
})
