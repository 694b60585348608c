/** The objects of a list that a client sent; none where it sent something else. */
// biome-ignore lint/suspicious/noExplicitAny: what a client sent.
export function list(value: any): any[] {
  return Array.isArray(value) ? value.filter(item => item !== null && typeof item === 'object') : []
}
