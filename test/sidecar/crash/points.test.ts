/**
 * Kills at every point that the source names, one by one: the agent, PID 1 with everything under it, and the wrapper. Which scenario leads to a point stands here; a new point
 * that none of them reaches fails, and asks for one.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { container, type Sidecar, startSidecar } from '../../fixtures/sidecar.ts'
import { initWithFaults } from '../../fixtures/sidecar-bundle.ts'
import { createEffects, type Effects } from './actions.ts'
import { createLedger, type Ledger, type Wish } from './ledger.ts'
import { agentPoints, wrapperPoints } from './points.ts'

const isThere = (await initWithFaults()) !== undefined
const folder = mkdtempSync(join(tmpdir(), 'shipmate-effects-'))
const longest = 60_000
let effects: Effects

beforeAll(async () => {
  effects = await createEffects(folder, { delay: 0, cuts: false })
})
afterAll(() => {
  effects.close()
  rmSync(folder, { recursive: true, force: true })
})

/** What is done with a sidecar so that it comes to a point. */
type Scenario = (sidecar: Sidecar, ledger: Ledger, id: string) => Promise<void>

async function runOf(ledger: Ledger, sidecar: Sidecar, wish: Omit<Wish, 'fence'>, fence = 1): Promise<void> {
  await ledger.put({ ...wish, fence })
  ledger.note(await sidecar.ended(wish.id))
}

const exec: Scenario = (sidecar, ledger, id) =>
  runOf(ledger, sidecar, { id, action: 'exec-verified', params: { for: '0.05' } })
const steps: Scenario = (sidecar, ledger, id) =>
  runOf(ledger, sidecar, { id, action: 'steps-verified', params: { id, for: '0.05' } })
const nothing: Scenario = async () => {}

/** An end that nobody saw, and a person's word on it. */
const settle: Scenario = async (sidecar, ledger, id) => {
  sidecar.armWrapper('exit.written')
  await runOf(ledger, sidecar, { id, action: 'exec', params: {} })
  await ledger.conclude()
}
const drop: Scenario = async (sidecar, ledger, id) => {
  await exec(sidecar, ledger, id)
  await ledger.drop(id)
}
/** More than a mebibyte of journal. */
const grow: Scenario = async (sidecar, ledger, id) => {
  for (let n = 1; n <= 6; n++) {
    const params = { id: `${id}-${n}`, blob: 'x'.repeat(200_000) }
    await runOf(ledger, sidecar, { id: params.id, action: 'big', params }, n)
  }
}

const scenarios: [RegExp, Scenario][] = [
  [/^journal\.created$/, nothing],
  [/^journal\.memo\./, nothing],
  [/^(step|journal\.running)\./, steps],
  [/^journal\.settled\./, settle],
  [/^journal\.dropped\./, drop],
  [/^compact\./, grow],
  [/./, exec],
]
const scenarioOf = (point: string): Scenario => scenarios.find(([pattern]) => pattern.test(point))?.[1] ?? exec

/** Carries a scenario out to its end, whatever dies on the way, and compares what is said with what happened. */
async function check(sidecar: Sidecar, id: string, scenario: Scenario, fall: () => Promise<void>): Promise<void> {
  const ledger = createLedger(sidecar, effects)
  try {
    const fallen = fall()
    fallen.catch(() => {})
    await scenario(sidecar, ledger, id)
    await fallen
    await ledger.compare()
    await ledger.conclude()
    await sidecar.kill()
    await ledger.compare()
    await ledger.conclude()
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${sidecar.said.slice(-40).join('\n')}`, { cause: error })
  } finally {
    await sidecar.stop()
  }
}

describe.skipIf(!isThere)('an action runs once, and its end is the truth', () => {
  it.concurrent.each(agentPoints)('when the agent is killed at %s', { timeout: longest }, async point => {
    const sidecar = await startSidecar({ config: effects.config, armed: { point, how: 'die' } })
    const reached = () =>
      expect
        .poll(() => sidecar.isArmed(), { timeout: longest, message: `${point} was never reached; it needs a scenario` })
        .toBe(false)
    await check(sidecar, `agent-${point}`, scenarioOf(point), async () => reached())
  })

  describe.skipIf(container().length === 0)('in a container', () => {
    it.concurrent.each(agentPoints)(
      'when PID 1 is killed while the agent is at %s',
      { timeout: longest },
      async point => {
        const sidecar = await startSidecar({
          config: effects.config,
          under: 'container',
          armed: { point, how: 'freeze' },
        })
        await check(sidecar, `container-${point}`, scenarioOf(point), async () => {
          await sidecar.frozen()
          await sidecar.killContainer()
        })
      },
    )
  })

  it.concurrent.each(wrapperPoints)('when the wrapper is killed at %s', { timeout: longest }, async point => {
    const sidecar = await startSidecar({ config: effects.config })
    sidecar.armWrapper(point)
    await check(sidecar, `wrapper-${point}`, exec, async () => {})
    expect(sidecar.disarmWrapper(), `${point} was never reached`).toBe(true)
  })

  it.concurrent.each(wrapperPoints)(
    'when the wrapper is killed at %s, and the agent before it could know',
    { timeout: longest },
    async point => {
      const sidecar = await startSidecar({ config: effects.config })
      sidecar.delayWrapper(0.02)
      sidecar.armWrapper(point)
      sidecar.arm('spawned')
      await check(sidecar, `both-${point}`, exec, async () => {})
    },
  )

  it('when a wrapper comes late, after the next agent has taken the run for never started', {
    timeout: longest,
  }, async () => {
    const sidecar = await startSidecar({ config: effects.config })
    sidecar.delayWrapper(3)
    sidecar.arm('spawned')
    const ledger = createLedger(sidecar, effects)
    try {
      await runOf(ledger, sidecar, { id: 'late', action: 'exec', params: {} })
      expect(await sidecar.run('late')).toMatchObject({ phase: 'Failed', error: { code: 'NotStarted' } })
      await ledger.conclude()
      expect(effects.begun('late')).toBe(0)
    } finally {
      await sidecar.stop()
    }
  })
})
