/**
 * Names of new objects: what they may be, and how one is made of generateName.
 */
import { randomInt } from 'node:crypto'
import { dns1123Label, dns1123Subdomain, pathSegment } from '../schema/meta.ts'
import type { ResourceType } from '../types.ts'

const rules: Readonly<Record<string, (name: string) => string[]>> = {
  '/namespaces': dns1123Label,
  '/services': dns1123Label,
  'apps/statefulsets': dns1123Label,
  'policy/poddisruptionbudgets': pathSegment,
  'rbac.authorization.k8s.io/roles': pathSegment,
  'rbac.authorization.k8s.io/rolebindings': pathSegment,
  'rbac.authorization.k8s.io/clusterroles': pathSegment,
  'rbac.authorization.k8s.io/clusterrolebindings': pathSegment,
}

export const nameRule = ({ group, resource }: ResourceType) => rules[`${group}/${resource}`] ?? dns1123Subdomain

/** No vowels and nothing that looks like something else: no words come about. */
const letters = 'bcdfghjklmnpqrstvwxz2456789'
const longest = 63
const added = 5

export function generated(base: string): string {
  const kept = base.length > longest - added ? base.slice(0, longest - added) : base
  return kept + Array.from({ length: added }, () => letters[randomInt(letters.length)]).join('')
}
