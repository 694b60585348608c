/**
 * The JSON schema that zod makes of a schema, with a mark wherever zod itself would pass over something in silence.
 *
 * Guarantee: where there is no mark, the JSON schema says all that the zod schema checks.
 */
import { z } from 'zod'
import { obstacleOf } from './obstacles.ts'
import { markPatterns } from './pattern.ts'

/** A JSON schema as zod gives it; `obstacle` says why it cannot be told in a CRD, `nothing` that only null fits. */
export type Json = Record<string, unknown>

export function jsonSchemaOf(schema: z.core.$ZodType): Json {
  // What holds itself becomes a definition; it is refused where it is used.
  const { definitions: _definitions, ...json } = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    unrepresentable: 'any',
    metadata: nameless,
    override: ({ zodSchema, jsonSchema }) => {
      const json = jsonSchema as Json
      markPatterns(zodSchema, json)
      const obstacle = obstacleOf(zodSchema, json)
      if (obstacle !== undefined) json['obstacle'] = obstacle
      if (zodSchema._zod.def.type === 'null') json['nothing'] = true
    },
  }) as Json
  return json
}

/** What `.meta` and `.describe` say, without the ids: those would become references, which a CRD does not have. */
const nameless = {
  get(schema: z.core.$ZodType) {
    const { id: _id, ...meta } = z.globalRegistry.get(schema) ?? {}
    return meta
  },
} as unknown as typeof z.globalRegistry
