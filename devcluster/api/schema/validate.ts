/**
 * A value held against its schema: types, formats, ranges, enums, lists, maps, combinations, in the server's words for custom resources. Pure.
 *
 * On an update what is wrong is let pass where the value is the same as before: at the field itself or at one around it, with items of a list
 * paired by their keys. So a schema may become stricter without locking out the objects that are there.
 */
import type { FieldError } from '../problems.ts'
import { fitsFormat, formatOf } from './formats.ts'
import { checkLists } from './lists.ts'
import { checkNumber } from './numbers.ts'
import { compile } from './pattern.ts'
import { checkResources } from './resources.ts'
import type { Schema } from './schema.ts'
import { child, equal, has, isObject, type JsonObject, listKey, propertyOf, typeOf, valuesOf } from './values.ts'

export function validate(schema: Schema, value: unknown, options: { old?: unknown } = {}): FieldError[] {
  const { old } = options
  const { errors } = check(schema, value, '', old === undefined ? undefined : { old })
  const lists = checkLists(schema, value)
  return [
    ...unique(errors),
    ...checkResources(schema, value),
    // Duplicates that were there before do not lock an object out.
    ...(lists.length > 0 && old !== undefined && checkLists(schema, old).length > 0 ? [] : lists),
  ]
}

/** What went wrong, and how far the value fitted: of alternatives that all fail, those of the best one are told. */
interface Result {
  errors: FieldError[]
  matched: number
}

/** The value that was there before, where one can be paired with the present one. */
type Before = { readonly old: unknown } | undefined

const typeInvalid = (path: string, type: string, got: string): FieldError => ({
  mistake: 'FieldValueTypeInvalid',
  field: path,
  value: got,
  detail: `${path} in body must be of type ${type}: ${JSON.stringify(got)}`,
})
const invalid = (path: string, value: unknown, detail: string): FieldError => ({
  mistake: 'FieldValueInvalid',
  field: path,
  value,
  detail: `${path} in body ${detail}`,
})
const combined = (path: string, detail: string): FieldError => ({
  mistake: 'FieldValueInvalid',
  field: '<nil>',
  value: '',
  detail: `"${path}" must ${detail}`,
})

/** The check of a field or an item, passed where nothing has changed. */
function check(schema: Schema, value: unknown, path: string, before: Before): Result {
  const result = checkAll(schema, value, path, before)
  return result.errors.length > 0 && before && equal(before.old, value) ? { ...result, errors: [] } : result
}

function checkAll(schema: Schema, value: unknown, path: string, before: Before): Result {
  const types = schema['x-kubernetes-int-or-string'] ? ['integer', 'string'] : schema.type ? [schema.type] : []
  const type = types.length === 1 ? types[0] : undefined
  const format = formatOf(type, schema.format)
  const result: Result = { errors: [], matched: 1 }
  const add = ({ errors, matched }: Result) => {
    result.errors.push(...errors)
    result.matched += matched
  }
  if (types.length > 0) add(checkType(types, format, schema.nullable === true, value, path))
  add({ errors: checkEnum(schema, value, path), matched: 0 })
  if (value === null || value === undefined) return result
  add(checkCombinations(schema, value, path, before))
  if (typeof value === 'string') add({ errors: checkString(schema, format, value, path), matched: 0 })
  else if (typeof value === 'number') {
    const { errors, held } = checkNumber(schema, type, format, value, path)
    add({ errors, matched: held })
  } else if (Array.isArray(value)) add(checkList(schema, value, path, before))
  else if (isObject(value)) add(checkObject(schema, value, path, before))
  return result
}

const formatsOf: Record<string, string> = { integer: 'int64', number: 'float64' }

function checkType(types: readonly string[], format: string, nullable: boolean, value: unknown, path: string): Result {
  const fine: Result = { errors: [], matched: 1 }
  const wrong = (expected: string, got: string): Result => ({ errors: [typeInvalid(path, expected, got)], matched: 0 })
  const got = typeOf(value)
  if (got === 'null') return nullable ? fine : wrong(types.join(','), 'null')
  const fits = types.includes(got) || (got === 'integer' && types.includes('number'))
  if (fits) return fine
  const isText = got === 'string' || got === 'array'
  if (!isText && format) return wrong(format, formatsOf[got] ?? '')
  if (isText && format && !types.includes('integer') && !types.includes('number')) return fine
  return wrong(types.join(','), got)
}

function checkEnum(schema: Schema, value: unknown, path: string): FieldError[] {
  if (!schema.enum || schema.enum.some(one => equal(one, value))) return []
  const supported = schema.enum.map(one => JSON.stringify(typeof one === 'object' ? shown(one) : String(one)))
  return [
    {
      mistake: 'FieldValueNotSupported',
      field: path,
      value: value ?? null,
      detail: `supported values: ${supported.join(', ')}`,
    },
  ]
}

const counted = (count: number, unit: string) => `${count} ${unit}${count === 1 ? '' : 's'}`

const shown = (value: unknown) => (value === null ? '<nil>' : JSON.stringify(value))

const characters = (text: string) => {
  let count = 0
  for (const _ of text) count++
  return count
}

function checkString(schema: Schema, format: string, value: string, path: string): FieldError[] {
  const errors: FieldError[] = []
  const { maxLength, minLength, pattern } = schema
  if (maxLength !== undefined && value.length > maxLength && characters(value) > maxLength) {
    errors.push({
      mistake: 'FieldValueTooLong',
      field: path,
      detail: `may not be more than ${counted(maxLength, 'byte')}`,
    })
  } else if (minLength !== undefined && characters(value) < minLength) {
    errors.push(invalid(path, value, `should be at least ${minLength} chars long`))
  } else if (pattern) {
    const compiled = compile(pattern)
    if (compiled instanceof Error)
      errors.push(invalid(path, value, `should match '${pattern}', but pattern is invalid: ${compiled.message}`))
    else if (!compiled.test(value)) errors.push(invalid(path, value, `should match '${pattern}'`))
  }
  if (format && !fitsFormat(format, value)) errors.push(typeInvalid(path, format, value))
  return errors
}

function checkList(schema: Schema, list: unknown[], path: string, before: Before): Result {
  const result: Result = { errors: [], matched: 0 }
  const { items, minItems, maxItems } = schema
  if (items) {
    const pair = pairing(schema, before)
    for (const [index, item] of list.entries()) {
      const { errors, matched } = check(items, item, `${path}[${index}]`, pair(item))
      result.errors.push(...errors)
      result.matched += matched
    }
  }
  if (minItems !== undefined && list.length < minItems) {
    result.errors.push(invalid(path, list.length, `should have at least ${minItems} items`))
  }
  if (maxItems !== undefined && list.length > maxItems) result.errors.push(tooMany(path, list.length, maxItems))
  if (schema.uniqueItems && list.some((item, index) => list.slice(0, index).some(other => equal(item, other)))) {
    result.errors.push(invalid(path, list, "shouldn't contain duplicates"))
  }
  return result
}

const tooMany = (path: string, count: number, limit: number): FieldError => ({
  mistake: 'FieldValueTooMany',
  field: path,
  value: count,
  detail: `must have at most ${counted(limit, 'item')}`,
})

/** Items of a list that has keys are paired with those of before; of another list only the whole is compared. */
export function pairing(schema: Schema, before: Before): (item: unknown) => Before {
  const list = before?.old
  if (schema['x-kubernetes-list-type'] !== 'map' || !Array.isArray(list)) return () => undefined
  const byKey = new Map(list.map(item => [listKey(schema, item), item]))
  return item => {
    const key = listKey(schema, item)
    return key !== undefined && byKey.has(key) ? { old: byKey.get(key) } : undefined
  }
}

function checkObject(schema: Schema, object: JsonObject, path: string, before: Before): Result {
  const result: Result = { errors: [], matched: 0 }
  const count = Object.keys(object).length
  const { minProperties, maxProperties } = schema
  if (minProperties !== undefined && count < minProperties) {
    result.errors.push(invalid(path, count, `should have at least ${minProperties} properties`))
  }
  if (maxProperties !== undefined && count > maxProperties) result.errors.push(tooMany(path, count, maxProperties))
  const values = valuesOf(schema)
  const old = isObject(before?.old) ? before.old : undefined
  for (const key in object) {
    const below = propertyOf(schema, key) ?? values
    if (!below) continue
    const { errors, matched } = check(
      below,
      object[key],
      child(path, key),
      has(old, key) ? { old: old?.[key] } : undefined,
    )
    result.errors.push(...errors)
    result.matched += matched
  }
  for (const key of schema.required ?? []) {
    if (!has(object, key)) result.errors.push({ mistake: 'FieldValueRequired', field: child(path, key) })
  }
  return result
}

function checkCombinations(schema: Schema, value: unknown, path: string, before: Before): Result {
  const result: Result = { errors: [], matched: 1 }
  const merge = ({ errors, matched }: Result) => {
    result.errors.push(...errors)
    result.matched += matched
  }
  const results = (alternatives: Schema[]) => alternatives.map(one => checkAll(one, value, path, before))
  if (schema.anyOf?.length) {
    const all = results(schema.anyOf)
    if (!all.some(isValid)) {
      result.errors.push(combined(path, 'validate at least one schema (anyOf)'))
      merge(best(all))
    }
  }
  if (schema.oneOf?.length) {
    const all = results(schema.oneOf)
    const valid = all.filter(isValid).length
    if (valid === 0) {
      result.errors.push(combined(path, 'validate one and only one schema (oneOf). Found none valid'))
      merge(best(all))
    } else if (valid > 1) {
      result.errors.push(combined(path, `validate one and only one schema (oneOf). Found ${valid} valid alternatives`))
    }
  }
  if (schema.allOf?.length) {
    const all = results(schema.allOf)
    const valid = all.filter(isValid).length
    for (const one of all) merge(one)
    if (valid < all.length) {
      result.errors.push(combined(path, `validate all the schemas (allOf)${valid === 0 ? '. None validated' : ''}`))
    }
  }
  if (schema.not && isValid(checkAll(schema.not, value, path, before))) {
    result.errors.push(combined(path, 'not validate the schema (not)'))
  }
  return result
}

const isValid = ({ errors }: Result) => errors.length === 0
const best = (results: Result[]) => results.reduce((most, one) => (one.matched > most.matched ? one : most))

/** Several branches may say the same. */
function unique(errors: FieldError[]): FieldError[] {
  const said = new Set<string>()
  return errors.filter(error => {
    const key = JSON.stringify(error)
    return said.has(key) ? false : said.add(key)
  })
}
