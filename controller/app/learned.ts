/**
 * What one reconciliation learns from sidecars: it asks, keeps the answers, and shows them to the decisions.
 *
 * Guarantees: nothing is asked twice in one reconciliation; a run is sent exactly as it stands in the status; secrets are read when they are sent, from Secrets
 * that are marked for it, and are kept nowhere.
 */
import type { PodState, PutRun, Run } from '../../shared/protocol/schemas.ts'
import type { Verdict } from '../../shared/run.ts'
import type { CachedClient } from '../kube/cached.ts'
import { Secret } from '../kube/kinds.ts'
import type { PodAddress } from './agents/address.ts'
import type { Agents } from './agents/agents.ts'
import { AgentError } from './agents/errors.ts'
import type { AppFacts } from './decide/app.ts'
import { type Ask, askKey, type Refusal } from './decide/facts.ts'
import type { RunMemory } from './memory.ts'
import type { Op, PodView } from './view.ts'

/** A Secret that may be read for parameters carries this label. */
const paramsLabel = 'shipmate.dev/params'

/** So much of the end of a log is kept in the status, in bytes. */
const tailSize = 2048

export interface LearnedOptions {
  readonly agents: Agents
  readonly client: CachedClient
  readonly memory: RunMemory
  readonly signal: AbortSignal
  readonly now: () => number
  addressOf(pod: PodView): PodAddress | undefined
}

export class Learned {
  readonly #options: LearnedOptions
  readonly #states = new Map<string, PodState>()
  readonly #refusals = new Map<string, Refusal>()
  readonly #verdicts = new Map<string, Verdict>()
  readonly #tails = new Map<string, string>()
  readonly #asked = new Set<string>()
  /** Said in answer, perhaps before their event has come. */
  readonly #runs = new Map<string, { readonly uid: string; readonly run: Run }>()
  #end: { isDone: boolean; waits: string | undefined } | undefined
  #lack: string | undefined

  constructor(options: LearnedOptions) {
    this.#options = options
  }

  get facts(): AppFacts {
    const { memory, now } = this.#options
    return {
      states: this.#states,
      refusals: this.#refusals,
      verdicts: this.#verdicts,
      tails: this.#tails,
      asked: this.#asked,
      verifyAt: id => memory.verifyAt(id),
      isProgressDue: id => memory.isProgressDue(id, now()),
      isEndDone: this.#end?.isDone,
      endWaits: this.#end?.waits,
      createWaits: this.#lack,
    }
  }

  ended(isDone: boolean, waits: string | undefined): void {
    this.#end = { isDone, waits }
  }

  /** Whether a step of the end was taken, so that the next one can be. */
  get isMidway(): boolean {
    return this.#end !== undefined && !this.#end.isDone && this.#end.waits === undefined
  }

  /** What has to be there before the workload is made. */
  lacks(what: string): void {
    this.#lack = what
  }

  /** Whether something was asked in vain, so that it has to be asked again later. */
  get hasFailed(): boolean {
    return this.#refusals.size > 0 || [...this.#asked].some(key => key.startsWith('state '))
  }

  /** Whether a run was asked for, and not refused. */
  get hasBegun(): boolean {
    return this.#refusals.size === 0 && [...this.#asked].some(key => key.startsWith('put '))
  }

  /** The pod, with what its sidecar has pushed, and what it has answered here. */
  seen(pod: PodView): PodView {
    const agent = this.#options.agents.seen(pod.uid)
    if (!agent) return pod
    const answers = [...this.#runs.values()].filter(
      ({ uid, run }) => uid === pod.uid && isNews(run, agent.runs?.get(run.id)),
    )
    if (answers.length === 0 || !agent.runs) return { ...pod, agent }
    const runs = new Map([...agent.runs, ...answers.map(({ run }): [string, Run] => [run.id, run])])
    return { ...pod, agent: { ...agent, runs } }
  }

  /** @param op the operation that a run belongs to */
  async ask(ask: Ask, op: Op): Promise<void> {
    const address = this.#options.addressOf(ask.pod)
    this.#asked.add(askKey(ask))
    if (!address) return
    try {
      await this.#carryOut(ask, op, address)
    } catch (error) {
      if (!(error instanceof AgentError || error instanceof MissingParam)) throw error
      if (ask.ask === 'put' || ask.ask === 'annul')
        this.#refusals.set(ask.run.id, { code: error.code, message: error.detail, isOfAnnul: ask.ask === 'annul' })
    }
  }

  async #carryOut(ask: Ask, op: Op, address: PodAddress): Promise<void> {
    const { agents, memory, signal, now } = this.#options
    const heard = (run: Run) => void this.#runs.set(run.id, { uid: ask.pod.uid, run })
    switch (ask.ask) {
      case 'state':
        this.#states.set(ask.pod.uid, await agents.state(address, signal))
        return
      case 'put':
      case 'annul': {
        const { id, attempt, uid, configHash, journalId, fence } = ask.run
        const isAnnul = ask.ask === 'annul'
        const body: PutRun = {
          action: op.spec.action,
          params: isAnnul ? { ...op.spec.params } : await this.#params(op),
          attempt,
          podUid: uid,
          fence,
          ...(configHash !== undefined && { configHash }),
          ...(journalId !== undefined && { journalId }),
          ...(isAnnul && { cancelled: true }),
        }
        return heard(await agents.put(address, id, body, signal))
      }
      case 'cancel':
        return heard(await agents.cancel(address, ask.run.id, signal))
      case 'settle':
        return heard(await agents.settle(address, ask.run.id, { outcome: ask.outcome, reason: ask.reason }, signal))
      case 'verify': {
        memory.verified(ask.run.id, now())
        const body = { runId: ask.run.id, action: op.spec.action, params: await this.#params(op) }
        const { outcome } = await agents.verify(address, body, signal)
        this.#verdicts.set(ask.run.id, outcome)
        return
      }
      case 'tail': {
        const size = ask.pod.agent?.runs?.get(ask.run.id)?.log.size ?? 0
        const offset = Math.max(size - tailSize, 0)
        const { text } = await agents.log(address, ask.run.id, { offset, limit: tailSize }, signal)
        this.#tails.set(ask.run.id, text)
        return
      }
      case 'drop':
        await agents.drop(address, ask.run.id, signal)
        memory.forgetRun(ask.run.id)
    }
  }

  async #params({ spec, metadata }: Op): Promise<Record<string, unknown>> {
    const params: Record<string, unknown> = { ...spec.params }
    for (const { name, secretKeyRef } of spec.paramsFrom ?? []) {
      const ref = { name: secretKeyRef.name, namespace: metadata.namespace }
      const secret = await this.#options.client.live.find(Secret, ref)
      const isMarked = secret?.metadata.labels?.[paramsLabel] === 'true'
      const value = isMarked ? secret?.data?.[secretKeyRef.key] : undefined
      if (value === undefined)
        throw new MissingParam(
          !secret
            ? `there is no Secret ${ref.name}`
            : !isMarked
              ? `Secret ${ref.name} does not carry the label ${paramsLabel}: "true"`
              : `Secret ${ref.name} has no key ${secretKeyRef.key}`,
        )
      params[name] = Buffer.from(value, 'base64').toString()
    }
    return params
  }
}

/** A secret parameter cannot be read; nothing was sent. */
class MissingParam extends Error {
  readonly code = 'MissingParam'
  readonly detail: string

  constructor(detail: string) {
    super(detail)
    this.detail = detail
  }
}

const order = ['Accepted', 'Running', 'Unknown', 'Succeeded', 'Failed', 'Cancelled', 'TimedOut']

/** Whether what was answered is further than what was pushed. */
function isNews(answered: Run, pushed: Run | undefined): boolean {
  return !pushed || order.indexOf(answered.phase) > order.indexOf(pushed.phase)
}
