/**
 * Where the demo plays: an embedded cluster with Shipmate's kinds and its controller, which is a Deployment under an account of its own that may do what its
 * generated rules say, and no more.
 *
 * Guarantee: all of it is gone after `stop`, and with this process however that ends.
 */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { Lifecycle, Operation, OperationSchedule, StatefulApp } from '../../controller/app/kinds.ts'
import { shipmateRbac } from '../../controller/app/rbac.ts'
import type { Applied, Kind, Ref } from '../../controller/kube/kind.ts'
import * as kinds from '../../controller/kube/kinds.ts'
import { CustomResourceDefinition, Deployment, Namespace, Pod } from '../../controller/kube/kinds.ts'
import { rbacManifests } from '../../controller/toolkit/index.ts'
import { readinessOf } from '../../controller/toolkit/readiness.ts'
import { type RunningCluster, startCluster } from '../../devcluster/cluster.ts'
import type { Image } from '../../devcluster/node/images.ts'
import type { Nodes } from '../../devcluster/node/nodes.ts'
import { Failure } from '../ending.ts'
import { packageFolder } from '../package.ts'
import { script, unpack } from './software.ts'
import { until } from './until.ts'

export const namespace = 'default'
const system = 'shipmate-system'
const controller = 'shipmate-controller'

type Loose = Applied & { readonly metadata: { readonly name: string; readonly namespace?: string } }

/** Where an object is. */
export interface Placed {
  readonly kind: Kind
  readonly ref: Ref
}

export interface Stage {
  readonly cluster: RunningCluster
  readonly nodes: Nodes
  /** The path of one for kubectl. */
  readonly kubeconfig: string
  /** Adds what runs in an image's stead. */
  addImage(name: string, image: Image): void
  /** Shipmate's kinds, and its controller, which is ready afterwards. */
  installShipmate(): Promise<void>
  /** Adds a program, as lines for a shell, to containers of an image that has nothing else. */
  addProgram(program: string, text: string, image: string): void
  /** Applies the objects of a file of this package. */
  apply(path: string): Promise<Placed[]>
  /** The last lines that the containers of pods with a label have written. */
  logs(where: string, labels: Readonly<Record<string, string>>, lines?: number): Promise<string[]>
  stop(): Promise<void>
}

export async function openStage({ nodes: count = 1 }: { readonly nodes?: number } = {}): Promise<Stage> {
  const images: Record<string, Image> = {}
  const cluster = await startCluster({ nodes: count, images })
  const { nodes, listening, client } = cluster
  if (!nodes || !listening) throw new Failure('the embedded cluster has no node')
  const kubeconfig = join(nodes.folder, 'kubeconfig')
  try {
    Object.assign(images, unpack(join(nodes.folder, 'software'), nodes.isolation))
    await listening.writeKubeconfig(kubeconfig)
  } catch (error) {
    await cluster.stop()
    throw error
  }

  async function apply(path: string): Promise<Placed[]> {
    const placed: Placed[] = []
    for (const document of parseAllDocuments(readFileSync(join(packageFolder, path), 'utf8'))) {
      const object = document.toJS() as Loose
      const kind = kindOf(object, await client.list(CustomResourceDefinition))
      const place = kind.namespaced ? { namespace, ...object.metadata } : object.metadata
      await client.apply(kind, { ...object, metadata: place }, { fieldValidation: 'Strict' })
      placed.push({ kind, ref: place })
    }
    return placed
  }

  return {
    cluster,
    nodes,
    kubeconfig,
    apply,
    addImage(name, image) {
      images[name] = image
    },
    addProgram(program, text, image) {
      const bin = join(nodes.folder, 'software', image)
      mkdirSync(bin, { recursive: true })
      script(join(bin, program), text)
      const env = { PATH: [bin, process.env['PATH']].join(delimiter) }
      images[image] = { command: [program], env }
    },
    async installShipmate() {
      for (const file of readdirSync(join(packageFolder, 'deploy/crds'))) await apply(join('deploy/crds', file))
      await client.apply(Namespace, { metadata: { name: system } })
      const account = rbacManifests(shipmateRbac(controller), { name: controller, namespace: system })
      for (const object of account as Loose[]) await client.apply(kindOf(object, []), object)
      await client.apply(Deployment, controllerDeployment())
      await until('the controller to be ready', async () => {
        return readinessOf(Deployment, await client.find(Deployment, { name: controller, namespace: system })).ready
      })
    },
    async logs(where, labels, lines = 5) {
      const pods = await client.list(Pod, { namespace: where, labels })
      const texts = pods.flatMap(({ metadata }) =>
        (nodes.life(metadata.uid)?.slots ?? []).map(slot => slot.log?.tail(lines, 4096)),
      )
      return (await Promise.all(texts)).flatMap(text => (text ?? '').split('\n')).filter(line => line !== '')
    },
    stop: cluster.stop,
  }
}

function controllerDeployment() {
  // Port 0: health is for the kubelet of a real cluster; here nobody asks, and the usual port may be somebody else's.
  const args = ['--namespace', system, '--port', '0', '--progress-every', '500ms']
  const labels = { 'app.kubernetes.io/name': controller }
  return {
    metadata: { name: controller, namespace: system },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: controller,
          terminationGracePeriodSeconds: 5,
          containers: [{ name: 'controller', image: controller, args }],
        },
      },
    },
  }
}

const known: readonly Kind[] = [
  ...Object.values(kinds).filter((one): one is Kind => typeof one === 'object' && 'plural' in one),
  ...[Lifecycle, StatefulApp, Operation, OperationSchedule],
]

function kindOf({ apiVersion = '', kind }: Loose, definitions: readonly { spec: DefinitionSpec }[]): Kind {
  const [version = '', group = ''] = apiVersion.split('/').reverse()
  const found = known.find(one => one.kind === kind && one.group === group && one.version === version)
  if (found) return found
  const defined = definitions.find(({ spec }) => spec.names.kind === kind && spec.group === group)?.spec
  if (!defined || kind === undefined) throw new Failure(`${apiVersion} ${kind} is no kind of this cluster`)
  return { group, version, kind, plural: defined.names.plural, namespaced: defined.scope === 'Namespaced' }
}

interface DefinitionSpec {
  readonly group: string
  readonly scope: string
  readonly names: { readonly kind: string; readonly plural: string }
}
