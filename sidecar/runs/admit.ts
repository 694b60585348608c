/**
 * Decides whether a PUT starts a run: the protocol's checks, from `WrongPod` on, in its order. Pure.
 *
 * Guarantee: an id is admitted once. What is refused has changed nothing, and what is said of it never repeats a secret.
 */
import { hashOf } from '../../shared/canonical.ts'
import { parseDuration } from '../../shared/duration.ts'
import { messageOf } from '../../shared/errors.ts'
import type { CompiledLifecycle } from '../../shared/lifecycle/compile.ts'
import { type Action, defaults, type Step } from '../../shared/lifecycle/model.ts'
import { type CompiledParams, compileParams } from '../../shared/params/schema.ts'
import { expand } from '../../shared/params/template.ts'
import { Problem } from '../../shared/protocol/problems.ts'
import type { PutRun } from '../../shared/protocol/schemas.ts'
import type { RunRecord } from '../journal/records.ts'
import { callOf } from './call.ts'
import { commandOf, environmentOf, type Params } from './environment.ts'
import { checkArguments, checkSpellings, checkVariables } from './limits.ts'
import { logKeptOf } from './view.ts'

/** Runs at once, shared ones. */
const most = 16

/** What is known when it is decided. */
export interface Known {
  readonly podUid: string
  /** Why no new run is taken, if none is. */
  readonly draining: string | undefined
  readonly journalId: string
  /** The highest fence accepted, or being accepted. */
  readonly fence: number
  readonly configHash: string
  readonly actions: CompiledLifecycle['actions']
  /** The preStop action, if one is declared. */
  readonly preStop: string | undefined
  /** A run with this id, finished or not. */
  readonly run: RunRecord | undefined
  readonly inProgress: readonly RunRecord[]
  /** The id for which the lock is kept, if it is. */
  readonly reserved: string | undefined
  readonly now: number
}

export type Admitted = { readonly known: RunRecord } | { readonly run: RunRecord; readonly params: Params }

export function admit(id: string, body: PutRun, known: Known): Admitted {
  if (body.podUid !== undefined && body.podUid !== known.podUid) {
    throw new Problem('WrongPod', `podUid is ${quote(body.podUid)}; this pod is ${quote(known.podUid)}.`)
  }
  if (known.run && !isSameBody(body, known.run)) {
    throw new Problem('IdReused', `The run ${id} has another action or other parameters; a new run needs a new id.`)
  }
  // Of a run whose record was lost nobody can say whether the body is the same: who asks by the old journal is told that it is gone.
  if (known.run && !isLost(known.run)) return { known: known.run }
  if (known.draining && !known.run && !body.cancelled) throw new Problem('Draining', known.draining)
  if (body.journalId !== undefined && body.journalId !== known.journalId) {
    throw new Problem(
      'WrongJournal',
      `journalId is ${quote(body.journalId)}; this journal is ${quote(known.journalId)}.`,
      { journalId: known.journalId },
    )
  }
  if (known.run) return { known: known.run }
  if (body.fence !== undefined && body.fence <= known.fence) {
    throw new Problem('Fenced', `fence is ${body.fence}; it must be above ${known.fence}, the highest one accepted.`, {
      fence: known.fence,
    })
  }
  // What is never begun is taken under any configuration, beside any other run.
  if (body.configHash !== undefined && body.configHash !== known.configHash && !body.cancelled) {
    throw new Problem(
      'WrongConfig',
      `configHash is ${quote(body.configHash)}; the configuration in force is ${quote(known.configHash)}.`,
      { configHash: known.configHash },
    )
  }
  const compiled = known.actions.get(body.action)
  if (!compiled) {
    const declared = [...known.actions.keys()].join(', ')
    throw new Problem('UnknownAction', `There is no action ${quote(body.action)}; there are: ${declared || 'none'}.`)
  }
  const { action } = compiled
  if (body.cancelled) {
    const { secrets } = compiled.params
    return { run: accepted(id, body, action, secrets, known), params: { values: {}, secrets } }
  }
  const params = checked(compiled.params, body.params ?? {})
  const run = accepted(id, body, action, params.secrets, known)
  rehearse(id, run.fence, action, params)
  if (known.reserved !== undefined && known.reserved !== id) {
    throw new Problem('Locked', `The run ${known.reserved} is about to begin.`, { run: known.reserved })
  }
  const holder = known.inProgress.find(other => !(action.shared && other.declaration?.shared))
  if (holder) {
    throw new Problem('Locked', `The run ${holder.id} of ${holder.action} is in progress.`, { run: holder.id })
  }
  if (known.inProgress.length >= most) {
    throw new Problem(
      'TooManyRequests',
      `${known.inProgress.length} runs are in progress; at most ${most} run at once.`,
    )
  }
  return { run, params }
}

/** The parameters as the action uses them. Throws `InvalidParams`. */
export function paramsOf(action: Action, given: Readonly<Record<string, unknown>>): Params {
  return checked(compileParams(action.params), given)
}

function checked({ check, secrets }: CompiledParams, given: Readonly<Record<string, unknown>>): Params {
  const result = check(given)
  if (result.problems) throw new Problem('InvalidParams', `${result.problems.join('; ')}.`)
  return { values: result.params, secrets }
}

/** Equal for bodies that mean the same run: action and params as sent, without secrets. */
export function bodyHashOf(
  { action, params = {} }: Pick<PutRun, 'action' | 'params'>,
  secrets: readonly string[],
): string {
  return hashOf({ action, params: without(params, secrets) })
}

/** Whether a body can be this run's: of one whose record was lost, any can. */
export function isSameBody(body: Pick<PutRun, 'action' | 'params'>, run: RunRecord): boolean {
  return isLost(run) || bodyHashOf(body, run.secretNames) === run.bodyHash
}

const isLost = (run: RunRecord) => run.bodyHash === ''

function accepted(
  id: string,
  body: PutRun,
  action: Action,
  secrets: readonly string[],
  { now, preStop }: Known,
): RunRecord {
  const given = body.params ?? {}
  const declared = parseDuration(action.timeout ?? defaults.action.timeout) ?? 0
  const asked = body.timeout === undefined ? declared : (parseDuration(body.timeout) ?? declared)
  return {
    id,
    action: action.name,
    params: without(given, secrets),
    secretNames: secrets,
    secretsGiven: secrets.filter(name => Object.hasOwn(given, name)),
    bodyHash: bodyHashOf(body, secrets),
    attempt: body.attempt ?? 1,
    fence: body.fence ?? null,
    declaration: action,
    stops: action.name === preStop,
    timeoutMs: Math.min(asked, declared),
    acceptedAt: now,
    phase: 'Accepted',
    step: 0,
    startedAt: null,
    finishedAt: null,
    exitCode: null,
    progress: null,
    result: null,
    error: null,
    logSize: 0,
    logKept: logKeptOf(action),
  }
}

/**
 * Builds everything that will be built, so that parameters that cannot be passed on are refused before anything happens. Throws `InvalidParams`, which
 * never says a value.
 */
export function rehearse(runId: string, fence: number | null, action: Action, params: Params): void {
  try {
    const commands = [...stepsOf(action), action.verify ?? {}].flatMap(({ exec }) => (exec ? [exec.command] : []))
    if (commands.length > 0) {
      checkVariables(environmentOf(action, { runId, fence, params, folder: '/' }))
      checkSpellings(params)
    }
    for (const command of commands) checkArguments(commandOf(command, params))
    for (const step of stepsOf(action)) {
      if (step.http) rehearseCall(step.http, params)
      if (step.http?.poll?.url !== undefined) rehearseUrl(step.http.poll.url, params)
      if (step.fileChanged?.sha256) expand(step.fileChanged.sha256, params.values, 'argument')
    }
    if (action.verify?.http) rehearseCall(action.verify.http, params)
    if (action.result?.file) expand(action.result.file, params.values, 'argument')
  } catch (error) {
    throw new Problem('InvalidParams', messageOf(error))
  }
}

function rehearseCall(declared: Parameters<typeof callOf>[0], params: Params): void {
  callOf(declared, params)
  rehearseUrl(declared.url, params)
}

function rehearseUrl(template: string, params: Params): void {
  const url = expand(template, params.values, 'url')
  if (!URL.canParse(url)) throw new TypeError(`With these parameters ${quote(url)} is no URL.`)
}

/** Every action as steps: one, unless it has several. */
export function stepsOf({ exec, http, signal, steps, reload }: Action): readonly Step[] {
  if (steps) return steps
  if (reload) {
    const { file, ...call } = reload
    return [{ fileChanged: file }, call]
  }
  return [{ ...(exec && { exec }), ...(http && { http }), ...(signal && { signal }) }]
}

function without(params: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(params).filter(([name]) => !names.includes(name)))
}

const quote = (text: string) => JSON.stringify(text)
