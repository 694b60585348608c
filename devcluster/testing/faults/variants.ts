/**
 * Other values for the fields of a custom resource, from its schema: what a person might change. Pure.
 */
export interface Schema {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly enum?: readonly unknown[]
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
}

export interface Variant {
  /** From the object's root. */
  readonly path: readonly string[]
  /** To be tried one after another, until the server takes one. */
  readonly values: readonly unknown[]
  /** What it was; undefined where it was not said. */
  readonly was: unknown
}

export function variantsOf(spec: unknown, schema: Schema | undefined, path: readonly string[] = ['spec']): Variant[] {
  const fields = isMap(spec) ? spec : {}
  return Object.entries(schema?.properties ?? {}).flatMap(([name, field]) => {
    const was = fields[name]
    if (field.properties && (was !== undefined || path.length < 3)) return variantsOf(was, field, [...path, name])
    const values = valuesOf(was, field).filter(value => JSON.stringify(value) !== JSON.stringify(was))
    return values.length > 0 ? [{ path: [...path, name], values, was }] : []
  })
}

function valuesOf(was: unknown, { type, enum: choices, minimum, maximum, items }: Schema): unknown[] {
  if (choices) return [...choices]
  switch (type) {
    case 'boolean':
      return [was !== true]
    case 'integer':
    case 'number': {
      const now = typeof was === 'number' ? was : (minimum ?? 1)
      const candidates = [now + 1, now - 1, minimum ?? 0, maximum ?? now + 2]
      return candidates.filter(value => value >= (minimum ?? -Infinity) && value <= (maximum ?? Infinity))
    }
    case 'string': {
      const now = typeof was === 'string' ? was : ''
      // Something like it, for patterns; then anything.
      return [
        `${now}x`,
        now.slice(0, -1),
        now.replace(/\d+/, digits => String(Number(digits) + 1)),
        'changed',
        '1',
      ].filter(value => value !== '')
    }
    case 'array':
      return Array.isArray(was) && was.length > 0
        ? [was.slice(1), [...was, ...was]]
        : valuesOf(undefined, items ?? {}).map(item => [item])
    default:
      return []
  }
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A merge patch that sets one field. */
export function patchOf(path: readonly string[], value: unknown): object {
  return path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value ?? null) as object
}
