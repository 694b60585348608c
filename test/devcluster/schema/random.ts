/** Random schemas with random values, from a seed: nested, with every word that narrows a value. */
import type { Schema } from '../../../devcluster/api/schema/schema.ts'

export interface Case {
  name: string
  schema: Schema
  values: unknown[]
}

export function randomCases(seed: number, count: number, values: number): Case[] {
  let state = seed
  const random = (limit: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
  const pick = <T>(list: readonly T[]): T => list[random(list.length)] as T
  const maybe = (schema: Schema) => (random(3) === 0 ? schema : {})
  const keys = ['a', 'b', 'c']

  function schemaOf(depth: number): Schema {
    const type = pick(
      depth > 0
        ? ['object', 'array', 'map', 'string', 'integer', 'number']
        : ['string', 'integer', 'number', 'boolean'],
    )
    const nullable = maybe({ nullable: true })
    switch (type) {
      case 'object':
        return {
          type: 'object',
          properties: Object.fromEntries(keys.map(key => [key, schemaOf(depth - 1)])),
          ...nullable,
          ...maybe({ required: [pick(keys)] }),
          ...maybe({ 'x-kubernetes-preserve-unknown-fields': true }),
          ...maybe({ anyOf: [{ required: ['a'] }, { required: ['b', 'c'] }] }),
          ...maybe({ maxProperties: 2 }),
        }
      case 'array':
        return {
          type: 'array',
          items: schemaOf(depth - 1),
          ...nullable,
          ...maybe({ minItems: 1 }),
          ...maybe({ maxItems: 2 }),
        }
      case 'map':
        return {
          type: 'object',
          additionalProperties: schemaOf(depth - 1),
          ...nullable,
          ...maybe({ maxProperties: 1 }),
        }
      case 'string':
        return {
          type: 'string',
          ...nullable,
          ...maybe({ minLength: 1 }),
          ...maybe({ maxLength: 2 }),
          ...maybe({ pattern: pick(['^a', 'b$', '[xyz]']) }),
          ...maybe({ enum: ['a', 'abc'] }),
          ...maybe({ not: { enum: ['abc'] } }),
        }
      case 'boolean':
        return { type: 'boolean', ...nullable }
      default:
        return {
          type: type as 'integer' | 'number',
          ...nullable,
          ...maybe({ minimum: 1 }),
          ...maybe({ maximum: 3 }),
          ...maybe({ multipleOf: 2 }),
          ...(type === 'integer' ? maybe({ format: 'int32' }) : {}),
        }
    }
  }

  function anyValue(schema: Schema | undefined, depth: number): unknown {
    // Often what fits, sometimes anything.
    if (random(6) === 0) return pick([null, 'x', 7, 1.5, true, {}, [], { z: 1 }])
    switch (schema?.type) {
      case 'object': {
        const names = [...keys, 'z'].filter(() => random(2) === 0)
        const inner = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
        return Object.fromEntries(names.map(key => [key, anyValue(schema.properties?.[key] ?? inner, depth - 1)]))
      }
      case 'array':
        return Array.from({ length: random(4) }, () => anyValue(schema.items, depth - 1))
      case 'string':
        return pick(['', 'a', 'abc', 'b', 'x', 'äb'])
      case 'boolean':
        return random(2) === 0
      default:
        return pick([0, 1, 2, 3, 4, 5])
    }
  }

  return Array.from({ length: count }, (_, index) => {
    const schema = schemaOf(2)
    return { name: `f${index}`, schema, values: Array.from({ length: values }, () => anyValue(schema, 2)) }
  })
}
