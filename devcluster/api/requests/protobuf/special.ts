/**
 * Messages whose JSON is something else than an object of their fields: quantities, times, numbers or texts, and JSON itself.
 */
import type { Json } from '../../types.ts'
import { bytesOf, eachField, Malformed, signed, text, type Wire } from './wire.ts'

type Read = (bytes: Uint8Array, message: (bytes: Uint8Array, name: string) => Json) => Json

/** The last value of each field; `all` has those of a field that may come again. */
function fieldsOf(bytes: Uint8Array): { last: Map<number, Wire>; all: (number: number) => Wire[] } {
  const fields: [number, Wire][] = []
  eachField(bytes, (number, value) => fields.push([number, value]))
  return { last: new Map(fields), all: number => fields.filter(([own]) => own === number).map(([, value]) => value) }
}

const schema = 'apiextensions/v1.JSONSchemaProps'

export const special: Readonly<Record<string, Read>> = {
  quantity: bytes => text(fieldsOf(bytes).last.get(1)) || '0',
  time: bytes => timeText(bytes, 0),
  microTime: bytes => timeText(bytes, 6),
  intOrString(bytes) {
    const { last } = fieldsOf(bytes)
    return signed(last.get(1)) === 1 ? text(last.get(3)) : signed(last.get(2))
  },
  raw(bytes) {
    const json = text(fieldsOf(bytes).last.get(1))
    try {
      return json === '' ? null : JSON.parse(json)
    } catch (error) {
      throw new Malformed((error as Error).message)
    }
  },
  strings: bytes => fieldsOf(bytes).all(1).map(text),
  schemaOrArray(bytes, message) {
    const { last, all } = fieldsOf(bytes)
    const many = all(2)
    if (many.length > 0) return many.map(one => message(bytesOf(one), schema))
    const one = last.get(1)
    return one === undefined ? null : message(bytesOf(one), schema)
  },
  schemaOrBool(bytes, message) {
    const { last } = fieldsOf(bytes)
    const one = last.get(2)
    return one === undefined ? signed(last.get(1)) !== 0 : message(bytesOf(one), schema)
  },
  schemaOrStrings(bytes, message) {
    const { last, all } = fieldsOf(bytes)
    const many = all(2)
    if (many.length > 0) return many.map(text)
    const one = last.get(1)
    return one === undefined ? null : message(bytesOf(one), schema)
  },
}

/** Seconds and nanoseconds since 1970; no time at all is an empty message. */
function timeText(bytes: Uint8Array, digits: number): string | null {
  if (bytes.length === 0) return null
  const { last } = fieldsOf(bytes)
  const time = new Date(signed(last.get(1)) * 1000)
  if (Number.isNaN(time.getTime())) throw new Malformed('a time is out of range')
  const fraction = String(signed(last.get(2)))
    .padStart(9, '0')
    .slice(0, digits)
  return `${time.toISOString().slice(0, -5)}${digits > 0 ? `.${fraction}` : ''}Z`
}
