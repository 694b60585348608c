/**
 * What `kubectl get` prints of a kind. Pure.
 *
 * Guarantees: every column leads to a field; its type follows from the schema; there is an age.
 */
import { shown, suggestion } from '../../../shared/nearest.ts'
import { schemaAt } from './paths.ts'
import { refuse } from './refuse.ts'
import type { StructuralSchema } from './structural.ts'

const types = ['integer', 'number', 'string', 'boolean', 'date'] as const

export interface Column {
  /** A JSON path into the object: `.spec.size`. */
  readonly path: string
  /** Default: by the schema; string for what is not a scalar. */
  readonly type?: (typeof types)[number]
  /** Above 0: only with `-o wide`. Default 0. */
  readonly priority?: number
  readonly description?: string
  /** A format of OpenAPI, such as `int32`. */
  readonly format?: string
}

export interface PrinterColumn {
  name: string
  type: string
  jsonPath: string
  priority?: number
  description?: string
  format?: string
}

export type Columns = Readonly<Record<string, string | Column>>

const birth = '.metadata.creationTimestamp'

export function printerColumns(columns: Columns, root: StructuralSchema): PrinterColumn[] {
  const made = Object.entries(columns).map(([name, column]) => columnOf(name, column, root))
  const hasAge = made.some(({ name, jsonPath }) => name.toLowerCase() === 'age' || jsonPath === birth)
  return hasAge ? made : [...made, { name: 'Age', type: 'date', jsonPath: birth }]
}

function columnOf(name: string, given: string | Column, root: StructuralSchema): PrinterColumn {
  const what = `columns.${name}`
  const { path, type, priority, description, format } = typeof given === 'string' ? ({ path: given } as Column) : given
  const schema = schemaAt(root, path, what)
  if (type !== undefined && !types.includes(type)) {
    refuse(what, `${shown(type)} is no type of a column${suggestion(type, types)}`)
  }
  if (priority !== undefined && (!Number.isSafeInteger(priority) || priority < 0)) {
    refuse(what, `its priority is ${shown(priority)}, but has to be a whole number from 0 up`)
  }
  return {
    name,
    type: type ?? typeOf(schema),
    jsonPath: path,
    ...(priority ? { priority } : {}),
    ...(description === undefined ? {} : { description }),
    ...(format === undefined ? {} : { format }),
  }
}

function typeOf({ type, format }: StructuralSchema): string {
  if (type === 'string' && format === 'date-time') return 'date'
  return type === 'integer' || type === 'number' || type === 'boolean' ? type : 'string'
}
