/**
 * StatefulApp: a stateful application, its wished state, and the memory of what was wished.
 */
import { z } from 'zod'
import { phases } from '../protocol/schemas.ts'
import { duration, objectName, params, paramsFrom, time, uid, word } from './fields.ts'

/** What becomes of the workload at a Delete state. */
export const endings = ['Orphan', 'ScaleToZero', 'Delete', 'DeleteWithVolumes'] as const
/** How a wish ended. `Lost`: its Operation vanished without an outcome. */
const wishOutcomes = ['Succeeded', 'Failed', 'Cancelled', 'TimedOut', 'Unknown', 'Lost'] as const

/** `spec.desired`: the wish. */
export const desired = z.object({
  state: word.describe(
    'The state of the Lifecycle that is wished. An observed one is held; a transient one is met once.',
  ),
  action: word
    .optional()
    .describe('Which action of a transient state. Needed where it has several; with one it is implied.'),
  params: params.optional(),
  paramsFrom: paramsFrom.optional(),
  request: z
    .string()
    .max(253)
    .optional()
    .describe('Any text. Another one makes it another wish: the same action once more.'),
  preempt: z.boolean().optional().describe('Cancels what runs now for the sake of this wish. Default false: it waits.'),
})

/** What the server checks when it is applied. */
const embedded = z.record(z.string(), z.unknown())

const exactlyOne = (fields: readonly string[]) =>
  `[${fields.map(field => `has(self.${field})`).join(', ')}].exists_one(one, one)`

const workload = z
  .object({
    apiVersion: z.string().min(1).max(317).default('apps/v1'),
    kind: z.string().min(1).max(63).describe('StatefulSet, Deployment, DaemonSet, or a kind with a scale subresource.'),
    name: objectName,
  })
  .meta({
    rules: [{ rule: 'self == oldSelf', message: 'the workload of an app cannot be changed: make another app for it' }],
  })

const template = z.object({
  spec: embedded.describe("A StatefulSet's spec. Its selector and its Service's name may be left out."),
  service: embedded
    .optional()
    .describe("The spec of its Service, headless unless it says otherwise. Default: made from the pods' ports."),
  configMaps: z
    .record(z.string(), z.record(z.string(), z.string()))
    .optional()
    .describe("ConfigMaps: the data of each, by name. The app's name is put in front."),
})

const via = z
  .object({
    exec: z
      .object({ container: z.string().min(1).max(63).optional().describe('Default: the first one.') })
      .optional()
      .describe('Commands are run in a container by the API server.'),
    http: z
      .object({ port: z.int32().min(1).max(65_535), path: z.string().max(1024).default('/') })
      .optional()
      .describe("The application's own HTTP server is asked."),
  })
  .meta({ rules: [{ rule: exactlyOne(['exec', 'http']), message: 'exactly one of exec and http has to be given' }] })

export const appSpec = z
  .object({
    lifecycle: objectName.describe('The Lifecycle of the app, in the same namespace.'),
    workload: workload.optional().describe('An existing workload, which is adopted as it is. Either this or template.'),
    template: template
      .optional()
      .describe('A StatefulSet with its Service and ConfigMaps, made and kept by Shipmate. Either this or workload.'),
    desired: desired.optional().describe('The wish. Without one the app is only observed.'),
    onEnd: z
      .enum(endings)
      .optional()
      .describe(
        'What becomes of the workload at a Delete state, and on deletion. Delete: volumes stay. Default: ScaleToZero, or Orphan where there is no scale subresource.',
      ),
    deletion: z
      .object({
        policy: z
          .enum(['WalkToEnd', 'Orphan'])
          .optional()
          .describe(
            'WalkToEnd: the app is stopped by its lifecycle, then onEnd is carried out. Orphan: nobody is asked anything. Default: Orphan for a workload and for an app without desired, else WalkToEnd.',
          ),
        deadline: duration
          .default('10m')
          .describe('After that the app goes, wherever it is; onEnd is not carried out.'),
      })
      .prefault({})
      .describe('What happens when this object is deleted.'),
    paused: z
      .boolean()
      .default(false)
      .describe('While true nothing new is begun: no run, no apply, no scale. What runs goes on and is observed.'),
    quorum: z.int32().min(1).optional().describe('So many pods in a state are the app in it. Default: all.'),
    via: via
      .optional()
      .describe('How an app without a sidecar is asked. The condition ExactlyOnce says which promise is lost.'),
  })
  .meta({
    rules: [
      {
        rule: exactlyOne(['workload', 'template']),
        message: 'exactly one of workload and template has to be given',
      },
      {
        rule: 'has(self.workload) == has(oldSelf.workload)',
        message: 'an app with a workload cannot become one with a template, nor the other way round: make another app',
      },
    ],
  })

const reference = z.object({ name: objectName, uid: uid.optional() })

export const appStatus = z.object({
  state: z.string().max(63).describe('The state of the app; Unknown if it cannot be told.'),
  reason: z
    .string()
    .max(256)
    .describe('Why it is in that state: Missing, ScaledToZero, NeverHeld, GuardLost, NoSidecar, Unreachable …'),
  since: time.describe('Since when.'),
  desired: z.string().max(256).describe('For display, the wish: Servicing (backup).'),
  action: z.string().max(256).describe('For display, what is being done: backup 41 %.'),
  wish: z
    .object({
      hash: z.string().min(1).max(128).describe('The identity of the wish.'),
      serial: z.int().min(1).describe('Rises with each new wish, and with each further Operation of the same wish.'),
      state: z.string().max(63).describe('The wished state.'),
      operation: reference
        .extend({ outcome: z.enum(wishOutcomes).optional().describe('How it ended, once that is recorded here.') })
        .optional()
        .describe('Its Operation. Without a uid it may not have been created yet.'),
      passed: z
        .array(z.string().max(63))
        .max(64)
        .optional()
        .describe('Transient states whose Operation succeeded: not asked for again by this wish.'),
      passedFrom: z
        .string()
        .max(63)
        .optional()
        .describe(
          'The observed state from which the first of passed was entered. As soon as another one is observed, passed is emptied.',
        ),
      outcome: z.enum(wishOutcomes).optional().describe('How it ended, once it has. It is never carried out again.'),
      at: time.optional().describe('When it ended.'),
    })
    .describe('The memory of wishes.'),
  operation: z
    .object({
      name: objectName,
      uid,
      fence: z.int().min(1),
      action: word,
      state: z.string().max(63).optional().describe('The transient state that lists the action, if one does.'),
    })
    .describe('The current operation: the one whose runs may be in progress.'),
  fence: z.int().min(0).describe('The highest that was minted.'),
  pods: z
    .array(
      z.object({
        name: objectName,
        uid: uid.optional().describe('Absent if the pod is.'),
        state: z.string().max(63),
        reason: z.string().max(256).optional(),
        role: z.string().max(256).optional(),
        bootId: z.string().max(128).optional().describe('Of the agent: another one means that it was restarted.'),
        run: z
          .object({ id: z.string().max(128), action: z.string().max(63), phase: z.enum(phases) })
          .optional()
          .describe('What it is doing.'),
      }),
    )
    .max(4096)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .describe('Its pods, as their sidecars said last.'),
  path: z.string().max(1024).describe('The way it came, compact: >Start>(Running<>Servicing)x3>Running.'),
  waitingFor: z
    .string()
    .max(1024)
    .describe('One sentence: what is waited for, since when, until when, and what comes next.'),
})

export type Desired = z.output<typeof desired>
export type Ending = (typeof endings)[number]
