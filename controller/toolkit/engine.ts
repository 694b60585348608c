/**
 * How an engine goes through its steps: a table on the state machine of shared/machine.ts, and one walk through it.
 *
 * Guarantees: a step is left by `next` only if everything in it succeeded; an error branches to ErrorManager, giving up to GiveupManager; the path of a run is
 * kept, whatever happens; a walk always ends.
 */
import { begin, follow, type Machine, type Path, passed } from '../../shared/machine.ts'
import type { Context } from './context.ts'
import type { Operation } from './results.ts'

/** How a step can be left. `finalize`: the custom resource is being deleted; `leave`: and nothing is left to do. */
export type StepEvent = 'next' | 'finalize' | 'leave' | 'error' | 'giveUp'

export interface Engine<C extends object> {
  readonly name: string
  /** Whether it finalizes the custom resource, so that this needs a finalizer. */
  readonly finalizes: boolean
  /** Goes through the steps once; answers the path, as `>CRChecker>…>End`. */
  run(context: Context<C>): Promise<string>
}

/** Thrown to give up: this reconciliation ends, without an error. */
export class GiveUp extends Error {
  readonly requeueAfter: number | undefined

  constructor(reason: string, requeueAfter?: number) {
    super(reason)
    this.name = 'GiveUp'
    this.requeueAfter = requeueAfter
  }
}

/** @param enter carries a step out, and may answer an event other than `next` */
export async function walk<C extends object, Step extends string>(
  machine: Machine<Step, StepEvent>,
  first: Step,
  context: Context<C>,
  enter: (step: Step) => Promise<StepEvent | undefined>,
): Promise<string> {
  let path: Path<Step> = begin(first)
  while (!machine.isFinal(path.state)) {
    const event = await carriedOut(path.state, context, enter)
    // A step that has no such branch, as ErrorManager has none to itself, is left by its only one.
    const next: Path<Step> | undefined = follow(machine, path, event) ?? follow(machine, path, 'next')
    if (!next) throw new TypeError(`${path.state} can be left by nothing`)
    path = next
  }
  return `>${passed(path).join('>')}`
}

async function carriedOut<C extends object, Step extends string>(
  step: Step,
  { results, log }: Context<C>,
  enter: (step: Step) => Promise<StepEvent | undefined>,
): Promise<StepEvent> {
  const before = results.operations.length
  try {
    const event = await enter(step)
    const added = results.operations.slice(before)
    if (added.some(isGivingUp)) return 'giveUp'
    return added.some(hasFailed) ? 'error' : (event ?? 'next')
  } catch (error) {
    if (error instanceof GiveUp) {
      results.add({ code: 'GivenUp', on: step, note: error.message, requeueAfter: error.requeueAfter })
      return 'giveUp'
    }
    log.debug({ err: error, step }, 'a step failed')
    results.add({ code: 'StepFailed', on: step, error })
    return 'error'
  }
}

const isGivingUp = ({ code }: Operation) => code === 'GivenUp'
const hasFailed = ({ error }: Operation) => error !== undefined
