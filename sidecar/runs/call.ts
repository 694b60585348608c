/**
 * A declared http call, with a run's parameters in it. Pure.
 */
import { defaults, type HttpCall } from '../../shared/lifecycle/model.ts'
import { expand } from '../../shared/params/template.ts'
import type { Params } from './environment.ts'

type Declared = Pick<HttpCall, 'url' | 'method' | 'headers' | 'body' | 'insecureSkipVerify' | 'status'>

export interface Call {
  readonly url: string
  readonly method: string
  readonly headers: Record<string, string>
  readonly body: string | undefined
  readonly insecureSkipVerify: boolean
}

export function callOf(declared: Declared, { values }: Params): Call {
  const headers = Object.entries(declared.headers ?? {}).map(([name, value]) => [name, expand(value, values, 'header')])
  return {
    url: expand(declared.url, values, 'url'),
    method: declared.method ?? (declared.body === undefined ? defaults.http.method : 'POST'),
    headers: Object.fromEntries(headers),
    body: declared.body === undefined ? undefined : expand(declared.body, values, 'body'),
    insecureSkipVerify: declared.insecureSkipVerify ?? false,
  }
}

/** Whether an answer's status is one that means yes. */
export function isExpected({ status }: Pick<HttpCall, 'status'>, answered: number): boolean {
  return status ? status.includes(answered) : answered >= 200 && answered < 300
}
