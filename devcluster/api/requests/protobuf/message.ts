/**
 * A message of Kubernetes' types as the JSON that Go makes of the same object: what is empty is left out where its field says so.
 */
import data from '../../../data/protobuf.json' with { type: 'json' }
import type { Json } from '../../types.ts'
import { special } from './special.ts'
import { bytesOf, double, eachField, Malformed, signed, text, type Wire } from './wire.ts'

/** Of one value, one that may be missing, a list, a map by texts, a message whose fields stand among those around it. */
type Shape = '' | '*' | '[]' | '{}' | '<'
/** Left out of JSON when empty, when zero. */
type Omit = '' | 'e' | 'z' | 'ez'
type Field = [number: number, name: string, type: string, shape: Shape, omit: Omit]

const { kinds, messages } = data as unknown as {
  kinds: Record<string, string>
  messages: Record<string, Field[]>
}

/** The message that a kind is sent as. How to delete is the same in every group. */
export const messageOf = (apiVersion: string, kind: string): string | undefined =>
  kinds[`${kind === 'DeleteOptions' ? 'v1' : apiVersion}/${kind}`]

const none = new Uint8Array()

export function readMessage(bytes: Uint8Array, name: string): { [key: string]: Json } {
  const fields = messages[name]
  if (!fields) throw new Error(`there is no message ${name}`)
  const found = new Map<number, Wire[]>()
  eachField(bytes, (number, value) => {
    const before = found.get(number)
    if (before) before.push(value)
    else found.set(number, [value])
  })
  const object: { [key: string]: Json } = {}
  for (const field of fields) put(object, field, found.get(field[0]))
  return object
}

function put(object: { [key: string]: Json }, field: Field, wires: Wire[] | undefined): void {
  const [, name, type, shape, omit] = field
  const last = wires?.at(-1)
  if (shape === '<') {
    Object.assign(object, readMessage(last === undefined ? none : bytesOf(last), type))
    return
  }
  if (shape !== '' && last === undefined) {
    if (omit === '') object[name] = null
    return
  }
  const value = allOf(type, shape, wires ?? [])
  if (shape === '' && isLeftOut(type, value, omit)) return
  object[name] = value
}

function allOf(type: string, shape: Shape, wires: Wire[]): Json {
  if (shape === '[]') return wires.map(wire => read(type, wire))
  if (shape === '{}') return Object.fromEntries(wires.map(wire => entry(type, bytesOf(wire))))
  return read(type, wires.at(-1))
}

function entry(type: string, bytes: Uint8Array): [string, Json] {
  let key = ''
  let value: Wire | undefined
  eachField(bytes, (number, wire) => {
    if (number === 1) key = text(wire)
    else if (number === 2) value = wire
  })
  return [key, read(type, value)]
}

/** Go leaves out no struct for being empty, but a time that is none where its field says zero. */
function isLeftOut(type: string, value: Json, omit: Omit): boolean {
  if (omit === '') return false
  return type in scalars ? value === '' || value === 0 || value === false : omit.includes('z') && value === null
}

const scalars: Readonly<Record<string, (wire: Wire | undefined) => Json>> = {
  string: text,
  int: signed,
  bool: wire => signed(wire) !== 0,
  double: wire => (wire === undefined ? 0 : double(wire)),
  bytes: wire => (wire === undefined ? '' : Buffer.from(bytesOf(wire)).toString('base64')),
}

function read(type: string, wire: Wire | undefined): Json {
  const scalar = scalars[type]
  if (scalar) return scalar(wire)
  const bytes = wire === undefined ? none : bytesOf(wire)
  const other = special[type]
  return other ? other(bytes, readMessage) : readMessage(bytes, type)
}

/** An object that was sent, with the kind that the sender says it is. Throws Malformed. */
export function readSent(bytes: Uint8Array): { apiVersion: string; kind: string; raw: Uint8Array } {
  if (magic.some((byte, at) => bytes[at] !== byte)) {
    throw new Malformed(`provided data does not appear to be a protobuf message, expected prefix [${magic.join(' ')}]`)
  }
  let [apiVersion, kind] = ['', '']
  let raw: Uint8Array = none
  eachField(bytes.subarray(magic.length), (number, wire) => {
    if (number === 2) raw = bytesOf(wire)
    if (number !== 1) return
    eachField(bytesOf(wire), (own, value) => {
      if (own === 1) apiVersion = text(value)
      else if (own === 2) kind = text(value)
    })
  })
  return { apiVersion, kind, raw }
}

/** `k8s` and a zero: an object with its kind follows. */
const magic = [0x6b, 0x38, 0x73, 0]
