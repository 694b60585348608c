/**
 * What a pod's sidecar survives and holds back, in whichever image its agent is: the actions for it, and the steps with what is expected of each.
 */
import { expect, vi } from 'vitest'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import type { SidecarPod } from './pod.ts'

export const shell = (script: string) => ({ exec: { command: ['sh', '-c', script] } })

/** The first goes on until it is let go, and leaves a line then; the second is for `preStop`. */
export const actions = [
  { name: 'wait', ...shell('until [ -e /work/go ]; do sleep 0.05; done; echo once >>/work/effects') },
  { name: 'stop', ...shell('echo begun >/work/stop; sleep 3; echo ended >>/work/stop') },
] satisfies LifecycleSpec['actions']

/** When the agent is killed, the run goes on, and ends once. */
export async function goesOnWithoutAgent(pod: SidecarPod): Promise<void> {
  const { bootId } = await pod.state()
  await pod.begin('wait', 'wait')
  await pod.exec('sidecar', ['sh', '-c', 'kill -9 $(cut -d" " -f1 /proc/1/task/1/children)'])
  await vi.waitUntil(async () => (await pod.state()).bootId !== bootId, { timeout: 30_000 })
  expect(await pod.run('wait')).toMatchObject({ phase: 'Running' })

  await pod.exec('app', ['touch', '/work/go'])
  expect(await pod.ended('wait')).toMatchObject({ phase: 'Succeeded', exitCode: 0 })
  expect(await pod.exec('app', ['cat', '/work/effects'])).toBe('once\n')
  expect(await pod.restarts()).toBe(0)
}

/** When the pod is deleted, the application is asked to end only after the action of `preStop`. */
export async function endsAfterPreStop(pod: SidecarPod): Promise<void> {
  const app = pod.printed('app')
  await pod.delete()
  expect(await app).toEqual(['up', 'begun', 'ended', 'asked to end'])
}
