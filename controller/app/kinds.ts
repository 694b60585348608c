/**
 * Shipmate's own kinds: their types, their CRDs and their documentation, each from one definition.
 */
import { appSpec, appStatus } from '../../shared/kinds/app.ts'
import { nameRules } from '../../shared/kinds/fields.ts'
import { group, version } from '../../shared/kinds/group.ts'
import { lifecycleRules, lifecycleStatus } from '../../shared/kinds/lifecycle.ts'
import { operationSpec, operationStatus } from '../../shared/kinds/operation.ts'
import { scheduleSpec, scheduleStatus } from '../../shared/kinds/schedule.ts'
import { lifecycleSpec } from '../../shared/lifecycle/model.ts'
import { defineCustomResource, type ResourceOf } from '../toolkit/definition.ts'

const ready = '.status.conditions[?(@.type=="Ready")].status'
const categories = ['shipmate']

export const Lifecycle = defineCustomResource({
  group,
  version,
  kind: 'Lifecycle',
  shortNames: ['lc'],
  categories,
  description:
    'The states of a sort of application, with the probes that tell them and the actions that can be asked of its pods.',
  spec: lifecycleSpec,
  status: lifecycleStatus,
  columns: { Apps: '.status.apps', Ready: ready, Hash: { path: '.status.hash', priority: 1 } },
  rules: [...nameRules('a Lifecycle', 63), ...lifecycleRules],
})
export type Lifecycle = ResourceOf<typeof Lifecycle>

export const StatefulApp = defineCustomResource({
  group,
  version,
  kind: 'StatefulApp',
  shortNames: ['sapp'],
  categories,
  description: 'A stateful application with a lifecycle: what state it is in, and what state it should be in.',
  spec: appSpec,
  status: appStatus,
  columns: {
    Desired: '.status.desired',
    State: '.status.state',
    Action: '.status.action',
    Ready: ready,
    'Waiting For': '.status.waitingFor',
    Path: { path: '.status.path', priority: 1 },
  },
  rules: [
    ...nameRules('a StatefulApp', 40),
    {
      rule: "!has(self.spec.template) || self.metadata.name.matches('^[a-z]')",
      message: 'the name of an app with a template begins with a letter, as that of its Service must',
    },
  ],
})
export type StatefulApp = ResourceOf<typeof StatefulApp>

export const Operation = defineCustomResource({
  group,
  version,
  kind: 'Operation',
  shortNames: ['op'],
  categories,
  description: 'One wish for one action on one app. It is carried out once, whatever crashes.',
  spec: operationSpec,
  status: operationStatus,
  columns: {
    App: '.spec.app',
    Action: '.spec.action',
    Phase: '.status.phase',
    Progress: '.status.progress',
    Reason: '.status.reason',
    Message: { path: '.status.message', priority: 1 },
  },
  rules: nameRules('an Operation', 63),
})
export type Operation = ResourceOf<typeof Operation>

export const OperationSchedule = defineCustomResource({
  group,
  version,
  kind: 'OperationSchedule',
  shortNames: ['opsched'],
  categories,
  description: 'Makes Operations by the clock.',
  spec: scheduleSpec,
  status: scheduleStatus,
  columns: {
    App: '.spec.template.app',
    Action: '.spec.template.action',
    Schedule: '.spec.schedule',
    'Time Zone': '.spec.timeZone',
    Suspend: '.spec.suspend',
    'Last Tick': '.status.lastTick',
    // As a date, kubectl would print a time to come as invalid.
    'Next Tick': { path: '.status.nextTick', type: 'string' },
  },
  rules: nameRules('an OperationSchedule', 52),
})
export type OperationSchedule = ResourceOf<typeof OperationSchedule>
