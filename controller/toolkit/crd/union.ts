/**
 * Unions, as far as a structural schema has them: of values of one scalar type, of texts and integers, and of anything with null. Pure.
 */
import { type FieldPath, preserveInstead, refuse } from './refuse.ts'
import { int32 } from './scalars.ts'
import type { StructuralSchema } from './structural.ts'

const scalars = ['string', 'integer', 'number', 'boolean']
const intOrString = 'x-kubernetes-int-or-string'

/** One schema that accepts what any of the options accepts; with `oneOf`, what exactly one does. */
export function unionOf(
  keyword: 'anyOf' | 'oneOf',
  options: readonly StructuralSchema[],
  path: FieldPath,
): StructuralSchema {
  const nullable = options.some(option => option.nullable) ? { nullable: true } : {}
  const values = options.map(withoutNull).filter(option => Object.keys(option).length > 0)
  const [only] = values
  if (values.length === 1 && only) return { ...only, ...nullable }
  const types = new Set(values.map(typeOf))
  for (const option of values) {
    const odd = ['default', 'x-kubernetes-validations'].find(name => name in option)
    if (odd)
      refuse(path, `a part of a union cannot have ${odd === 'default' ? 'a default' : 'rules'}: give them to the union`)
  }
  const [type = ''] = types
  if (types.size === 1 && scalars.includes(type)) return { ...sameType(keyword, type, values), ...nullable }
  if ([...types].every(one => one === 'string' || one === 'integer' || one === intOrString)) {
    return { ...textOrInteger(values, path), ...nullable }
  }
  const isObjects = types.size === 1 && type === 'object'
  const advice = isObjects
    ? 'make it one object with an optional field for each choice, and say by a CEL rule which of them go together'
    : 'a CRD has unions of texts and integers, and of values of one type'
  refuse(path, `a union of ${[...types].join(', ')} cannot be told in a CRD: ${advice}; or ${preserveInstead}`)
}

/** An option that does not accept null; its allowed values stand beside its type again. */
function withoutNull({ nullable, allOf = [], ...option }: StructuralSchema): StructuralSchema {
  const values = nullable ? allOf.find(part => part.enum)?.enum : undefined
  const others = values ? allOf.filter(part => !part.enum) : allOf
  return { ...option, ...(values ? { enum: values } : {}), ...(others.length > 0 ? { allOf: others } : {}) }
}

function typeOf(option: StructuralSchema): string {
  return option.type ?? (option[intOrString] ? intOrString : 'anything')
}

/** What is said of single options goes to the whole: inside a union there is no place for it. */
function told(options: readonly StructuralSchema[]): StructuralSchema {
  const words = options.flatMap(({ description, enum: values }) => {
    if (description === undefined) return []
    return values ? `${values.map(value => JSON.stringify(value)).join(', ')}: ${description}` : description
  })
  return words.length > 0 ? { description: words.join(' ') } : {}
}

function sameType(keyword: 'anyOf' | 'oneOf', type: string, options: readonly StructuralSchema[]): StructuralSchema {
  const outer = { ...told(options), type }
  if (options.every(option => option.enum && Object.keys(bare(option)).length === 1)) {
    return { ...outer, enum: [...new Set(options.flatMap(option => option.enum ?? []))] }
  }
  const formats = new Set(options.map(option => option.format))
  const [format] = formats
  const shared = formats.size === 1 && format !== undefined ? { format } : {}
  const constraints = options.map(option => {
    const { format: own, ...rest } = 'format' in shared ? bare(option) : bounded(bare(option))
    return own === undefined || type !== 'string' || 'format' in shared ? rest : { format: own, ...rest }
  })
  // Whatever fits an option without constraints fits the union.
  if (keyword === 'anyOf' && constraints.some(one => Object.keys(one).length === 0)) return { ...outer, ...shared }
  return { ...outer, ...shared, [keyword]: constraints }
}

/** A constraint on texts says nothing of an integer, nor the other way round: all stand side by side. */
function textOrInteger(options: readonly StructuralSchema[], path: FieldPath): StructuralSchema {
  const result: StructuralSchema = { ...told(options), [intOrString]: true }
  const of = (type: string) => options.filter(option => typeOf(option) === type)
  const [texts, integers] = [of('string'), of('integer')]
  if (of(intOrString).length > 0 || texts.length !== 1 || integers.length !== 1) {
    refuse(path, 'a union of texts and integers has one part for the texts and one for the integers')
  }
  const [text = {}, integer = {}] = [texts[0], integers[0]]
  const { enum: words, ...ofText } = bare(text)
  const { enum: numbers, format: _int, ...ofInteger } = bounded(bare(integer))
  if ('allOf' in ofText || 'anyOf' in ofText || 'allOf' in ofInteger || 'anyOf' in ofInteger) {
    refuse(path, 'a part of a union of texts and integers has one pattern at most')
  }
  if (words && numbers) return { ...result, enum: [...numbers, ...words] }
  if (numbers) refuse(path, 'beside any text, single integers cannot be told in a CRD: give bounds instead')
  // As a list of values it would forbid all integers.
  const pattern = words ? { pattern: `^(${words.map(word => escaped(String(word))).join('|')})$` } : {}
  return { ...result, ...ofInteger, ...ofText, ...pattern }
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Where a format of numbers has no place, its bounds do. */
function bounded(option: StructuralSchema): StructuralSchema {
  return option.format === 'int32' ? { minimum: int32[0], maximum: int32[1], ...option } : option
}

/** The constraints alone. */
function bare({ type: _type, description: _description, title: _title, example: _example, ...rest }: StructuralSchema) {
  return rest
}
