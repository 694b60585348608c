/**
 * Numbers that may be written as a share of something: `2`, `"25%"`. Pure.
 */
export type IntOrPercent = number | string | object

/** @param round where a share is not a whole number */
export function shareOf(value: IntOrPercent | undefined, total: number, round: 'up' | 'down'): number {
  if (value === undefined) return 0
  if (typeof value === 'number') return value
  const percent = /^(\d+)%$/.exec(String(value))?.[1]
  if (percent === undefined) return Number(value) || 0
  const exact = (Number(percent) * total) / 100
  return round === 'up' ? Math.ceil(exact) : Math.floor(exact)
}
