/**
 * What a StatefulApp's status says to the custom resource that it belongs to. Pure.
 *
 * Guarantee: what is said of an older generation of the app is not taken for the newest.
 */
import type { appSpec, appStatus } from '../../shared/kinds/app.ts'
import { group, version } from '../../shared/kinds/group.ts'
import { defineKind, type Kind, type Snapshot } from '../kube/kind.ts'
import type { Wanted } from './conditions.ts'
import type { AppView } from './crd/wish.ts'
import type { ResourceShape } from './definition.ts'
import { type Readiness, readinessOf } from './readiness.ts'

export type StatefulAppShape = ResourceShape<typeof appSpec, typeof appStatus>
export const StatefulApp: Kind<StatefulAppShape> = defineKind({ group, version, kind: 'StatefulApp' })

type App = Snapshot<StatefulAppShape>

/** Whether it is where it is wished, and does its work. */
export function appReadiness(app: App): Readiness {
  const { status } = app
  if (status?.observedGeneration === undefined)
    return {
      ready: false,
      reason: 'AppNotObserved',
      message: `StatefulApp ${app.metadata.name}: nobody has looked at it yet; is Shipmate's controller running?`,
    }
  const said = readinessOf(StatefulApp, app as Snapshot)
  return said.ready || said.failed || !status.waitingFor ? said : { ...said, message: status.waitingFor }
}

/** The condition `AppState`: True where the app is in the state that is wished, or only observed. Its reason is the state. */
export function appCondition(app: App | undefined): Wanted {
  const { state, waitingFor } = app?.status ?? {}
  const of = (type: string) => app?.status?.conditions?.find(condition => condition.type === type)
  const type = 'AppState'
  if (state === undefined)
    return { type, status: 'Unknown', reason: 'NotObserved', message: 'The state of the app is not known yet.' }
  const stalled = of('Stalled')
  const [reached, isStalled] = [of('AtDesiredState'), stalled?.status === 'True']
  const isNew = app?.status?.observedGeneration === app?.metadata.generation
  const isReached = isNew && !isStalled && reached?.status !== 'False' && state !== 'Unknown'
  const why = isStalled ? stalled?.message : (waitingFor ?? (isReached ? undefined : reached?.message))
  return {
    type,
    status: state === 'Unknown' ? 'Unknown' : isReached ? 'True' : 'False',
    // A reason has no hyphen, a state may.
    reason: state.replaceAll('-', '_'),
    message: why ? `The app is in ${state}: ${why}` : `The app is in ${state}.`,
  }
}

/** `status.app` of a custom resource. */
export function appViewOf(app: App | undefined, name: string): AppView {
  const { state, since, action, waitingFor, path } = app?.status ?? {}
  const given = { name, state, since, action, waitingFor, path }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

/** What is waited for while it comes to its end. */
export function endingOf({ metadata, status }: App): string {
  const where = status?.state === undefined ? '' : `, in ${status.state}`
  const what = status?.waitingFor ?? `its finalizers ${(metadata.finalizers ?? []).join(', ')} are not gone yet`
  return `StatefulApp ${metadata.name} is on its way to its end${where}: ${what}`
}
