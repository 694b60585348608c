/**
 * OperationSchedule: Operations made by the clock.
 */
import { z } from 'zod'
import { duration, objectName, time, uid } from './fields.ts'
import { operationTemplate } from './operation.ts'

export const scheduleSpec = z.object({
  schedule: z
    .string()
    .min(1)
    .max(256)
    .regex(/^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|\S+( +\S+){4})$/)
    .describe('Cron with five fields (minute, hour, day, month, day of week), or @daily and the like.'),
  timeZone: z
    .string()
    .min(1)
    .max(64)
    .regex(/^[A-Za-z0-9_+-]+(\/[A-Za-z0-9_+-]+)*$/)
    .default('Etc/UTC')
    .describe('In which the schedule is meant, by its name in the time zone database: Europe/Berlin.'),
  jitter: duration
    .default('0s')
    .describe('Each tick is begun up to so much later; the same tick always by the same amount.'),
  catchUp: z
    .int32()
    .min(0)
    .max(100)
    .default(1)
    .describe('How many ticks that were missed are made at most: the newest ones.'),
  startingDeadline: duration.optional().describe('A tick that is older than this is missed for good. Default: none.'),
  overlap: z
    .enum(['Allow', 'Forbid', 'Replace'])
    .default('Forbid')
    .describe(
      'What a tick does while an Operation of this schedule has not ended. Allow: it is made. Forbid: it is skipped, with an event. Replace: the other is cancelled first.',
    ),
  suspend: z.boolean().default(false).describe('While true no ticks are made, nor afterwards those that passed.'),
  successfulHistory: z.int32().min(0).max(1000).default(3).describe('So many Operations that succeeded are kept.'),
  failedHistory: z.int32().min(0).max(1000).default(1).describe('So many Operations that ended otherwise are kept.'),
  template: operationTemplate.describe('The spec of its Operations.'),
})

export const scheduleStatus = z.object({
  lastTick: time.describe('The newest tick that was made, skipped or missed: none at or before it is ever made.'),
  nextTick: time.describe('When the next one is due, without jitter.'),
  active: z
    .array(z.object({ name: objectName, uid: uid.optional() }))
    .max(1024)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .describe('Its Operations that have not ended.'),
  plan: z
    .object({ schedule: z.string().max(256), timeZone: z.string().max(64), suspend: z.boolean() })
    .describe(
      'What lastTick was worked out for. Where the spec says otherwise, what passed before that change is not made.',
    ),
})
