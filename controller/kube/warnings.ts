/**
 * What the server has to say about a request that it carried out all the same: an unknown field, a deprecated version.
 *
 * Guarantee: each text is passed on once, however often it comes, as long as few others come between.
 */
import type { Interceptor, Response } from './transport.ts'

/** Texts that are remembered as said. */
const most = 256

export function warnings(
  onWarning: (text: string, request: Parameters<ReturnType<Interceptor>>[0]) => void,
): Interceptor {
  const said = new Set<string>()
  return next => async request => {
    const response = await next(request)
    for (const text of warningsOf(response)) {
      if (said.has(text)) continue
      said.add(text)
      const [oldest] = said
      if (said.size > most && oldest !== undefined) said.delete(oldest)
      onWarning(text, request)
    }
    return response
  }
}

/** The texts of `299 - "text"`, as the header has them. */
function warningsOf({ headers }: Pick<Response, 'headers'>): string[] {
  const lines = [headers['warning'] ?? []].flat()
  return lines.flatMap(line =>
    Array.from(line.matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g), ([, text]) => unquoted(text ?? '')),
  )
}

function unquoted(text: string): string {
  return text.replace(/\\(.)/g, '$1')
}
