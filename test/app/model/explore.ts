/**
 * Looks at every world that can come to be, breadth first, and at each asks whether a promise is broken and whether it comes to rest once nothing goes wrong any more.
 *
 * Guarantee: what it finds is told with the shortest way that leads there.
 */
import { isThere } from '../../../controller/app/status.ts'
import type { App } from '../../../controller/app/view.ts'
import { progress, steps, time } from './befalls.ts'
import { begun, decisionOf, type Model, modelOf, requests, type Step } from './controller.ts'
import type { Mutant } from './mutants.ts'
import { broken } from './promises.ts'
import { newPod } from './sidecar.ts'
import { type Bounds, keyOf, type World } from './world.ts'

export interface Explored {
  readonly worlds: number
  readonly steps: number
  /** Ways in which it comes to rest. */
  readonly rests: ReadonlyMap<string, number>
  readonly broken: { readonly promise: string; readonly way: readonly string[] } | undefined
}

function firstWorld({ replicas, faults, cancels, wishes, ages }: Bounds): World {
  const [wish, ...later] = wishes
  const app = {
    apiVersion: 'shipmate.dev/v1alpha1',
    kind: 'StatefulApp',
    metadata: { name: 'db', namespace: 'default', uid: 'app', generation: 0 },
    spec: {
      lifecycle: 'lc',
      workload: { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db' },
      ...(wish && { desired: wish }),
    },
  } as unknown as App
  const pods = Array.from({ length: replicas }, (_, n) => newPod(`db-${n}`, `pod-${n}`))
  return {
    ...{ app, ops: [], replicas, kept: undefined, pods, zombies: [], executions: [], controllers: [] },
    ...{ faults, cancels, wishes: later, ages, uids: replicas, made: [] },
  }
}

/** @param most worlds; more are an error, so that a bound that grew is noticed */
export function explore(
  bounds: Bounds,
  { mutant, most = 1_000_000 }: { mutant?: Mutant; most?: number } = {},
): Explored {
  const model = modelOf(bounds, mutant)
  const first = firstWorld(bounds)
  const rest = restOf(model)
  const seen = new Map([[keyOf(first), 0]])
  const came: { from: number; label: string }[] = [{ from: -1, label: '' }]
  const wayTo = (n: number): string[] => {
    const way: string[] = []
    for (let at = n; at > 0; at = came[at]?.from ?? 0) way.unshift(came[at]?.label ?? '')
    return way
  }
  const found = (promise: string, way: string[]): Explored => ({
    worlds: seen.size,
    steps: count,
    rests: rest.ways,
    broken: { promise, way },
  })
  let count = 0
  let frontier: { world: World; n: number }[] = [{ world: first, n: 0 }]
  while (frontier.length > 0) {
    const next: typeof frontier = []
    for (const { world, n } of frontier) {
      for (const step of steps(world, model)) {
        count++
        const key = keyOf(step.world)
        const promise = broken(world, step.world, bounds)
        if (promise !== undefined) return found(promise, [...wayTo(n), step.label])
        if (seen.has(key)) continue
        const id = seen.size
        if (id >= most) throw new Error(`more than ${most} worlds: narrow the bounds`)
        seen.set(key, id)
        came.push({ from: n, label: step.label })
        next.push({ world: step.world, n: id })
      }
      const restless = rest.problem(world)
      if (restless)
        return found(restless.promise, [...wayTo(n), '— from here on nothing goes wrong —', ...restless.way])
    }
    frontier = next
  }
  return { worlds: seen.size, steps: count, rests: rest.ways, broken: undefined }
}

/** Far more than any way to rest takes. */
const longest = 400

/** Whether a world comes to rest when nothing goes wrong any more, and rests well. */
function restOf(model: Model) {
  const good = new Set<string>()
  const ways = new Map<string, number>()
  function problem(from: World): { promise: string; way: string[] } | undefined {
    const passed: string[] = []
    const way: string[] = []
    let world = from
    for (let n = 0; n < longest; n++) {
      const key = keyOf(world)
      if (good.has(key)) break
      passed.push(key)
      const step = calmly(world, model)
      if (!step) {
        const { rests, promise } = atRest(world, model)
        if (promise !== undefined) return { promise, way }
        ways.set(rests, (ways.get(rests) ?? 0) + 1)
        break
      }
      way.push(step.label)
      world = step.world
      if (n === longest - 1) return { promise: 'it never comes to rest', way: way.slice(0, 60) }
    }
    for (const key of passed) good.add(key)
    return undefined
  }
  return { problem, ways }
}

/** What comes next when nothing goes wrong; undefined at rest. */
function calmly(world: World, model: Model): Step | undefined {
  const [controller] = world.controllers
  if (controller) return requested(world, model)
  const [step] = progress(world, model)
  if (step) return step
  const reconciled = reconcile(world, model)
  if (keyOf(reconciled.world) !== keyOf(world)) return reconciled
  const [aged] = time(world)
  return aged && keyOf(aged.world) !== keyOf(world) ? aged : undefined
}

function requested(world: World, model: Model): Step {
  const [controller] = world.controllers
  const [step] = controller ? requests(world, controller, model) : []
  if (!step) throw new Error('a controller that does nothing')
  return step
}

function reconcile(world: World, model: Model): Step {
  let now = begun(world)
  const labels: string[] = []
  for (let n = 0; now.controllers.length > 0; n++) {
    const step = requested(now, model)
    labels.push(step.label)
    now = step.world
    if (n > longest) throw new Error(`a reconciliation without end: ${labels.slice(-10).join('; ')}`)
  }
  return { label: labels.join('; '), world: now }
}

/** How it rests, or what is wrong with that. */
function atRest(world: World, model: Model): { rests: string; promise?: string } {
  const read = requested(begun(world), model).world
  const [controller] = read.controllers
  if (!controller) throw new Error('nobody looks')
  const decision = decisionOf(controller, model)
  const open = world.ops.find(({ status }) => status?.finishedAt === undefined)
  if (open && !decision.stalled)
    return { rests: '', promise: `${open.metadata.name} is never carried out, and never ends` }
  if (isThere(decision)) return { rests: `it is ${decision.observed.state}` }
  const { stalled, waiting } = decision
  if (!stalled) return { rests: '', promise: `it rests, but is not there: it waits for ${JSON.stringify(waiting)}` }
  const saysWhat = /settle|request|change|delete/.test(stalled.message)
  return saysWhat
    ? { rests: `Stalled: ${stalled.reason}` }
    : { rests: '', promise: `it is Stalled, and does not say what to do: ${stalled.message}` }
}
