/**
 * What `--check-config` says of a file.
 */
import { readFileSync } from 'node:fs'
import { messageOf } from '../../shared/errors.ts'
import { examine, linesOf } from './examine.ts'

export interface CheckedConfig {
  /** `FILE:LINE:COL: message`, errors first; those that are warnings say so. */
  readonly lines: string[]
  /** Whether an agent would use it. */
  readonly isUsable: boolean
}

export function checkConfig(file: string): CheckedConfig {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (thrown) {
    return { lines: [`${file}:1:1: cannot be read: ${messageOf(thrown)}`], isUsable: false }
  }
  const { config, problems } = examine(text)
  return { lines: linesOf(file, problems), isUsable: config !== undefined }
}
