/**
 * What injection does, refuses, leaves alone and warns of, in the words that people read.
 */
import { describe, expect, it } from 'vitest'
import { type Facts, inject, type Settings } from '../../../controller/webhook/inject/inject.ts'
import type { Container, PodSpec, PodTemplate } from '../../../controller/webhook/inject/template.ts'
import { lifecycle, settings } from './pods.ts'

interface Given extends Facts {
  readonly labels?: Record<string, string>
  readonly annotations?: Record<string, string>
  readonly spec?: Partial<PodSpec>
  readonly main?: Partial<Container>
  readonly settings?: Partial<Settings>
  readonly owners?: NonNullable<NonNullable<PodTemplate['metadata']>['ownerReferences']>
}

const facts = { app: 'orders', lifecycle: { ...lifecycle, preStop: 'stop' } }

function run({ labels, annotations, spec, main, owners, settings: more, ...known }: Given = {}) {
  const pod: PodTemplate = {
    metadata: {
      labels: { 'shipmate.dev/lifecycle': 'postgres', ...labels },
      ...(annotations && { annotations }),
      ...(owners && { ownerReferences: owners }),
    },
    spec: { containers: [{ name: 'postgres', image: 'postgres:17', ...main }], ...spec },
  }
  return inject(pod, { ...facts, ...known }, { ...settings, ...more })
}

function made(given?: Given) {
  const result = run(given)
  if (!('pod' in result)) throw new Error(JSON.stringify(result))
  const { initContainers = [], containers = [] } = result.pod.spec ?? {}
  const sidecar = [...initContainers, ...containers].find(({ name }) => name === 'shipmate-sidecar')
  return { ...result, spec: result.pod.spec, sidecar, annotations: result.pod.metadata?.annotations }
}

function refusals(given: Given): readonly string[] {
  const result = run(given)
  if (result.outcome !== 'refused') throw new Error(JSON.stringify(result))
  return result.problems
}

const at = (name: string, value: string) => ({ annotations: { [`shipmate.dev/${name}`]: value } })

describe('what is refused, with the nearest right name', () => {
  it.each<[Given, string]>([
    [
      at('image-off', 'postgres'),
      'annotation shipmate.dev/image-off is not known; did you mean "shipmate.dev/image-of"?',
    ],
    [at('volums', 'data'), 'annotation shipmate.dev/volums is not known; did you mean "shipmate.dev/volumes"?'],
    [at('lifecycle', 'postgres'), 'annotation shipmate.dev/lifecycle is not known; it is a label'],
    [{ labels: { 'shipmate.dev/volumes': 'data' } }, 'label shipmate.dev/volumes is not known; it is an annotation'],
    [
      { labels: { 'shipmate.dev/lifecycle': '' } },
      'label shipmate.dev/lifecycle is "": it has to be the name of a Lifecycle',
    ],
    [
      at('image-of', 'postgers'),
      'annotation shipmate.dev/image-of: there is no container "postgers"; did you mean "postgres"?',
    ],
    [
      { ...at('image-of', 'postgres'), main: { image: '' } },
      'annotation shipmate.dev/image-of: container postgres names no image',
    ],
    [at('inject', 'no'), 'annotation shipmate.dev/inject is "no": it has to be "true" or "false"'],
    [
      at('share-process-namespace', 'yes'),
      'annotation shipmate.dev/share-process-namespace is "yes": it has to be "true" or "false"',
    ],
    [
      at('run-as-user', 'postgres'),
      'annotation shipmate.dev/run-as-user is "postgres": it has to be the number of a user, as "999"',
    ],
    [
      at('limits', 'memory=lots'),
      'annotation shipmate.dev/limits is "memory=lots": it has to be as "cpu=50m,memory=128Mi"',
    ],
    [
      at('requests', 'memroy=1Gi'),
      'annotation shipmate.dev/requests is "memroy=1Gi": it has to be as "cpu=50m,memory=128Mi"; did you mean "memory"?',
    ],
    [at('image', ''), 'annotation shipmate.dev/image is "": it has to be the name of an image'],
    [
      at('volumes', 'data:/x'),
      'annotation shipmate.dev/volumes is "data:/x": it has to be names of volumes with commas between them, each as NAME, NAME=/PATH or NAME=/PATH:ro',
    ],
    [
      { ...at('volumes', 'date'), claims: ['data'] },
      'annotation shipmate.dev/volumes: there is no volume "date"; did you mean "data"?',
    ],
    [
      { ...at('volumes', 'backup'), spec: { volumes: [{ name: 'backup', emptyDir: {} }] } },
      'annotation shipmate.dev/volumes: no container mounts backup: say where, as backup=/PATH',
    ],
    [
      { ...at('volumes', 'data=/a,data=/a'), claims: ['data'] },
      'annotation shipmate.dev/volumes has two volumes at /a',
    ],
    [{ main: { ports: [{ containerPort: 7080 }] } }, "container postgres has port 7080, which is the sidecar's"],
    [
      at('app', 'Orders'),
      '"Orders" cannot be the name of an app: up to 40 lower case letters, digits and -: annotate the pod template with shipmate.dev/app',
    ],
    [{ app: undefined }, 'it has no name, and no owner that has one: annotate the pod template with shipmate.dev/app'],
    [{ spec: { os: { name: 'windows' } } }, 'its containers are for Windows; the agent runs on Linux'],
    [
      { spec: { restartPolicy: 'Never' }, settings: { nativeSidecars: false } },
      'its restartPolicy is Never: with a plain container beside it, it would never be done',
    ],
    [
      { ...at('share-process-namespace', 'true'), spec: { shareProcessNamespace: false } },
      'annotation shipmate.dev/share-process-namespace is "true", and spec.shareProcessNamespace false',
    ],
    [
      { spec: { volumes: [{ name: 'shipmate-tls', emptyDir: {} }] } },
      'names that the sidecar needs are taken: shipmate-state, shipmate-lifecycle, shipmate-tls, shipmate-agent are its volumes',
    ],
    [
      { annotations: { 'shipmate.dev/requests': 'memory=2Gi', 'shipmate.dev/limits': 'memory=1Gi' } },
      'annotation shipmate.dev/limits allows less memory (1Gi) than shipmate.dev/requests asks for (2Gi)',
    ],
    [
      { ...at('image-of', 'postgres'), main: { volumeMounts: [{ name: 'lib', mountPath: '/var/lib' }] } },
      'volume lib is mounted at /var/lib, where the sidecar has its own /var/lib/shipmate: name the volumes that it needs in annotation shipmate.dev/volumes',
    ],
    [
      {
        ...at('image-of', 'postgres'),
        main: { volumeMounts: [{ name: 'lib', mountPath: '/lib', subPathExpr: '$(ZONE)' }] },
      },
      'volume lib is mounted by subPathExpr "$(ZONE)", and the sidecar has no such variable: name the volumes that it needs in annotation shipmate.dev/volumes',
    ],
  ])('%j', (given, sentence) => {
    expect(refusals(given)).toEqual([sentence])
  })

  it('all that is wrong is said at once', () => {
    expect(refusals({ annotations: { 'shipmate.dev/inject': '1', 'shipmate.dev/limts': 'x' } })).toHaveLength(2)
  })
})

describe('what is left alone', () => {
  it.each<[string, Given, string]>([
    ['is to have none', at('inject', 'false'), 'annotation shipmate.dev/inject is "false"'],
    [
      'has one that somebody wrote',
      { spec: { initContainers: [{ name: 'shipmate-sidecar', restartPolicy: 'Always' }] } },
      'container shipmate-sidecar is a sidecar already',
    ],
    [
      'has one under another name',
      { spec: { initContainers: [{ name: 'agent', env: [{ name: 'SHIPMATE_LIFECYCLE', value: 'x' }] }] } },
      'container agent is a sidecar already',
    ],
    [
      'says where one listens',
      at('api-port', '7443'),
      'annotation shipmate.dev/api-port says where its sidecar listens',
    ],
    ['has one of a later version', at('injected', '0.2.0'), 'its sidecar is of version 0.2.0, and this is 0.1.0'],
  ])('a pod that %s', (_, given, why) => {
    expect(run(given)).toEqual({ outcome: 'left', why })
  })

  it('a pod without the label', () => {
    const pod = { metadata: {}, spec: { containers: [{ name: 'postgres' }] } }
    expect(inject(pod, facts, settings)).toEqual({ outcome: 'left', why: 'it has no label shipmate.dev/lifecycle' })
  })
})

describe('whose pod it is', () => {
  const owner = (kind: string, name: string) => [{ kind, name, controller: true }]
  it.each<[string, Given, string]>([
    ['a StatefulSet', { owners: owner('StatefulSet', 'orders-db') }, 'orders-db'],
    ['a DaemonSet', { owners: owner('DaemonSet', 'agents') }, 'agents'],
    [
      'a Deployment, by its ReplicaSet',
      { owners: owner('ReplicaSet', 'cache-5d4f8c7b9'), labels: { 'pod-template-hash': '5d4f8c7b9' } },
      'cache',
    ],
    ['a ReplicaSet by itself', { owners: owner('ReplicaSet', 'cache-blue') }, 'cache-blue'],
    [
      'nobody but a second owner',
      { owners: [{ kind: 'Queue', name: 'q' }, ...owner('StatefulSet', 'orders-db')] },
      'orders-db',
    ],
    ['whom the annotation names', { ...at('app', 'other'), owners: owner('StatefulSet', 'orders-db') }, 'other'],
  ])('that of %s', (_, given, app) => {
    const { annotations, spec } = made({ app: undefined, ...given })
    expect(annotations).toMatchObject({ 'shipmate.dev/app': app })
    expect(spec?.volumes).toContainEqual({
      name: 'shipmate-tls',
      secret: { secretName: `shipmate-tls-${app}`, optional: true },
    })
  })
})

describe('where it stands', () => {
  const prepare = { name: 'prepare', image: 'prepare' }
  const names = (list: readonly Container[] | undefined) => list?.map(({ name }) => name)

  it('natively, before the application begins', () => {
    const { spec } = made({ ...at('image-of', 'postgres'), spec: { initContainers: [prepare] } })
    expect(names(spec?.initContainers)).toEqual(['shipmate-install-agent', 'shipmate-sidecar', 'prepare'])
    expect(names(spec?.containers)).toEqual(['postgres'])
  })

  it('as a plain container last, so that kubectl takes the first for the main one', () => {
    const { spec } = made({ ...at('image-of', 'postgres'), settings: { nativeSidecars: false } })
    expect(names(spec?.initContainers)).toEqual(['shipmate-install-agent'])
    expect(names(spec?.containers)).toEqual(['postgres', 'shipmate-sidecar'])
  })

  it('where others have moved it since', () => {
    const first = made({ spec: { initContainers: [prepare] } })
    const [sidecar, theirs] = first.spec?.initContainers ?? []
    const before = { ...first.pod, spec: { ...first.pod.spec, initContainers: [theirs, sidecar] } } as PodTemplate
    expect(inject(before, facts, settings)).toMatchObject({ outcome: 'unchanged' })
  })

  it('the annotation has the last word on the sort of container', () => {
    expect(made({ ...at('native-sidecar', 'true'), settings: { nativeSidecars: false } }).sidecar).toMatchObject({
      restartPolicy: 'Always',
    })
    expect(made(at('native-sidecar', 'false')).sidecar).not.toHaveProperty('restartPolicy')
  })
})

describe('under whom it runs', () => {
  const user = (given: Given) => made(given).sidecar?.securityContext
  it('in its own image under nobody that is named, and never under root', () => {
    expect(user({})).toMatchObject({ runAsNonRoot: true, readOnlyRootFilesystem: true })
    expect(user({})).not.toHaveProperty('runAsUser')
    expect(user({ spec: { securityContext: { runAsUser: 0 } } })).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 65_532,
    })
    expect(user({ spec: { securityContext: { runAsUser: 999 } } })).not.toHaveProperty('runAsUser')
    expect(user(at('run-as-user', '0'))).toMatchObject({ runAsNonRoot: false, runAsUser: 0 })
  })

  it("in the application's image as the application does", () => {
    const main = {
      securityContext: {
        runAsUser: 26,
        runAsGroup: 26,
        runAsNonRoot: true,
        privileged: true,
        capabilities: { add: ['SYS_ADMIN'] },
      },
    }
    expect(user({ ...at('image-of', 'postgres'), main })).toEqual({
      ...{ runAsUser: 26, runAsGroup: 26, runAsNonRoot: true },
      ...{
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
        seccompProfile: { type: 'RuntimeDefault' },
      },
    })
    const asked = { annotations: { 'shipmate.dev/image-of': 'postgres', 'shipmate.dev/run-as-user': '999' } }
    expect(user({ ...asked, main })).toMatchObject({ runAsUser: 999, runAsGroup: 26 })
  })
})

describe('which volumes it has', () => {
  const main = {
    volumeMounts: [
      { name: 'data', mountPath: '/data', subPath: 'pg', mountPropagation: 'Bidirectional' },
      { name: 'data', mountPath: '/wal', subPathExpr: '$(POD_NAME)' },
      { name: 'kube-api-access-x', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount', readOnly: true },
    ],
  }
  const mounts = (given: Given) => made({ main, claims: ['data', 'backup'], ...given }).sidecar?.volumeMounts?.slice(3)

  it('none of the application in its own image, unless it is asked for', () => {
    expect(mounts({})).toEqual([])
    expect(mounts(at('volumes', 'data, backup=/backup:ro'))).toEqual([
      { name: 'data', mountPath: '/data', subPath: 'pg' },
      { name: 'data', mountPath: '/wal', subPathExpr: '$(POD_NAME)' },
      { name: 'backup', mountPath: '/backup', readOnly: true },
    ])
  })

  it("in the application's image those of its container, but for tokens", () => {
    expect(
      mounts(at('image-of', 'postgres'))
        ?.slice(1)
        .map(({ mountPath }) => mountPath),
    ).toEqual(['/data', '/wal'])
    expect(mounts({ annotations: { 'shipmate.dev/image-of': 'postgres', 'shipmate.dev/volumes': '' } })).toHaveLength(1)
  })
})

describe('what it asks of the node', () => {
  it.each<[Record<string, string>, object]>([
    [{}, { requests: { cpu: '10m', memory: '64Mi' } }],
    [{ requests: 'memory=1Gi' }, { requests: { cpu: '10m', memory: '1Gi' } }],
    [{ limits: 'memory=2Gi' }, { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '2Gi' } }],
    [{ limits: 'memory=32Mi' }, { requests: { cpu: '10m', memory: '32Mi' }, limits: { memory: '32Mi' } }],
  ])('%j', (asked, resources) => {
    const annotations = Object.fromEntries(
      Object.entries(asked).map(([name, value]) => [`shipmate.dev/${name}`, value]),
    )
    expect(made({ annotations }).sidecar?.resources).toEqual(resources)
  })
})

describe('how long the pod has to end', () => {
  const grace = (given: Given) => made(given).spec?.terminationGracePeriodSeconds

  it('longer by what the hooks may take, and it is written down what it was', () => {
    expect(grace({ spec: { terminationGracePeriodSeconds: 100 } })).toBe(217)
    expect(made({}).annotations).toMatchObject({ 'shipmate.dev/own-grace-period': '30' })
  })

  it('as it was, where nothing runs at the end', () => {
    expect(grace({ lifecycle: { actions: lifecycle.actions } })).toBeUndefined()
    expect(grace({ lifecycle: undefined, spec: { terminationGracePeriodSeconds: 7 } })).toBe(7)
  })

  it('what a person made longer since stays, what they made shorter does not', () => {
    const { pod } = made({})
    const edited = (seconds: number) => {
      const result = inject(
        { ...pod, spec: { ...pod.spec, terminationGracePeriodSeconds: seconds } as PodSpec },
        facts,
        settings,
      )
      return 'pod' in result && result.pod.spec?.terminationGracePeriodSeconds
    }
    expect([edited(500), edited(20)]).toEqual([500, 147])
  })

  it('a longer stop in a newer lifecycle is added to what the application had for itself', () => {
    const { pod } = made({})
    const [backup, stop] = lifecycle.actions ?? []
    const slower = { ...lifecycle, actions: [backup, { ...stop, timeout: '5m' }] } as typeof lifecycle
    const result = inject(pod, { ...facts, lifecycle: slower }, settings)
    expect('pod' in result && result.pod.spec?.terminationGracePeriodSeconds).toBe(147 + 240)
  })
})

describe('what is warned of', () => {
  const quiet = { lifecycle: { actions: [] } }
  const whole = { limits: { cpu: '1', memory: '1Gi' } }
  it.each<[string, Given, RegExp[]]>([
    ['nothing, where all is well', { ...quiet }, []],
    [
      'a hook that is kept',
      { ...quiet, main: { lifecycle: { preStop: { exec: { command: ['x'] } } } } },
      [/^container postgres keeps its own preStop hook/],
    ],
    [
      'a lifecycle that is not there',
      { lifecycle: undefined },
      [/^lifecycle postgres is not known here: whether the grace period/],
    ],
    [
      'a stop without a timeout',
      { lifecycle: { preStop: 'stop', actions: [{ name: 'stop', http: { url: 'http://127.0.0.1' } }] } },
      [/^action stop, .* default of 1h$/],
    ],
    [
      'signals without their processes',
      { lifecycle: { actions: [{ name: 'reload', signal: { process: 'x', signal: 'SIGHUP' } }] } },
      [/^action reload needs the application's processes/],
    ],
    [
      'a probe of processes',
      { lifecycle: { probes: [{ name: 'up', process: { name: 'x' } }] } },
      [/^probe up needs the application's processes/],
    ],
    [
      'nothing, where they are shared',
      { ...at('share-process-namespace', 'true'), lifecycle: { probes: [{ name: 'up', process: { name: 'x' } }] } },
      [],
    ],
    ['tools of the application', {}, [/^action backup runs backup in the sidecar's own image/]],
    [
      'an unknown user',
      { ...quiet, ...at('image-of', 'postgres') },
      [/^the sidecar runs as the user that the image of postgres names/],
    ],
    [
      'a class that is lost',
      { ...quiet, main: { resources: whole } },
      [/^the pod is no longer of the class Guaranteed/],
    ],
    [
      'nothing, where the class is kept',
      {
        ...quiet,
        main: { resources: whole },
        annotations: { 'shipmate.dev/requests': 'cpu=1,memory=1Gi', 'shipmate.dev/limits': 'cpu=1000m,memory=1024Mi' },
      },
      [],
    ],
    ["the node's network", { ...quiet, spec: { hostNetwork: true } }, [/^the pod uses the network of its node/]],
    ['a plain container', { ...quiet, settings: { nativeSidecars: false } }, [/^the sidecar is a plain container/]],
  ])('%s', (_, given, expected) => {
    expect(made(given).warnings).toEqual(expected.map(pattern => expect.stringMatching(pattern)))
  })
})

it('pull secrets are added once, and the image is the one that is asked for', () => {
  const { spec, sidecar } = made({
    ...at('image', 'mine:1'),
    spec: { imagePullSecrets: [{ name: 'theirs' }] },
    settings: { pullSecrets: ['theirs', 'ours'] },
  })
  expect(spec?.imagePullSecrets).toEqual([{ name: 'theirs' }, { name: 'ours' }])
  expect(sidecar?.image).toBe('mine:1')
})
