/**
 * The wished state of an app in a custom resource of one's own: the fields, and the rules by which the API server refuses what the lifecycle does not know. Pure.
 *
 * Guarantees: `spec.desired` has the form of a StatefulApp's; a state, an action or a set of parameters that the lifecycle cannot carry out is refused with what it can.
 */
import { z } from 'zod'
import { desired } from '../../../shared/kinds/app.ts'
import { type Graph, graphOf, type Node } from '../../../shared/lifecycle/graph.ts'
import { type LifecycleSpec, lifecycleSpec } from '../../../shared/lifecycle/model.ts'
import { shapeFindings } from '../../../shared/lifecycle/shape.ts'
import { shown, suggestion } from '../../../shared/nearest.ts'
import { isRequired } from '../../../shared/params/schema.ts'
import { refuse, textOfPath } from './refuse.ts'
import type { ValidationRule } from './structural.ts'

/** The lifecycle of what a custom resource stands for. */
export interface AppLifecycle {
  /** Its states, probes and actions. */
  readonly spec: LifecycleSpec
  /** The states that may be wished. Default: those to which a path leads from the first one. */
  readonly wishable?: readonly string[] | undefined
}

/** `status.app` of a custom resource whose app has a lifecycle. */
export const appView = z.object({
  name: z.string().max(253).optional().describe('The StatefulApp.'),
  state: z.string().max(63).optional().describe('The state that it is in; Unknown if it cannot be told.'),
  since: z.iso.datetime().optional().describe('Since when.'),
  action: z.string().max(256).optional().describe('What is being done: backup 41 %.'),
  waitingFor: z
    .string()
    .max(1024)
    .optional()
    .describe('What is waited for, since when, until when, and what comes next.'),
  path: z.string().max(1024).optional().describe('The way it came, compact.'),
})
export type AppView = z.output<typeof appView>

/** `spec.desired` as the lifecycle has it. */
export function wishOf(lifecycle: AppLifecycle): z.ZodObject {
  const { spec } = lifecycle
  const wrong = lifecycleSpec.safeParse(spec)
  const [finding] = wrong.success ? [] : shapeFindings(lifecycleSpec, spec, wrong.error.issues)
  if (finding) refuse(textOfPath(['lifecycle', 'spec', ...finding.path]), finding.message)
  const graph = graphOf(spec)
  const nodes = wishableOf(graph, lifecycle)
  const transient = nodes.filter(({ kind }) => kind === 'transient')
  const actions = transient.flatMap(node => node.actions)
  const state = z.enum(nodes.map(({ name }) => name) as [string, ...string[]])
  const { request, params, paramsFrom } = desired.shape
  return z
    .object({
      state: state.describe('The state that is wished. An observed one is held; a transient one is met once.'),
      ...(actions.length > 0 && {
        action: z
          .enum(actions as [string, ...string[]])
          .optional()
          .describe('Which action of a transient state. With one it is implied.'),
        params,
        paramsFrom,
      }),
      request,
    })
    .meta({ rules: rulesOf(transient, spec) })
}

function wishableOf(graph: Graph, { wishable }: AppLifecycle): Node[] {
  const [first] = graph.nodes
  if (!first) refuse('lifecycle.spec.states', 'a lifecycle has at least one state')
  const names = graph.nodes.map(({ name }) => name)
  if (wishable === undefined) return graph.nodes.filter(({ name }) => graph.path(first.name, name) !== undefined)
  if (wishable.length === 0)
    refuse('lifecycle.wishable', 'is empty, but something has to be wished: leave it out for all')
  return wishable.map(name => {
    return graph.node(name) ?? refuse('lifecycle.wishable', `${shown(name)} is no state${suggestion(name, names)}`)
  })
}

const literal = (text: string) => `'${text}'`
const list = (texts: readonly string[]) => `[${texts.map(literal).join(', ')}]`

function rulesOf(transient: readonly Node[], { actions = [] }: LifecycleSpec): ValidationRule[] {
  if (transient.length === 0) return []
  const several = transient.filter(node => node.actions.length > 1)
  const choices = transient.map(({ name, actions }) => `${name} has ${actions.join(', ')}`).join('; ')
  const isListed = transient.map(
    node => `(self.state == ${literal(node.name)} && self.action in ${list(node.actions)})`,
  )
  const names = transient.map(({ name }) => name)
  const needy = transient.flatMap(node => {
    return node.actions.flatMap(action => {
      const declared = actions.find(({ name }) => name === action)
      const needed = Object.entries(declared?.params ?? {}).flatMap(([name, schema]) =>
        isRequired(schema) ? name : [],
      )
      return needed.length > 0 ? [{ node, action, needed }] : []
    })
  })
  return [
    {
      rule: `!has(self.action) || ${isListed.join(' || ')}`,
      message: `action is none of the wished state: ${choices}`,
      fieldPath: '.action',
    },
    ...several.map(({ name, actions }) => ({
      rule: `self.state != ${literal(name)} || has(self.action)`,
      message: `${name} has several actions: say in \`action\` which of ${actions.join(', ')}`,
    })),
    {
      rule: `self.state in ${list(names)} || !(has(self.params) || has(self.paramsFrom))`,
      message: `parameters are for ${names.join(', ')} alone`,
    },
    ...needy.map(({ node, action, needed }) => ({
      rule: `self.state != ${literal(node.name)} || ${
        node.actions.length > 1 ? `!has(self.action) || self.action != ${literal(action)} || ` : ''
      }has(self.params) || has(self.paramsFrom)`,
      message: `${action} needs the parameters ${needed.join(', ')}`,
    })),
  ]
}
