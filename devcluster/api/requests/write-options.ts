/**
 * The query of a write, held against the rules of the server. Pure.
 */
import { type FieldError, invalid } from '../problems.ts'
import type { ApiRequest } from '../types.ts'

export interface WriteOptions {
  readonly dryRun: boolean
  readonly fieldValidation: 'Ignore' | 'Warn' | 'Strict'
  /** Who writes, as managedFields name them. */
  readonly manager: string
  readonly force: boolean
}

const validations = ['', 'Ignore', 'Strict', 'Warn']
const managerLimit = 128

export function writeOptions(
  { query, headers }: ApiRequest,
  kind: 'CreateOptions' | 'UpdateOptions' | 'PatchOptions',
  isApply = false,
): WriteOptions {
  const errors: FieldError[] = []
  const fieldManager = query.get('fieldManager') ?? ''
  const force = query.get('force')
  if (kind === 'PatchOptions' && isApply && fieldManager === '') {
    errors.push({ mistake: 'FieldValueRequired', field: 'fieldManager', detail: 'is required for apply patch' })
  }
  if (kind === 'PatchOptions' && !isApply && force !== null) {
    errors.push({ mistake: 'FieldValueForbidden', field: 'force', detail: 'may not be specified for non-apply patch' })
  }
  if (fieldManager.length > managerLimit) {
    errors.push({
      mistake: 'FieldValueTooLong',
      field: 'fieldManager',
      detail: `may not be more than ${managerLimit} bytes`,
    })
  }
  errors.push(...dryRunMistakes(query.getAll('dryRun')))
  const validation = query.get('fieldValidation') ?? ''
  if (!validations.includes(validation)) {
    const detail = `supported values: ${validations.map(one => JSON.stringify(one)).join(', ')}`
    errors.push({ mistake: 'FieldValueNotSupported', field: 'fieldValidation', value: validation, detail })
  }
  if (errors.length > 0) throw invalid({ group: 'meta.k8s.io', kind }, '', errors)
  return {
    dryRun: query.has('dryRun') && query.get('dryRun') !== '',
    fieldValidation: (validation || 'Warn') as WriteOptions['fieldValidation'],
    manager: fieldManager || (headers['user-agent'] ?? '').split('/')[0]?.slice(0, managerLimit) || 'unknown',
    force: force === 'true' || force === '1',
  }
}

export function dryRunMistakes(dryRun: readonly string[]): FieldError[] {
  if (dryRun.every(one => one === 'All' || one === '')) return []
  return [{ mistake: 'FieldValueNotSupported', field: 'dryRun', value: dryRun, detail: 'supported values: "All"' }]
}
