/**
 * An http call as an action: sent once, then polled until its condition holds.
 *
 * Guarantees: the call itself is never repeated. If it may have been sent and no answer came, nobody knows what it did: `lost`. What is sent with it goes to no other
 * origin than those that are declared, whatever an answer says.
 */
import { sleep } from '../../shared/clock.ts'
import { parseDuration } from '../../shared/duration.ts'
import { type Answer, compileCondition } from '../../shared/lifecycle/guard.ts'
import { defaults, type HttpCall } from '../../shared/lifecycle/model.ts'
import { expand } from '../../shared/params/template.ts'
import { type HttpAnswer, request } from '../calls/http.ts'
import { type Call, callOf, isExpected } from './call.ts'
import { ended } from './command.ts'
import { longestResult } from './progress.ts'
import { done, type StepContext, type StepEnd } from './steps.ts'

export async function carryOutHttp(declared: HttpCall, context: StepContext): Promise<StepEnd> {
  const { job, clock, cut, cause, say } = context
  const call = callOf(declared, job.params)
  const timeoutMs = parseDuration(declared.timeout ?? defaults.http.timeout) ?? 0
  const answer = await request({ ...call, timeoutMs, bodyLimit: longestResult, clock, signal: cut })
  if ('failed' in answer) {
    say(`${call.method} ${call.url}: ${answer.message}`)
    if (answer.maybeSent) return { exit: ended('lost', `${call.method} ${call.url} was cut off: ${answer.message}`) }
    if (cut.aborted) return { exit: ended(cause(), `before ${call.method} ${call.url} was sent`) }
    return { exit: ended('exited', `${call.method} ${call.url} could not be sent: ${answer.message}`, 'NotSent') }
  }
  say(`${call.method} ${call.url}: ${answer.status}`)
  if (!isExpected(declared, answer.status)) {
    return {
      exit: ended('exited', `${call.method} ${call.url} was answered with ${answer.status}`, 'Refused'),
      result: bodyOf(answer),
    }
  }
  return declared.poll ? poll(declared, declared.poll, call, answer, context) : { exit: done, result: bodyOf(answer) }
}

async function poll(
  declared: HttpCall,
  { url, every, until, failed }: NonNullable<HttpCall['poll']>,
  call: Call,
  first: HttpAnswer,
  { job, clock, cut, cause, say }: StepContext,
): Promise<StepEnd> {
  const isDone = compileCondition(until)
  const hasFailed = failed === undefined ? undefined : compileCondition(failed)
  const target = url === undefined ? locationOf(call.url, first) : expand(url, job.params.values, 'url')
  const began = `${call.method} ${call.url} was answered, but`
  if (url === undefined && new URL(target).origin !== new URL(call.url).origin) {
    say(`GET ${target}: not asked, as it is of another origin than ${call.url}`)
    return { exit: ended('lost', `${began} with a location of another origin, ${target}; poll.url can name that`) }
  }
  const timeoutMs = parseDuration(declared.timeout ?? defaults.http.timeout) ?? 0
  const everyMs = parseDuration(every ?? defaults.poll.every) ?? 0
  let status: number | undefined
  let failure: string | undefined
  for (;;) {
    const answer = await request({
      url: target,
      headers: call.headers,
      insecureSkipVerify: call.insecureSkipVerify,
      timeoutMs,
      bodyLimit: longestResult,
      clock,
      signal: cut,
    })
    if ('failed' in answer) {
      if (answer.message !== failure && !cut.aborted) say(`GET ${target}: ${answer.message}`)
      if (!cut.aborted) failure = answer.message
      status = undefined
    } else {
      failure = undefined
      if (answer.status !== status) say(`GET ${target}: ${answer.status}`)
      status = answer.status
      const seen: Answer = { status: answer.status, headers: answer.headers, body: bodyOf(answer) }
      if (isDone.holds(seen, say)) return { exit: done, result: seen.body }
      if (hasFailed?.holds(seen, say))
        return { exit: ended('exited', `GET ${target} says that it failed`, 'Refused'), result: seen.body }
    }
    try {
      await sleep(clock, everyMs, cut)
    } catch {
      const how = cause() === 'cancelled' ? 'cancelled' : 'not done in time'
      const last = failure === undefined ? '' : `; GET ${target} failed last: ${failure}`
      return { exit: ended('lost', `${began} what it began was ${how}${last}`) }
    }
  }
}

function locationOf(url: string, { headers }: HttpAnswer): string {
  return URL.parse(headers['location'] ?? '', url)?.href ?? url
}

function bodyOf({ body, headers }: HttpAnswer): unknown {
  if (body === '') return undefined
  if (!/json/i.test(headers['content-type'] ?? '') && !/^\s*[[{]/.test(body)) return body
  try {
    return JSON.parse(body)
  } catch {
    return body
  }
}
