/**
 * What of a lifecycle can be asked of an app that has no sidecar, and how. Pure.
 *
 * Guarantee: what cannot be asked as it is declared is not asked in another way: it is told, with the field that is in the way.
 */
import type { Action, HttpCall, Probe, Step } from '../../../shared/lifecycle/model.ts'
import { isSecret } from '../../../shared/params/schema.ts'
import type { App } from '../view.ts'

/** `spec.via` of an app. */
export type Way = NonNullable<App['spec']['via']>

export type Call =
  | { readonly exec: readonly string[] }
  | { readonly http: Omit<HttpCall, 'poll'> & { readonly poll?: HttpCall['poll'] } }
  | { readonly tcp: number }

/** Why something cannot be asked. */
export interface Unaskable {
  readonly why: string
}

const needs = (what: string): Unaskable => ({ why: `${what} needs a sidecar` })

/** What only a process beside the application can give to a command. */
function surroundings(declared: Pick<Action, 'env' | 'workingDir' | 'user'>): Unaskable | undefined {
  const field = (['env', 'workingDir', 'user'] as const).find(name => declared[name] !== undefined)
  return field && needs(`\`${field}\``)
}

export function probeCall(probe: Probe, way: Way): Call | Unaskable {
  if (probe.exec && way.exec) return surroundings(probe) ?? { exec: probe.exec.command }
  if (probe.http && way.http) return { http: probe.http }
  if (probe.tcp && way.http && probe.tcp.host === undefined) return { tcp: probe.tcp.port }
  return unfit(probe, ['exec', 'http', 'tcp', 'file', 'process'], way)
}

/** One after the other; the first that fails ends it. */
export function actionCalls(action: Action, way: Way): readonly Call[] | Unaskable {
  const secret = Object.entries(action.params ?? {}).find(([, schema]) => isSecret(schema))
  if (secret) return needs(`the secret parameter ${secret[0]}`)
  if (action.secretEnv) return needs('`secretEnv`')
  if (action.reload) return needs('`reload`')
  const wrong = surroundings(action)
  if (wrong) return wrong
  const calls: Call[] = []
  for (const step of action.steps ?? [action]) {
    const call = stepCall(step, way)
    if ('why' in call) return call
    calls.push(call)
  }
  return calls
}

export function verifyCall({ verify }: Action, way: Way): Call | Unaskable {
  if (!verify) return { why: 'it has no verify' }
  return stepCall(verify as Step, way)
}

function stepCall(step: Pick<Step, 'exec' | 'http' | 'signal' | 'fileChanged'>, way: Way): Call | Unaskable {
  if (step.exec && way.exec) return { exec: step.exec.command }
  if (step.http && way.http) return { http: step.http }
  return unfit(step, ['exec', 'http', 'signal', 'fileChanged'], way)
}

function unfit<K extends string>(
  declared: { readonly [name in K]?: unknown },
  names: readonly K[],
  way: Way,
): Unaskable {
  const name = names.find(one => declared[one] !== undefined)
  return { why: `\`${name}\` cannot be asked via ${way.exec ? 'exec' : 'http'}` }
}
