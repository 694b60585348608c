/**
 * Every object of every kind, as far as its metadata: what garbage collection and the deletion of namespaces look at.
 *
 * Guarantees: a kind is watched once, shared with whoever else watches it; a CustomResourceDefinition's kind is watched from the moment it is
 * established; nothing is polled.
 */

import { createDiscovery } from '../../../controller/kube/discovery.ts'
import type { Informer } from '../../../controller/kube/informer.ts'
import { type Kind, kindKey, type Live, type Snapshot } from '../../../controller/kube/kind.ts'
import { CustomResourceDefinition } from '../../../controller/kube/kinds.ts'
import type { ServedKind } from '../../../controller/kube/restmapper.ts'
import type { Change } from '../../../controller/kube/store.ts'
import type { Manager } from '../../../controller/runtime/manager.ts'
import { isTrue } from './conditions.ts'

export type Told = (change: Change<object>, kind: Kind) => void

export interface Everything {
  /** Kinds whose objects can be listed, watched and deleted, each in one version. */
  kinds(): readonly Kind[]
  /** By group and kind, whatever the version; undefined for one that is not served. */
  kindOf(apiVersion: string, kind: string): Kind | undefined
  /** Every change from now on, and what is there already. Before `run`. */
  subscribe(told: Told): void
  /** Begins to watch; resolves when all that was served then has been read. */
  run(): Promise<void>
}

/** Kinds of which nobody owns one, and that come by the thousand. */
const ignored = new Set(['/events', 'events.k8s.io/events'])

export function watchEverything(manager: Manager): Everything {
  const watched = new Map<string, Kind>()
  const told: Told[] = []
  const key = (kind: Pick<Kind, 'group' | 'plural'>) => `${kind.group}/${kind.plural}`

  function watch(kind: Kind): Informer<object> | undefined {
    if (ignored.has(key(kind))) return undefined
    const before = watched.get(key(kind))
    watched.set(key(kind), kind)
    if (before && kindKey(before) === kindKey(kind)) return undefined
    // Of a definition the whole is needed here: it says which kind there is.
    if (!manager.cache.peek(kind) && kindKey(kind) !== kindKey(CustomResourceDefinition))
      manager.cache.for(kind, { transform: reduce })
    const informer = manager.cache.informer(kind)
    informer.subscribe(change => {
      for (const tell of told) tell(change, kind)
    })
    return informer
  }

  async function run(): Promise<void> {
    const served = await createDiscovery(manager.client, { clock: manager.clock }).groups()
    const kinds = served.flatMap(({ versions }) => onePerResource(versions.flatMap(({ kinds }) => kinds)))
    const informers = kinds.filter(isCollectable).flatMap(kind => watch(kind) ?? [])
    manager.cache.informer(CustomResourceDefinition).subscribe(({ object: crd, type }) => {
      const kind = kindOfDefinition(crd)
      if (!kind) return
      if (type === 'removed') watched.delete(key(kind))
      else if (isTrue(crd.status?.conditions, 'Established')) watch(kind)
    })
    await Promise.all(informers.map(informer => Promise.race([informer.answered, informer.settled])))
  }

  return {
    kinds: () => [...watched.values()],
    kindOf(apiVersion, name) {
      const group = apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : ''
      for (const kind of watched.values()) if (kind.group === group && kind.kind === name) return kind
      return undefined
    },
    subscribe: tell => void told.push(tell),
    run,
  }
}

function isCollectable({ verbs }: ServedKind): boolean {
  return ['list', 'watch', 'delete'].every(verb => verbs.includes(verb))
}

/** The first version is the preferred one. */
function onePerResource(kinds: readonly ServedKind[]): ServedKind[] {
  return kinds.filter((kind, at) => kinds.findIndex(({ plural }) => plural === kind.plural) === at)
}

type Definition = Snapshot<import('@kubernetes/client-node').V1CustomResourceDefinition>

/** In the version that objects are stored in, if that is served. */
function kindOfDefinition({ spec }: Definition): Kind | undefined {
  const served = (spec?.versions ?? []).filter(version => version.served)
  const version = served.find(({ storage }) => storage) ?? served[0]
  if (!version) return undefined
  const { group, names, scope } = spec
  return { group, version: version.name, kind: names.kind, plural: names.plural, namespaced: scope === 'Namespaced' }
}

function reduce(object: Live): void {
  for (const field of Object.keys(object))
    if (field !== 'apiVersion' && field !== 'kind' && field !== 'metadata')
      delete (object as Record<string, unknown>)[field]
}
