/**
 * The toolkit against a real API server: what a model of one cannot tell, as its defaults, its own spellings of values and the fields that it does not let change.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { type Access, connect } from '../../controller/kube/access.ts'
import { defineKind, type Kind, type Snapshot } from '../../controller/kube/kind.ts'
import { ConfigMap, Deployment, Job, Namespace, Service, StatefulSet } from '../../controller/kube/kinds.ts'
import type { Request } from '../../controller/kube/transport.ts'
import { createManager, type Manager } from '../../controller/runtime/manager.ts'
import {
  type AnyResource,
  addTo,
  advancedReconciler,
  type Condition,
  type MutableOptions,
  mutable,
} from '../../controller/toolkit/index.ts'
import { isEmbedded, notEmbedded } from '../fixtures/apiserver.ts'
import { installWidgets, type Widget } from '../fixtures/widget.ts'

const file = inject('kubeconfig')
const group = 'toolkit.test.example.com'
const patience = { timeout: 20_000, interval: 50 }

let access: Access
let widgets: Kind<Widget>
let namespace: string
let manager: Manager
let started: Promise<void>
let writes: string[]
let requests: number
/** Comes before each request of the operator's. */
let meddle: ((request: Request) => Promise<void>) | undefined

beforeAll(async () => {
  access = connect({ kubeconfig: { file } })
  widgets = await installWidgets(access.client, group, { preserve: true })
})
afterAll(() => access.close())
beforeEach(async () => {
  const made = await access.client.create(Namespace, { metadata: { generateName: 'toolkit-' } })
  namespace = made.metadata.name
  writes = []
  requests = 0
  meddle = undefined
})
afterEach(async () => {
  await manager?.stop()
  await started
})

function operate(...resources: AnyResource<Widget>[]): void {
  manager = createManager({
    name: 'widgets',
    kubeconfig: { file },
    namespaces: [namespace],
    signals: false,
    log: { level: 'silent' },
    interceptors: [
      next => async request => {
        await meddle?.(request)
        const { verb, resource, subresource, name } = request.target
        if (!request.stream && resource !== 'leases' && resource !== 'events') requests++
        if (request.method !== 'GET' && resource !== 'events')
          writes.push(`${verb} ${resource}${subresource ? `/${subresource}` : ''} ${name}`)
        return next(request)
      },
    ],
  })
  addTo(manager, advancedReconciler(widgets, { resources, throttle: { first: 100 } }))
  started = manager.start()
}

const wish = (value: string) => access.client.create(widgets, { metadata: { name: 'a', namespace }, spec: { value } })
const change = (value: string) => access.client.patch(widgets, { name: 'a', namespace }, { merge: { spec: { value } } })
async function condition(type: string): Promise<Condition | undefined> {
  const { status } = (await access.client.get(widgets, { name: 'a', namespace })) as Snapshot<Widget>
  return (status as { conditions?: Condition[] } | undefined)?.conditions?.find(one => one.type === type)
}
const reaches = (type: string, status: string) =>
  vi.waitFor(async () => expect((await condition(type))?.status).toBe(status), patience)

const labels = { app: 'a' }
const container = (cpu: string) => ({
  name: 'web',
  image: 'example.com/web:1',
  ports: [{ containerPort: 80 }],
  resources: { requests: { cpu, memory: '1024Mi' } },
})

function deployment(more: Partial<MutableOptions<Widget, NonNullable<(typeof Deployment)['shape']>>> = {}) {
  return mutable(Deployment, widgets, {
    mutateWithInitialData: cr => ({
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [container(cr.spec.value)] } },
      },
    }),
    ready: () => true,
    ...more,
  })
}

it('what the server adds, or spells in its own way, is no change: no request when nothing changed', async () => {
  const service = mutable(Service, widgets, {
    mutateWithInitialData: () => ({ spec: { selector: labels, ports: [{ port: 80, targetPort: 'web' }] } }),
  })
  operate(deployment(), service)
  await wish('1000m')
  await reaches('Ready', 'True')
  const live = await access.client.get(Deployment, { name: 'a', namespace })
  expect(live.spec?.template.spec?.containers[0]?.resources?.requests).toEqual({ cpu: '1', memory: '1Gi' })
  expect(live.spec?.strategy?.type, 'the server has filled in what was left out').toBe('RollingUpdate')
  const before = writes.length
  const asked = requests
  // An annotation is a reason to reconcile, and changes nothing.
  await access.client.patch(
    widgets,
    { name: 'a', namespace },
    { merge: { metadata: { annotations: { look: 'again' } } } },
  )
  await vi.waitFor(async () => {
    const text = await manager.metrics.registry.metrics()
    const paths = [...text.matchAll(/^shipmate_paths_total\{.*\} (\d+)$/gm)].reduce(
      (sum, [, count]) => sum + Number(count),
      0,
    )
    expect(paths).toBeGreaterThanOrEqual(2)
  }, patience)
  expect(writes.slice(before)).toEqual([])
  expect(requests).toBe(asked)
})

it('a restarted operator writes nothing, also where the server keeps a wish in words of its own', async () => {
  const set = mutable(StatefulSet, widgets, {
    mutateWithInitialData: () => ({
      spec: {
        serviceName: 'a',
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [container('1000m')] } },
        volumeClaimTemplates: [
          {
            metadata: { name: 'data' },
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1024Mi' } } },
          },
        ],
      },
    }),
    ready: () => true,
  })
  operate(set)
  await wish('1')
  await reaches('Ready', 'True')
  expect(writes.filter(write => write.includes('statefulsets'))).toHaveLength(1)
  await manager.stop()
  await started
  writes = []
  operate(set)
  await vi.waitFor(
    async () =>
      expect(await manager.metrics.registry.metrics()).toMatch(/^shipmate_paths_total\{.*SuccessManager.*\} [1-9]/m),
    patience,
  )
  expect(writes).toEqual([])
  await access.client.patch(StatefulSet, { name: 'a', namespace }, { merge: { spec: { replicas: 3 } } })
  await access.client.patch(
    StatefulSet,
    { name: 'a', namespace },
    {
      json: [{ op: 'replace', path: '/spec/template/spec/containers/0/resources/requests/cpu', value: '3' }],
    },
  )
  await vi.waitFor(async () => {
    const { spec } = await access.client.get(StatefulSet, { name: 'a', namespace })
    expect(spec?.template.spec?.containers[0]?.resources?.requests?.cpu, 'drift is put back all the same').toBe('1')
  }, patience)
})

it('keys and items that are no longer wished go', async () => {
  operate(
    mutable(ConfigMap, widgets, {
      mutateWithInitialData: cr => ({
        metadata: { labels: { [`label-${cr.spec.value}`]: 'x' } },
        data: { [cr.spec.value]: 'x' },
      }),
    }),
  )
  await wish('one')
  await reaches('Ready', 'True')
  await access.client.patch(ConfigMap, { name: 'a', namespace }, { merge: { data: { theirs: 'y' } } })
  await change('two')
  await vi.waitFor(async () => {
    const { data, metadata } = await access.client.get(ConfigMap, { name: 'a', namespace })
    expect({ data, labels: metadata.labels }).toEqual({ data: { theirs: 'y', two: 'x' }, labels: { 'label-two': 'x' } })
  }, patience)
})

describe('a field that the server does not let change', () => {
  const withSelector = (more: Parameters<typeof deployment>[0] = {}) =>
    deployment({
      mutateWithCR(object, cr) {
        const own = { app: cr.spec.value }
        object.spec.selector = { matchLabels: own }
        object.spec.template.metadata = { labels: own }
        object.spec.template.spec = { containers: [container('1')] }
      },
      ...more,
    })

  it('is named, with what would help', async () => {
    operate(withSelector())
    await wish('one')
    await reaches('Ready', 'True')
    await change('two')
    await reaches('Stalled', 'True')
    expect((await condition('Stalled'))?.message).toBe(
      'Deployment a: spec.selector of Deployment a cannot be changed once it is there; `recreate: true` in its declaration would delete it and create it anew',
    )
    expect((await access.client.get(Deployment, { name: 'a', namespace })).spec?.selector.matchLabels).toEqual({
      app: 'one',
    })
  })

  it('makes it be created anew, if that is wished', async () => {
    operate(withSelector({ recreate: true }))
    await wish('one')
    await reaches('Ready', 'True')
    const { uid } = (await access.client.get(Deployment, { name: 'a', namespace })).metadata
    await change('two')
    await vi.waitFor(async () => {
      const { metadata, spec } = await access.client.get(Deployment, { name: 'a', namespace })
      expect(spec?.selector.matchLabels).toEqual({ app: 'two' })
      expect(metadata.uid).not.toBe(uid)
    }, patience)
  })

  it('of a StatefulSet is named although the server names only those that may change', async () => {
    operate(
      mutable(StatefulSet, widgets, {
        mutateWithInitialData: cr => ({
          spec: {
            serviceName: cr.spec.value,
            replicas: 1,
            selector: { matchLabels: labels },
            template: { metadata: { labels }, spec: { containers: [container('1')] } },
          },
        }),
        ready: () => true,
      }),
    )
    await wish('one')
    await reaches('Ready', 'True')
    await change('two')
    await reaches('Stalled', 'True')
    expect((await condition('Stalled'))?.message).toContain('spec.serviceName of StatefulSet a cannot be changed')
  })
})

describe('what is to be created anew goes only if the server would take the new one', () => {
  const stays = async (kind: Kind, wanted: string) => {
    const { uid } = (await access.client.get(kind, { name: 'a', namespace })).metadata
    await change('two')
    await reaches('Stalled', 'True')
    expect((await condition('Stalled'))?.message).toContain(wanted)
    const now = (await access.client.get(kind, { name: 'a', namespace })).metadata
    expect(now.uid).toBe(uid)
    expect(now.deletionTimestamp).toBeUndefined()
    expect(writes.filter(write => write.startsWith('delete'))).toEqual([])
  }

  it('a StatefulSet whose new template is wrong', async () => {
    operate(
      mutable(StatefulSet, widgets, {
        recreate: true,
        mutateWithInitialData: cr => ({
          spec: {
            serviceName: cr.spec.value,
            selector: { matchLabels: labels },
            template: {
              metadata: { labels },
              spec: {
                containers: [{ ...container('1'), imagePullPolicy: cr.spec.value === 'one' ? 'Always' : 'Perhaps' }],
              },
            },
          },
        }),
        ready: () => true,
      }),
    )
    await wish('one')
    await reaches('Ready', 'True')
    await stays(StatefulSet, 'spec.template.spec.containers[0].imagePullPolicy')
  })

  it.skipIf(isEmbedded)(
    `a Job whose new template may not be created, as only a creation tells${notEmbedded('there are no ValidatingAdmissionPolicies')}`,
    async () => {
      const policies = defineKind<object>({
        ...{ group: 'admissionregistration.k8s.io', version: 'v1', namespaced: false },
        ...{ kind: 'ValidatingAdmissionPolicy', plural: 'validatingadmissionpolicies' },
      })
      const bindings: Kind = {
        ...policies,
        ...{ kind: 'ValidatingAdmissionPolicyBinding', plural: 'validatingadmissionpolicybindings' },
      }
      const matchConstraints = {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        resourceRules: [{ apiGroups: ['batch'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['jobs'] }],
      }
      const expression = "object.spec.template.spec.containers.all(c, c.image != 'example.com/two')"
      await access.client.create(policies, {
        metadata: { name: namespace },
        spec: {
          failurePolicy: 'Fail',
          matchConstraints,
          validations: [{ expression, message: 'no image of that name' }],
        },
      } as never)
      await access.client.create(bindings, {
        metadata: { name: namespace },
        spec: { policyName: namespace, validationActions: ['Deny'] },
      } as never)
      const job = (image: string) => ({
        spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'x', image }] } } },
      })
      // A policy is in force a moment after it was made.
      await vi.waitFor(
        () =>
          expect(
            access.client.create(
              Job,
              { metadata: { name: 'try', namespace }, ...job('example.com/two') },
              { dryRun: true },
            ),
          ).rejects.toThrow('no image of that name'),
        patience,
      )
      operate(
        mutable(Job, widgets, {
          recreate: true,
          mutateWithInitialData: cr => job(`example.com/${cr.spec.value}`),
          ready: () => true,
        }),
      )
      await wish('one')
      await reaches('Ready', 'True')
      await stays(
        Job,
        'spec.template of Job a cannot be changed once it is there, and it stays, as a new one would be refused',
      )
      expect((await condition('Stalled'))?.message).toContain('no image of that name')
      await change('three')
      await vi.waitFor(async () => {
        const { spec } = await access.client.get(Job, { name: 'a', namespace })
        expect(spec?.template.spec?.containers[0]?.image).toBe('example.com/three')
      }, patience)
      await access.client.delete(bindings, { name: namespace })
      await access.client.delete(policies, { name: namespace })
    },
  )

  it('a Service may keep the node port that the old one has', async () => {
    operate(
      mutable(Service, widgets, {
        recreate: true,
        mutateWithInitialData: cr => ({
          spec: {
            type: 'NodePort',
            clusterIP: cr.spec.value,
            selector: labels,
            ports: [{ port: 80, nodePort: 31_234 }],
          },
        }),
      }),
    )
    await wish('10.0.0.201')
    await reaches('Ready', 'True')
    await change('10.0.0.202')
    await vi.waitFor(async () => {
      const { spec } = await access.client.get(Service, { name: 'a', namespace })
      expect(spec).toMatchObject({ clusterIP: '10.0.0.202', ports: [{ nodePort: 31_234 }] })
    }, patience)
  })
})

it('an object that somebody makes at the very moment in which ours would be created is left alone', async () => {
  operate(mutable(ConfigMap, widgets, { mutateWithInitialData: () => ({ data: { ours: 'x' } }) }))
  meddle = async ({ method, target }) => {
    if (method !== 'PATCH' || target.resource !== 'configmaps') return
    meddle = undefined
    await access.client.create(ConfigMap, { metadata: { name: 'a', namespace }, data: { theirs: 'x' } })
  }
  await wish('one')
  await reaches('Stalled', 'True')
  expect((await condition('Stalled'))?.message).toContain('was there before')
  const { data, metadata } = await access.client.get(ConfigMap, { name: 'a', namespace })
  expect({ data, owners: metadata.ownerReferences }).toEqual({ data: { theirs: 'x' }, owners: undefined })
})

it('a field that the server would drop is an error that names it', async () => {
  operate(
    deployment({
      mutateWithCR(object) {
        Object.assign(object.spec, { replicaz: 3 })
      },
    }),
  )
  await wish('1')
  await reaches('Ready', 'False')
  await vi.waitFor(async () => expect((await condition('Ready'))?.message).toContain('replicaz'), patience)
})

it('drift is put back, and a deleted child is made anew', async () => {
  operate(deployment())
  await wish('1')
  await reaches('Ready', 'True')
  const ref = { name: 'a', namespace }
  await access.client.patch(Deployment, ref, { merge: { spec: { replicas: 7 } } })
  await vi.waitFor(async () => expect((await access.client.get(Deployment, ref)).spec?.replicas).toBe(2), patience)
  await access.client.delete(Deployment, ref)
  await vi.waitFor(async () => expect((await access.client.get(Deployment, ref)).spec?.replicas).toBe(2), patience)
})
