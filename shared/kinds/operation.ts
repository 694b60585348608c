/**
 * Operation: one wish for one action on one app.
 *
 * `status` is the memory of what was asked of the sidecars: what stands in `runs` may have been sent, what does not was not.
 */
import { z } from 'zod'
import { phases } from '../protocol/schemas.ts'
import { duration, objectName, params, paramsFrom, time, uid, word } from './fields.ts'

/** Of an Operation. `Succeeded`, `Failed`, `Cancelled` and `TimedOut` never change. */
const operationPhases = ['Queued', 'Running', 'Unknown', 'Succeeded', 'Failed', 'Cancelled', 'TimedOut'] as const
/** Of a run in its status: `Written` until a sidecar has confirmed it, then as the sidecar says. */
const runPhases = ['Written', ...phases] as const

const runId = z
  .string()
  .min(1)
  .max(128)
  .regex(/^[A-Za-z0-9._-]+$/)

const settle = z
  .object({
    run: runId.describe('The id of the run.'),
    outcome: z.enum(['Succeeded', 'Failed']).describe('What really happened.'),
    reason: z.string().min(1).max(1024).describe('How that is known.'),
    by: z.string().max(256).optional().describe('Who says so. Admission writes it, whatever is given.'),
  })
  .meta({
    rules: [
      {
        rule: 'self.outcome == oldSelf.outcome && self.reason == oldSelf.reason',
        message: 'what was said of a run stands: it cannot be changed',
      },
    ],
  })

const wished = {
  app: objectName.describe('The StatefulApp, in the same namespace.'),
  action: word.describe("One of the actions of the app's Lifecycle."),
  params: params.optional(),
  paramsFrom: paramsFrom.optional(),
  target: z
    .string()
    .min(1)
    .max(253)
    .optional()
    .describe("Who is asked: all, one, primary, replicas, or the name of a pod. Default: the action's own."),
  priority: z.int32().default(0).describe('Of those that wait for the same app, the highest is begun first.'),
  deadline: duration
    .optional()
    .describe(
      'A time from its creation: what has not been begun by then has Failed, with DeadlineExceeded; what runs is cancelled. Default: none.',
    ),
  ttlSecondsAfterFinished: z
    .int32()
    .min(0)
    .default(86_400)
    .describe('So many seconds after its end it is deleted. An Unknown one has not ended.'),
  suspend: z.boolean().default(false).describe('While true, it is not begun. What runs goes on.'),
}

const isSame = (field: string) => ({
  rule: `self.${field} == oldSelf.${field}`,
  message: `${field} of an Operation cannot be changed: make another Operation`,
  fieldPath: `.${field}`,
})
const isSameOrAbsent = (field: string) => ({
  rule: `has(self.${field}) == has(oldSelf.${field}) && (!has(self.${field}) || self.${field} == oldSelf.${field})`,
  message: `${field} of an Operation cannot be changed: make another Operation`,
})

/** What a schedule makes Operations of. */
export const operationTemplate = z.object(wished)

export const operationSpec = z
  .object({
    ...wished,
    cancel: z
      .boolean()
      .default(false)
      .meta({ rules: [{ rule: '!oldSelf || self', message: 'a cancellation cannot be taken back' }] })
      .describe('Ends it: what runs is cancelled, what has not been begun never is. It cannot be taken back.'),
    settle: z
      .array(settle)
      .max(256)
      .meta({
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['run'],
        rules: [
          {
            rule: 'oldSelf.all(old, self.exists(one, one.run == old.run))',
            message: 'what was said of a run stands: it cannot be removed',
          },
        ],
      })
      .optional()
      .describe("A person's word on runs whose outcome nobody saw. It is only ever added to."),
  })
  .meta({
    rules: [
      isSame('app'),
      isSame('action'),
      isSameOrAbsent('params'),
      isSameOrAbsent('paramsFrom'),
      isSameOrAbsent('target'),
      {
        rule: '!has(oldSelf.settle) || has(self.settle)',
        message: 'what was said of a run stands: it cannot be removed',
      },
    ],
  })

const progress = z.object({
  percent: z.number().min(0).max(100).optional(),
  done: z.number().optional(),
  total: z.number().optional(),
  unit: z.string().max(64).optional(),
  message: z.string().max(1024).optional(),
})

/** `status.runs[]`: one execution in one pod. */
const operationRun = z.object({
  pod: objectName.describe('The name of its pod.'),
  uid: uid.describe('The uid of its pod.'),
  id: runId.describe("Derived from the operation's uid, the pod's uid and the attempt."),
  attempt: z.int32().min(1).describe('Counted from 1, for each target.'),
  fence: z
    .int()
    .min(0)
    .describe("The number it carries: the operation's fence times 65536, plus its place in this list."),
  journalId: z.string().max(128).optional().describe("The sidecar's journal that it was written for."),
  configHash: z.string().max(128).optional().describe('The configuration that it was written for.'),
  node: z.string().max(253).optional().describe("The pod's node when it was written."),
  nodeBootId: z.string().max(128).optional().describe("The kernel's boot id of that node then."),
  timeout: duration.describe('How long it may take.'),
  phase: z.enum(runPhases).describe('Written: no sidecar has confirmed it yet. Else as the sidecar said last.'),
  writtenAt: time.describe('When it was written here, before anything was sent.'),
  lostAt: time
    .optional()
    .describe('Since when its pod is gone, another one has its name, or its sidecar does not know it any more.'),
  podEnded: z.boolean().optional().describe('Whether every container of its pod was seen terminated.'),
  progress: progress.optional(),
  startedAt: time.optional(),
  finishedAt: time.optional(),
  exitCode: z.int32().optional(),
  result: z.unknown().optional().describe('What it gave, any JSON.'),
  error: z.object({ code: z.string().max(256), message: z.string().max(32_768) }).optional(),
  tail: z.string().max(16_384).optional().describe('The end of its output.'),
  verifiedAt: time.optional().describe('When verify was asked last about its outcome.'),
})

export const operationStatus = z.object({
  phase: z.enum(operationPhases).describe('For display. What decides is in runs.'),
  reason: z
    .string()
    .max(256)
    .describe("Why it ended so, in one word; as in a run's error. While it is Queued: what for."),
  message: z.string().max(32_768).describe('The same, for a person.'),
  progress: z.string().max(64).describe('For display: 41 %.'),
  actionHash: z.string().max(128).describe('Of the declaration of the action under which it was begun.'),
  targets: z
    .array(
      z.object({
        pod: objectName,
        uid: uid.describe('The uid that the pod had. Changes only while no run was written for it.'),
        role: z.string().max(256).optional().describe("The pod's role then."),
      }),
    )
    .max(1024)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['pod'] })
    .describe('Whom it is asked of: resolved once, before the first request.'),
  runs: z
    .array(operationRun)
    .max(4096)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['id'] })
    .describe('What was asked of the sidecars. A run that stands here may have been sent.'),
  startedAt: time.describe('When its targets were resolved.'),
  finishedAt: time.describe('When the last of its runs ended.'),
})
