/**
 * The rules in CEL of a schema (`x-kubernetes-validations`): an object held against them, and they themselves when a definition is made. Pure;
 * rules are compiled once for each schema object.
 *
 * A rule that names `oldSelf` runs on updates alone, where the old value can be paired with the new one. What any other rule says against a value
 * that has not changed is let pass.
 */
import type { FieldError } from '../problems.ts'
import { compile, NoSuchOverload, type Program, withoutStrings } from './cel/compile.ts'
import { cel, newEnvironment, options } from './cel/library.ts'
import { type CelType, declare } from './cel/types.ts'
import { fieldPathOf, ruleMistakes } from './rule-texts.ts'
import type { Schema, ValidationRule } from './schema.ts'
import { pairing } from './validate.ts'
import { child, equal, has, isObject, propertyOf, valuesOf } from './values.ts'

interface CompiledRule {
  readonly rule: ValidationRule
  readonly usesOld: boolean
  readonly program: Program | string
  readonly message: Program | string | undefined
}

interface Compiled {
  readonly type: CelType
  readonly rules: readonly CompiledRule[]
}

const compiled = new WeakMap<Schema, { root?: Compiled; inner?: Compiled }>()

function compiledRules(schema: Schema, isRoot: boolean): Compiled | undefined {
  const rules = schema['x-kubernetes-validations']
  if (!rules?.length) return undefined
  const cached = compiled.get(schema) ?? {}
  const place = isRoot ? 'root' : 'inner'
  const before = cached[place]
  if (before) return before
  const made = compileRules(schema, rules, isRoot)
  compiled.set(schema, { ...cached, [place]: made })
  return made
}

function compileRules(schema: Schema, rules: ValidationRule[], isRoot: boolean): Compiled {
  const environment = newEnvironment()
  const type = declare(environment, schema, isRoot) ?? { name: 'dyn', from: (value: unknown) => value }
  environment.registerVariable('self', type.name)
  const plain = environment.clone(options).registerVariable('oldSelf', type.name)
  const optional = environment
    .clone({ enableOptionalTypes: true })
    .registerVariable('oldSelf', `optional<${type.name}>`)
  return {
    type,
    rules: rules.map(rule => {
      const scope = rule.optionalOldSelf ? optional : plain
      return {
        rule,
        usesOld: /\boldSelf\b/.test(withoutStrings(rule.rule)),
        program: compile(scope, rule.rule, 'bool'),
        message: rule.messageExpression ? compile(plain, rule.messageExpression, 'string') : undefined,
      }
    }),
  }
}

/** The value of before, where it can be paired; and whether what stands around it has stayed the same. */
interface Before {
  readonly old: unknown
  isSame(): boolean
}

export function validateRules(schema: Schema, value: unknown, old: unknown): FieldError[] {
  const before: Before = { old, isSame: () => old !== undefined && equal(old, value) }
  return check(schema, value, before, '', true)
}

const blocking = [
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]

/** Rules are not asked about an object whose shape is wrong: what is said instead. Undefined where they can be. */
export function rulesBlocked(schema: Schema, errors: readonly FieldError[]): FieldError | undefined {
  if (!hasRules(schema) || !errors.some(({ mistake }) => blocking.includes(mistake))) return undefined
  const detail =
    'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation'
  return { mistake: 'FieldValueInvalid', field: '<nil>', value: null, detail }
}

const known = new WeakMap<Schema, boolean>()

/** Whether there is any rule in it: most have none, and need no walk. */
export function hasRules(schema: Schema): boolean {
  const before = known.get(schema)
  if (before !== undefined) return before
  // While a type is looked through, it has none: it may contain itself.
  known.set(schema, false)
  const values = valuesOf(schema)
  const found =
    (schema['x-kubernetes-validations']?.length ?? 0) > 0 ||
    (schema.items !== undefined && hasRules(schema.items)) ||
    (values !== undefined && hasRules(values)) ||
    Object.values(schema.properties ?? {}).some(hasRules)
  known.set(schema, found)
  return found
}

function check(schema: Schema, value: unknown, before: Before, path: string, isRoot: boolean): FieldError[] {
  if (!hasRules(schema) || value === null || value === undefined) return []
  const errors = checkHere(schema, value, before, path, isRoot)
  const below = (inner: Schema, item: unknown, old: unknown, at: string) => {
    const isSame = () => before.isSame() || (old !== undefined && equal(old, item))
    errors.push(...check(inner, item, { old, isSame }, at, false))
  }
  if (Array.isArray(value) && schema.items) {
    const pair = pairing(schema, { old: before.old })
    for (const [index, item] of value.entries()) below(schema.items, item, pair(item)?.old, `${path}[${index}]`)
  } else if (isObject(value)) {
    const values = valuesOf(schema)
    const old = isObject(before.old) ? before.old : undefined
    for (const key in value) {
      const property = propertyOf(schema, key)
      const inner = property ?? values
      if (!inner) continue
      below(inner, value[key], has(old, key) ? old?.[key] : undefined, property ? child(path, key) : `${path}[${key}]`)
    }
  }
  return errors
}

function checkHere(schema: Schema, value: unknown, before: Before, path: string, isRoot: boolean): FieldError[] {
  const found = compiledRules(schema, isRoot)
  if (!found) return []
  const { type, rules } = found
  const errors: FieldError[] = []
  const field = path || '<nil>'
  const self = type.from(value)
  const hasOld = before.old !== undefined && before.old !== null
  const old = hasOld ? type.from(before.old) : undefined
  const broken = (detail: string) =>
    errors.push({ mistake: 'FieldValueInvalid', field, value: schema.type ?? '', detail })
  for (const { rule, usesOld, program, message } of rules) {
    if (typeof program === 'string') {
      broken(`rule compile error: ${program}`)
      continue
    }
    if (usesOld && !hasOld && !rule.optionalOldSelf) continue
    const { Optional } = cel()
    const oldSelf = rule.optionalOldSelf ? (hasOld ? Optional.of(old) : Optional.none()) : old
    const variables = { self, oldSelf }
    try {
      if (program.run(variables) === true) continue
    } catch (thrown) {
      const { message: text } = thrown as Error
      if (thrown instanceof NoSuchOverload) {
        broken(
          `'${text}': call arguments did not match a supported operator, function or macro signature for rule: ${ruleText(rule)}`,
        )
      } else broken(`${text} evaluating rule: ${ruleText(rule)}`)
      continue
    }
    if (!usesOld && before.isSame()) continue
    errors.push(refusal(schema, rule, value, field, expressed(message, { self, oldSelf: old })))
  }
  return errors
}

/** On one line. */
const ruleText = ({ rule }: ValidationRule) => rule.trim()

function expressed(message: Program | string | undefined, variables: Record<string, unknown>): string | undefined {
  if (message === undefined || typeof message === 'string') return undefined
  try {
    const text = String(message.run(variables)).trim()
    return text === '' || text.includes('\n') || Buffer.byteLength(text) > 5 * 1024 ? undefined : text
  } catch {
    return undefined
  }
}

function refusal(
  schema: Schema,
  rule: ValidationRule,
  value: unknown,
  path: string,
  text: string | undefined,
): FieldError {
  const below = rule.fieldPath ? (fieldPathOf(schema, rule.fieldPath) ?? '') : ''
  const field = path === '<nil>' && below ? below.replace(/^\./, '') : `${path}${below}`
  const detail = text ?? (rule.message?.trim() || `failed rule: ${ruleText(rule)}`)
  const shown = schema.type === 'object' || schema.type === 'array' ? undefined : value
  switch (rule.reason) {
    case 'FieldValueForbidden':
    case 'FieldValueRequired':
      return { mistake: rule.reason, field, detail }
    case 'FieldValueDuplicate':
      return { mistake: rule.reason, field, value: shown }
    default:
      return { mistake: 'FieldValueInvalid', field, value: shown, detail }
  }
}

/** The rules of a definition's schema. The cost of rules is not estimated. */
export function checkRules(schema: Schema, path = 'spec.validation.openAPIV3Schema'): FieldError[] {
  return walk(schema, path, true, true)
}

function walk(schema: Schema, path: string, isRoot: boolean, pairs: boolean): FieldError[] {
  if (!hasRules(schema)) return []
  const errors = (schema['x-kubernetes-validations'] ?? []).flatMap((rule, index) => {
    const at = `${path}.x-kubernetes-validations[${index}]`
    const invalid = (field: string, detail: string): FieldError => ({
      mistake: 'FieldValueInvalid',
      field: `${at}.${field}`,
      value: shown(rule),
      detail,
    })
    const wrong = ruleMistakes(rule, at)
    if (wrong.length > 0) return wrong
    const here = compiledRules(schema, isRoot)?.rules[index]
    if (typeof here?.program === 'string') return [invalid('rule', here.program)]
    if (typeof here?.message === 'string') {
      const detail = here.message.replace('cel expression', 'messageExpression')
      return [
        invalid('messageExpression', detail.replace('compilation failed', 'messageExpression compilation failed')),
      ]
    }
    if (here?.usesOld && !pairs && !rule.optionalOldSelf) {
      return [invalid('rule', 'oldSelf cannot be used on the uncorrelatable portion of the schema')]
    }
    if (rule.fieldPath && fieldPathOf(schema, rule.fieldPath) === undefined) {
      const detail = 'must be a valid path'
      return [
        { mistake: 'FieldValueInvalid', field: `${at}.fieldPath`, value: rule.fieldPath, detail } satisfies FieldError,
      ]
    }
    return []
  })
  const values = valuesOf(schema)
  if (schema.items) {
    errors.push(...walk(schema.items, `${path}.items`, false, pairs && schema['x-kubernetes-list-type'] === 'map'))
  }
  if (values) errors.push(...walk(values, `${path}.additionalProperties`, false, pairs))
  for (const [key, property] of Object.entries(schema.properties ?? {})) {
    errors.push(...walk(property, `${path}.properties[${key}]`, false, pairs))
  }
  return errors
}

const shown = (rule: ValidationRule) => ({
  Rule: rule.rule,
  Message: rule.message ?? '',
  MessageExpression: rule.messageExpression ?? '',
  Reason: rule.reason ?? null,
  FieldPath: rule.fieldPath ?? '',
  OptionalOldSelf: rule.optionalOldSelf ?? null,
})
