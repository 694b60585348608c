/**
 * The shipped rights are those that follow from what the controller declares, under which its own tests run; in some namespaces only, they are no others.
 */
import { describe, expect, test } from 'vitest'
import { shipmateRbac } from '../../controller/app/rbac.ts'
import { callerRules } from '../../controller/runtime/index.ts'
import type { PolicyRule } from '../../controller/toolkit/rbac.ts'
import { plainObjects } from '../../deploy/source/plain.ts'
import { valuesSchema } from '../../deploy/source/values.ts'
import type { Given, Rendered } from './rendered.ts'

const account = 'shipmate-controller'
const { rules, own } = shipmateRbac(account)

/** What the controller's account may do, by namespace; '' is all of them. */
function rightsOf(given: Given): Record<string, Set<string>> {
  const all = plainObjects(valuesSchema.parse(given)) as Rendered[]
  const rights: Record<string, Set<string>> = {}
  for (const binding of all.filter(({ kind }) => /^(Cluster)?RoleBinding$/.test(kind))) {
    expect(binding.subjects).toEqual([{ kind: 'ServiceAccount', name: account, namespace: 'shipmate-system' }])
    const { namespace = '' } = binding.metadata
    const role = all.find(
      ({ kind, metadata }) =>
        kind === binding.roleRef.kind &&
        metadata.name === binding.roleRef.name &&
        (kind === 'ClusterRole' || metadata.namespace === namespace),
    )
    rights[namespace] = new Set([...(rights[namespace] ?? []), ...flat(role?.rules)])
  }
  return rights
}

/** One line for each right. */
function flat(all: readonly PolicyRule[]): string[] {
  return all.flatMap(({ apiGroups, resources, verbs, resourceNames = ['*'] }) =>
    apiGroups.flatMap(group =>
      resources.flatMap(resource =>
        verbs.flatMap(verb => resourceNames.map(name => `${verb} ${resource}.${group} ${name}`)),
      ),
    ),
  )
}

const sorted = (rights: Iterable<string> | undefined) => [...new Set(rights ?? [])].sort()
const isUnplaced = (right: string) =>
  / (nodes|customresourcedefinitions|tokenreviews|subjectaccessreviews)\./.test(right)

describe('the rights of the controller', () => {
  test('are what it declares, with asking who reads metrics', () => {
    const found = rightsOf({})
    expect(sorted(found[''])).toEqual(sorted([...flat(rules), ...flat(callerRules as never)]))
    expect(sorted(found['shipmate-system'])).toEqual(sorted(flat(own)))
    expect(Object.keys(found)).toHaveLength(2)
  })

  test('are no more than that without it', () => {
    expect(sorted(rightsOf({ metrics: { auth: false } })[''])).toEqual(sorted(flat(rules)))
  })

  test('end at the namespaces that it watches', () => {
    const found = rightsOf({ watchNamespaces: ['shop', 'bank'], metrics: { auth: false } })
    const [cluster, placed] = [flat(rules).filter(isUnplaced), flat(rules).filter(right => !isUnplaced(right))]
    expect(sorted(found[''])).toEqual(sorted(cluster))
    for (const namespace of ['shop', 'bank']) expect(sorted(found[namespace])).toEqual(sorted(placed))
    expect(sorted(found['shipmate-system'])).toEqual(sorted(flat(own)))
  })

  test('are for the leases of its shards, and for no other', () => {
    const leases = sorted(rightsOf({ shards: 2 })['shipmate-system']).filter(right => right.includes('leases'))
    expect(leases).toEqual([
      'create leases.coordination.k8s.io *',
      'get leases.coordination.k8s.io shipmate-controller-0-of-2',
      'get leases.coordination.k8s.io shipmate-controller-1-of-2',
      'update leases.coordination.k8s.io shipmate-controller-0-of-2',
      'update leases.coordination.k8s.io shipmate-controller-1-of-2',
    ])
  })

  test('never name everything', () => {
    const all = Object.values(rightsOf({ webhooks: { enabled: true } })).flatMap(rights => [...rights])
    expect(all.filter(right => /^\* | \*\.|\.\* /.test(right))).toEqual([])
  })
})

describe('the rights of people', () => {
  const all = plainObjects() as Rendered[]
  const of = (name: string) => flat(all.find(({ metadata }) => metadata.name === name)?.rules)

  test('to define commands are for administrators alone', () => {
    const writesLifecycles = (right: string) => / lifecycles\./.test(right) && !/^(get|list|watch) /.test(right)
    for (const name of ['shipmate-viewer', 'shipmate-editor']) expect(of(name).filter(writesLifecycles)).toEqual([])
    expect(of('shipmate-admin').filter(writesLifecycles).length).toBeGreaterThan(3)
  })

  test('to say what has happened are for administrators alone', () => {
    const settles = all.filter(({ rules }) => rules && JSON.stringify(rules).includes('settle'))
    expect(settles.map(({ metadata }) => metadata.name)).toEqual(['shipmate-admin'])
  })

  test('never reach the status', () => {
    const names = ['shipmate-viewer', 'shipmate-editor', 'shipmate-admin']
    expect(names.flatMap(of).filter(right => right.includes('/status'))).toEqual([])
  })
})
