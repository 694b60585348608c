/**
 * One attempt of a probe, by its kind: exec, http, tcp, file or process.
 *
 * Guarantees: an attempt answers yes, no, or that there is no answer; it never throws. A value has at most 4 KiB and says when it was cut. When the signal is
 * aborted, whatever was begun is ended; the attempt resolves once it has.
 */
import { connect } from 'node:net'
import type { Clock } from '../../shared/clock.ts'
import { parseDuration } from '../../shared/duration.ts'
import { messageOf } from '../../shared/errors.ts'
import type { Probe } from '../../shared/lifecycle/model.ts'
import { type Attempt, no, none, yes } from '../../shared/lifecycle/threshold.ts'
import { cutTo } from '../calls/bounded.ts'
import { type CommandResult, runCommand } from '../calls/command.ts'
import { connectFailure, connectMessage } from '../calls/connect.ts'
import { request } from '../calls/http.ts'
import { findProcesses } from '../calls/process.ts'
import { probeFile, type SeenFiles } from './file.ts'

export interface Surroundings {
  readonly clock: Clock
  /** Ends the attempt; time-outs are for who makes it. */
  readonly signal: AbortSignal
  readonly seen: SeenFiles
}

/** The longest value, in bytes. */
const longestValue = 4096
const longestError = 512

export async function attemptProbe(probe: Probe, surroundings: Surroundings): Promise<Attempt> {
  try {
    const { outcome, value, error } = await attemptOf(probe, surroundings)
    return {
      outcome,
      value: value === null ? null : cutTo(value, longestValue),
      error: error === null ? null : cutTo(error, longestError),
    }
  } catch (error) {
    return none(cutTo(messageOf(error), longestError))
  }
}

async function attemptOf(probe: Probe, surroundings: Surroundings): Promise<Attempt> {
  if (probe.exec) return probeByCommand(probe, probe.exec, surroundings)
  if (probe.http) return probeByHttp(probe.http, surroundings)
  if (probe.tcp) return probeByConnection(probe.tcp, surroundings)
  if (probe.file) return probeFile(probe.file, surroundings)
  if (probe.process) return probeByName(probe.process)
  return none('it has none of exec, http, tcp, file and process')
}

async function probeByCommand(
  { env, workingDir, user }: Probe,
  { command }: NonNullable<Probe['exec']>,
  { clock, signal }: Surroundings,
): Promise<Attempt> {
  const result = await runCommand({ command, env, workingDir, user, clock, signal, outputLimit: longestValue })
  // One that hangs although it was killed is not to be joined by another.
  await result.lingering
  const { exit, stderr } = result
  if ('code' in exit) {
    const value = valueFrom(result)
    if (exit.code === 0) return yes(value)
    const said = stderr.trim()
    return no(value, said === '' ? `exit ${exit.code}` : `exit ${exit.code}: ${said}`)
  }
  if ('signal' in exit) return none(`killed by ${exit.signal}`)
  if ('failed' in exit) return none(exit.failed)
  return none('it was stopped')
}

/** What it wrote, without the ends of lines at the end. */
function valueFrom({ stdout, dropped }: CommandResult): string {
  return dropped.stdout > 0 ? cutTo(stdout, longestValue, dropped.stdout) : trimmed(stdout)
}

const trimmed = (text: string) => text.replace(/[\r\n]+$/, '')

async function probeByHttp(http: NonNullable<Probe['http']>, { clock, signal }: Surroundings): Promise<Attempt> {
  const answer = await request({
    url: http.url,
    method: http.method,
    headers: http.headers,
    body: http.body,
    insecureSkipVerify: http.insecureSkipVerify,
    timeoutMs: parseDuration(http.timeout ?? '') ?? longestWait,
    bodyLimit: longestValue,
    clock,
    signal,
  })
  if ('failed' in answer) return answer.failed === 'refused' ? no(null, answer.message) : none(answer.message)
  const { status } = answer
  const value = answer.cut ? cutTo(answer.body, longestValue, 1) : trimmed(answer.body)
  const isYes = http.status ? http.status.includes(status) : status >= 200 && status <= 299
  return isYes ? yes(value) : no(value, `status ${status}`)
}

/** For an http probe without a time-out of its own, which the probe's ends long before. */
const longestWait = 2 ** 31 - 1

function probeByConnection(
  { host = '127.0.0.1', port }: NonNullable<Probe['tcp']>,
  { signal }: Surroundings,
): Promise<Attempt> {
  return new Promise(resolve => {
    const finish = (attempt: Attempt) => {
      signal.removeEventListener('abort', abort)
      socket.destroy()
      resolve(attempt)
    }
    const abort = () => finish(none('it was stopped'))
    const socket = connect({ host, port }, () => finish(yes(null)))
    socket.on('error', error => {
      const message = connectMessage(error)
      finish(connectFailure(error) === 'refused' ? no(null, message) : none(message))
    })
    signal.addEventListener('abort', abort, { once: true })
  })
}

function probeByName({ name }: NonNullable<Probe['process']>): Attempt {
  const [oldest] = findProcesses(name)
  return oldest ? yes(String(oldest.pid)) : no(null, `no process is called "${name}"`)
}
