/**
 * Reads the body of a request: bounded, UTF-8, JSON that every part of the sidecar can handle.
 *
 * Guarantees: no more than the limit is kept in memory, whether the length is announced or not; what is read holds no `__proto__`, no infinite
 * number, no half of a surrogate pair, and is not nested deeper than a recursive function can follow.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Problem } from '../../shared/protocol/problems.ts'
import { longestBody } from '../../shared/protocol/schemas.ts'

/** The deepest nesting of objects and arrays. */
const deepest = 64

/** What `fetch` and `curl` say when they are not told; the body is read as JSON all the same. */
const unspecific = ['text/plain', 'application/x-www-form-urlencoded']

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** All bytes of the body. `TooLarge` as soon as it is known to be; rejects with whatever ends the connection. */
export function readBody(request: IncomingMessage, response: ServerResponse): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (Number(request.headers['content-length'] ?? 0) > longestBody) return reject(tooLarge())
    if (request.headers.expect?.toLowerCase() === '100-continue') response.writeContinue()
    const chunks: Buffer[] = []
    let size = 0
    const settle = () => {
      request.off('data', take).off('end', end).off('error', fail).off('close', gone)
    }
    const fail = (error: Error) => {
      settle()
      // Its last words, should there be any, are nobody's business.
      request.on('error', () => undefined)
      reject(error)
    }
    const take = (chunk: Buffer) => {
      size += chunk.length
      if (size > longestBody) return fail(tooLarge())
      chunks.push(chunk)
    }
    const end = () => {
      settle()
      resolve(Buffer.concat(chunks, size))
    }
    const gone = () => fail(new Error('the connection closed before the end of the body'))
    request.on('data', take).on('end', end).on('error', fail).on('close', gone)
  })
}

/** The value that the bytes of a body stand for. Throws `InvalidBody`. */
export function parseBody(bytes: Buffer, headers: IncomingMessage['headers']): unknown {
  checkType(headers)
  if (bytes.length === 0) throw new Problem('InvalidBody', 'The body is empty; it must be a JSON object.')
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    throw new Problem('InvalidBody', error instanceof SyntaxError ? notJson(error) : 'The body is not UTF-8.')
  }
  checkValue(value)
  return value
}

function checkType(headers: IncomingMessage['headers']): void {
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new Problem('InvalidBody', `Content-Encoding is "${encoding}"; bodies are taken as they are, without one.`)
  }
  const [type = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';')
  const kind = type.trim()
  if (kind !== '' && !/^application\/([\w.-]+\+)?json$/.test(kind) && !unspecific.includes(kind)) {
    throw new Problem('InvalidBody', `Content-Type is "${kind}"; it must be application/json.`)
  }
  const charset = parameters.map(text => text.trim()).find(text => text.startsWith('charset='))
  if (charset !== undefined && !/^charset="?utf-?8"?$/.test(charset)) {
    throw new Problem('InvalidBody', `Content-Type has "${charset}"; it must be utf-8.`)
  }
}

/** Looks at everything in the value without recursion, which a hostile value could exhaust. */
function checkValue(root: unknown): void {
  let level: unknown[] = [root]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > deepest) throw new Problem('InvalidBody', `The body is nested deeper than ${deepest} levels.`)
    const below: unknown[] = []
    for (const value of level) {
      if (typeof value === 'number' && !Number.isFinite(value)) {
        throw new Problem('InvalidBody', 'The body has a number that is larger than a double can hold.')
      }
      if (typeof value === 'string') checkText(value)
      if (typeof value !== 'object' || value === null) continue
      for (const key of Array.isArray(value) ? [] : Object.keys(value)) {
        if (key === '__proto__')
          throw new Problem('InvalidBody', 'The body has a field "__proto__", which no field may be called.')
        checkText(key)
      }
      for (const child of Object.values(value)) below.push(child)
    }
    level = below
  }
}

function checkText(text: string): void {
  if (!text.isWellFormed())
    throw new Problem('InvalidBody', 'The body has half of a surrogate pair (\\ud800 to \\udfff).')
}

const tooLarge = () => new Problem('TooLarge', `The body is longer than ${longestBody} bytes.`)

/** V8 quotes the text around the mistake, which may be a secret: only the place is told. */
function notJson(error: SyntaxError): string {
  const place = /position (\d+)/.exec(error.message)?.[1]
  return place === undefined ? 'The body is not JSON.' : `The body is not JSON: mistake at character ${place}.`
}
