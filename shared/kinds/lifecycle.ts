/**
 * Lifecycle: what its status has, and what the API server refuses of its spec. The spec itself is the sidecar's configuration, in lifecycle/model.ts.
 *
 * The rules are those of lifecycle/validate.ts that the server can afford to check; the rest is found by admission, or else stands in the status.
 */
import { z } from 'zod'

export const lifecycleStatus = z.object({
  hash: z.string().max(128).describe('The config hash that sidecars report once they have it.'),
  apps: z.int32().min(0).describe('How many apps use it.'),
})

const has = (field: string) => `has(self.spec.${field})`
const isOneOf = (list: string, name: string) => `self.spec.${list}.exists(one, one.name == ${name})`

export const lifecycleRules = [
  {
    rule: `${has('states')} && size(self.spec.states) > 0`,
    message: 'a lifecycle has at least one state',
    fieldPath: '.spec.states',
    reason: 'FieldValueRequired',
  },
  {
    rule: `!${has('states')} || self.spec.states.all(state, !has(state.next) || state.next.all(name, ${isOneOf('states', 'name')}))`,
    message: '`next` names a state that does not exist',
    fieldPath: '.spec.states',
  },
  {
    rule: `!${has('states')} || self.spec.states.all(state, !has(state.actions) || (${has('actions')} && state.actions.all(name, ${isOneOf('actions', 'name')})))`,
    message: 'a state lists an action that does not exist',
    fieldPath: '.spec.states',
  },
  {
    rule: `!${has('preStop')} || (${has('actions')} && ${isOneOf('actions', 'self.spec.preStop')})`,
    message: 'preStop names an action that does not exist',
    fieldPath: '.spec.preStop',
  },
] as const
