/**
 * What is wrong with a template or its values, and where.
 */
import { TerminalError } from '../../runtime/outcome.ts'

/** Both from 1. */
export interface Place {
  readonly line: number
  readonly column: number
}

/** The same values would fail again: nothing is tried until the object, or the program, changes. */
export class YamlTemplateError extends TerminalError {
  readonly file: string
  readonly line: number
  readonly column: number

  constructor(file: string, { line, column }: Place, problem: string, options?: ErrorOptions) {
    super(`${file}:${line}:${column}: ${problem}`, options)
    this.file = file
    this.line = line
    this.column = column
  }
}

/** Where a character of a text is. */
export function placeOf(text: string, offset: number): Place {
  const before = text.slice(0, offset)
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') }
}
