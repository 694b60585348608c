/**
 * What the random requests are about: kinds, whole objects, parts of them, and what is wrong with some.
 */
import { type Dice, maybe, one, rarely, some } from './dice.ts'
import { container, labels, podSpec } from './pod-parts.ts'

type Part = Record<string, unknown>

export interface Kind {
  readonly apiVersion: string
  readonly kind: string
  readonly resource: string
  /** A whole object without its metadata. Mostly one that the server takes. */
  whole(dice: Dice): Part
  /** A part, to be merged or applied. */
  part(dice: Dice): Part
  /** Of kinds that have one. */
  status?(dice: Dice): Part
  readonly scales?: boolean
  readonly isCustom?: boolean
}

export const pathOf = ({ apiVersion, resource }: Kind, namespace: string) =>
  `/${apiVersion.includes('/') ? 'apis' : 'api'}/${apiVersion}/namespaces/${namespace}/${resource}`

const data = (dice: Dice) =>
  Object.fromEntries(some(dice, 'a', 'b.c', 'd-e', 'f_g').map(key => [key, one(dice, '1', '2', '')]))
const coded = (dice: Dice) =>
  Object.fromEntries(some(dice, 'a', 'b.c', 'd').map(key => [key, one(dice, 'eA==', 'eHk=', '')]))

const configMap: Kind = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  resource: 'configmaps',
  whole: dice =>
    maybe(dice, {
      data: () => data(dice),
      binaryData: () => one(dice, { z: 'eA==' }, {}),
      immutable: () => one(dice, false, false, true),
    }),
  part: dice =>
    maybe(dice, {
      data: () => one<unknown>(dice, data(dice), null, { 'a/b': 'c' }),
      immutable: () => one(dice, true, false, null),
    }),
}

const secret: Kind = {
  apiVersion: 'v1',
  kind: 'Secret',
  resource: 'secrets',
  whole: dice =>
    maybe(dice, {
      data: () => coded(dice),
      stringData: () => data(dice),
      type: () => one(dice, 'Opaque', 'kubernetes.io/tls', 'my/type', 'kubernetes.io/basic-auth'),
      immutable: () => one(dice, false, true),
    }),
  part: dice =>
    maybe(dice, {
      data: () => one<unknown>(dice, coded(dice), null),
      stringData: () => data(dice),
      type: () => one(dice, 'Opaque', 'x'),
    }),
}

const servicePorts = (dice: Dice) =>
  one<unknown>(
    dice,
    [{ port: 80 }],
    [{ port: 80, targetPort: one<unknown>(dice, 8080, 'web', 0), protocol: one(dice, 'TCP', 'UDP') }],
    [
      { port: 80, name: 'a' },
      { port: 81, name: 'b', appProtocol: 'http' },
    ],
    [{ port: 80 }, { port: 81 }],
  )

const service: Kind = {
  apiVersion: 'v1',
  kind: 'Service',
  resource: 'services',
  whole: dice => ({
    spec: {
      ports: servicePorts(dice),
      ...maybe(dice, {
        selector: () => labels(dice),
        type: () => one(dice, 'ClusterIP', 'NodePort', 'LoadBalancer', 'ClusterIP'),
        clusterIP: () => one(dice, 'None', ''),
        sessionAffinity: () => one(dice, 'ClientIP', 'None'),
        publishNotReadyAddresses: () => one(dice, true, false),
        internalTrafficPolicy: () => one(dice, 'Local', 'Cluster'),
      }),
    },
  }),
  part: dice => ({
    spec: maybe(dice, {
      ports: () => servicePorts(dice),
      selector: () => one<unknown>(dice, labels(dice), null),
      type: () => one(dice, 'ClusterIP', 'NodePort'),
      sessionAffinity: () => one(dice, 'ClientIP', 'None'),
      publishNotReadyAddresses: () => one<unknown>(dice, true, false, null),
    }),
  }),
  status: dice => one<Part>(dice, {}, { loadBalancer: { ingress: [{ ip: '1.2.3.4' }] } }),
}

const template = (dice: Dice, restart?: readonly string[]): Part => ({
  metadata: { labels: { app: 'x', ...labels(dice) }, ...maybe(dice, { annotations: () => labels(dice) }) },
  spec: podSpec(dice, restart),
})
const partOfTemplate = (dice: Dice): Part => ({
  template: maybe(dice, {
    metadata: () => ({ labels: { app: 'x', ...labels(dice) }, annotations: labels(dice) }),
    spec: () =>
      maybe(dice, {
        containers: () => [one<Part>(dice, container(dice, 'c'), container(dice, 'e'), { name: 'c', image: 'j:1' })],
        terminationGracePeriodSeconds: () => one(dice, 1, 30),
        nodeSelector: () => one<unknown>(dice, null, labels(dice)),
      }),
  }),
})
const selector = { matchLabels: { app: 'x' } }

const workloadStatus = (dice: Dice): Part =>
  maybe(dice, {
    replicas: () => dice(3),
    readyReplicas: () => dice(3),
    observedGeneration: () => dice(4),
  })

const deployment: Kind = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  resource: 'deployments',
  scales: true,
  whole: dice => ({
    spec: {
      selector,
      template: template(dice),
      ...maybe(dice, {
        replicas: () => one(dice, 0, 1, 3),
        paused: () => one(dice, true, false),
        minReadySeconds: () => one(dice, 0, 5),
        revisionHistoryLimit: () => one(dice, 0, 2),
        progressDeadlineSeconds: () => one(dice, 600, 30),
        strategy: () =>
          one<Part>(
            dice,
            { type: 'Recreate' },
            {},
            { rollingUpdate: { maxSurge: 1 } },
            { rollingUpdate: { maxUnavailable: '10%', maxSurge: 0 } },
          ),
      }),
    },
  }),
  part: dice => ({
    spec: {
      ...maybe(dice, {
        replicas: () => one<unknown>(dice, 0, 2, null, -1),
        paused: () => one<unknown>(dice, true, false, null),
        strategy: () => one<unknown>(dice, { type: 'Recreate', rollingUpdate: null }, { type: 'RollingUpdate' }, null),
        selector: () => one<unknown>(dice, selector, { matchLabels: { app: 'y' } }),
      }),
      ...partOfTemplate(dice),
    },
  }),
  status: dice => ({
    ...workloadStatus(dice),
    ...maybe(dice, {
      updatedReplicas: () => 1,
      conditions: () => [{ type: 'Available', status: 'True', reason: 'R', message: 'm' }],
    }),
  }),
}

const statefulSet: Kind = {
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  resource: 'statefulsets',
  scales: true,
  whole: dice => ({
    spec: {
      selector,
      serviceName: one(dice, 's', ''),
      template: template(dice),
      ...maybe(dice, {
        replicas: () => one(dice, 0, 1, 3),
        podManagementPolicy: () => one(dice, 'Parallel', 'OrderedReady'),
        updateStrategy: () =>
          one<Part>(dice, { type: 'OnDelete' }, { rollingUpdate: { partition: 1 } }, { type: 'RollingUpdate' }),
        minReadySeconds: () => one(dice, 0, 5),
        ordinals: () => ({ start: one(dice, 0, 2) }),
        persistentVolumeClaimRetentionPolicy: () => one<Part>(dice, { whenDeleted: 'Delete' }, {}),
        volumeClaimTemplates: () => [
          {
            metadata: { name: 'data' },
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: one(dice, '1Gi', '1024Mi') } } },
          },
        ],
      }),
    },
  }),
  part: dice => ({
    spec: {
      ...maybe(dice, {
        replicas: () => one<unknown>(dice, 0, 2, null),
        serviceName: () => one(dice, 's', 't'),
        updateStrategy: () => one<unknown>(dice, { rollingUpdate: { partition: 2 } }, null),
      }),
      ...partOfTemplate(dice),
    },
  }),
  status: dice => ({
    replicas: dice(3),
    ...workloadStatus(dice),
    ...maybe(dice, { currentRevision: () => 'r', collisionCount: () => 0 }),
  }),
}

const daemonSet: Kind = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  resource: 'daemonsets',
  whole: dice => ({
    spec: {
      selector,
      template: template(dice),
      ...maybe(dice, {
        updateStrategy: () => one<Part>(dice, { type: 'OnDelete' }, {}, { rollingUpdate: { maxUnavailable: 2 } }),
        minReadySeconds: () => one(dice, 0, 5),
      }),
    },
  }),
  part: dice => ({
    spec: { ...maybe(dice, { revisionHistoryLimit: () => one<unknown>(dice, 1, null) }), ...partOfTemplate(dice) },
  }),
  status: dice => ({
    currentNumberScheduled: 1,
    numberMisscheduled: 0,
    desiredNumberScheduled: dice(2),
    numberReady: 0,
    ...maybe(dice, { observedGeneration: () => 1 }),
  }),
}

const replicaSet: Kind = {
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  resource: 'replicasets',
  scales: true,
  whole: dice => ({
    spec: {
      selector,
      template: template(dice),
      ...maybe(dice, { replicas: () => dice(3), minReadySeconds: () => dice(2) }),
    },
  }),
  part: dice => ({
    spec: { ...maybe(dice, { replicas: () => one<unknown>(dice, 0, 2, null) }), ...partOfTemplate(dice) },
  }),
  status: dice => ({ replicas: dice(3), ...workloadStatus(dice) }),
}

/** Servers of tests run without the plugin that would add it. */
const account = { serviceAccountName: 'default', automountServiceAccountToken: false }

const pod: Kind = {
  apiVersion: 'v1',
  kind: 'Pod',
  resource: 'pods',
  whole: dice => ({ spec: { ...podSpec(dice, ['Always', 'OnFailure', 'Never']), ...account } }),
  part: dice => ({
    spec: {
      ...account,
      ...maybe(dice, {
        containers: () => [{ name: 'c', image: one(dice, 'j:1', 'j:2') }],
        activeDeadlineSeconds: () => one<unknown>(dice, 5, 10, null, 0),
        tolerations: () => [{ key: 'new', operator: 'Exists' }],
        terminationGracePeriodSeconds: () => 3,
        nodeName: () => 'n',
      }),
    },
  }),
  status: dice =>
    maybe(dice, {
      phase: () => one(dice, 'Running', 'Pending'),
      podIP: () => '10.244.0.5',
      conditions: () => [{ type: 'Ready', status: one(dice, 'True', 'False') }],
      containerStatuses: () => [
        { name: 'c', ready: true, restartCount: 0, image: 'i', imageID: 'x', state: { running: {} } },
      ],
      message: () => one(dice, 'm', ''),
    }),
}

const job: Kind = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  resource: 'jobs',
  whole: dice => ({
    spec: {
      template: { ...template(dice, ['Never', 'OnFailure']), ...(dice(2) === 0 ? { metadata: undefined } : {}) },
      ...maybe(dice, {
        backoffLimit: () => one(dice, 0, 3),
        completions: () => one(dice, 1, 2, 0),
        parallelism: () => one(dice, 0, 2),
        suspend: () => one(dice, true, false),
        ttlSecondsAfterFinished: () => one(dice, 0, 10),
        activeDeadlineSeconds: () => 60,
        completionMode: () => one(dice, 'NonIndexed', 'Indexed'),
      }),
    },
  }),
  part: dice => ({
    spec: maybe(dice, {
      parallelism: () => one<unknown>(dice, 1, 3, null),
      suspend: () => one<unknown>(dice, true, false, null),
      backoffLimit: () => one<unknown>(dice, 1, null),
      completions: () => one(dice, 1, 4),
      template: () => partOfTemplate(dice).template,
    }),
  }),
  status: dice =>
    maybe(dice, { active: () => dice(2), succeeded: () => dice(2), startTime: () => '2026-01-01T00:00:00Z' }),
}

const budget: Kind = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  resource: 'poddisruptionbudgets',
  whole: dice => ({
    spec: {
      ...one<Part>(
        dice,
        { minAvailable: one<unknown>(dice, 0, 1, '50%') },
        { maxUnavailable: one<unknown>(dice, 0, 1, '10%') },
        {},
        { minAvailable: 1, maxUnavailable: 1 },
      ),
      ...maybe(dice, {
        selector: () => one<Part>(dice, selector, {}),
        unhealthyPodEvictionPolicy: () => one(dice, 'AlwaysAllow', 'IfHealthyBudget'),
      }),
    },
  }),
  part: dice => ({
    spec: maybe(dice, {
      minAvailable: () => one<unknown>(dice, 2, null, '200%'),
      maxUnavailable: () => one<unknown>(dice, 2, null),
      selector: () => ({ matchLabels: labels(dice) }),
    }),
  }),
  status: dice => ({
    disruptionsAllowed: dice(2),
    currentHealthy: 0,
    desiredHealthy: 1,
    expectedPods: 1,
    ...maybe(dice, {
      observedGeneration: () => 1,
      conditions: () => [
        {
          type: 'DisruptionAllowed',
          status: 'True',
          reason: 'R',
          message: '',
          lastTransitionTime: '2026-01-01T00:00:00Z',
        },
      ],
    }),
  }),
}

const rule = (dice: Dice): Part =>
  one<Part>(
    dice,
    { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] },
    { apiGroups: ['apps'], resources: ['deployments'], verbs: ['*'], resourceNames: ['a'] },
    { apiGroups: [''], resources: ['pods/log'], verbs: [] },
    { verbs: ['get'], resources: ['x'] },
  )

const role: Kind = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'Role',
  resource: 'roles',
  whole: dice => ({ rules: one<unknown>(dice, [rule(dice)], [rule(dice), rule(dice)], [], undefined) }),
  part: dice => ({ rules: one<unknown>(dice, [rule(dice)], null) }),
}

const roleBinding: Kind = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  resource: 'rolebindings',
  whole: dice => ({
    roleRef: {
      kind: one(dice, 'Role', 'ClusterRole', 'Role', 'X'),
      name: one(dice, 'r', 'r', ''),
      ...maybe(dice, { apiGroup: () => 'rbac.authorization.k8s.io' }),
    },
    subjects: some<Part>(
      dice,
      { kind: 'User', name: 'u' },
      { kind: 'ServiceAccount', name: 'a', namespace: 'n' },
      { kind: 'ServiceAccount', name: 'b' },
      { kind: 'Group', name: 'g', apiGroup: 'rbac.authorization.k8s.io' },
    ),
  }),
  part: dice =>
    maybe(dice, {
      subjects: () => one<unknown>(dice, [{ kind: 'User', name: 'v' }], null),
      roleRef: () => ({ kind: 'Role', name: 'other' }),
    }),
}

const serviceAccount: Kind = {
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  resource: 'serviceaccounts',
  whole: dice =>
    maybe(dice, {
      automountServiceAccountToken: () => one(dice, true, false),
      imagePullSecrets: () => [{ name: 'x' }],
    }),
  part: dice =>
    maybe(dice, {
      automountServiceAccountToken: () => one<unknown>(dice, true, false, null),
      secrets: () => [{ name: 's' }],
    }),
}

const claim: Kind = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  resource: 'persistentvolumeclaims',
  whole: dice => ({
    spec: {
      accessModes: one<unknown>(dice, ['ReadWriteOnce'], ['ReadWriteOnce', 'ReadOnlyMany'], []),
      resources: one<Part>(
        dice,
        { requests: { storage: one(dice, '1Gi', '1024Mi', '0.5Gi') } },
        { requests: { storage: '1Gi' } },
        {},
      ),
      ...maybe(dice, { storageClassName: () => one(dice, '', 'fast'), volumeMode: () => 'Block' }),
    },
  }),
  part: dice => ({
    spec: maybe(dice, { resources: () => ({ requests: { storage: '2Gi' } }), accessModes: () => ['ReadWriteMany'] }),
  }),
  status: dice =>
    maybe(dice, {
      phase: () => one(dice, 'Bound', 'Pending'),
      capacity: () => ({ storage: '1024Mi' }),
      accessModes: () => ['ReadWriteOnce'],
    }),
}

const lease: Kind = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  resource: 'leases',
  whole: dice => ({
    spec: maybe(dice, {
      holderIdentity: () => one(dice, 'me', ''),
      leaseDurationSeconds: () => one(dice, 15, 0),
      leaseTransitions: () => one(dice, 0, 1),
      renewTime: () => '2026-01-01T00:00:00.123456Z',
    }),
  }),
  part: dice => ({
    spec: maybe(dice, { holderIdentity: () => one<unknown>(dice, 'you', null), leaseTransitions: () => 2 }),
  }),
}

export const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'gears.conformance.example' },
  spec: {
    group: 'conformance.example',
    scope: 'Namespaced',
    names: { plural: 'gears', kind: 'Gear', shortNames: ['gr'] },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: {
            specReplicasPath: '.spec.replicas',
            statusReplicasPath: '.status.replicas',
            labelSelectorPath: '.status.selector',
          },
        },
        additionalPrinterColumns: [
          { name: 'Teeth', type: 'integer', jsonPath: '.spec.teeth' },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
        ],
        selectableFields: [{ jsonPath: '.spec.colour' }],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            required: ['spec'],
            properties: {
              spec: {
                type: 'object',
                required: ['teeth'],
                properties: {
                  teeth: { type: 'integer', minimum: 3, maximum: 100 },
                  replicas: { type: 'integer', default: 1 },
                  colour: { type: 'string', enum: ['red', 'green'], default: 'red' },
                  name: { type: 'string', minLength: 2, maxLength: 5, pattern: '^[a-z]+$' },
                  size: {
                    type: 'object',
                    default: {},
                    properties: { width: { type: 'number', default: 1.5 }, unit: { type: 'string', nullable: true } },
                  },
                  parts: {
                    type: 'array',
                    maxItems: 3,
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['id'],
                    items: {
                      type: 'object',
                      required: ['id'],
                      properties: { id: { type: 'string' }, weight: { type: 'integer', default: 7 } },
                    },
                  },
                  tags: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
                  extra: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                  port: { 'x-kubernetes-int-or-string': true },
                  notes: { type: 'object', additionalProperties: { type: 'string' } },
                },
                'x-kubernetes-validations': [
                  { rule: "self.colour != 'green' || self.teeth > 10", message: 'a green gear has more than 10 teeth' },
                  { rule: 'self.teeth >= oldSelf.teeth', message: 'teeth do not grow back' },
                ],
              },
              status: {
                type: 'object',
                properties: { replicas: { type: 'integer' }, selector: { type: 'string' }, phase: { type: 'string' } },
              },
            },
          },
        },
      },
    ],
  },
}

const gear: Kind = {
  apiVersion: 'conformance.example/v1',
  kind: 'Gear',
  resource: 'gears',
  isCustom: true,
  scales: true,
  whole: dice => ({
    ...(rarely(dice, 10) ? { unknown: 1 } : {}),
    spec: {
      ...(rarely(dice, 8) ? {} : { teeth: one<unknown>(dice, 5, 12, 20, 1, 'x') }),
      ...gearFields(dice),
    },
  }),
  part: dice => ({
    spec: { ...maybe(dice, { teeth: () => one<unknown>(dice, 11, 30, null, 3) }), ...gearFields(dice) },
  }),
  status: dice =>
    maybe(dice, {
      replicas: () => dice(3),
      selector: () => 'a=b',
      phase: () => one<unknown>(dice, 'x', null, 3),
      other: () => 1,
    }),
}

const gearFields = (dice: Dice): Part =>
  maybe(dice, {
    colour: () => one<unknown>(dice, 'green', 'red', 'blue', null),
    replicas: () => one<unknown>(dice, 0, 2, null),
    name: () => one(dice, 'abc', 'a', 'ABC', 'abcdefg'),
    size: () => one<unknown>(dice, {}, null, { width: 2 }, { unit: null }, { width: 'x' }, { height: 1 }),
    parts: () =>
      one<unknown>(
        dice,
        [{ id: 'a' }],
        [{ id: 'a', weight: 1 }, { id: 'b' }],
        [],
        [{ id: 'a' }, { id: 'a' }],
        [{ weight: 1 }],
        null,
      ),
    tags: () => one<unknown>(dice, ['a', 'b'], ['a', 'a'], []),
    extra: () => one<unknown>(dice, { any: { thing: [1, null] } }, {}),
    port: () => one<unknown>(dice, 80, 'http', true),
    notes: () => one<unknown>(dice, { a: 'b' }, { a: 1 }, {}),
  })

export const kinds: readonly Kind[] = [
  configMap,
  secret,
  service,
  deployment,
  statefulSet,
  daemonSet,
  replicaSet,
  pod,
  job,
  budget,
  role,
  roleBinding,
  serviceAccount,
  claim,
  lease,
  gear,
]
