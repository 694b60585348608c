/**
 * What happens by itself, what people do, and what goes wrong: everything but the controllers' own requests.
 */

import type { App, Op } from '../../../controller/app/view.ts'
import { isInProgress } from '../../../shared/run.ts'
import { begun, begunLate, type Model, requests, type Step } from './controller.ts'
import { endedAs, newPod, restarted, swept, withRun } from './sidecar.ts'
import { type Bounds, type Execution, later, type Pod, recent, replaced, type World, withPod } from './world.ts'

const hasEnded = (op: Op) => op.status?.finishedAt !== undefined

/** What goes on as long as nothing goes wrong: pods come back, runs are begun and end. */
export function progress(world: World, model: Model): Step[] {
  const steps: Step[] = []
  for (const pod of [...world.pods, ...world.zombies]) {
    const isGone = !world.pods.includes(pod)
    if (pod.isEnded) {
      const next = newPod(pod.name, `pod-${world.uids}`)
      const pods = world.pods.map(one => (one === pod ? next : one))
      steps.push({ label: `${pod.name} is replaced`, world: { ...world, pods, uids: world.uids + 1 } })
    } else if (!pod.isUp) {
      const up = withPod(world, restarted(pod, world.executions))
      steps.push({ label: `the agent of ${pod.uid} is back`, world: up })
    } else
      for (const run of pod.runs)
        if (run.phase === 'Accepted')
          steps.push({ label: `${run.id} is begun`, world: claimed(world, pod, run.id, run.action, run.attempt) })
    if (isGone && !world.executions.some(one => one.uid === pod.uid && one.is === 'alive')) {
      const zombies = world.zombies.filter(one => one !== pod)
      steps.push({ label: `${pod.uid} ends on its node`, world: { ...world, zombies } })
    }
  }
  for (const one of world.executions)
    if (one.is === 'alive') {
      steps.push({ label: `${one.id} succeeds`, world: over(world, one, 'happened') })
      if (model.bounds.canFail) steps.push({ label: `${one.id} fails`, world: over(world, one, 'failed') })
    }
  return steps
}

/** A long time goes by: whatever was alive has ended. */
export function time(world: World): Step[] {
  const isBusy = world.executions.some(({ is }) => is === 'alive')
  const isBegun = [...world.pods, ...world.zombies].some(({ runs }) => runs.some(({ phase }) => isInProgress(phase)))
  return isBusy || isBegun ? [] : [{ label: 'a long time passes', world: later(world) }]
}

function claimed(world: World, pod: Pod, id: string, action: string, attempt: number): World {
  const op = world.ops.find(({ status }) => status?.runs?.some(run => run.id === id))?.metadata.uid ?? ownerOf(world)
  const execution: Execution = { id, op, pod: pod.name, uid: pod.uid, action, attempt, is: 'alive', isSeen: true }
  const running = withPod(world, withRun(pod, id, { phase: 'Running', startedAt: recent }))
  return { ...running, executions: [...world.executions, execution] }
}

/** Of a run that stands in no status: whose it would be. */
function ownerOf({ app, ops }: World): string {
  return app.status?.operation?.uid ?? ops[0]?.metadata.uid ?? ''
}

function over(world: World, execution: Execution, is: 'happened' | 'failed'): World {
  const executions = world.executions.map(one => (one === execution ? { ...one, is } : one))
  const pod = [...world.pods, ...world.zombies].find(({ uid }) => uid === execution.uid)
  const run = pod?.runs.find(({ id }) => id === execution.id)
  const ended = { ...world, executions }
  if (!pod?.isUp || run?.phase !== 'Running') return ended
  const told = is === 'happened' ? endedAs(run, 'Succeeded') : endedAs(run, 'Failed', 'ExitCode')
  return withPod(ended, withRun(pod, run.id, told))
}

/** A person finds out, and says so. */
function settles(world: World): Step[] {
  return world.ops.flatMap(op =>
    op.status?.phase !== 'Unknown' || hasEnded(op)
      ? []
      : (op.status.runs ?? []).flatMap((run): Step[] => {
          if (run.phase !== 'Unknown' || op.spec.settle?.some(one => one.run === run.id)) return []
          const was = world.executions.find(({ id }) => id === run.id)
          if (was?.is === 'alive') return []
          const outcome = was?.is === 'happened' ? 'Succeeded' : 'Failed'
          const settle = [...(op.spec.settle ?? []), { run: run.id, outcome, reason: 'seen' }]
          const next = { ...op, spec: { ...op.spec, settle } } as Op
          return [{ label: `a person says that ${run.id} ${outcome}`, world: swap(world, op, next) }]
        }),
  )
}

function swap(world: World, op: Op, next: Op | undefined): World {
  return { ...world, ops: world.ops.flatMap(one => (one !== op ? [one] : (next ?? []))) }
}

/** What people do and time does, which nothing has to wait for. */
function life(world: World): Step[] {
  const steps: Step[] = []
  const [wish, ...wishes] = world.wishes
  if (wish !== undefined) {
    const { desired: _, ...spec } = world.app.spec
    const metadata = { ...world.app.metadata, generation: (world.app.metadata.generation ?? 0) + 1 }
    const app = { ...world.app, metadata, spec: { ...spec, ...(wish && { desired: wish }) } } as App
    steps.push({ label: `wish ${JSON.stringify(wish)}`, world: { ...world, app, wishes } })
  }
  for (const op of world.ops) {
    if (hasEnded(op) && (op.metadata.finalizers ?? []).length === 0)
      steps.push({ label: `${op.metadata.name} expires`, world: swap(world, op, undefined) })
    if (hasEnded(op) || world.cancels === 0) continue
    const cancels = world.cancels - 1
    if (!op.spec.cancel) {
      const next = { ...op, spec: { ...op.spec, cancel: true } }
      steps.push({ label: `${op.metadata.name} is cancelled`, world: { ...swap(world, op, next), cancels } })
    }
    if (op.metadata.deletionTimestamp === undefined) {
      const next = { ...op, metadata: { ...op.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } } as Op
      steps.push({ label: `${op.metadata.name} is deleted`, world: { ...swap(world, op, next), cancels } })
    }
  }
  return steps
}

/** What goes wrong. */
function faults(world: World, { bounds }: Model): Step[] {
  if (world.faults === 0) return []
  const less = { ...world, faults: world.faults - 1 }
  const steps: Step[] = []
  const add = (sort: string, label: string, next: () => World) => {
    if (bounds.sorts.includes(sort)) steps.push({ label, world: next() })
  }
  for (const pod of world.pods) {
    if (pod.isEnded) continue
    const { uid, name } = pod
    const here = (one: Execution) => one.uid === uid
    const down: Pod = { ...pod, isUp: false, since: recent }
    if (pod.isUp) {
      add('agent', `the agent of ${uid} dies`, () => withPod(less, down))
      add('journal', `the journal of ${uid} is lost`, () =>
        withPod(less, { ...pod, journalId: `${pod.journalId}'`, fence: 0, runs: [] }),
      )
      if (pod.runs.length > 0) add('swept', `${uid} forgets what has ended`, () => withPod(less, swept(pod)))
    }
    for (const is of ['happened', 'failed'] as const) {
      const isAny = world.executions.some(one => here(one) && one.is === 'alive')
      if (!isAny && is === 'failed') continue
      const executions = world.executions.map(one =>
        here(one) && one.is === 'alive' ? { ...one, is, isSeen: false } : one,
      )
      const how = isAny ? ` and what ran ${is}` : ''
      add('container', `the container of ${uid} dies${how}`, () => withPod({ ...less, executions }, down))
      add('pod', `${uid} ends${how}`, () => withPod({ ...less, executions }, { ...down, isEnded: true }))
    }
    add('node', `${uid} is deleted while its node is cut off`, () => ({
      ...less,
      pods: world.pods.map(one => (one === pod ? newPod(name, `pod-${world.uids}`) : one)),
      zombies: [...world.zombies, pod],
      uids: world.uids + 1,
    }))
  }
  for (const op of world.ops)
    if (!hasEnded(op)) add('vanish', `${op.metadata.name} vanishes`, () => swap(less, op, undefined))
  return steps
}

function beginnings(world: World, { controllers, canLag }: Bounds): Step[] {
  if (world.controllers.length >= controllers) return []
  const label = `#${world.controllers.length + 1} begins`
  const late = { label: `${label} with all but the app`, world: begunLate(world) }
  return [{ label, world: begun(world) }, ...(canLag ? [late] : [])]
}

/** Every step that can come now. */
export function steps(world: World, model: Model): Step[] {
  const { controllers } = world
  return [
    ...controllers.flatMap((one, n) =>
      requests(world, one, model).map(({ label, world }) => ({ label: `#${n + 1} ${label}`, world })),
    ),
    ...controllers.map((one, n) => ({ label: `#${n + 1} dies`, world: replaced(world, one, undefined) })),
    ...beginnings(world, model.bounds),
    ...progress(world, model),
    ...settles(world),
    ...(world.ages > 0 ? time({ ...world, ages: world.ages - 1 }) : []),
    ...life(world),
    ...faults(world, model),
  ]
}
