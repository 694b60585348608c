/**
 * resourceVersions compared: they are numbers that only rise (guaranteed since Kubernetes 1.35, true of etcd always).
 */

/** Below 0: `a` is older than `b`. 0: the same. Above 0: newer. NaN where either is no number, and nothing can be said. */
export function compareVersions(a: string, b: string): number {
  if (a === b) return 0
  if (!isNumber(a) || !isNumber(b)) return Number.NaN
  // The longer number is the larger; these may exceed what a double holds.
  if (a.length !== b.length) return a.length - b.length
  return a < b ? -1 : 1
}

function isNumber(text: string): boolean {
  // The server writes none with a leading zero: whatever does is no number to it.
  if (text.length === 0 || (text.length > 1 && text.startsWith('0'))) return false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 48 || code > 57) return false
  }
  return true
}
