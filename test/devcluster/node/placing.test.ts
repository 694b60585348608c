import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { V1Node, V1Pod } from '@kubernetes/client-node'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Snapshot } from '../../../controller/kube/kind.ts'
import { placePod } from '../../../devcluster/controllers/placing.ts'
import { commandOf, imageOf, readImages } from '../../../devcluster/node/images.ts'

const ready = { conditions: [{ type: 'Ready', status: 'True' }] }
const node = (name: string, labels: object = {}, spec: object = {}, status: object = ready) =>
  ({
    metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } },
    spec,
    status,
  }) as unknown as Snapshot<V1Node>
const pod = (spec: object = {}, labels: object = { app: 'a' }) =>
  ({ metadata: { name: 'p', namespace: 'n', labels }, spec: { containers: [], ...spec } }) as unknown as Snapshot<V1Pod>
const on = (nodeName: string, more: object = {}) => pod({ nodeName, ...more })
const field = (name: string) => ({
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] }],
    },
  },
})
const apart = {
  podAntiAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: [
      { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'a' } } },
    ],
  },
}

describe('a pod', () => {
  const cases: [string, Snapshot<V1Pod>, Snapshot<V1Node>[], Snapshot<V1Pod>[], object][] = [
    ['goes where the fewest are', pod(), [node('a'), node('b')], [on('a')], { node: 'b' }],
    [
      'goes where it selects',
      pod({ nodeSelector: { disk: 'ssd' } }),
      [node('a'), node('b', { disk: 'ssd' })],
      [],
      { node: 'b' },
    ],
    [
      'goes to the node of its DaemonSet',
      pod({ affinity: field('b') }),
      [node('a'), node('b')],
      [on('b')],
      { node: 'b' },
    ],
    [
      'keeps apart from its like',
      pod({ affinity: apart }),
      [node('a'), node('b')],
      [on('a'), on('b', { affinity: {} })],
      { why: "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules." },
    ],
    [
      'heeds who keeps apart',
      pod(),
      [node('a'), node('b')],
      [on('a', { affinity: apart }), on('b'), on('b')].slice(0, 1),
      { node: 'b' },
    ],
    [
      'does not go where it is not wanted',
      pod(),
      [node('a', {}, { taints: [{ key: 'k', effect: 'NoSchedule' }] }), node('b', {}, { unschedulable: true })],
      [],
      { why: '0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable.' },
    ],
    [
      'goes where it tolerates',
      pod({ tolerations: [{ key: 'k', operator: 'Exists' }] }),
      [node('a', {}, { taints: [{ key: 'k', effect: 'NoSchedule' }] })],
      [],
      { node: 'a' },
    ],
    ['waits for nodes', pod(), [], [], { why: 'no nodes available to schedule pods' }],
    [
      'waits for one that is ready',
      pod(),
      [node('a', {}, {}, {})],
      [],
      { why: '0/1 nodes are available: 1 node(s) were not ready.' },
    ],
  ]
  it.each(cases)('%s', (_what, one, nodes, placed, result) => {
    expect(placePod(one, nodes, placed)).toEqual(result)
  })
})

it('finds local images in a file, and what a container runs', () => {
  const folder = mkdtempSync(join(tmpdir(), 'shipmate-images-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'images.yaml')
  writeFileSync(file, 'images:\n  example.com:5000/db: {command: [db], args: [--port, $(PORT)], cwd: app}\n')
  const images = readImages(file)
  const image = imageOf(images, 'example.com:5000/db:1.2')
  expect(image?.cwd).toBe(join(folder, 'app'))
  expect(imageOf(images, 'example.com:5000/other')).toBeUndefined()
  const env = { PORT: '1' }
  expect(commandOf({ name: 'm' }, image, env)).toEqual(['db', '--port', '1'])
  expect(commandOf({ name: 'm', args: ['x'] }, image, env)).toEqual(['db', 'x'])
  expect(commandOf({ name: 'm', command: ['sh'] }, image, env)).toEqual(['sh'])
  expect(commandOf({ name: 'm' }, undefined, env)).toBeUndefined()
  writeFileSync(file, 'images: {x: {comand: [y]}}')
  expect(() => readImages(file)).toThrow('comand')
})
