/**
 * What a command's output says of its progress and its result. Pure.
 *
 * Guarantee: whatever is printed, what comes out fits the protocol's shape, or is nothing.
 */
import * as z from 'zod/mini'
import { type Progress, progress as schema } from '../../shared/protocol/schemas.ts'

/** Results above are not taken. */
export const longestResult = 64 * 1024

/** The progress in a JSON line that has one; members that do not fit are left out. */
export function progressIn(line: string): Progress | undefined {
  const told = memberOf(line, 'progress')
  if (typeof told === 'number') return percentOf(told)
  if (typeof told !== 'object' || told === null) return undefined
  const fitting = Object.entries(schema.shape).filter(([name, member]) => {
    const value = (told as Record<string, unknown>)[name]
    return value !== undefined && z.safeParse(member, value).success
  })
  if (fitting.length === 0) return undefined
  const taken = fitting.map(([name]) => [name, (told as Record<string, unknown>)[name]])
  const progress = Object.fromEntries(taken) as Progress
  return progress.message === undefined ? progress : { ...progress, message: progress.message.slice(0, 1024) }
}

/** The percentage in the last of these lines that the pattern matches. */
export function percentIn(lines: readonly string[], pattern: RegExp): Progress | undefined {
  for (const line of lines.toReversed()) {
    const match = pattern.exec(line)
    const found = match && percentOf(Number(match[1] ?? match[0].replace('%', '')))
    if (found) return found
  }
  return undefined
}

/** The result in a JSON line that has one. */
export function resultIn(line: string): unknown {
  return memberOf(line, 'result')
}

/** A text as JSON, or as it is. */
export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function percentOf(number: number): Progress | undefined {
  return number >= 0 && number <= 100 ? { percent: number } : undefined
}

function memberOf(line: string, name: string): unknown {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
      ? (value as Record<string, unknown>)[name]
      : undefined
  } catch {
    return undefined
  }
}
