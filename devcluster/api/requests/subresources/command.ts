/**
 * exec and attach: what is asked, begun on the pod's node; and how its end is told.
 */
import { badRequest, type Status } from '../../problems.ts'
import type { Asked, ExecSession } from '../../types.ts'
import type { Context } from '../context.ts'
import { containerOf, running } from './pod-place.ts'

export interface Begun {
  readonly session: ExecSession
  /** What the caller has asked for. */
  readonly wants: Readonly<Record<'stdin' | 'stdout' | 'stderr' | 'tty', boolean>>
}

const isTrue = (text: string | null) => text !== null && text !== 'false' && text !== '0'

/** Throws an ApiError where there is no such pod or container, or it does not run. */
export async function begin(context: Context, asked: Asked): Promise<Begun> {
  const { query } = asked.request
  let container = ''
  const { place, runtime } = running(context, asked, pod => {
    container = containerOf(pod, query.get('container'))
  })
  const wish = (name: string) => isTrue(query.get(name))
  const tty = wish('tty')
  // A terminal has one output.
  const wants = { stdin: wish('stdin'), stdout: wish('stdout'), stderr: wish('stderr') && !tty, tty }
  if (!wants.stdin && !wants.stdout && !wants.stderr)
    throw badRequest('you must specify at least 1 of stdin, stdout, stderr')
  const { stdin } = wants
  if (asked.subresource === 'attach') return { wants, session: await runtime.attach(place, { container, stdin, tty }) }
  const command = query.getAll('command')
  if (command.length === 0) throw badRequest('you must specify at least one command for the container')
  return { wants, session: await runtime.exec(place, { container, command, stdin, tty }) }
}

export function resize(session: ExecSession, text: string): void {
  try {
    const { Width, Height } = JSON.parse(text) as { Width: number; Height: number }
    session.resize(Width, Height)
  } catch {
    // A size that cannot be read is none.
  }
}

/** How a command ended, as clients read it. */
export function endOf(code: number | Error): Partial<Status> {
  if (code === 0) return { metadata: {}, status: 'Success' }
  if (typeof code !== 'number') {
    return { metadata: {}, status: 'Failure', message: code.message, reason: 'InternalError', code: 500 }
  }
  return {
    metadata: {},
    status: 'Failure',
    message: `command terminated with non-zero exit code: exit status ${code}`,
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
  }
}
