/**
 * The token that a list is gone on with: at which revision, after which key.
 */
import { badRequest } from '../problems.ts'

export interface Continue {
  /** -1: what is there now; the first part was of another time. */
  readonly revision: number
  /** The key of the last item, without the namespace where the list is of one. */
  readonly after: string
}

const version = 'meta.k8s.io/v1'

export function encodeContinue({ revision, after }: Continue, isOfNamespace: boolean): string {
  const start = `${isOfNamespace ? '/' : ''}${after}\0`
  return Buffer.from(JSON.stringify({ v: version, rv: revision, start })).toString('base64url')
}

export function decodeContinue(token: string): Continue {
  const refuse = (why: string) => badRequest(`invalid continue token: continue key is not valid: ${why}`)
  const wrong = illegalAt(token)
  if (wrong !== undefined) throw refuse(`illegal base64 data at input byte ${wrong}`)
  let parsed: { v?: unknown; rv?: unknown; start?: unknown }
  try {
    parsed = JSON.parse(Buffer.from(token, 'base64url').toString())
  } catch (error) {
    throw refuse((error as Error).message)
  }
  const { v, rv, start } = parsed ?? {}
  if (v !== version) throw refuse(`server does not recognize this encoded version ${JSON.stringify(v ?? '')}`)
  if (typeof rv !== 'number' || rv === 0)
    throw refuse('incorrect encoded start resourceVersion (version meta.k8s.io/v1)')
  if (typeof start !== 'string' || start === '') throw refuse('encoded start key empty (version meta.k8s.io/v1)')
  return { revision: rv, after: start.replace(/^\//, '').replace(/\0$/, '') }
}

/** Where a text stops to be base64 without padding, as a decoder counts. */
function illegalAt(token: string): number | undefined {
  const at = token.search(/[^A-Za-z0-9_-]/)
  if (at >= 0) return at
  return token.length % 4 === 1 ? token.length - 1 : undefined
}
