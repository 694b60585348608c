/**
 * What is looked at: one app with a backup and a stop, and how much may happen to it.
 */
import type { Action, LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import type { Bounds } from './world.ts'

function lifecycleOf(backup: Partial<Action> = {}): LifecycleSpec {
  return {
    states: [
      { name: 'Start', verb: 'Create', next: ['Running', 'Stopping'] },
      { name: 'Running', when: 'probes.up.ok', next: ['Servicing', 'Stopping'] },
      { name: 'Servicing', actions: ['backup'], next: ['Running'] },
      { name: 'Stopping', actions: ['stop'], next: ['End'] },
      { name: 'End', verb: 'Delete', next: ['Start'] },
    ],
    probes: [{ name: 'up', exec: { command: ['true'] } }],
    actions: [
      { name: 'backup', exec: { command: ['backup'] }, timeout: '1h', ...backup },
      { name: 'stop', exec: { command: ['stop'] }, timeout: '1h' },
    ],
  }
}

export const everyFault = ['agent', 'container', 'journal', 'swept', 'pod', 'node', 'lost', 'vanish'] as const
export const verified: Partial<Action> = { verify: { exec: { command: ['look'] } } }
export const backup = (request: string) => ({ state: 'Servicing', request })

export function bounds({ action, ...over }: Partial<Bounds> & { action?: Partial<Action> } = {}): Bounds {
  return {
    spec: lifecycleOf(action),
    replicas: 1,
    controllers: 2,
    faults: 1,
    sorts: everyFault,
    cancels: 0,
    wishes: [backup('a')],
    canFail: false,
    features: ['adopt', 'annul', 'fence', 'verify'],
    ages: 0,
    canLag: false,
    ...over,
  }
}
