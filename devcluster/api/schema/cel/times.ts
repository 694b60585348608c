/** Conversions of times and durations that the library lacks. */
import type { Environment } from '@marcbachmann/cel-js'
import { timestamp } from './strings.ts'

export function registerTimes(environment: Environment): void {
  const sync = { async: false }
  const instant = 'google.protobuf.Timestamp'
  const duration = 'google.protobuf.Duration'
  environment
    .registerFunction(`string(${instant}): string`, (date: Date) => timestamp(date), sync)
    .registerFunction(`string(${duration}): string`, (given: object) => String(given), sync)
    .registerFunction(`int(${instant}): int`, (date: Date) => BigInt(Math.floor(date.getTime() / 1000)), sync)
    .registerFunction(`timestamp(${instant}): ${instant}`, (date: Date) => date, sync)
    .registerFunction(`duration(${duration}): ${duration}`, (given: object) => given, sync)
}
