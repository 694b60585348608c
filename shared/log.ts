/**
 * The log: JSON lines by pino, with levels that can be changed while it runs.
 *
 * Guarantee: a change of level reaches every logger made by `child`, as long as it lives.
 */

import { type DestinationStream, type Logger as Pino, pino } from 'pino'
import { ShipmateError } from './errors.ts'

export type Logger = Pick<Pino, 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal'> & {
  child(fields: object): Logger
}

export const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type Level = (typeof levels)[number]

export interface Log {
  readonly logger: Logger
  /** A long-lived logger, whose level follows. Short-lived ones are made by `logger.child`. */
  child(fields: object): Logger
  level: Level
}

export interface LogOptions {
  /** Default `info`. */
  readonly level?: Level | undefined
  /** Put into every line. */
  readonly fields?: object | undefined
  /** Where lines go. Default: standard output. */
  readonly destination?: DestinationStream | undefined
}

/** Errors of our own say in their message all there is to say; a stack helps with those that nobody expected. */
function errorForLog(error: unknown): unknown {
  if (!(error instanceof ShipmateError)) return pino.stdSerializers.err(error as Error)
  return { type: error.name, code: error.code, message: error.message }
}

export function createLog(options: LogOptions = {}): Log {
  const settings = {
    level: options.level ?? 'info',
    base: options.fields ?? {},
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: errorForLog },
  }
  const root = options.destination ? pino(settings, options.destination) : pino(settings)
  const children = new Set<WeakRef<Pino>>()
  return {
    logger: root,
    child(fields) {
      const child = root.child(fields)
      children.add(new WeakRef(child))
      return child
    },
    get level() {
      return root.level as Level
    },
    set level(level) {
      if (!levels.includes(level)) throw new TypeError(`"${level}" is no log level; there are ${levels.join(', ')}`)
      root.level = level
      for (const reference of children) {
        const child = reference.deref()
        if (child) child.level = level
        else children.delete(reference)
      }
    },
  }
}
