/**
 * What a controller asks of a sidecar, and how that is answered, or not. Pure.
 */
import { type Ask, askKey } from '../../../controller/app/decide/facts.ts'
import type { Run } from '../../../shared/protocol/schemas.ts'
import { isInProgress } from '../../../shared/run.ts'
import { viewOf } from '../../../sidecar/runs/view.ts'
import type { Model, Step } from './controller.ts'
import { endedAs, put, runOf, settled, stateOf, withRun } from './sidecar.ts'
import { type Controller, killed, type Pod, replaced, type World, withPod } from './world.ts'

export function ask(world: World, before: Controller, noted: Controller, ask: Ask, model: Model): Step[] {
  const { bounds, config, mutant } = model
  // The address of a pod that is gone still leads to it while it is alive.
  const pod = [...world.pods, ...world.zombies].find(
    ({ uid, isUp, isEnded }) => uid === ask.pod.uid && isUp && !isEnded,
  )
  const label = askKey(ask)
  const isPut = ask.ask === 'put' || ask.ask === 'annul'
  const silent = (): Controller => {
    if (!isPut) return noted
    const refusal = { code: 'Unreachable', isOfAnnul: ask.ask === 'annul' }
    return { ...noted, refusals: [...noted.refusals, [ask.run.id, refusal]] }
  }
  if (!pod) return [{ label: `${label}: nobody is there`, world: replaced(world, before, silent()) }]
  const answered = answer(pod, ask, noted, world, { config, mutant })
  const answering = (by: Controller): World => ({
    ...replaced(withPod(world, answered.pod), before, by),
    executions: answered.executions ?? world.executions,
  })
  const told = answering(answered.controller)
  const steps: Step[] = [{ label, world: told }]
  const canLose = isPut && world.faults > 0 && bounds.sorts.includes('lost')
  if (canLose) {
    const faults = world.faults - 1
    steps.push({ label: `${label}: is lost`, world: { ...replaced(world, before, silent()), faults } })
    steps.push({ label: `${label}: its answer is lost`, world: { ...answering(silent()), faults } })
  }
  return steps
}

function answer(
  pod: Pod,
  ask: Ask,
  noted: Controller,
  world: World,
  { config, mutant }: Pick<Model, 'config' | 'mutant'>,
): { readonly pod: Pod; readonly controller: Controller; readonly executions?: World['executions'] } {
  if (ask.ask === 'state')
    return { pod, controller: { ...noted, states: [...noted.states, [pod.uid, stateOf(pod, config)]] } }
  const { run } = ask
  const heard = (now: Pod, said: Run | undefined) => ({
    pod: now,
    controller: said ? { ...noted, answers: [...noted.answers, [pod.uid, said] as const] } : noted,
  })
  const known = runOf(pod, run.id)
  const saidOf = (now: Pod) => {
    const kept = runOf(now, run.id)
    return heard(now, kept && viewOf(kept))
  }
  switch (ask.ask) {
    case 'put':
    case 'annul': {
      const action = run.id.split('.')[0] ?? ''
      const isAnnul = ask.ask === 'annul'
      const said = put(pod, run, action, { config, isAnnul, mutant })
      if ('run' in said) return heard(said.pod, said.run)
      const refusals: Controller['refusals'] = [...noted.refusals, [run.id, { code: said.refused, isOfAnnul: isAnnul }]]
      return { pod, controller: { ...noted, refusals } }
    }
    case 'cancel': {
      if (!known || !isInProgress(known.phase)) return saidOf(pod)
      const ended = saidOf(withRun(pod, run.id, endedAs(known, 'Cancelled', 'Cancelled')))
      return { ...ended, executions: killed(world, one => one.id === run.id) }
    }
    case 'verify': {
      const happened = world.executions.some(({ id, is }) => id === run.id && is === 'happened')
      const verdict = happened ? 'Succeeded' : 'Failed'
      return {
        pod: settled(pod, run.id, verdict),
        controller: { ...noted, verdicts: [...noted.verdicts, [run.id, verdict]] },
      }
    }
    case 'settle':
      return saidOf(settled(pod, run.id, ask.outcome))
    case 'drop':
      return { pod: { ...pod, runs: pod.runs.filter(({ id }) => id !== run.id) }, controller: noted }
    case 'tail':
      return { pod, controller: noted }
  }
}
