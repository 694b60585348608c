/**
 * Whether a text is a configuration that can be used: everything that is wrong with it, each with its place. Pure.
 */
import { type CompiledLifecycle, compileLifecycle } from '../../shared/lifecycle/compile.ts'
import { configHash } from '../../shared/lifecycle/hash.ts'
import type { LifecycleSpec } from '../../shared/lifecycle/model.ts'
import { type Finding, validateLifecycle } from '../../shared/lifecycle/validate.ts'
import { specOf } from './manifest.ts'
import { type Parsed, parseConfig } from './parse.ts'

/** A configuration in force. */
export interface Config {
  /** As written, nothing filled in. */
  readonly spec: LifecycleSpec
  /** The protocol's `configHash`. */
  readonly hash: string
  readonly lifecycle: CompiledLifecycle
}

export interface ConfigProblem {
  readonly line: number
  readonly column: number
  /** Begins with the field. */
  readonly message: string
  readonly severity: 'error' | 'warning'
}

export interface Examined {
  /** Undefined if there is an error. */
  readonly config: Config | undefined
  /** Errors first. */
  readonly problems: readonly ConfigProblem[]
}

/** Reads, validates and compiles a text. */
export function examine(text: string): Examined {
  const parsed = specOf(parseConfig(text))
  if (parsed.problems.length > 0) {
    return { config: undefined, problems: parsed.problems.map(problem => ({ ...problem, severity: 'error' })) }
  }
  return examineParsed(parsed)
}

/** Validates and compiles what has been read. */
export function examineParsed({ value, locate }: Parsed): Examined {
  const { spec, problems: findings } = validateLifecycle(value)
  const problems = findings.map((finding): ConfigProblem => {
    return { ...locate(finding.path), message: sentenceOf(finding), severity: finding.severity }
  })
  problems.sort((a, b) => Number(a.severity === 'warning') - Number(b.severity === 'warning'))
  if (!spec || problems[0]?.severity === 'error') return { config: undefined, problems }
  return { config: { spec, hash: configHash(spec), lifecycle: compileLifecycle(spec) }, problems }
}

/** One line for each problem, as compilers write them. */
export function linesOf(file: string, problems: readonly ConfigProblem[]): string[] {
  return problems.map(({ line, column, message, severity }) => {
    return `${file}:${line}:${column}: ${severity === 'warning' ? 'warning: ' : ''}${message}`
  })
}

/** `states[0].next[1]: …` */
function sentenceOf({ path, message }: Finding): string {
  const field = path.map(part => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('')
  return field === '' ? message : `${field.replace(/^\./, '')}: ${message}`
}
