/**
 * The names of a kind, by the rules of the server, which would refuse the CRD otherwise. Pure.
 */
import { shown } from '../../../shared/nearest.ts'
import { refuse } from './refuse.ts'

export interface Names {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
}

const label = /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/
const aLabel = 'lower-case letters, digits and "-", at most 63, a letter first and no "-" last'
const domain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$/

/** @throws ShipmateError with code Misuse for the first name that is not one */
export function checkNames(names: Names): void {
  const { group, version, kind, plural, singular, shortNames, categories } = names
  check('kind', kind, /^[A-Z][A-Za-z0-9]{0,62}$/, 'letters and digits in CamelCase, at most 63, such as Memcached')
  check('group', group, domain, 'a domain of yours with at least one dot, in lower case, such as cache.example.com')
  if (group.length > 253) refuse('group', `${shown(group)} is longer than 253 characters`)
  if (/(^|\.)(k8s|kubernetes)\.io$/.test(group)) {
    refuse(
      'group',
      `${shown(group)} belongs to Kubernetes itself, whose server accepts no other CRDs there: take a domain of yours`,
    )
  }
  check('version', version, label, 'v1, v1beta1, v2alpha1 and the like')
  check('plural', plural, label, aLabel)
  check('singular', singular, label, aLabel)
  for (const name of shortNames) check('shortNames', name, label, aLabel)
  for (const name of categories) check('categories', name, label, aLabel)
  const twice = shortNames.find((name, index) => shortNames.indexOf(name) < index)
  if (twice !== undefined) refuse('shortNames', `${shown(twice)} stands there twice`)
}

function check(field: string, value: unknown, pattern: RegExp, accepted: string): void {
  if (typeof value !== 'string' || !pattern.test(value))
    refuse(field, `${shown(value)} is not accepted; it has to be ${accepted}`)
}
