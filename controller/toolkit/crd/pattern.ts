/**
 * Regular expressions as the server has them (RE2), from those of JavaScript. Pure.
 *
 * Guarantee: what is answered means the same there, but for `.` and `\s`, which know fewer kinds of white space; what RE2 does not have is named.
 */
import type { z } from 'zod'
import type { Json } from './jsonschema.ts'
import { checksOf } from './obstacles.ts'

/** RE2 repeats nothing more often. */
const mostRepeats = 1000

export type Translated = { readonly pattern: string } | { readonly problem: string }

export function toRe2(source: string): Translated {
  let pattern = ''
  let inClass = false
  for (let at = 0; at < source.length; ) {
    const rest = source.slice(at)
    const piece = rest[0] === '\\' ? escapeOf(rest, inClass) : inClass ? memberOf(rest) : partOf(rest)
    if ('problem' in piece) return piece
    if (rest[0] === '[' && !inClass) inClass = true
    else if (rest[0] === ']') inClass = false
    pattern += piece.becomes
    at += piece.length
  }
  return { pattern }
}

type Piece = { readonly length: number; readonly becomes: string } | { readonly problem: string }

const same = (text: string): Piece => ({ length: text.length, becomes: text })
const without = (what: string): Piece => ({
  problem: `has ${what}, which the server's regular expressions do not know`,
})

function escapeOf(rest: string, inClass: boolean): Piece {
  const unicode = /^\\u(?:([0-9a-fA-F]{4})|\{([0-9a-fA-F]+)\})/.exec(rest)
  if (unicode) {
    const code = unicode[1] ?? unicode[2] ?? ''
    if (/^d[89a-f]/i.test(code) && code.length === 4) return without('half of a surrogate pair')
    return { length: unicode[0].length, becomes: `\\x{${code}}` }
  }
  const property = /^\\[pP]\{([^}]*)\}/.exec(rest)
  if (property) return property[1]?.includes('=') ? without(`the property ${property[0]}`) : same(property[0])
  const next = rest[1] ?? ''
  if (next === '0') return { length: 2, becomes: '\\x00' }
  if (next === 'b' && inClass) return { length: 2, becomes: '\\x08' }
  if (/[1-9k]/.test(next)) return without(`a reference back (\\${next})`)
  if (/[a-zA-Z]/.test(next) && !'bBdDsSwWfnrtvx'.includes(next)) return without(`the escape \\${next}`)
  return same(rest.slice(0, 2))
}

function memberOf(rest: string): Piece {
  return rest[0] === '[' ? { length: 1, becomes: '\\[' } : same(rest.slice(0, 1))
}

function partOf(rest: string): Piece {
  if (/^\[\^?\]/.test(rest)) return without('an empty class of characters')
  if (rest.startsWith('[^')) return same('[^')
  if (/^\(\?<?[=!]/.test(rest)) return without('a look-ahead or look-behind')
  if (rest.startsWith('(?<')) return { length: 3, becomes: '(?P<' }
  const repeats = /^\{(\d+)(?:,(\d*))?\}/.exec(rest)
  if (repeats?.slice(1).some(times => Number(times ?? 0) > mostRepeats)) {
    return without(`a repetition of more than ${mostRepeats}`)
  }
  return same(rest.slice(0, 1))
}

/** Puts into zod's JSON schema what it leaves out: the flags of patterns, in front of them as RE2 has them, and that a URL has a scheme. */
export function markPatterns(schema: z.core.$ZodType, json: Json): void {
  for (const check of checksOf(schema)) {
    const { pattern, format } = check._zod.def as { pattern?: unknown; format?: unknown }
    if (format === 'url' && !(pattern instanceof RegExp)) {
      addPattern(json, '^[A-Za-z][A-Za-z0-9+.-]*:')
      // Of several formats zod keeps the last, and only this one has no pattern of its own.
      json['format'] = 'uri'
    }
    const flags = pattern instanceof RegExp ? pattern.flags.replace(/[^ims]/g, '') : ''
    if (!(pattern instanceof RegExp) || flags === '') continue
    const parts = Array.isArray(json['allOf']) ? (json['allOf'] as Json[]) : [json]
    for (const part of parts) if (part['pattern'] === pattern.source) part['pattern'] = `(?${flags})${pattern.source}`
  }
}

function addPattern(json: Json, pattern: string): void {
  const known = Array.isArray(json['allOf']) ? (json['allOf'] as Json[]) : []
  const all = json['pattern'] === undefined ? known : [{ pattern: json['pattern'] }]
  if (all.length === 0) json['pattern'] = pattern
  else {
    delete json['pattern']
    json['allOf'] = [...all, { pattern }]
  }
}
