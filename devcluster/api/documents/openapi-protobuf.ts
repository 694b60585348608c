/**
 * OpenAPI v2 as Protocol Buffers (gnostic's `openapi.v2.Document`), which kubectl asks for when it meets a kind that it does not find elsewhere.
 * Paths are left out, as in our JSON; a schema's words that v2 does not know are, too.
 */

type Json = Readonly<Record<string, unknown>>

/** Number and form of a schema's field. */
const fields: Readonly<Record<string, readonly [number: number, encode: (number: number, value: never) => Buffer]>> = {
  $ref: [1, text],
  format: [2, text],
  title: [3, text],
  description: [4, text],
  default: [5, any],
  multipleOf: [6, double],
  maximum: [7, double],
  exclusiveMaximum: [8, flag],
  minimum: [9, double],
  exclusiveMinimum: [10, flag],
  maxLength: [11, integer],
  minLength: [12, integer],
  pattern: [13, text],
  maxItems: [14, integer],
  minItems: [15, integer],
  uniqueItems: [16, flag],
  maxProperties: [17, integer],
  minProperties: [18, integer],
  required: [19, (number, value: readonly string[]) => Buffer.concat(value.map(one => text(number, one)))],
  enum: [20, (number, value: readonly unknown[]) => Buffer.concat(value.map(one => any(number, one)))],
  additionalProperties: [
    21,
    (number, value: boolean | Json) =>
      message(number, typeof value === 'boolean' ? flag(2, value) : message(1, schemaOf(value))),
  ],
  type: [22, (number, value: string) => message(number, text(1, value))],
  items: [23, (number, value: Json) => message(number, message(1, schemaOf(value)))],
  properties: [25, (number, value: Readonly<Record<string, Json>>) => message(number, named(value))],
}

export function openapiProtobuf(document: Json): Buffer {
  const { info, definitions } = document as {
    info: { title: string; version: string }
    definitions: Record<string, Json>
  }
  return Buffer.concat([
    text(1, '2.0'),
    message(2, Buffer.concat([text(1, info.title), text(2, info.version)])),
    message(8, Buffer.alloc(0)),
    message(9, named(definitions)),
  ])
}

function named(schemas: Readonly<Record<string, Json>>): Buffer {
  return Buffer.concat(
    Object.entries(schemas).map(([name, schema]) =>
      message(1, Buffer.concat([text(1, name), message(2, schemaOf(schema))])),
    ),
  )
}

function schemaOf(schema: Json): Buffer {
  const parts: Buffer[] = []
  for (const [key, value] of Object.entries(schema)) {
    const [number, encode] = fields[key] ?? []
    if (number !== undefined && encode) parts.push(encode(number, value as never))
    else if (key.startsWith('x-')) parts.push(message(31, Buffer.concat([text(1, key), any(2, value)])))
  }
  return Buffer.concat(parts)
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80)
  return Buffer.from([...bytes, rest])
}

function message(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes])
}

function text(number: number, value: string): Buffer {
  return message(number, Buffer.from(value))
}

/** Any value, as YAML; which JSON is. */
function any(number: number, value: unknown): Buffer {
  return message(number, text(2, JSON.stringify(value)))
}

function flag(number: number, value: boolean): Buffer {
  return Buffer.concat([varint(number * 8), varint(value ? 1 : 0)])
}

function integer(number: number, value: number): Buffer {
  return Buffer.concat([varint(number * 8), varint(value)])
}

function double(number: number, value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleLE(value)
  return Buffer.concat([varint(number * 8 + 1), bytes])
}
