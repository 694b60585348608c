/**
 * The sidecar's protocol, v1: one schema for each shape that crosses the wire. They validate, give the types and write `/openapi.json`.
 */
import * as z from 'zod/mini'
import { durationPattern } from '../duration.ts'

/** Bodies above are refused. */
export const longestBody = 256 * 1024
/** The longest a call is held, in milliseconds. */
export const longestWait = 60_000

export const phases = ['Accepted', 'Running', 'Succeeded', 'Failed', 'Cancelled', 'TimedOut', 'Unknown'] as const
export const phase = z.enum(phases)
export const runId = z.string().check(z.regex(/^[A-Za-z0-9._-]{1,128}$/))
export const duration = z.string().check(z.regex(durationPattern))
const time = z.iso.datetime()
const nothingOr = <T extends z.core.$ZodType>(schema: T) => z.nullable(schema)
const params = z.record(z.string(), z.unknown())

export const progress = z.strictObject({
  percent: z.optional(z.number().check(z.gte(0), z.lte(100))),
  done: z.optional(z.number()),
  total: z.optional(z.number()),
  unit: z.optional(z.string()),
  message: z.optional(z.string()),
})

export const run = z.strictObject({
  id: runId,
  action: z.string(),
  params,
  phase,
  attempt: z.int(),
  startedAt: nothingOr(time),
  finishedAt: nothingOr(time),
  exitCode: nothingOr(z.int()),
  progress: nothingOr(progress),
  result: z.unknown(),
  error: nothingOr(z.strictObject({ code: z.string(), message: z.string() })),
  log: z.strictObject({ size: z.int(), keptHead: z.int(), tailFrom: z.int() }),
})

export const probeState = z.strictObject({
  ok: nothingOr(z.boolean()),
  value: nothingOr(z.string()),
  error: nothingOr(z.string()),
  at: nothingOr(time),
  failures: z.int(),
})

export const podState = z.strictObject({
  state: z.string(),
  since: time,
  reason: z.string(),
  role: nothingOr(z.string()),
  probes: z.record(z.string(), probeState),
  run: nothingOr(z.strictObject({ id: runId, action: z.string(), phase })),
  pod: z.strictObject({ name: z.string(), namespace: z.string(), uid: z.string() }),
  configHash: z.string(),
  configError: z.optional(z.string()),
  journalId: z.string(),
  fence: z.int(),
  bootId: z.string(),
  seq: z.int(),
  cursor: z.string(),
  version: z.string(),
})

/** `PUT /v1/runs/ID`. */
export const putRun = z.strictObject({
  action: z.string(),
  params: z.optional(params),
  attempt: z.optional(z.int().check(z.gte(1))),
  podUid: z.optional(z.string()),
  configHash: z.optional(z.string()),
  journalId: z.optional(z.string()),
  fence: z.optional(z.int().check(z.gte(0))),
  timeout: z.optional(duration),
  /** Written down as Cancelled, and never begun; a run that is known is answered as it stands. */
  cancelled: z.optional(z.boolean()),
})

/** `POST /v1/runs/ID/settle`. */
export const settle = z.strictObject({
  outcome: z.enum(['Succeeded', 'Failed']),
  reason: z.string().check(z.minLength(1), z.maxLength(1024)),
})

/** `POST /v1/verify`. */
export const verify = z.strictObject({ runId, action: z.string(), params: z.optional(params) })
export const verdict = z.strictObject({ outcome: z.enum(['Succeeded', 'Failed', 'Unknown']) })

export const actionView = z.strictObject({
  name: z.string(),
  description: z.optional(z.string()),
  params: z.record(z.string(), z.unknown()),
  timeout: duration,
  shared: z.boolean(),
  idempotent: z.boolean(),
  verify: z.boolean(),
})

export const features = z.strictObject({ protocol: z.literal(1), features: z.array(z.string()) })

const numbered = { seq: z.int(), cursor: z.string(), at: time }
/** What `/v1/events` sends. */
export const message = z.discriminatedUnion('type', [
  z.strictObject({ ...numbered, type: z.literal('reset'), state: podState, runs: z.array(run) }),
  z.strictObject({ ...numbered, type: z.literal('state'), state: podState }),
  z.strictObject({ ...numbered, type: z.literal('probe'), name: z.string(), probe: probeState }),
  z.strictObject({ ...numbered, type: z.literal('run'), run }),
  z.strictObject({ ...numbered, type: z.literal('log'), id: runId, offset: z.int(), next: z.int(), text: z.string() }),
])

export type Phase = z.infer<typeof phase>
export type Progress = z.infer<typeof progress>
export type Run = z.infer<typeof run>
export type ProbeState = z.infer<typeof probeState>
export type PodState = z.infer<typeof podState>
export type PutRun = z.infer<typeof putRun>
export type Settle = z.infer<typeof settle>
export type VerifyRun = z.infer<typeof verify>
export type Verdict = z.infer<typeof verdict>
export type ActionView = z.infer<typeof actionView>
export type Features = z.infer<typeof features>
export type Message = z.infer<typeof message>
