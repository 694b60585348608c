/**
 * The Stepper: a reconciliation in the steps that good practice has.
 *
 * ```
 * CRChecker → ObjectsGetter → Mutator → Updater → SuccessManager → End
 *     ├─ being deleted → CRFinalizer → End
 *     └─ from any step: an error → ErrorManager → End; giving up → GiveupManager → End
 * ```
 * A hook for Mutator, Updater or ObjectsGetter stands in the place of what the step does by itself; every other hook comes before it.
 */
import { machine, type Table } from '../../shared/machine.ts'
import type { Context } from './context.ts'
import { type Engine, type StepEvent, walk } from './engine.ts'
import { isPassing } from './results.ts'

export type Step =
  | 'CRChecker'
  | 'ObjectsGetter'
  | 'Mutator'
  | 'Updater'
  | 'SuccessManager'
  | 'CRFinalizer'
  | 'ErrorManager'
  | 'GiveupManager'
  | 'End'

const branches = { error: 'ErrorManager', giveUp: 'GiveupManager' } as const

const table: Table<Step, StepEvent> = {
  CRChecker: { next: 'ObjectsGetter', finalize: 'CRFinalizer', leave: 'End', ...branches },
  ObjectsGetter: { next: 'Mutator', ...branches },
  Mutator: { next: 'Updater', ...branches },
  Updater: { next: 'SuccessManager', ...branches },
  SuccessManager: { next: 'End', ...branches },
  CRFinalizer: { next: 'End', ...branches },
  ErrorManager: { next: 'End' },
  GiveupManager: { next: 'End' },
  End: {},
}

/** The steps, as a table that can be looked at. */
const steps = machine(table)

export type Hook<C extends object> = (context: Context<C>) => Promise<void> | void

/** What the user does in a step. All are optional. */
export interface StepHooks<C extends object> {
  /** What the schema cannot check. Throws, or gives up. */
  readonly CRChecker?: Hook<C> | undefined
  /** Registers the children. By itself: every declared resource. */
  readonly ObjectsGetter?: Hook<C> | undefined
  /** Works out what each child should be. By itself: `mutateAllResources()`. */
  readonly Mutator?: Hook<C> | undefined
  /** Writes what differs. By itself: `createOrUpdateAllResources()` and `pruneResources()`. */
  readonly Updater?: Hook<C> | undefined
  /** Everything was written. By itself the conditions follow from how ready the children are. */
  readonly SuccessManager?: Hook<C> | undefined
  /** The custom resource is being deleted. The finalizer goes only if this succeeds. */
  readonly CRFinalizer?: Hook<C> | undefined
  /** Something failed; a Conflict is no failure. */
  readonly ErrorManager?: Hook<C> | undefined
  readonly GiveupManager?: Hook<C> | undefined
}

export function stepper<C extends object>(hooks: StepHooks<C> = {}): Engine<C> {
  return {
    name: 'Stepper',
    finalizes: hooks.CRFinalizer !== undefined,
    run: context => walk(steps, 'CRChecker', context, step => enter(step, context, hooks)),
  }
}

async function enter<C extends object>(
  step: Step,
  context: Context<C>,
  hooks: StepHooks<C>,
): Promise<StepEvent | undefined> {
  switch (step) {
    case 'CRChecker':
      if (context.isDeleting) return context.isToFinalize ? 'finalize' : 'leave'
      context.checkCR()
      return void (await hooks.CRChecker?.(context))
    case 'ObjectsGetter':
      if (hooks.ObjectsGetter) await hooks.ObjectsGetter(context)
      else context.registerAll()
      return void (await context.fetchPeers())
    case 'Mutator':
      if (hooks.Mutator) return void (await hooks.Mutator(context))
      return context.mutateAllResources()
    case 'Updater':
      await context.holdCR()
      if (hooks.Updater) return void (await hooks.Updater(context))
      await context.createOrUpdateAllResources()
      return context.pruneResources().then(() => undefined)
    case 'SuccessManager':
      return void (await hooks.SuccessManager?.(context))
    case 'CRFinalizer':
      await hooks.CRFinalizer?.(context)
      return void (await context.releaseAllResources())
    case 'ErrorManager':
      if (isPassing(context.results.consolidated().because?.error, context.signal)) return undefined
      return void (await hooks.ErrorManager?.(context))
    case 'GiveupManager':
      return void (await hooks.GiveupManager?.(context))
    case 'End':
      return undefined
  }
}
