/**
 * What sidecars say, checked against the protocol's schemas. Pure.
 *
 * Guarantee: fields that are not known here do not matter, at any depth, as a newer sidecar may have them; everything that is known is as the
 * schema says, or the answer is refused with the field that is not.
 */
import * as z from 'zod/mini'
import { messageOf } from '../../../shared/errors.ts'
import { type Message, message } from '../../../shared/protocol/schemas.ts'

/** What was said is not the protocol; the text says where. */
export class Garbled extends Error {}

function checked<Schema extends z.core.$ZodType>(schema: Schema, value: unknown): z.infer<Schema> {
  const wrong = z.safeParse(schema, value).error?.issues.find(({ code }) => code !== 'unrecognized_keys')
  if (!wrong) return value as z.infer<Schema>
  const field = wrong.path.map(String).join('.')
  throw new Garbled(`${field === '' ? 'it' : `"${field}"`} is not as the protocol says (${wrong.code})`)
}

export function parsed<Schema extends z.core.$ZodType>(schema: Schema, text: string): z.infer<Schema> {
  return checked(schema, json(text))
}

/** The types of messages that are understood here. */
const known = new Set<unknown>(message.def.options.flatMap(option => [...option.shape.type.def.values]))

const numbered = z.object({ seq: z.int(), cursor: z.string() })

/** A message of `/v1/events`; of a type that is not known here, its place alone. */
export type Heard = Message | { readonly seq: number; readonly cursor: string; readonly type: undefined }

export function heard(text: string): Heard {
  const value = json(text)
  if (known.has((value as { type?: unknown } | null)?.type)) return checked(message, value)
  const { seq, cursor } = checked(numbered, value)
  return { seq, cursor, type: undefined }
}

function json(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Garbled(`it is no JSON: ${messageOf(error)}`)
  }
}
