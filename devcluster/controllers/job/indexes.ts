/**
 * The completion indexes of a Job, as they are written: `0-2,5`. Pure.
 */
export const indexKey = 'batch.kubernetes.io/job-completion-index'

export function parseIndexes(text: string | undefined): Set<number> {
  const found = new Set<number>()
  for (const part of (text ?? '').split(',').filter(one => one !== '')) {
    const [first, last = first] = part.split('-').map(Number) as [number, number?]
    for (let index = first; index <= last; index++) found.add(index)
  }
  return found
}

export function formatIndexes(indexes: Iterable<number>): string {
  const sorted = [...new Set(indexes)].sort((a, b) => a - b)
  const ranges: [number, number][] = []
  for (const index of sorted) {
    const last = ranges.at(-1)
    if (last && last[1] === index - 1) last[1] = index
    else ranges.push([index, index])
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(',')
}
