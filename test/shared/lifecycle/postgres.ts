/**
 * The lifecycle that the design has for its example, as a value.
 */
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'

export const postgres = {
  states: [
    { name: 'Start', verb: 'Create', next: ['Running', 'Stopping'] },
    { name: 'Running', when: 'probes.accepting.ok', next: ['Servicing', 'Stopping'] },
    { name: 'Servicing', actions: ['backup', 'reload'], next: ['Running'] },
    { name: 'Stopping', actions: ['stop'], next: ['End'] },
    { name: 'End', verb: 'Delete', next: ['Start'] },
  ],
  preStop: 'stop',
  probes: [
    {
      name: 'accepting',
      exec: { command: ['pg_isready'] },
      every: '2s',
      timeout: '1s',
      failureThreshold: 3,
    },
    { name: 'role', exec: { command: ['role'] }, every: '5s' },
  ],
  actions: [
    {
      name: 'backup',
      exec: { command: ['pg_basebackup', '-D', '$(params.to)'] },
      params: { to: { type: 'string', pattern: '^/backup/' } },
      target: 'replicas',
      order: 'serial',
      timeout: '2h',
      cancel: { signal: 'SIGINT', grace: '30s' },
      verify: { exec: { command: ['test', '-d', '$(params.to)'] } },
      idempotent: false,
      retries: 0,
      progress: { pattern: '(\\d+)%' },
    },
    { name: 'reload', exec: { command: ['pg_ctl', 'reload'] } },
    { name: 'stop', exec: { command: ['pg_ctl', 'stop'] } },
  ],
} satisfies LifecycleSpec
