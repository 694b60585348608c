/**
 * From what a person or an object says (a kind, a plural, a short name) to the kind that the server has. Pure.
 *
 * Guarantees: the server's order decides, its groups first and then a group's versions; what is not found is answered with what was asked
 * and the nearest that there is.
 */
import { distance } from 'fastest-levenshtein'
import { NotFound, Unavailable } from './errors.ts'
import { type Kind, resourceOf } from './kind.ts'
import type { Target } from './transport.ts'

/** A kind as the server has it. */
export interface ServedKind extends Kind {
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  /** As RBAC names them. */
  readonly verbs: readonly string[]
  readonly subresources: readonly { readonly name: string; readonly verbs: readonly string[] }[]
}

export interface ApiVersion {
  readonly version: string
  /** The server that has it does not answer: what is known of it may be old, or nothing. */
  readonly isStale: boolean
  readonly kinds: readonly ServedKind[]
}

export interface ApiGroup {
  /** Empty for the core group. */
  readonly name: string
  /** The preferred one first. */
  readonly versions: readonly ApiVersion[]
}

interface Place {
  /** The empty string is the core group. Default: any, in the server's order. */
  readonly group?: string | undefined
  /** Default: the group's preferred one that has it. */
  readonly version?: string | undefined
}

export interface AskedKind extends Place {
  readonly kind: string
}

export interface AskedResource extends Place {
  /** A plural, a singular or a short name. */
  readonly resource: string
}

export function findKind(groups: readonly ApiGroup[], asked: AskedKind): ServedKind | undefined {
  return kindsIn(groups, asked).find(kind => kind.kind === asked.kind)
}

/** A plural goes before a singular, and that before a short name, whoever has it. */
export function findResource(groups: readonly ApiGroup[], asked: AskedResource): ServedKind | undefined {
  const kinds = kindsIn(groups, asked)
  const name = asked.resource.toLowerCase()
  return (
    kinds.find(kind => kind.plural === name) ??
    kinds.find(kind => kind.singular === name) ??
    kinds.find(kind => kind.shortNames.includes(name))
  )
}

/** The error for something that is not there: NotFound, or Unavailable where the server that would know does not answer. */
export function absent(groups: readonly ApiGroup[], asked: AskedKind | AskedResource): NotFound | Unavailable {
  const name = 'kind' in asked ? asked.kind : asked.resource
  const target: Target = { verb: 'get', group: asked.group ?? '', resource: '', name }
  const where = asked.group === undefined ? '' : ` in ${placeOf({ group: asked.group, version: asked.version })}`
  const stale = staleIn(groups, asked)
  if (asked.group !== undefined && stale.length > 0) {
    const why = `whether there is a "${name}"${where} is not known: the server of ${stale.join(', ')} does not answer`
    return new Unavailable('Unavailable', { ...target, name: '/apis' }, why, { mayHaveActed: false })
  }
  const near = nearest(groups, asked)
  const what = `the server has no ${'kind' in asked ? 'kind' : 'resource'} "${name}"${where}`
  const hints = [
    near.length > 0 ? `nearest: ${near.join(', ')}` : '',
    stale.length > 0 ? `not answering: ${stale.join(', ')}` : '',
  ]
  const message = [what, ...hints.filter(hint => hint !== '')].join('; ')
  return new NotFound('NotFound', 'never', 404, target, { message }, message)
}

function kindsIn(groups: readonly ApiGroup[], place: Place): ServedKind[] {
  return versionsIn(groups, place).flatMap(({ version }) => version.kinds)
}

function staleIn(groups: readonly ApiGroup[], place: Place): string[] {
  return versionsIn(groups, place)
    .filter(({ version }) => version.isStale)
    .map(({ group, version }) => placeOf({ group: group.name, version: version.version }))
}

function versionsIn(groups: readonly ApiGroup[], place: Place): { group: ApiGroup; version: ApiVersion }[] {
  return groups
    .filter(group => place.group === undefined || group.name === place.group)
    .flatMap(group => group.versions.map(version => ({ group, version })))
    .filter(({ version }) => place.version === undefined || version.version === place.version)
}

function placeOf({ group, version }: { group: string; version?: string | undefined }): string {
  if (group === '') return version ?? 'the core group'
  return version === undefined ? group : `${group}/${version}`
}

/** The names of at most three that are written much alike, as one would ask for them; those of the asked group first. */
function nearest(groups: readonly ApiGroup[], asked: AskedKind | AskedResource): string[] {
  const name = ('kind' in asked ? asked.kind : asked.resource).toLowerCase()
  // Two letters that changed places are two changes; in the shortest words that would make anything near.
  const most = name.length < 4 ? 1 : Math.max(2, Math.floor(name.length / 3))
  const near = kindsIn(groups, {})
    .map(kind => {
      const names = 'kind' in asked ? [kind.kind.toLowerCase()] : [kind.plural, kind.singular]
      const far = Math.min(...names.map(other => distance(name, other)))
      const label = 'kind' in asked ? `${kind.kind} (${placeOf(kind)})` : resourceOf(kind)
      return { label, far, isElsewhere: Number(asked.group !== undefined && kind.group !== asked.group) }
    })
    .filter(({ far }) => far <= most)
    .sort((a, b) => a.far - b.far || a.isElsewhere - b.isElsewhere)
  return [...new Set(near.map(({ label }) => label))].slice(0, 3)
}
