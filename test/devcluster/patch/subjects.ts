/**
 * What the random writes are about: kinds, and parts of objects to write. Built-in ones and a custom one with every kind of list and map.
 */
import { typeNamed } from '../../../devcluster/api/resources/link.ts'
import type { Schema } from '../../../devcluster/api/schema/schema.ts'
import type { Obj } from '../../../devcluster/api/types.ts'

/** A number below n. */
export type Dice = (n: number) => number

type Part = Record<string, unknown>

export interface Subject {
  readonly apiVersion: string
  readonly kind: string
  /** Below the namespace. */
  readonly path: (namespace: string) => string
  readonly schema: Schema
  readonly hasStatus: boolean
  /** A whole object that the server takes, without its metadata. */
  whole(dice: Dice): Part
  /** A part of one, to be applied or merged; it may be wrong. */
  part(dice: Dice): Part
  /** A strategic merge patch, of built-in kinds. */
  strategic?(dice: Dice): Part
  /** A status to be written. */
  status?(dice: Dice): Part
  /** What the server sets after it has looked at who manages what. */
  readonly later?: readonly (readonly string[])[]
}

const one = <T>(dice: Dice, ...of: T[]): T => of[dice(of.length)] as T
const some = <T>(dice: Dice, ...of: T[]): T[] => of.filter(() => dice(2) === 0)
const pairs = (dice: Dice): Record<string, string> =>
  Object.fromEntries(some(dice, 'a', 'b', 'c').map(name => [name, one(dice, '1', '2')]))
/** With one of the names, by chance. */
const maybe = (dice: Dice, fields: Record<string, () => unknown>): Part =>
  Object.fromEntries(
    Object.entries(fields)
      .filter(() => dice(3) > 0)
      .map(([name, make]) => [name, make()]),
  )

function shuffled<T>(dice: Dice, items: T[]): T[] {
  const out = [...items]
  for (let i = out.length - 1; i > 0; i--) {
    const j = dice(i + 1)
    ;[out[i], out[j]] = [out[j] as T, out[i] as T]
  }
  return out
}

const env = (dice: Dice) =>
  shuffled(
    dice,
    some(dice, 'A', 'B', 'C').map(name => ({ name, value: one(dice, '1', '2', '3') })),
  )
const ports = (dice: Dice) =>
  shuffled(
    dice,
    some(dice, 80, 81).map(containerPort => ({
      containerPort,
      ...(dice(2) === 0 ? { protocol: one(dice, 'TCP', 'UDP') } : {}),
      ...(dice(3) === 0 ? { name: `p${containerPort}` } : {}),
    })),
  )
const container = (dice: Dice, name: string): Part => ({
  name,
  ...maybe(dice, {
    image: () => one(dice, 'i:1', 'i:2'),
    env: () => env(dice),
    ports: () => ports(dice),
    args: () => some(dice, 'x', 'y', 'z'),
    resources: () => one<Part>(dice, {}, { requests: { cpu: '1' } }, { requests: { cpu: '2', memory: '1Gi' } }),
    securityContext: () => one<unknown>(dice, {}, null, { runAsUser: 1 }),
  }),
})
const containers = (dice: Dice) =>
  shuffled(
    dice,
    some(dice, 'c', 'd', 'e').map(name => container(dice, name)),
  )
const template = (dice: Dice): Part => ({
  metadata: { labels: { app: 'x', ...pairs(dice) } },
  spec: maybe(dice, {
    containers: () => containers(dice),
    hostNetwork: () => false,
    nodeSelector: () => pairs(dice),
    tolerations: () => some(dice, { key: 'a' }, { key: 'b', operator: 'Exists' }),
    volumes: () => some(dice, { name: 'v', emptyDir: {} }, { name: 'w', configMap: { name: 'x' } }),
    imagePullSecrets: () => some(dice, { name: 'a' }, { name: 'b' }),
  }),
})

const deployment: Subject = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  path: namespace => `/apis/apps/v1/namespaces/${namespace}/deployments`,
  schema: typeNamed('io.k8s.api.apps.v1.Deployment'),
  hasStatus: true,
  whole: dice => ({
    spec: {
      selector: { matchLabels: { app: 'x' } },
      replicas: dice(3),
      template: {
        metadata: { labels: { app: 'x' } },
        spec: { containers: [{ ...container(dice, 'c'), image: 'i:0' }] },
      },
    },
  }),
  part: dice => ({
    spec: maybe(dice, {
      replicas: () => one(dice, 1, 2, 3, null),
      paused: () => one(dice, true, false),
      selector: () => ({ matchLabels: { app: 'x' } }),
      strategy: () => one<Part>(dice, { type: 'Recreate' }, {}, { rollingUpdate: { maxSurge: 1 } }),
      template: () => template(dice),
    }),
  }),
  strategic: dice => ({
    spec: {
      ...one<Part>(dice, {}, { strategy: { $retainKeys: ['type'], type: 'Recreate' } }, { replicas: null }),
      template: {
        metadata: one<Part>(dice, {}, { labels: { a: null } }, { labels: { $patch: 'replace', app: 'x', q: '1' } }),
        spec: {
          containers: [
            ...some<Part>(dice, { name: 'd', $patch: 'delete' }, { name: 'e', image: 'i:9', env: env(dice) }),
            {
              name: 'c',
              ...one<Part>(
                dice,
                {
                  env: [...some<Part>(dice, { name: 'A', $patch: 'delete' }), ...env(dice).filter(e => e.name !== 'A')],
                },
                { env: [{ $patch: 'replace' }, ...env(dice)] },
                { args: null },
                { ports: ports(dice) },
                { '$setElementOrder/env': [{ name: 'C' }, { name: 'A' }, { name: 'B' }] },
                {
                  '$setElementOrder/env': [{ name: 'B' }, { name: 'A' }],
                  env: some<Part>(dice, { name: 'B', value: '8' }, { name: 'A', value: '9' }),
                },
              ),
            },
          ],
          ...one<Part>(
            dice,
            {},
            {
              volumes: [
                { name: 'v', $patch: 'delete' },
                { name: 'w', emptyDir: {} },
              ],
            },
            { '$setElementOrder/containers': [{ name: 'e' }, { name: 'c' }] },
          ),
        },
      },
    },
  }),
  status: dice => ({
    replicas: dice(5),
    conditions: some(dice, 'X', 'Y').map(type => ({ type, status: one(dice, 'True', 'False') })),
  }),
}

const service: Subject = {
  apiVersion: 'v1',
  kind: 'Service',
  path: namespace => `/api/v1/namespaces/${namespace}/services`,
  schema: typeNamed('io.k8s.api.core.v1.Service'),
  hasStatus: true,
  later: [['clusterIPs'], ['ipFamilies'], ['ipFamilyPolicy']],
  whole: dice => ({ spec: { clusterIP: 'None', ports: servicePorts(dice), selector: pairs(dice) } }),
  part: dice => ({
    spec: {
      // Or one would be chosen by chance.
      clusterIP: 'None',
      ...maybe(dice, {
        selector: () => pairs(dice),
        ports: () => servicePorts(dice),
        publishNotReadyAddresses: () => one(dice, true, false),
      }),
    },
  }),
  strategic: dice => ({
    spec: { ports: [...some<Part>(dice, { port: 80, $patch: 'delete' }), ...servicePorts(dice)] },
  }),
}
const servicePorts = (dice: Dice) =>
  shuffled(
    dice,
    some(dice, 80, 81, 82).map(port => ({
      port,
      name: `p${port}`,
      ...(dice(2) === 0 ? { protocol: one(dice, 'TCP', 'UDP') } : {}),
      ...(dice(3) === 0 ? { targetPort: one<unknown>(dice, 8080, 'http') } : {}),
    })),
  )

const configMap: Subject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  path: namespace => `/api/v1/namespaces/${namespace}/configmaps`,
  schema: typeNamed('io.k8s.api.core.v1.ConfigMap'),
  hasStatus: false,
  whole: dice => ({ data: pairs(dice) }),
  part: dice =>
    maybe(dice, { data: () => one<unknown>(dice, pairs(dice), {}, null, { a: 7 }), binaryData: () => ({ z: 'aGk=' }) }),
  strategic: dice =>
    one<Part>(
      dice,
      { data: { a: null, b: '3' } },
      { data: { $patch: 'replace', c: '1' } },
      { data: { $patch: 'delete' } },
      { data: { $patch: 'what' } },
    ),
}

const text = { type: 'string' }
const count = { type: 'integer' }
/** Every kind of list and map that a custom kind may have. */
const gadgetSchema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        name: text,
        count,
        either: { 'x-kubernetes-int-or-string': true },
        nothing: { type: 'string', nullable: true },
        tags: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
        numbers: { type: 'array', items: count, 'x-kubernetes-list-type': 'set' },
        steps: { type: 'array', items: text },
        ports: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['port', 'protocol'],
          items: {
            type: 'object',
            required: ['port'],
            properties: {
              port: count,
              protocol: { type: 'string', default: 'TCP' },
              note: text,
              deep: { type: 'object', properties: { a: text, b: text } },
            },
          },
        },
        labels: { type: 'object', additionalProperties: text },
        whole: { type: 'object', 'x-kubernetes-map-type': 'atomic', additionalProperties: text },
        free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        embedded: {
          type: 'object',
          'x-kubernetes-preserve-unknown-fields': true,
          'x-kubernetes-embedded-resource': true,
        },
        inner: { type: 'object', properties: { a: text, b: { type: 'object', properties: { c: text, d: count } } } },
      },
    },
    status: { type: 'object', properties: { phase: text, seen: count } },
  },
} as Schema

const gadgetGroup = 'patch.test.example.com'

export const gadgetDefinition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `gadgets.${gadgetGroup}` },
  spec: {
    group: gadgetGroup,
    scope: 'Namespaced',
    names: { kind: 'Gadget', plural: 'gadgets' },
    versions: ['v1', 'v2'].map(name => ({
      name,
      served: true,
      storage: name === 'v1',
      subresources: { status: {} },
      schema: { openAPIV3Schema: gadgetSchema },
    })),
  },
}

const gadgetSpec = (dice: Dice): Part =>
  maybe(dice, {
    name: () => one<unknown>(dice, 'x', 'y', 'z', null),
    count: () => dice(4),
    either: () => one<unknown>(dice, 1, '1'),
    nothing: () => one<unknown>(dice, null, 'x'),
    tags: () => shuffled(dice, some(dice, 'a', 'b', '<&>')),
    numbers: () => shuffled(dice, some(dice, 10, 9, 100)),
    steps: () => shuffled(dice, some(dice, 'a', 'b', 'c')),
    ports: () =>
      shuffled(
        dice,
        some(dice, 1, 2, 10).map(port => ({
          port,
          ...maybe(dice, {
            protocol: () => one(dice, 'TCP', 'UDP'),
            note: () => one(dice, 'x', 'y'),
            deep: () => pairs(dice),
          }),
        })),
      ).map(port => {
        const deep = (port as { deep?: Part }).deep
        if (deep) delete deep['c']
        return port
      }),
    labels: () => one<unknown>(dice, pairs(dice), pairs(dice), {}),
    whole: () => pairs(dice),
    free: () => one<unknown>(dice, { x: pairs(dice), y: [1, 2] }, { x: 1 }, { y: { z: null } }, {}),
    embedded: () => ({
      apiVersion: 'v1',
      kind: 'Thing',
      metadata: { name: 'a', labels: pairs(dice) },
      more: pairs(dice),
    }),
    inner: () => one<unknown>(dice, { a: 'x' }, { b: { c: 'x' } }, { b: { d: dice(3) }, a: 'y' }, { b: {} }, {}),
  })

const gadget = (version: string): Subject => ({
  apiVersion: `${gadgetGroup}/${version}`,
  kind: 'Gadget',
  path: namespace => `/apis/${gadgetGroup}/${version}/namespaces/${namespace}/gadgets`,
  schema: gadgetSchema,
  hasStatus: true,
  whole: dice => ({ spec: gadgetSpec(dice) }),
  part: dice => ({
    spec: {
      ...gadgetSpec(dice),
      ...one<Part>(
        dice,
        {},
        {},
        {},
        {},
        {},
        {},
        { unknown: 1 },
        { count: 'x' },
        { tags: ['a', 'a'] },
        { name: 7 },
        { inner: 'x' },
        { ports: [{ note: 'x' }] },
        { tags: 'x' },
      ),
    },
    ...(dice(6) === 0 ? { status: { phase: 'x' } } : {}),
  }),
  status: dice => maybe(dice, { phase: () => one(dice, 'a', 'b'), seen: () => dice(3) }),
})

export const gadgets = { v1: gadget('v1'), v2: gadget('v2') }
export const subjects: readonly Subject[] = [deployment, service, configMap, gadgets.v1]

/** Labels, annotations, finalizers and owners, by chance. */
export const meta = (dice: Dice): Part =>
  maybe(dice, {
    labels: () => pairs(dice),
    annotations: () => pairs(dice),
    ...(dice(3) === 0
      ? {
          finalizers: () => shuffled(dice, some(dice, 'x.example.com/a', 'x.example.com/b')),
          ownerReferences: () =>
            shuffled(
              dice,
              some(dice, '1', '2').map(uid => ({ apiVersion: 'v1', kind: 'Thing', name: one(dice, 'a', 'b'), uid })),
            ),
        }
      : {}),
  })

export const objectOf = ({ apiVersion, kind }: Subject, name: string, metadata: Part, rest: Part): Obj =>
  ({ apiVersion, kind, metadata: { name, ...metadata }, ...rest }) as unknown as Obj
