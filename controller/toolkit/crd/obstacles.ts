/**
 * What zod can check and a CRD cannot say, each with what to write instead. Pure.
 */
import { z } from 'zod'
import { shown } from '../../../shared/nearest.ts'
import type { Json } from './jsonschema.ts'

const asRule = "write it as a CEL rule: .meta({ rules: [{ rule: 'self …', message: '…' }] })"
const changes = 'the server keeps values as they are written: change it in the program that reads it'

/** By the sort of schema. */
const byType: Record<string, string> = {
  bigint: 'a bigint is nothing that JSON has: use z.int()',
  date: 'a Date is nothing that JSON has: use z.iso.datetime()',
  set: "a Set is nothing that JSON has: use z.array(…).meta({ 'x-kubernetes-list-type': 'set' })",
  map: 'a Map is nothing that JSON has: use z.record(z.string(), …)',
  tuple: 'a CRD has no tuples: use z.object with a name for each part, or z.array',
  undefined: 'undefined is nothing that JSON has: use .optional()',
  void: 'undefined is nothing that JSON has: use .optional()',
  symbol: 'a symbol is nothing that JSON has',
  nan: 'NaN is nothing that JSON has',
  function: 'a function is nothing that JSON has',
  promise: 'a promise is nothing that JSON has',
  file: 'a file is nothing that JSON has: use z.base64()',
  never: 'nothing fits z.never(): leave the field out',
  success: 'z.success() has no value of its own on the server: leave the field out',
  catch: '.catch() accepts anything, the server does not: use .default()',
  pipe: `a transform (.transform, .pipe, z.preprocess, z.codec, z.stringbool) cannot be told in a CRD, as ${changes}`,
  transform: `a transform cannot be told in a CRD, as ${changes}`,
}

/** Checks that zod puts into the JSON schema. */
const told = new Set([
  'less_than',
  'greater_than',
  'multiple_of',
  'number_format',
  'max_length',
  'min_length',
  'length_equals',
])

/** Why what a schema checks cannot be told in a CRD, if it cannot. */
export function obstacleOf(schema: z.core.$ZodType, json: Json): string | undefined {
  const { def } = (schema as z.core.$ZodTypes)._zod
  const isPreserved = json['x-kubernetes-preserve-unknown-fields'] === true
  if (def.type === 'custom')
    return isPreserved
      ? undefined
      : `what a function checks (z.custom, z.instanceof) is not known to the server: ${asRule}`
  const known = byType[def.type]
  if (known !== undefined) return known
  if ('coerce' in def && def.coerce) return `z.coerce accepts what the server does not, as ${changes}`
  if (def.type === 'record' && !isPlainText(def.keyType) && json['namesUnchecked'] !== true) {
    const rule = 'rules: [{ rule: \'self.all(key, key.matches("^a"))\' }]'
    return `the names of a record cannot be constrained in a CRD: use z.string() for them and .meta({ ${rule} }), or z.object; or let only validate() check them, with .meta({ namesUnchecked: true })`
  }
  const found = checksOf(schema)
    .map(checkObstacle)
    .find(obstacle => obstacle !== undefined)
  if (found !== undefined || (def.type !== 'default' && def.type !== 'prefault')) return found
  return defaultObstacle(def.innerType, def.defaultValue)
}

/** The checks of a schema; a format such as z.email() is its own first one. */
export function checksOf(schema: z.core.$ZodType): z.core.$ZodCheck[] {
  const checks = schema._zod.def.checks ?? []
  return schema._zod.traits.has('$ZodCheck') ? [schema as unknown as z.core.$ZodCheck, ...checks] : checks
}

function checkObstacle(check: z.core.$ZodCheck): string | undefined {
  const def = check._zod.def as z.core.$ZodCheckDef & Record<string, unknown>
  if (told.has(def.check)) return undefined
  if (def.check === 'custom')
    return `what a function checks (.refine, .superRefine, .check) is not known to the server: ${asRule}`
  if (def.check === 'overwrite')
    return `what changes a text (.trim, .toLowerCase …) cannot be told in a CRD, as ${changes}`
  if (def.check !== 'string_format') return `the check ${shown(def.check)} cannot be told in a CRD: ${asRule}`
  const format = String(def['format'])
  if (format === 'url') {
    if (def['normalize']) return `a URL cannot be normalized in a CRD, as ${changes}`
    if (!def['hostname'] && !def['protocol']) return undefined
    return `the parts of a URL cannot be constrained in a CRD: use z.url().meta({ rules: [{ rule: "url(self).getScheme() == 'https'" }] })`
  }
  if (format === 'duration') {
    return "the server knows durations such as 1h30m, not ISO 8601's: use z.string().regex(…)"
  }
  return def['pattern'] instanceof RegExp
    ? undefined
    : `the format ${shown(format)} is checked by a function: ${asRule}`
}

function isPlainText(schema: z.core.$ZodType): boolean {
  return schema._zod.def.type === 'string' && checksOf(schema).length === 0
}

/** The server refuses a default that does not fit, and forgets one of null; zod does neither. */
function defaultObstacle(inner: z.core.$ZodType, value: unknown): string | undefined {
  if (value === null) return 'the server does not fill in null: leave the default out, and use .nullish()'
  const { error } = z.safeParse(inner, value)
  return error && `its default ${shown(value)} is not accepted by the field itself: ${error.issues[0]?.message}`
}
