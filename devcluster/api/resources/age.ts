/**
 * How long something is, or has been, in the few characters of a table: `45s`, `3m12s`, `5h`, `2d3h`, `400d`.
 */
export function age(from: string | undefined, until?: string): string {
  if (!from) return '<unknown>'
  const seconds = Math.floor(((until ? Date.parse(until) : Date.now()) - Date.parse(from)) / 1000)
  return Number.isNaN(seconds) ? '<unknown>' : duration(seconds)
}

const minute = 60
const hour = 60 * minute
const day = 24 * hour
const year = 365 * day

function duration(seconds: number): string {
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 2 * minute) return `${seconds}s`
  if (seconds < 10 * minute) return both(seconds, minute, 'm', 1, 's')
  if (seconds < 3 * hour) return `${Math.floor(seconds / minute)}m`
  if (seconds < 8 * hour) return both(seconds, hour, 'h', minute, 'm')
  if (seconds < 2 * day) return `${Math.floor(seconds / hour)}h`
  if (seconds < 8 * day) return both(seconds, day, 'd', hour, 'h')
  if (seconds < 2 * year) return `${Math.floor(seconds / day)}d`
  if (seconds < 8 * year) return both(seconds, year, 'y', day, 'd')
  return `${Math.floor(seconds / year)}y`
}

function both(seconds: number, large: number, largeUnit: string, small: number, smallUnit: string): string {
  const rest = Math.floor((seconds % large) / small)
  return `${Math.floor(seconds / large)}${largeUnit}${rest === 0 ? '' : `${rest}${smallUnit}`}`
}
