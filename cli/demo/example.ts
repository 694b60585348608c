/**
 * An operator of examples/ on the embedded cluster: its definition, its account, itself as a Deployment, a sample, and what becomes of that.
 */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { Deployment } from '../../controller/kube/kinds.ts'
import { readinessOf } from '../../controller/toolkit/readiness.ts'
import { Failure } from '../ending.ts'
import { packageFolder } from '../package.ts'
import { type Act, type Play, plays, type Resource } from './plays.ts'
import type { Screen } from './screen.ts'
import { namespace, type Placed, type Stage } from './stage.ts'
import { until } from './until.ts'

/** Those that this machine has the files of. */
export function exampleNames(): string[] {
  return Object.keys(plays).filter(name => existsSync(join(packageFolder, 'examples', name, 'main.ts')))
}

export const nodesOf = (name: string) => plays[name]?.nodes ?? 1

/** What is not installed that an example needs, in words; undefined where nothing is missing. */
export function missingFor(name: string): string | undefined {
  const missing = (plays[name]?.programs ?? []).filter(program => programPath(program) === undefined)
  return missing.length > 0 ? `${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} not installed` : undefined
}

export async function playExample(stage: Stage, screen: Screen, name: string): Promise<void> {
  const play = plays[name]
  if (!play) throw new Failure(`there is no example ${name}`)
  screen.heading(`${name}: ${play.about}`)
  if (play.without) screen.line(`          ${play.without}`)
  if (play.hasLifecycle) {
    await stage.installShipmate()
    screen.event('controller', "Shipmate's, for its sidecars")
  }
  await deploy(stage, screen, name)
  try {
    await perform(stage, screen, name, play)
  } catch (error) {
    for (const line of await stage.logs(namespace, {})) screen.line(`  ${line}`)
    throw error
  }
}

async function deploy(stage: Stage, screen: Screen, name: string): Promise<void> {
  const { client } = stage.cluster
  const folder = `examples/${name}`
  addSoftware(stage, name)
  screen.command(`kubectl apply -f ${folder}/crd.yaml -f ${folder}/rbac.yaml`)
  for (const file of ['crd.yaml', 'rbac.yaml']) await stage.apply(join(folder, file))
  const labels = { 'app.kubernetes.io/name': `${name}-operator` }
  const containers = [{ name: 'operator', image: `example-${name}`, env: [{ name: 'PORT', value: '0' }] }]
  const ref = { name: `${name}-operator`, namespace }
  await client.apply(Deployment, {
    metadata: ref,
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { serviceAccountName: name, containers } },
    },
  })
  await until('its operator to be ready', async () => readinessOf(Deployment, await client.find(Deployment, ref)).ready)
  screen.event('operator', `node ${folder}/main.ts, under its own account and its generated rules`)
}

async function perform(stage: Stage, screen: Screen, name: string, play: Play): Promise<void> {
  const { client } = stage.cluster
  const sample = `examples/${name}/sample.yaml`
  screen.command(`kubectl apply -f ${sample}`)
  const [placed] = await stage.apply(sample)
  if (!placed) throw new Failure(`${sample} is empty`)
  const told: Told = new Map()
  for (const act of play.acts) {
    if (act.patch) {
      screen.command(`kubectl patch ${play.resource} ${placed.ref.name} --type merge -p '${JSON.stringify(act.patch)}'`)
      await client.patch(placed.kind, placed.ref, { merge: act.patch })
    }
    screen.event('done', await watched(stage, screen, placed, act, told))
  }
  screen.command(`kubectl delete ${play.resource} ${placed.ref.name}`)
  await client.delete(placed.kind, placed.ref, { propagation: 'Background' })
  await until(`${name} to be gone`, async () => (await client.find(placed.kind, placed.ref)) === undefined, 60_000)
  screen.event('gone', 'and all that the operator had made with it')
}

/** Conditions as they were told last. */
type Told = Map<string, object>

/** They say in other words what Ready says. */
const repetitive = new Set(['ReconciliationSuccess', 'Reconciling', 'Stalled'])

/** Tells each condition that changes, until it has happened. */
async function watched(stage: Stage, screen: Screen, { kind, ref }: Placed, act: Act, told: Told): Promise<string> {
  return until(
    'what the example is to show',
    async () => {
      const resource = (await stage.cluster.client.get(kind, ref)) as Resource
      const { generation } = resource.metadata
      for (const { type, status, message } of resource.status?.conditions ?? []) {
        const now = { status, message }
        if (repetitive.has(type) || isDeepStrictEqual(told.get(type), now)) continue
        screen.event(type, `${status}: ${message}`)
        told.set(type, now)
      }
      const isSeen = resource.status?.['observedGeneration'] === generation
      return isSeen ? act.shows(resource) : undefined
    },
    60_000,
  )
}

function addSoftware(stage: Stage, name: string): void {
  const main = join(packageFolder, 'examples', name, 'main.ts')
  stage.addImage(`example-${name}`, { command: [process.execPath, main] })
  // A server listens where its pod is, and where its sidecar asks for it; the user's name is for who is root.
  const memcached = programPath('memcached')
  const listen = name === 'memcached-lifecycle' ? '$HOST,127.0.0.1' : '$HOST'
  if (memcached) stage.addProgram('memcached', `exec "${memcached}" -u "$(id -un)" -l "${listen}" "$@"`, 'memcached')
  const waits = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"
  stage.addImage('registry.k8s.io/pause', { command: ['sh', '-c', waits] })
}

function programPath(program: string): string | undefined {
  const paths = (process.env['PATH'] ?? '').split(delimiter).map(folder => join(folder, program))
  return paths.find(path => {
    try {
      accessSync(path, constants.X_OK)
      return statSync(path).isFile()
    } catch {
      return false
    }
  })
}
