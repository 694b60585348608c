/**
 * What every status has: conditions (metav1.Condition, told apart by their type) and the generation that they are about.
 */
import { z } from 'zod'

const condition = z.object({
  type: z
    .string()
    .max(316)
    .regex(
      /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$/,
    )
    .describe('What the condition is about, in CamelCase.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether it holds.'),
  reason: z
    .string()
    .min(1)
    .max(1024)
    .regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/)
    .describe('Why, in one CamelCase word.'),
  message: z.string().max(32768).describe('Why, for a person.'),
  lastTransitionTime: z.iso.datetime({ offset: true }).describe('When status changed last.'),
  observedGeneration: z.int().min(0).optional().describe('The generation of the object that it is about.'),
})

const standard = {
  conditions: z
    .array(condition)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })
    .describe('How things stand.')
    .optional(),
  observedGeneration: z.int().min(0).optional().describe('The generation of the object that the status is about.'),
}

/** A status with what every one has. Its fields are all optional: a status is written field by field. */
export function wholeStatus(status: z.ZodObject | undefined): z.ZodObject {
  if (!status) return z.object(standard)
  const { id: _id, ...meta } = status.meta() ?? {}
  return status.partial().extend(standard).meta(meta)
}
