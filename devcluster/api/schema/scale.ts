/** What the paths of a custom resource's scale lead to has to be numbers of replicas, and a selector as text. */
import { goText, goType } from '../patch/go-text.ts'
import type { FieldError } from '../problems.ts'
import { namesOf } from '../resources/json-path.ts'
import type { Obj, ScalePaths } from '../types.ts'
import { isObject } from './values.ts'

export const checkScale = (object: Obj, { spec, status, selector }: ScalePaths): FieldError[] => [
  ...checkReplicas(object, spec),
  ...checkReplicas(object, status),
  ...(selector === undefined ? [] : checkSelector(object, selector)),
]

const most = 2 ** 31 - 1

function checkReplicas(object: Obj, path: string): FieldError[] {
  const { value, wrong } = read(object, path)
  const invalid = (shown: unknown, detail: string): FieldError[] => [
    { mistake: 'FieldValueInvalid', field: path, value: shown, detail },
  ]
  if (wrong) return invalid(0, wrong)
  if (value === undefined) return []
  if (!Number.isInteger(value)) return invalid(0, mismatch(path, value, 'int64'))
  if ((value as number) < 0) return invalid(value, 'should be a non-negative integer')
  return (value as number) > most ? invalid(value, `should be less than or equal to ${most}`) : []
}

function checkSelector(object: Obj, path: string): FieldError[] {
  const { value, wrong } = read(object, path)
  const detail = wrong ?? (value === undefined || typeof value === 'string' ? '' : mismatch(path, value, 'string'))
  return detail ? [{ mistake: 'FieldValueInvalid', field: path, value: '', detail }] : []
}

const mismatch = (path: string, value: unknown, expected: string) =>
  `${path} accessor error: ${goText(value)} is of the type ${goType(value)}, expected ${expected}`

function read(object: Obj, path: string): { value?: unknown; wrong?: string } {
  let value: unknown = object
  for (const name of namesOf(path)) {
    if (value === undefined || value === null) return {}
    if (!isObject(value)) return { wrong: mismatch(path, value, 'map[string]interface{}') }
    value = value[name]
  }
  return { value }
}
