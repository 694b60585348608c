/**
 * Tells, while an operator runs, that the cluster's CRD is not the one it was written for: in the log, by an Event on the CRD, and by not being ready.
 *
 * Guarantee: what is missing is named once for each change, with the command that brings it; once the CRD is right, all is well without a restart.
 */
import { type Clock, sleep } from '../../../shared/clock.ts'
import { messageOf } from '../../../shared/errors.ts'
import type { Kind } from '../../kube/kind.ts'
import { CustomResourceDefinition } from '../../kube/kinds.ts'
import type { Manager } from '../../runtime/index.ts'
import { checkCrd } from './check.ts'
import type { CrdFinding } from './compare.ts'
import type { Crd } from './manifest.ts'

/** How often it is looked at again while something is missing, in milliseconds. */
const every = 10_000

export function guardCrd(manager: Manager, kind: Kind & { crd(): Crd }, clock: Clock, command?: string): void {
  const { name } = kind.crd().metadata
  let findings: CrdFinding[] = []
  const blocking = () => findings.filter(({ blocks }) => blocks)
  manager.readyCheck(`crd-${name}`, () => {
    const [first] = blocking()
    return first && `${first.message}; ${first.remedy}`
  })
  manager.onStart(async signal => {
    for (let told = ''; ; await sleep(clock, every, signal).catch(() => undefined)) {
      if (signal.aborted) return
      try {
        findings = await checkCrd(manager.client, kind, { command, signal })
      } catch (error) {
        manager.log.logger.debug({ err: error }, `the CRD ${name} could not be read: ${messageOf(error)}`)
        continue
      }
      const text = findings.map(({ message, remedy }) => `${message}; ${remedy}`).join('\n')
      if (text !== told) await tell(manager, name, findings)
      told = text
      if (blocking().length === 0) return
    }
  })
}

async function tell(manager: Manager, name: string, findings: readonly CrdFinding[]): Promise<void> {
  const { logger } = manager.log
  if (findings.length === 0) return logger.info({ crd: name }, 'the CRD is the one that this operator was written for')
  for (const { is, message, remedy, blocks } of findings)
    logger[blocks ? 'error' : 'warn']({ crd: name, reason: is }, `${message}; ${remedy}`)
  const [first] = findings.filter(({ blocks }) => blocks)
  const crd = first && (await manager.client.find(CustomResourceDefinition, { name }).catch(() => undefined))
  if (first && crd)
    manager.events.record(crd, {
      type: 'Warning',
      reason: 'CrdOutdated',
      action: 'Compare',
      note: `${first.message}; ${first.remedy}`,
    })
}
