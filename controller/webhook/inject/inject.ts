/**
 * Adds the sidecar to a pod, or to a pod template. One function, whoever calls it: the webhook, `shipmate inject`. docs/inject.md says what it does. Pure.
 *
 * Guarantees: done twice it changes nothing more; nothing of the application's is removed, and its grace period is never shortened; a sidecar that an earlier
 * version added is brought up to date, one that somebody wrote is left alone; what is asked for in a way that means nothing is refused, and then nothing is done.
 */
import { isDeepStrictEqual } from 'node:util'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import { shown, suggestion } from '../../../shared/nearest.ts'
import { lifecycleLabel } from '../../app/workload/marks.ts'
import { type Asked, annotationNames, askedOf, injectedAnnotation, ownGraceAnnotation } from './annotations.ts'
import { appNameProblem, appOf } from './app-name.ts'
import { installerContainer, type SidecarPlan, sidecarContainer, sidecarVolumes } from './containers.ts'
import { defaultGrace, stopSeconds } from './grace.ts'
import { withHook } from './hooks.ts'
import { appMounts } from './mounts.ts'
import { ports, volumeNames } from './places.ts'
import {
  allContainers,
  handwritten,
  injectedBy,
  isLater,
  type Stripped,
  withoutContainers,
  withoutVolumes,
} from './recognize.ts'
import { resourcesOf } from './resources.ts'
import { likeContainer, ownSecurity } from './security.ts'
import type { Container, Metadata, PodSpec, PodTemplate } from './template.ts'
import { warningsOf } from './warnings.ts'

/** What is known of a pod beyond itself. */
export interface Facts {
  /** The app's name, where no annotation says it. Default: by who owns the pod. */
  readonly app?: string | undefined
  /** The lifecycle that the label names, if it is known. */
  readonly lifecycle?: LifecycleSpec | undefined
  /** Volumes that the pod will have by its StatefulSet's claim templates. Default: none. */
  readonly claims?: readonly string[] | undefined
}

/** What holds for every pod of a cluster. */
export interface Settings {
  /** Of this Shipmate. */
  readonly version: string
  /** The sidecar's. */
  readonly image: string
  /** Secrets by which images are pulled, in the pods' own namespaces. Default: none. */
  readonly pullSecrets?: readonly string[] | undefined
  /** Whether the cluster has init containers that go on beside the others. Default true. */
  readonly nativeSidecars?: boolean | undefined
}

export type Injection<T> =
  | { readonly outcome: 'injected' | 'unchanged'; readonly pod: T; readonly warnings: readonly string[] }
  /** It is to have no sidecar, or has one that is not ours. */
  | { readonly outcome: 'left'; readonly why: string }
  | { readonly outcome: 'refused'; readonly problems: readonly string[] }

/** The lifecycle that a pod asks for, by its label. */
export function lifecycleOf({ metadata }: PodTemplate): string | undefined {
  return metadata?.labels?.[lifecycleLabel]
}

export function inject<T extends PodTemplate>(pod: T, facts: Facts, settings: Settings): Injection<T> {
  const { metadata = {}, spec } = pod
  if (lifecycleOf(pod) === undefined) return { outcome: 'left', why: `it has no label ${lifecycleLabel}` }
  const known = handwritten(pod)
  if (known) return { outcome: 'left', why: known }
  const problems: string[] = []
  const asked = askedOf(metadata, problems)
  if (problems.length > 0) return { outcome: 'refused', problems }
  if (!asked.inject) return { outcome: 'left', why: `annotation ${annotationNames.inject} is "false"` }
  const before = injectedBy(pod)
  if (before !== undefined && isLater(before, settings.version))
    return { outcome: 'left', why: `its sidecar is of version ${before}, and this is ${settings.version}` }
  if (!spec) return { outcome: 'refused', problems: ['it has no spec'] }

  const parts = partsOf(spec)
  const plan = planOf({ metadata, asked, facts, settings, parts, hadSidecar: before !== undefined }, problems)
  if (!plan || problems.length > 0) return { outcome: 'refused', problems }
  const grace = graceOf(metadata, spec, facts.lifecycle)
  const after = withSidecar(parts, plan, { asked, settings, grace: grace.raised })
  const injected = {
    ...pod,
    metadata: {
      ...metadata,
      annotations: {
        ...metadata.annotations,
        [annotationNames.app]: plan.app,
        [injectedAnnotation]: settings.version,
        ...(grace.own !== undefined && { [ownGraceAnnotation]: String(grace.own) }),
      },
    },
    spec: after,
  }
  const { like, isNative } = plan
  const warnings = warningsOf({ asked, lifecycle: facts.lifecycle, before: parts.own, after, like, isNative })
  return { outcome: isDeepStrictEqual(injected, pod) ? 'unchanged' : 'injected', pod: injected, warnings }
}

/** The application's part of a pod, and where the rest stood. */
interface Parts {
  readonly own: PodSpec
  readonly init: Stripped<Container>
  readonly main: Stripped<Container>
  readonly volumes: ReturnType<typeof withoutVolumes>
}

function partsOf(spec: PodSpec): Parts {
  const init = withoutContainers(spec.initContainers)
  const main = withoutContainers(spec.containers)
  const volumes = withoutVolumes(spec.volumes)
  const own = { ...spec, initContainers: [...init.rest], containers: [...main.rest], volumes: [...volumes.rest] }
  return { own, init, main, volumes }
}

interface Planning {
  readonly metadata: Metadata
  readonly asked: Asked
  readonly facts: Facts
  readonly settings: Settings
  readonly parts: Parts
  readonly hadSidecar: boolean
}

function planOf(
  { metadata, asked, facts, settings, parts, hadSidecar }: Planning,
  problems: string[],
): SidecarPlan | undefined {
  const { own, init, volumes } = parts
  const app = asked.app ?? facts.app ?? appOf(metadata)
  const wrongName = app === undefined ? 'it has no name, and no owner that has one' : appNameProblem(app)
  if (wrongName) problems.push(`${wrongName}: annotate the pod template with ${annotationNames.app}`)
  if (!hadSidecar && (init.at !== undefined || volumes.at !== undefined))
    problems.push(`names that the sidecar needs are taken: ${Object.values(volumeNames).join(', ')} are its volumes`)
  for (const { name, port } of takenPorts(own))
    problems.push(`container ${name} has port ${port}, which is the sidecar's`)
  const isNative = asked.nativeSidecar ?? settings.nativeSidecars ?? true
  if (own.os?.name === 'windows') problems.push('its containers are for Windows; the agent runs on Linux')
  if (!isNative && (own.restartPolicy ?? 'Always') !== 'Always')
    problems.push(`its restartPolicy is ${own.restartPolicy}: with a plain container beside it, it would never be done`)
  if (asked.shareProcessNamespace && own.shareProcessNamespace === false)
    problems.push(`annotation ${annotationNames.shareProcessNamespace} is "true", and spec.shareProcessNamespace false`)
  const like = own.containers.find(({ name }) => name === asked.imageOf)
  if (asked.imageOf !== undefined && !like?.image) {
    const why = like ? `container ${asked.imageOf} names no image` : `there is no container ${shown(asked.imageOf)}`
    const meant = like
      ? ''
      : suggestion(
          asked.imageOf,
          own.containers.map(({ name }) => name),
        )
    problems.push(`annotation ${annotationNames.imageOf}: ${why}${meant}`)
  }
  const mounts = appMounts({ spec: own, wished: asked.volumes, like, claims: facts.claims ?? [] }, problems)
  const resources = resourcesOf(asked, problems)
  if (app === undefined || asked.lifecycle === undefined) return undefined
  return {
    ...{ app, lifecycle: asked.lifecycle, image: asked.image ?? settings.image, like, isNative, mounts, resources },
    security: like ? likeContainer(like, asked.runAsUser) : ownSecurity(own, asked.runAsUser),
    ownSecurity: ownSecurity(own),
  }
}

function takenPorts(spec: PodSpec): { readonly name: string; readonly port: number }[] {
  return allContainers(spec).flatMap(({ name, ports: declared = [] }) =>
    declared
      .filter(
        ({ containerPort, protocol = 'TCP' }) =>
          protocol === 'TCP' && Object.values<number>(ports).includes(containerPort),
      )
      .map(({ containerPort }) => ({ name, port: containerPort })),
  )
}

interface Added {
  readonly asked: Asked
  readonly settings: Settings
  /** Undefined: it stays as it is. */
  readonly grace: number | undefined
}

function withSidecar(
  { own, init, main, volumes }: Parts,
  plan: SidecarPlan,
  { asked, settings, grace }: Added,
): PodSpec {
  const sidecar = sidecarContainer(plan)
  const first = [...(plan.like ? [installerContainer(plan)] : []), ...(plan.isNative ? [sidecar] : [])]
  // Before the application's own, so that the agent is there while those run, and is the last to end.
  const initContainers = insert(init.rest, init.at ?? 0, first)
  // At the end, so that kubectl takes an application's container for the pod's main one.
  const containers = insert(main.rest.map(withHook), main.at ?? main.rest.length, plan.isNative ? [] : [sidecar])
  const secrets = own.imagePullSecrets ?? []
  const missing = (settings.pullSecrets ?? []).filter(name => !secrets.some(secret => secret.name === name))
  const { initContainers: _, containers: __, volumes: ___, ...rest } = own
  return {
    ...rest,
    ...(initContainers.length > 0 && { initContainers }),
    containers,
    volumes: insert(volumes.rest, volumes.at ?? volumes.rest.length, sidecarVolumes(plan)),
    ...(missing.length > 0 && { imagePullSecrets: [...secrets, ...missing.map(name => ({ name }))] }),
    ...(asked.shareProcessNamespace && !own.hostPID && { shareProcessNamespace: true }),
    ...(grace !== undefined && { terminationGracePeriodSeconds: grace }),
  }
}

function insert<T>(list: readonly T[], at: number, items: readonly T[]): T[] {
  return list.toSpliced(at, 0, ...items)
}

interface Grace {
  /** What the application had for itself, if that is no longer what the pod has. */
  readonly own: number | undefined
  /** What the pod is to have, if it is not that already. */
  readonly raised: number | undefined
}

/** What the application had for its own end it has still, after the hooks. */
function graceOf({ annotations }: Metadata, spec: PodSpec, lifecycle: LifecycleSpec | undefined): Grace {
  const now = spec.terminationGracePeriodSeconds ?? defaultGrace
  const noted = annotations?.[injectedAnnotation] === undefined ? undefined : annotations[ownGraceAnnotation]
  const before = noted !== undefined && /^\d{1,9}$/.test(noted) ? Number(noted) : undefined
  const own = before ?? now
  const needed = own + (lifecycle ? stopSeconds(lifecycle) : 0)
  if (needed <= now) return { own: before, raised: undefined }
  return { own, raised: needed }
}
