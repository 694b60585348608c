/**
 * CEL rules of a definition. Their syntax is checked here, their types and cost by the server, which alone knows its functions. Pure.
 */
import type { Environment } from '@marcbachmann/cel-js'
import { messageOf } from '../../../shared/errors.ts'
import { shown, suggestion } from '../../../shared/nearest.ts'
import { cel } from '../libraries.ts'
import { type FieldPath, refuse } from './refuse.ts'
import type { ValidationRule } from './structural.ts'

const parts = ['rule', 'message', 'messageExpression', 'reason', 'fieldPath', 'optionalOldSelf']
/** Made when the first rule is read. */
let environment: Environment | undefined

export function rulesOf(given: unknown, path: FieldPath): ValidationRule[] {
  if (given === undefined) return []
  if (!Array.isArray(given))
    refuse(path, `rules is ${shown(given)}, but has to be a list such as [{ rule: 'self > 0' }]`)
  return given.map((one: unknown) => ruleOf(one, path))
}

function ruleOf(given: unknown, path: FieldPath): ValidationRule {
  if (typeof given !== 'object' || given === null || !('rule' in given) || typeof given.rule !== 'string') {
    refuse(path, `${shown(given)} is no rule: one is { rule: 'self > 0', message: 'has to be above 0' }`)
  }
  const unknown = Object.keys(given).find(name => !parts.includes(name))
  if (unknown !== undefined) refuse(path, `a rule has no ${shown(unknown)}${suggestion(unknown, parts)}`)
  const rule = given as ValidationRule
  for (const text of [rule.rule, rule.messageExpression]) if (text !== undefined) checkSyntax(text, path)
  return rule
}

function checkSyntax(expression: string, path: FieldPath): void {
  // The parser does not know optional items of lists and maps; the server does.
  if (/[[{,]\s*\?/.test(expression)) return
  try {
    environment ??= new (cel().Environment)({ enableOptionalTypes: true })
    environment.parse(expression)
  } catch (thrown) {
    refuse(path, `the rule ${shown(expression)} is no CEL: ${messageOf(thrown).split('\n')[0]}`)
  }
}
