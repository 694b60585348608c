/**
 * The FreeStyle engine: one hook, in which the operator does what it wants, with everything that the reconcilers offer.
 *
 * ```
 * FreeStyle → End
 *     ├─ being deleted → CRFinalizer → End
 *     └─ an error → ErrorManager → End; giving up → GiveupManager → End
 * ```
 */
import { machine, type Table } from '../../shared/machine.ts'
import { type Engine, type StepEvent, walk } from './engine.ts'
import { isPassing } from './results.ts'
import type { Hook, StepHooks } from './stepper.ts'

type Step = 'FreeStyle' | 'CRFinalizer' | 'ErrorManager' | 'GiveupManager' | 'End'

const branches = { error: 'ErrorManager', giveUp: 'GiveupManager' } as const

const table: Table<Step, StepEvent> = {
  FreeStyle: { next: 'End', finalize: 'CRFinalizer', leave: 'End', ...branches },
  CRFinalizer: { next: 'End', ...branches },
  ErrorManager: { next: 'End' },
  GiveupManager: { next: 'End' },
  End: {},
}

const steps = machine(table)

export function freeStyle<C extends object>(
  hook: Hook<C>,
  others: Pick<StepHooks<C>, 'CRFinalizer' | 'ErrorManager' | 'GiveupManager'> = {},
): Engine<C> {
  return {
    name: 'FreeStyle',
    finalizes: others.CRFinalizer !== undefined,
    run: context =>
      walk(steps, 'FreeStyle', context, async step => {
        if (step === 'FreeStyle') {
          if (context.isDeleting) return context.isToFinalize ? 'finalize' : 'leave'
          context.checkCR()
          await context.holdCR()
          await hook(context)
        } else if (step === 'CRFinalizer') {
          await others.CRFinalizer?.(context)
          await context.releaseAllResources()
        } else if (step !== 'End' && !isPassing(context.results.consolidated().because?.error, context.signal)) {
          await others[step]?.(context)
        }
        return undefined
      }),
  }
}
