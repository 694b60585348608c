/**
 * What must never be: of a world by itself, and of a step from one to the next. Each as a sentence that is told when it is broken.
 */
import type { Op, RunRecord } from '../../../controller/app/view.ts'
import { isTerminal } from '../../../shared/run.ts'
import type { Bounds, Execution, World } from './world.ts'

export function broken(before: World, after: World, bounds: Bounds): string | undefined {
  return (
    (after.executions !== before.executions ? ofExecutions(before, after, bounds) : undefined) ??
    (after.ops !== before.ops ? ofOperations(before, after) : undefined) ??
    (after.app !== before.app ? ofMemory(before, after) : undefined) ??
    (after.ops !== before.ops || after.executions !== before.executions ? ofRecords(after) : undefined) ??
    (after.replicas === 0 && before.replicas > 0 && before.executions.some(({ is }) => is === 'alive')
      ? 'the app was scaled to zero while something ran'
      : undefined)
  )
}

function ofExecutions(before: World, after: World, { spec }: Bounds): string | undefined {
  const now = after.executions.at(-1)
  if (!now || after.executions.length === before.executions.length) return undefined
  const others = before.executions
  const alike = (one: Execution) => one.op === now.op && one.pod === now.pod
  const isIdempotent = spec.actions?.find(({ name }) => name === now.action)?.idempotent
  if (others.some(({ id }) => id === now.id)) return `${now.id} was carried out twice`
  if (others.some(one => alike(one) && one.attempt === now.attempt))
    return `attempt ${now.attempt} in ${now.pod} was carried out twice, under two ids`
  if (others.some(({ is }) => is === 'alive') && others.some(one => one.is === 'alive' && one.op !== now.op))
    return `${now.id} was begun while another operation was carried out`
  if (others.some(one => alike(one) && one.is === 'alive'))
    return `${now.id} was begun while an earlier attempt was alive`
  if (!isIdempotent && others.some(one => alike(one) && one.is === 'happened'))
    return `${now.id} was begun though an earlier attempt had happened`
  return undefined
}

function ofOperations(before: World, after: World): string | undefined {
  for (const was of before.ops) {
    const is = after.ops.find(({ metadata }) => metadata.uid === was.metadata.uid)
    if (!is || is === was) continue
    const { name } = is.metadata
    if (was.status?.finishedAt !== undefined && is.status?.phase !== was.status.phase)
      return `${name} had ended ${was.status.phase}, and became ${is.status?.phase}`
    for (const run of was.status?.runs ?? []) {
      const now = is.status?.runs?.find(({ id }) => id === run.id)
      if (!now) return `${run.id} was forgotten by ${name}`
      if (hasEnded(run) && now.phase !== run.phase) return `${run.id} was ${run.phase} and became ${now.phase}`
      if (run.phase === 'Unknown' && !['Unknown', 'Succeeded', 'Failed'].includes(now.phase))
        return `${run.id} was Unknown and became ${now.phase}`
    }
    const fences = (is.status?.runs ?? []).map(({ fence }) => fence)
    if (new Set(fences).size < fences.length) return `two runs of ${name} carry the same fence`
  }
  return undefined
}

const hasEnded = ({ phase }: RunRecord) => phase !== 'Written' && isTerminal(phase)

function ofMemory({ app: before }: World, { app: after }: World): string | undefined {
  const [was, is] = [before.status?.wish, after.status?.wish]
  if ((after.status?.fence ?? 0) < (before.status?.fence ?? 0)) return 'the fence went back'
  if (!was || !is) return was && !is ? 'the memory of wishes was lost' : undefined
  if (is.serial < was.serial) return `serial went back from ${was.serial} to ${is.serial}`
  if (is.serial !== was.serial) return undefined
  if (is.hash !== was.hash) return `serial ${is.serial} was given to two wishes`
  if (was.outcome !== undefined && is.outcome !== was.outcome)
    return `a wish was ${was.outcome} and became ${is.outcome}`
  if (was.operation?.uid !== undefined && is.operation?.uid !== was.operation.uid)
    return `serial ${is.serial} had the Operation ${was.operation.uid} and got ${is.operation?.uid}`
  return undefined
}

/** Whether what is written is what was. */
function ofRecords(world: World): string | undefined {
  for (const op of world.ops) {
    for (const run of op.status?.runs ?? []) {
      const was = world.executions.find(({ id }) => id === run.id)
      if (run.phase === 'Succeeded' && was?.is !== 'happened') return `${run.id} is told to have Succeeded, but has not`
      if (hasEnded(run) && was?.is === 'alive') return `${run.id} is told to be ${run.phase}, but is alive`
      if (run.phase === 'Failed' && was?.is === 'happened') return `${run.id} is told to have Failed, but has happened`
    }
    if (op.status?.phase === 'Succeeded') {
      const missed = op.status.targets?.find(({ pod }) => !hasHappened(world, op, pod))
      if (missed || !op.status.targets)
        return `${op.metadata.name} is told to have Succeeded, but not in ${missed?.pod}`
    }
  }
  const carriedOut = new Map<number, string>()
  for (const { op } of world.executions) {
    const wish = world.made.find(({ uid }) => uid === op)?.wish
    if (wish === undefined) continue
    const other = carriedOut.get(wish) ?? op
    if (other !== op) return `two Operations were carried out for one wish: ${other} and ${op}`
    carriedOut.set(wish, op)
  }
  return undefined
}

function hasHappened({ executions }: World, { metadata }: Op, pod: string): boolean {
  return executions.some(one => one.op === metadata.uid && one.pod === pod && one.is === 'happened')
}
