/**
 * Values as Go prints them, for messages that quote what was sent.
 */

/** `%v`. */
export function goText(value: unknown): string {
  if (value === null || value === undefined) return '<nil>'
  if (Array.isArray(value)) return `[${value.map(goText).join(' ')}]`
  if (typeof value === 'object') {
    const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
    return `map[${fields.map(([name, inner]) => `${name}:${goText(inner)}`).join(' ')}]`
  }
  return String(value)
}

/** `%#v`. */
export function goSyntax(value: unknown): string {
  if (value === null || value === undefined) return 'interface {}(nil)'
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(', ')}}`
  if (typeof value === 'object') {
    const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
    return `map[string]interface {}{${fields.map(([name, inner]) => `${JSON.stringify(name)}:${goSyntax(inner)}`).join(', ')}}`
  }
  return typeof value === 'string' ? JSON.stringify(value) : String(value)
}

/** `%T`. */
export function goType(value: unknown): string {
  if (value === null || value === undefined) return '<nil>'
  if (Array.isArray(value)) return '[]interface {}'
  if (typeof value === 'object') return 'map[string]interface {}'
  if (typeof value === 'string') return 'string'
  if (typeof value === 'boolean') return 'bool'
  return Number.isInteger(value) ? 'int64' : 'float64'
}
