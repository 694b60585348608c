/**
 * Random schedules of kills: the agent, wrappers and PID 1 with everything under it die at named points and at any time, while runs of every kind are asked for, cancelled
 * and timed out. Whatever happens, each run is executed once, or is Unknown and settled to what is true; nothing that was answered is lost, and no end changes.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { bundleOf, initWithFaults } from '../../fixtures/sidecar-bundle.ts'
import { createEffects, type Manners } from './actions.ts'
import { kills, schedule } from './schedule.ts'

const first = Number(process.env.SHIPMATE_SEED ?? 1)
const schedules = Number(process.env.SHIPMATE_SCHEDULES ?? 20)
const isThere = (await initWithFaults()) !== undefined
// Made before the first schedule, whose time it would take.
await bundleOf()
/** Schedules at once. Each is a few processes that mostly wait. */
const lanes = 3

it.skipIf(!isThere)(
  `an action runs once, whatever is killed: seeds ${first} to ${first + schedules - 1}`,
  async () => {
    const total: Record<string, number> = { runs: 0, agentKills: 0, wrapperKills: 0, containerKills: 0 }
    let next = first
    let killed = 0
    async function lane(): Promise<void> {
      const folder = mkdtempSync(join(tmpdir(), 'shipmate-effects-'))
      const manners: Manners = { delay: 0, cuts: false }
      const effects = await createEffects(folder, manners)
      try {
        while (next < first + schedules) await one(next++)
      } finally {
        next = Number.POSITIVE_INFINITY
        effects.close()
        rmSync(folder, { recursive: true, force: true })
      }

      async function one(seed: number): Promise<void> {
        try {
          const { phases, ...counts } = await schedule(seed, effects, manners)
          for (const [name, count] of Object.entries({ ...counts, ...phases })) total[name] = (total[name] ?? 0) + count
          killed += kills({ phases, ...counts })
        } catch (error) {
          const replay = `SHIPMATE_SEED=${seed} npx vitest run test/sidecar/crash/kills.chaos.test.ts`
          throw new Error(`seed ${seed}: ${(error as Error).message}\nreplay: ${replay}`, { cause: error })
        }
      }
    }
    const ended = await Promise.allSettled(Array.from({ length: Math.min(lanes, schedules) }, lane))
    for (const end of ended) if (end.status === 'rejected') throw end.reason
    console.log(`seeds ${first} to ${first + schedules - 1}: ${killed} kills, ${JSON.stringify(total)}`)
    expect(killed).toBeGreaterThanOrEqual(2 * schedules)
  },
  120_000 + schedules * 10_000,
)
