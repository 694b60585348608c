/**
 * Regular expressions of the server's kind (RE2) as JavaScript's. Undefined where JavaScript cannot say the same.
 *
 * RE2 knows flags at the start or in a group, `\A`, `\z`, `\Q…\E`, POSIX classes, `(?P<name>…)`, `\pN` and `\x{…}`; it does not know look-around nor
 * back references, which a server refuses.
 */
const posix: Record<string, string> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  ascii: '\\x00-\\x7F',
  blank: '\\t ',
  cntrl: '\\x00-\\x1F\\x7F',
  digit: '0-9',
  graph: '!-~',
  lower: 'a-z',
  print: ' -~',
  punct: '!-\\/:-@\\[-`{-~',
  space: '\\t\\n\\v\\f\\r ',
  upper: 'A-Z',
  word: '0-9A-Za-z_',
  xdigit: '0-9A-Fa-f',
}

const cache = new Map<string, RegExp | Error>()

/** The expression, or why it is none, in the server's words. */
export function compile(pattern: string): RegExp | Error {
  let compiled = cache.get(pattern)
  if (!compiled) {
    compiled = translate(pattern)
    if (cache.size > 1000) cache.clear()
    cache.set(pattern, compiled)
  }
  return compiled
}

function translate(pattern: string): RegExp | Error {
  const refused = /(?<!\\)(?:\\\\)*(\(\?(?:=|!|<=|<!))/.exec(pattern)?.[1]
  if (refused) return new Error(`error parsing regexp: invalid or unsupported Perl syntax: \`${refused}\``)
  const reference = /(?<!\\)(?:\\\\)*(\\[1-9])/.exec(pattern)?.[1]
  if (reference) return new Error(`error parsing regexp: invalid escape sequence: \`${reference}\``)
  let flags = ''
  let source = pattern.replace(/^\(\?([imsU]+)\)/, (_, given: string) => {
    flags = given.replace('U', '')
    return ''
  })
  source = source
    .replace(/\\Q(.*?)(?:\\E|$)/gs, (_, literal: string) => literal.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'))
    .replace(/\(\?P</g, '(?<')
    .replace(/\[:(\^?)(\w+):\]/g, (whole, not: string, name: string) => (not ? whole : (posix[name] ?? whole)))
    .replace(/\\(?:A|z|a|pL|pN|x\{([0-9A-Fa-f]+)\})/g, (whole, code: string | undefined) => {
      if (whole === '\\A') return '(?<![\\s\\S])'
      if (whole === '\\z') return '(?![\\s\\S])'
      if (whole === '\\a') return '\\x07'
      return code ? `\\u{${code}}` : `\\p{${whole[2]}}`
    })
  for (const mode of ['u', '']) {
    try {
      return new RegExp(source, flags + mode)
    } catch {
      // Without the mode u, escapes that mean nothing are let through, as RE2 does with punctuation.
    }
  }
  return new Error(`error parsing regexp: ${broken(pattern)}`)
}

function broken(pattern: string): string {
  const closers = pattern.replace(/\\./gs, '')
  if (/^[*+?]/.test(pattern)) return `missing argument to repetition operator: \`${pattern[0]}\``
  const count = (mark: string) => closers.split(mark).length - 1
  if (count('[') > count(']')) return `missing closing ]: \`${pattern.slice(pattern.indexOf('['))}\``
  if (count('(') > count(')')) return `missing closing ): \`${pattern}\``
  if (count(')') > count('(')) return `unexpected ): \`${pattern}\``
  return `invalid syntax: \`${pattern}\``
}
