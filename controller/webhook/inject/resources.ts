/**
 * What the sidecar asks of its node. Pure.
 *
 * It has no limit unless one is asked for: actions run in its container, and a backup that needs a gigabyte for a minute is not to be killed, nor throttled.
 */
import type { Asked } from './annotations.ts'
import { annotationNames } from './annotations.ts'
import { amountOf } from './quantity.ts'
import type { Container, PodSpec, Resources } from './template.ts'

/** An idle agent has 60 MB, most of it shared with the other agents of its node. */
const defaults = { cpu: '10m', memory: '64Mi' }

/** @param problems gets a sentence for each that cannot be */
export function resourcesOf({ requests, limits }: Asked, problems: string[]): Resources {
  const wished: Record<string, string> = { ...defaults, ...requests }
  for (const [name, limit] of Object.entries(limits)) {
    if ((amountOf(wished[name] ?? limit) ?? 0) <= (amountOf(limit) ?? 0)) continue
    if (requests[name] !== undefined)
      problems.push(
        `annotation ${annotationNames.limits} allows less ${name} (${limit}) than ${annotationNames.requests} asks for (${requests[name]})`,
      )
    else wished[name] = limit
  }
  return { requests: wished, ...(Object.keys(limits).length > 0 && { limits }) }
}

/** Whether every container has as much as it asks for, and no more: such a pod is evicted last, and may have processors of its own. */
export function isGuaranteed({ containers, initContainers = [] }: PodSpec): boolean {
  return [...containers, ...initContainers].every(hasAllItAsksFor)
}

function hasAllItAsksFor({ resources }: Container): boolean {
  return ['cpu', 'memory'].every(name => {
    const limit = resources?.limits?.[name]
    return limit !== undefined && same(resources?.requests?.[name] ?? limit, limit)
  })
}

function same(one: string, other: string): boolean {
  return String(one) === String(other) || (amountOf(String(one)) ?? Number.NaN) === amountOf(String(other))
}
