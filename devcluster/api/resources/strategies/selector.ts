/**
 * A label selector as one text: `a=b,c in (d,e)`.
 */
import type { LabelSelector } from '../../../../controller/kube/labelselector.ts'

export function selectorText(selector: LabelSelector | undefined): string {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {}
  const labels = Object.entries(matchLabels).map(([key, value]) => ({ key, text: `${key}=${value}` }))
  const expressions = matchExpressions.map(({ key, operator, values = [] }) => {
    if (operator === 'Exists') return { key, text: key }
    if (operator === 'DoesNotExist') return { key, text: `!${key}` }
    return { key, text: `${key} ${operator === 'In' ? 'in' : 'notin'} (${[...values].sort().join(',')})` }
  })
  const sorted = [...labels, ...expressions].sort((a, b) => (a.key < b.key ? -1 : 1))
  return sorted.map(({ text }) => text).join(',')
}
