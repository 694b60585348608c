/**
 * Whether two runs came to the same: all objects compared, without what differs from run to run by nature. Pure.
 *
 * Left out: uids, versions, times, generations, addresses and names that the server has made up. A uid that stands somewhere is read as whose it is.
 */
import type { Live } from '../../../controller/kube/kind.ts'

/** What of an object counts; undefined: nothing does. */
export type Compare = (object: Live) => unknown

/** What stands for an object in a comparison, by its name. Several have one name where the server made names up. */
export type Picture = ReadonlyMap<string, readonly unknown[]>

const ownFields = new Set(['observedGeneration', 'resourceVersion', 'managedFields', 'uid', 'generation'])
const serverFields = new Set([
  ...['clusterIP', 'clusterIPs', 'nodePort', 'healthCheckNodePort', 'templateGeneration'],
  ...['deprecated.daemonset.template.generation', 'deployment.kubernetes.io/revision'],
])
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/
const touched = 'testing.shipmate.dev/touched'

export function pictureOf(objects: readonly Live[], compare: Compare = object => object): Picture {
  const names = namesOf(objects)
  const entries = objects.flatMap(object => {
    const counted = compare(object)
    return counted === undefined ? [] : [[names.get(object.metadata.uid) ?? '', plain(counted, names)] as const]
  })
  const grouped = Map.groupBy(entries, ([name]) => name)
  return new Map([...grouped].map(([name, all]) => [name, all.map(([, value]) => value).sort(byText)]))
}

/** What each uid, and each name that the server made up, is called. */
function namesOf(objects: readonly Live[]): Map<string, string> {
  const names = new Map<string, string>()
  for (const { kind, metadata } of objects) {
    const name = metadata.generateName ? `${metadata.generateName}*` : metadata.name
    names.set(metadata.uid, `${kind} ${metadata.namespace ? `${metadata.namespace}/` : ''}${name}`)
    if (metadata.generateName) names.set(metadata.name, name)
  }
  return names
}

function plain(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string') return names.get(value) ?? (time.test(value) ? 'a time' : value)
  if (Array.isArray(value)) return value.map(item => plain(item, names))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !ownFields.has(name) && !serverFields.has(name) && name !== touched)
      .map(([name, item]) => [name, name === 'uid' ? names.get(String(item)) : plain(item, names)] as const)
      // An empty map is as good as none.
      .filter(([, item]) => item !== undefined && !isEmpty(item))
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  )
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0
}

function byText(a: unknown, b: unknown): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1
}

/** One sentence for each object that is not as it was; none where all are. */
export function differences(now: Picture, then: Picture): string[] {
  const names = [...new Set([...then.keys(), ...now.keys()])].sort()
  return names.flatMap(name => {
    const [are, were] = [now.get(name) ?? [], then.get(name) ?? []]
    if (are.length === 0) return `${name} is not there, and was in the undisturbed run`
    if (were.length === 0) return `${name} is there, and was not in the undisturbed run`
    if (are.length !== were.length) return `there are ${are.length} of ${name}, and were ${were.length}`
    return are.flatMap((one, index) => firstDifference(one, were[index], name) ?? []).slice(0, 1)
  })
}

function firstDifference(now: unknown, then: unknown, at: string): string | undefined {
  if (JSON.stringify(now) === JSON.stringify(then)) return undefined
  if (isMap(now) && isMap(then)) {
    for (const key of [...new Set([...Object.keys(then), ...Object.keys(now)])].sort()) {
      const found = firstDifference(now[key], then[key], `${at}${at.includes(':') ? '.' : ': '}${key}`)
      if (found) return found
    }
  }
  if (Array.isArray(now) && Array.isArray(then) && now.length === then.length) {
    for (const [index, item] of now.entries()) {
      const found = firstDifference(item, then[index], `${at}[${index}]`)
      if (found) return found
    }
  }
  return `${at} is ${short(now)}, and was ${short(then)} in the undisturbed run`
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function short(value: unknown): string {
  const text = JSON.stringify(value) ?? 'absent'
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}
