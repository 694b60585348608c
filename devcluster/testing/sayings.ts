/**
 * What a test that fails says: what was waited for, how the object looks instead, and what went wrong in the operator. Pure.
 */
import { type Kind, keyOf, type Live, type Ref } from '../../controller/kube/kind.ts'

interface Waited {
  /** Milliseconds. */
  readonly limit: number
  readonly kind: Kind
  readonly ref: Ref
  readonly what: string
  readonly look: string
  /** By the predicate, when it was last asked. */
  readonly thrown?: unknown
  readonly refused?: string | undefined
  /** Of the operator's log. */
  readonly troubles: readonly string[]
}

export function sayTimeout({ limit, kind, ref, what, look, thrown, refused, troubles }: Waited): string {
  return [
    `${kind.kind} ${keyOf(ref)}: waited ${limit / 1000} s for`,
    indented(what),
    look,
    ...(thrown === undefined ? [] : [`the predicate throws: ${thrown instanceof Error ? thrown.message : thrown}`]),
    ...(refused ? [`the operator was refused what it asked for:\n${indented(refused)}`] : []),
    troubles.length > 0
      ? `the operator says:\n${indented(troubles.join('\n'))}`
      : 'the operator has logged no warning and no error',
  ].join('\n')
}

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
}

/** How an object looks, as far as that says something. */
export function lookOf(object: Live | undefined): string {
  if (!object) return 'it is not there'
  const { metadata, apiVersion: _, kind: __, status, ...body } = object as Live & { status?: Record<string, unknown> }
  const { conditions = [], ...state } = (status ?? {}) as { conditions?: Condition[] }
  const { deletionTimestamp, finalizers, generation, labels, annotations, ownerReferences } = metadata
  const about = {
    ...{ generation, labels, annotations, finalizers, deletionTimestamp },
    owners: ownerReferences?.map(owner => `${owner.kind} ${owner.name}`),
  }
  return [
    'now it is',
    indented(`metadata: ${JSON.stringify(about)}`),
    ...Object.entries(body).map(([name, value]) => indented(`${name}: ${short(value)}`)),
    ...(status ? [indented(`status: ${short(state)}`)] : [indented('without a status')]),
    ...conditions.map(({ type, status: is, reason, message }) =>
      indented(`${type} is ${is}${reason ? ` (${reason})` : ''}${message ? `: ${message}` : ''}`),
    ),
  ].join('\n')
}

const longest = 1500

function short(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined'
  return text.length > longest ? `${text.slice(0, longest)}…` : text
}

const indented = (text: string) => `  ${text.replaceAll('\n', '\n  ')}`

/** A line of the operator's log for a person; undefined where it is no warning. */
export function troubleOf(line: string): string | undefined {
  try {
    const { level, msg, err, object } = JSON.parse(line) as {
      level?: string
      msg?: string
      err?: { message?: string }
      object?: unknown
    }
    if (level !== 'warn' && level !== 'error' && level !== 'fatal') return undefined
    const about = typeof object === 'string' ? ` (${object})` : ''
    const why = err?.message && !msg?.includes(err.message) ? `: ${err.message}` : ''
    return `${level}: ${msg ?? ''}${why}${about}`
  } catch {
    return undefined
  }
}
