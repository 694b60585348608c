/**
 * One random schedule: a few runs of any kind, and everything that executes them killed at named points and at any time.
 *
 * Guarantee: what is tried follows from the seed alone; when exactly a kill comes, the machine has a say.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { container, startSidecar } from '../../fixtures/sidecar.ts'
import type { Effects, Manners } from './actions.ts'
import { follow } from './follow.ts'
import { createLedger, type Wish } from './ledger.ts'
import { agentPoints, wrapperPoints } from './points.ts'

export interface Done {
  runs: number
  agentKills: number
  wrapperKills: number
  containerKills: number
  phases: Record<string, number>
}

const kinds = ['exec', 'exec-verified', 'exec-idempotent', 'steps', 'steps-verified', 'http', 'http-verified', 'signal']

export async function schedule(seed: number, effects: Effects, manners: Manners): Promise<Done> {
  const rng = xoroshiro128plus(seed)
  const random = () => uniformFloat64(rng)
  // The first numbers of neighbouring seeds are much alike.
  for (let n = 0; n < 16; n++) random()
  const below = (limit: number) => Math.floor(random() * limit)
  const chance = (probability: number) => random() < probability
  const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T

  const inContainer = chance(0.3) && container().length > 0
  const under = inContainer ? 'container' : chance(0.4) ? 'supervise' : 'test'
  const twin = under === 'test' && chance(0.1)
  const done: Done = { runs: 0, agentKills: 0, wrapperKills: 0, containerKills: 0, phases: {} }
  const sidecar = await startSidecar({ config: effects.config, under, twin })
  const ledger = createLedger(sidecar, effects)
  const events = follow(sidecar, run => ledger.note(run, 'events'))
  let fence = 0

  const killAgent = async () => {
    done.agentKills++
    await sidecar.kill()
  }
  const killContainer = async () => {
    done.containerKills++
    await sidecar.killContainer()
  }
  /** In a container the agent stands still at the point, and PID 1 dies. */
  const armAgent = (point: string, hit: number) => {
    const isWhole = inContainer && chance(0.7)
    sidecar.arm(point, hit, isWhole ? 'freeze' : 'die')
    const over = new AbortController()
    const fallen = isWhole ? sidecar.frozen(over.signal).then(killContainer, () => {}) : Promise.resolve()
    return async () => {
      const hasFired = sidecar.disarm()
      if (!hasFired) over.abort()
      else if (!isWhole) done.agentKills++
      await fallen
    }
  }
  /** Answers what is to be done when the run has ended. */
  const trouble = (isFirst: boolean): (() => Promise<void>) => {
    const roll = random()
    if (roll < 0.4) return armAgent(pick(agentPoints), 1 + below(2))
    if (roll < 0.6 && !twin) {
      sidecar.armWrapper(pick(wrapperPoints))
      return async () => {
        if (sidecar.disarmWrapper()) done.wrapperKills++
      }
    }
    if (roll < 0.7 && !twin) {
      sidecar.delayWrapper(0.2 + random() / 2)
      const after = armAgent('spawned', 1)
      return async () => {
        await after()
        sidecar.disarmWrapper()
      }
    }
    if (roll < 0.9 || isFirst) {
      const kill = chance(inContainer ? 0.6 : 0.2) ? killContainer : killAgent
      const killed = pause(below(250)).then(kill)
      return () => killed
    }
    return async () => {}
  }

  async function carryOut(wish: Wish, isFirst: boolean): Promise<void> {
    const isCancelled = chance(0.2)
    const patience = below(200)
    const second = chance(0.3) ? below(400) : undefined
    manners.delay = chance(0.5) ? below(200) : 0
    manners.cuts = chance(0.1)
    const after = trouble(isFirst)
    await ledger.put(wish)
    if (isCancelled) {
      await pause(patience)
      await sidecar.ask('POST', `/v1/runs/${wish.id}/cancel`)
    }
    // Also while it recovers.
    if (second !== undefined) {
      await pause(second)
      await killAgent()
    }
    ledger.note(await sidecar.ended(wish.id))
    await after()
    ledger.note(await sidecar.ended(wish.id))
    await ledger.compare()
    done.runs++
  }

  try {
    for (let n = 0, count = 1 + below(3); n < count; n++) {
      const action = pick(inContainer ? kinds.filter(kind => kind !== 'signal') : kinds)
      await carryOut(wishOf(`s${seed}-${n}`, action, ++fence), n === 0)
    }
    await ledger.conclude()
    if (chance(0.3)) {
      const after = chance(0.6)
        ? armAgent(pick(['journal.dropped.before', 'journal.dropped.synced', 'journal.written']), 1)
        : async () => {}
      await ledger.drop(`s${seed}-0`)
      await after()
    }
    await (inContainer && chance(0.5) ? killContainer() : killAgent())
    await ledger.compare()
    await ledger.conclude()
    if (events.failure) throw events.failure
    return { ...done, phases: ledger.phases }
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${sidecar.said.slice(-60).join('\n')}`, { cause: error })
  } finally {
    events.stop()
    await sidecar.stop()
  }

  function wishOf(id: string, action: string, fence: number): Wish {
    const isCalled = /http|steps/.test(action)
    const isExecuted = /exec|steps/.test(action)
    const isTimed = isExecuted && chance(0.15)
    return {
      id,
      action,
      fence,
      params: {
        ...(isCalled && { id }),
        ...(isExecuted && { for: isTimed ? '3' : pick(['0', '0', '0.05', '0.3']), ...(chance(0.1) && { code: '3' }) }),
      },
      ...(isTimed && { timeout: `${100 + below(400)}ms` }),
    }
  }
}

/** Kills of any kind. */
export function kills({ agentKills, wrapperKills, containerKills }: Done): number {
  return agentKills + wrapperKills + containerKills
}
