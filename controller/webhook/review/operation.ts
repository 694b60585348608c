/**
 * Whether an Operation, or what a schedule makes Operations of, can be carried out. Pure.
 */
import { messageOf } from '../../../shared/errors.ts'
import { shown, suggestion } from '../../../shared/nearest.ts'
import { paramsProblem } from '../../app/decide/wish.ts'
import { ticksOf } from '../../app/schedule/ticks.ts'
import type { LifecycleView, Wish } from '../../app/view.ts'
import { refused, taken, type Verdict } from './verdict.ts'

/** What is asked of an app. */
interface Asked extends Pick<Wish, 'params' | 'paramsFrom'> {
  readonly app: string
  readonly action: string
}

export interface AppKnown {
  /** The app that is named; undefined if there is none. */
  readonly app: { readonly lifecycle: string } | undefined
  /** The names of all apps in the namespace. */
  readonly apps: readonly string[]
  /** The app's; undefined if there is none. */
  readonly lifecycle: LifecycleView | undefined
}

/** Of a new one: what it asks cannot be changed afterwards. */
export function reviewOperation(spec: Asked, facts: AppKnown): Verdict {
  if (!facts.app) return refused(`spec.app: ${noApp(spec, facts)}`)
  return askedVerdict(spec, 'spec', facts)
}

/** An app that is not there yet may come before the first tick. */
export function reviewSchedule(
  { schedule, timeZone, template }: { readonly schedule: string; readonly timeZone: string; readonly template: Asked },
  facts: AppKnown,
): Verdict {
  try {
    ticksOf(schedule, timeZone)
  } catch (error) {
    return refused(messageOf(error))
  }
  if (!facts.app) return { problems: [], warnings: [`spec.template.app: ${noApp(template, facts)}`] }
  return askedVerdict(template, 'spec.template', facts)
}

function noApp({ app }: Asked, { apps }: AppKnown): string {
  return `there is no StatefulApp ${shown(app)} in this namespace${suggestion(app, apps)}`
}

function askedVerdict(asked: Asked, where: string, { app, lifecycle }: AppKnown): Verdict {
  // It waits, and the app says so.
  if (!lifecycle) return taken
  const names = (lifecycle.spec.actions ?? []).map(({ name }) => name)
  const action = lifecycle.spec.actions?.find(({ name }) => name === asked.action)
  if (!action)
    return refused(
      `${where}.action: ${shown(asked.action)} is no action in lifecycle ${app?.lifecycle}${suggestion(asked.action, names)}`,
    )
  const problem = paramsProblem(action.params, asked, where)
  return problem === undefined ? taken : refused(problem)
}
