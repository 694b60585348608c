/**
 * What is done for a container while it runs: its postStart hook, its probes. Ends with the container.
 */
import { type Clock, sleep } from '../../shared/clock.ts'
import { type Asker, askProbe, callHook, shortened } from './ask.ts'
import { answered, nextAsk, type Probing, unprobed } from './probing.ts'
import type { ContainerSpec, Probe } from './spec.ts'

export interface Attended {
  readonly asker: Asker
  readonly spec: ContainerSpec
  readonly clock: Clock
  /** Aborted when the container ends, or is to. */
  readonly signal: AbortSignal
  /** Its hook and its startup probe have passed. */
  onStarted(): void
  onReady(isReady: boolean): void
  /** It must end: a hook or a probe has failed. `seconds`: its time for that, where the probe says so. */
  onSick(why: string, seconds: number | undefined): void
  event(type: 'Normal' | 'Warning', reason: string, note: string): void
}

export async function attend(one: Attended): Promise<void> {
  const { spec, asker, signal, event } = one
  const { postStart } = spec.lifecycle ?? {}
  if (postStart) {
    const failure = await callHook(asker, postStart, signal)
    if (signal.aborted) return
    if (failure !== undefined) {
      event('Warning', 'FailedPostStartHook', `PostStartHook failed: ${shortened(failure)}`)
      return one.onSick('FailedPostStartHook', undefined)
    }
  }
  const { startupProbe, readinessProbe, livenessProbe } = spec
  if (startupProbe && !(await probe(one, 'Startup', startupProbe, unprobed, is => is))) return
  if (signal.aborted) return
  one.onStarted()
  if (!readinessProbe) one.onReady(true)
  const healthy: Probing = { ...unprobed, verdict: 'pass' }
  await Promise.all([
    readinessProbe &&
      probe(one, 'Readiness', readinessProbe, unprobed, isReady => {
        one.onReady(isReady)
        return false
      }),
    livenessProbe && probe(one, 'Liveness', livenessProbe, healthy, () => false),
  ])
}

/** Asks until `told` says that it is enough, or the container must end or has; answers whether it was enough. */
async function probe(
  { asker, clock, signal, event, onSick, spec }: Attended,
  kind: 'Startup' | 'Readiness' | 'Liveness',
  wish: Probe,
  first: Probing,
  told: (isPassed: boolean) => boolean,
): Promise<boolean> {
  let state = first
  try {
    await sleep(clock, (wish.initialDelaySeconds ?? 0) * 1000, signal)
    while (!signal.aborted) {
      const failure = await askProbe(asker, wish, signal)
      if (signal.aborted) return false
      const counted = state.failures
      state = answered(state, wish, failure === undefined, clock.now())
      if (failure !== undefined && state.failures > counted)
        event('Warning', 'Unhealthy', `${kind} probe failed: ${shortened(failure)}`)
      if (state.verdict === 'fail' && kind !== 'Readiness') {
        const name = kind.toLowerCase()
        event('Normal', 'Killing', `Container ${spec.name} failed ${name} probe, will be restarted`)
        onSick('Unhealthy', wish.terminationGracePeriodSeconds)
        return false
      }
      if (state.verdict !== undefined && told(state.verdict === 'pass')) return true
      await sleep(clock, nextAsk(state, wish), signal)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  return false
}
