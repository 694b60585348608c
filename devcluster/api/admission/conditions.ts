/**
 * The match conditions of webhooks, in CEL over `object`, `oldObject` and `request`. Pure; each is compiled once.
 *
 * One that does not hold decides, whatever the others say; else one that fails counts as the failure policy has it.
 */
import { compile, type Program } from '../schema/cel/compile.ts'
import { newEnvironment } from '../schema/cel/library.ts'

const programs = new Map<string, Program | string>()

/** What to run, or why it cannot be. */
export function conditionOf(expression: string): Program | string {
  let program = programs.get(expression)
  if (program === undefined) {
    const environment = newEnvironment()
    for (const name of ['object', 'oldObject', 'request']) environment.registerVariable(name, 'dyn')
    program = compile(environment, expression, 'bool')
    programs.set(expression, program)
  }
  return program
}

/** Whether all hold; rejects with the first that fails where none says no. */
export function hold(
  conditions: readonly { name: string; expression: string }[],
  variables: { object: unknown; oldObject: unknown; request: unknown },
): boolean {
  const known = Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, native(value ?? null)]))
  let failure: Error | undefined
  for (const { name, expression } of conditions) {
    const program = conditionOf(expression)
    try {
      if (typeof program === 'string') throw new Error(program)
      if (program.run(known) === false) return false
    } catch (error) {
      failure ??= new Error(`expression '${expression}' of '${name}' resulted in error: ${(error as Error).message}`)
    }
  }
  if (failure) throw failure
  return true
}

/** Whole numbers are `int`, as the server has them. */
function native(value: unknown): unknown {
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : value
  if (Array.isArray(value)) return value.map(native)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, native(one)]))
}
