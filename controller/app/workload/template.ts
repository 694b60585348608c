/**
 * What an app's template asks for: its ConfigMaps, its Service and its StatefulSet, named after the app; and whether what is there is that. Pure.
 *
 * Guarantees: none of them has an owner reference, since what the way to the end needs must not go before it; all carry the app's uid, by which they are found. While the
 * StatefulSet is scaled to zero by us, the template's number of replicas is no difference.
 */
import { isApplied } from '../../kube/applied.ts'
import type { Applied, Kind, ShapeOf, Snapshot } from '../../kube/kind.ts'
import { ConfigMap, Service, StatefulSet } from '../../kube/kinds.ts'
import { TerminalError } from '../../runtime/index.ts'
import { hashAnnotation, hashOfParts, makerAnnotation } from '../../toolkit/hash.ts'
import { controllerOf, makerOf, makerText } from '../../toolkit/ownership.ts'
import { StatefulApp } from '../kinds.ts'
import type { App } from '../view.ts'
import { appMark, appUidLabel, claimAnnotation, claimText, lifecycleLabel, madeLabels } from './marks.ts'

/** For whom these are made, as the annotation on them says: what else Shipmate makes for an app is not of the template. */
function makerFor(app: App): string {
  return makerText(makerOf(StatefulApp, app as Snapshot, 'template'))
}

/** Whether something was made of a template of this app, or of an earlier one of its name. */
export function isOfTemplate({ metadata }: Snapshot, app: App): boolean {
  return metadata.annotations?.[makerAnnotation] === makerFor(app)
}

export interface Wished {
  readonly kind: Kind
  readonly object: Applied
  /** Of all but the number of replicas. */
  readonly hash: string
}

type SetSpec = Applied<ShapeOf<typeof StatefulSet>>['spec']
type Texts = Readonly<Record<string, string>>

/** In the order in which they are applied; none for an app without a template. */
export function wishedOf(app: App): Wished[] {
  const { template } = app.spec
  if (!template) return []
  const set = statefulSetSpec(app)
  const serviceName = set['serviceName'] as string
  return [
    ...Object.entries(template.configMaps ?? {}).map(([name, data]) =>
      wished(app, ConfigMap, `${app.metadata.name}-${name}`, { data }),
    ),
    wished(app, Service, serviceName, { spec: serviceSpec(app, set) }),
    wished(app, StatefulSet, app.metadata.name, { spec: set }, { [claimAnnotation]: claimText(app) }),
  ]
}

function wished(app: App, kind: Kind, name: string, body: object, more: Texts = {}): Wished {
  const { namespace, uid } = app.metadata
  const labels = { ...madeLabels, [appMark]: app.metadata.name, [appUidLabel]: uid }
  const annotations = { ...more, [makerAnnotation]: makerFor(app) }
  const plain = { metadata: { name, namespace, labels, annotations }, ...body }
  const hash = hashOfParts(withoutReplicas(plain), ['all'])
  return {
    kind,
    object: { ...plain, metadata: { ...plain.metadata, annotations: { ...annotations, [hashAnnotation]: hash } } },
    hash,
  }
}

/** The StatefulSet's spec, with a selector, the name of its Service, and the marks of its pods. */
function statefulSetSpec(app: App): Record<string, unknown> {
  const { metadata, spec } = app
  const given = mapOf(spec.template?.spec, 'spec.template.spec')
  const pods = mapOf(given['template'], 'spec.template.spec.template')
  const meta = mapOf(pods['metadata'] ?? {}, 'spec.template.spec.template.metadata')
  const texts = (field: string) => mapOf(meta[field] ?? {}, `spec.template.spec.template.metadata.${field}`)
  return {
    ...given,
    serviceName: given['serviceName'] || metadata.name,
    selector: given['selector'] ?? defaultSelector(app),
    template: {
      ...pods,
      metadata: {
        ...meta,
        labels: {
          ...texts('labels'),
          [appMark]: metadata.name,
          // It asks for a sidecar, which an app has that is not asked by other ways.
          ...(!spec.via && { [lifecycleLabel]: spec.lifecycle }),
        },
        annotations: { ...texts('annotations'), [appMark]: metadata.name },
      },
    },
  }
}

/** How pods of a template that names no selector are told from others. */
export function defaultSelector({ metadata }: App): { readonly matchLabels: Texts } {
  return { matchLabels: { [appMark]: metadata.name } }
}

/** Headless unless it says otherwise; with the ports of the pods unless it has its own. */
function serviceSpec({ spec }: App, set: Record<string, unknown>): Record<string, unknown> {
  const given = (spec.template?.service ?? {}) as Record<string, unknown>
  const isOtherwise = given['clusterIP'] !== undefined || given['type'] !== undefined
  const { matchLabels } = set['selector'] as { matchLabels?: Texts }
  const ports = portsOf(set as SetSpec)
  return {
    ...(!isOtherwise && { clusterIP: 'None' }),
    ...(matchLabels && { selector: matchLabels }),
    ...(ports.length > 0 && { ports }),
    ...given,
  }
}

function portsOf(set: SetSpec) {
  // Whatever else a person wrote there is the server's to refuse.
  const listOf = <T>(value: readonly T[] | undefined) => (Array.isArray(value) ? (value as readonly T[]) : [])
  const all = listOf(set?.template?.spec?.containers).flatMap(one => listOf(one?.ports))
  return all
    .map(({ name, containerPort: port, protocol = 'TCP' }) => ({
      name: name ?? `${protocol.toLowerCase()}-${port}`,
      port,
      protocol,
    }))
    .filter((one, i, ports) => ports.findIndex(({ name }) => name === one.name) === i)
}

function mapOf(value: unknown, path: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new TerminalError(`${path} has to be an object, as in a StatefulSet`)
}

/** One of them, and what is there of it. */
export interface Part extends Wished {
  /** Undefined: it is not there. */
  readonly live: Snapshot | undefined
  /** Why it is not ours, if it is not. */
  readonly foreign: string | undefined
  readonly isDifferent: boolean
}

/** @param isScaledDown that the StatefulSet is scaled to zero by us @param manager under which name it is applied */
export function partOf(
  app: App,
  given: Wished,
  live: Snapshot | undefined,
  { manager, isScaledDown }: { readonly manager: string; readonly isScaledDown: boolean },
): Part {
  const one = isScaledDown ? { ...given, object: withoutReplicas(given.object) } : given
  if (!live) return { ...one, live, foreign: undefined, isDifferent: true }
  const isLastWish = live.metadata.annotations?.[hashAnnotation] === one.hash
  return {
    ...one,
    live,
    foreign: foreignOf(app, live),
    isDifferent: !isApplied(one.object, live, manager, isLastWish),
  }
}

/** What an earlier app of the same name left is ours. */
function foreignOf(app: App, live: Snapshot): string | undefined {
  const { kind, metadata } = live
  const controller = controllerOf(live)
  if (controller) return `${kind} ${metadata.name} belongs to ${controller.kind} ${controller.name}; it is left alone`
  if (isOfTemplate(live, app)) return undefined
  return `${kind} ${metadata.name} was there before, and was not made for this app; name it in spec.workload, or give the app another name`
}

function withoutReplicas<T extends object>(object: T): T {
  const { spec } = object as { spec?: Record<string, unknown> }
  if (spec?.['replicas'] === undefined) return object
  const { replicas: _, ...rest } = spec
  return { ...object, spec: rest }
}
