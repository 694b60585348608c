/**
 * An app's life on real sidecars while everything around it fails, by random schedules from a seed that replays. What has to hold stands in
 * test/fixtures/app/schedule.ts; crash-points.chaos.server.test.ts kills at every single place instead. (Every state within bounds is looked at by test/app/model.)
 */
import { setTimeout as pause } from 'node:timers/promises'
import { uniformInt } from 'pure-rand/distribution/uniformInt'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Operation } from '../../controller/app/kinds.ts'
import { rigMissing } from '../fixtures/app/control-plane.ts'
import { faults } from '../fixtures/app/faults.ts'
import { inLanes, lanes, playsHere } from '../fixtures/app/lanes.ts'
import { type Rig, startRig } from '../fixtures/app/rig.ts'
import { type Manner, manners, openTrial, type Trial } from '../fixtures/app/schedule.ts'
import { installOwnKinds } from '../fixtures/own-kinds.ts'

const first = Number(process.env.SHIPMATE_SEED ?? 1)
const schedules = playsHere()
const file = 'test/app/crash.chaos.server.test.ts'

describe.skipIf(rigMissing)('an app', { timeout: 3_600_000 }, () => {
  let rig: Rig
  beforeAll(async () => {
    rig = await startRig({ nodes: lanes, prepare: installOwnKinds })
  }, 120_000)
  afterAll(() => rig?.stop(), 60_000)

  it('asks nothing of a pod of another app that has got the address of its own', async () => {
    const options = { rig, replicas: 1, manner: 'plain', target: 'all' } as const
    const one = await openTrial({ ...options, node: 'node-1' })
    const other = await openTrial({ ...options, node: 'node-2' })
    const home = rig.nodes.node('node-1')
    try {
      for (const trial of [one, other]) {
        await trial.start()
        await trial.wish({ state: 'Running' })
        await trial.converge()
      }
      const [mine] = one.pods()
      const [theirs] = other.pods()
      if (!mine || !theirs) throw new Error('there are no pods')
      mine.hold('backup')
      await one.wish({ state: 'Servicing', action: 'backup', request: '1' })
      await rig.until('a beginning', () => one.begun === 1)
      await home.cordon()
      await rig.replace(mine)
      await rig.until('its address to be free', () => one.pods().length === 0)
      rig.reuseAddress(mine.ip)
      await rig.replace(theirs)
      await rig.until('the other to have it', () => other.pods()[0]?.ip === mine.ip)
      expect(await other.converge()).toBe('ready')
      await home.cordon(false)
      // Nobody saw its end, and a person says that there was none.
      expect(await one.converge()).toBe('failed')
      expect([one.begun, one.settled > 0, other.begun]).toEqual([1, true, 0])
      expect([...(await one.judge()), ...(await other.judge())]).toEqual([])
    } finally {
      await home.cordon(false)
      await one.end()
      await other.end()
    }
  })

  it('goes on once, though a leader that was stopped in the middle comes back after another has led', async () => {
    const options = { rig, node: 'node-1', replicas: 1, manner: 'plain', target: 'all', isElected: true } as const
    const trial = await openTrial(options)
    try {
      await trial.start()
      await trial.wish({ state: 'Running' })
      await trial.converge()
      const { line: stopped } = trial
      for (const pod of trial.pods()) pod.hold('backup')
      await trial.wish({ state: 'Servicing', action: 'backup', request: '1' })
      await rig.until('a beginning', () => trial.begun === 1)
      stopped?.network.freeze()
      await trial.start()
      for (const pod of trial.pods()) pod.release('backup')
      expect(await trial.converge()).toBe('ready')
      await trial.wish({ state: 'Servicing', action: 'backup', request: '2' })
      stopped?.network.heal()
      expect(await trial.converge()).toBe('ready')
      expect(await trial.judge()).toEqual([])
      expect(trial.begun).toBe(2)
    } finally {
      await trial.end()
    }
  })

  it(`does what is wished once, whatever fails: seeds ${first} to ${first + schedules - 1}`, async () => {
    const seeds = Array.from({ length: schedules }, (_, at) => first + at)
    const total: Record<string, number> = {}
    await inLanes(seeds, lanes, async (seed, node) => {
      const said: string[] = []
      try {
        await play(seed, node, said)
      } catch (error) {
        const replay = `SHIPMATE_SEED=${seed} npx vitest run --project server ${file} -t 'whatever fails'`
        throw new Error(`seed ${seed}: ${said.join(', ')}: ${(error as Error).message}\nreplay: ${replay}`)
      }
      for (const one of said) total[one] = (total[one] ?? 0) + 1
    })
    console.log(`seeds ${first} to ${first + schedules - 1}: ${JSON.stringify(total)}`)
  })

  /** @param said what happened, in order */
  async function play(seed: number, node: string, said: string[]): Promise<void> {
    const rng = xoroshiro128plus(seed)
    for (let i = 0; i < 20; i++) uniformInt(rng, 0, 1)
    const below = (limit: number) => uniformInt(rng, 0, limit - 1)
    const pick = <T>(all: readonly T[]): T => all[below(all.length)] as T
    const manner: Manner = pick(manners)
    const replicas = pick([1, 1, 2])
    const target = replicas > 1 ? pick(['all', 'primary'] as const) : 'all'
    const isElected = below(3) === 0
    said.push(`${manner} ${replicas} ${target}${isElected ? ' elected' : ''}`)
    const trial = await openTrial({ rig, node, replicas, manner, target, isElected })
    try {
      await live(trial)
      const wrong = await trial.judge()
      if (wrong.length > 0) throw new Error(wrong.join('; '))
    } finally {
      await trial.end()
    }

    async function live(trial: Trial): Promise<void> {
      const { namespace } = trial
      await trial.start()
      await trial.wish({ state: 'Running' })
      await trial.converge()
      const wishes = [
        { state: 'Servicing', action: 'backup', request: '1' },
        { state: 'Servicing', action: 'reconfigure', params: { value: 'a' }, request: '2' },
        { state: 'Servicing', action: 'backup', request: '3' },
        { state: 'End' },
        { state: 'Running' },
      ]
      let settled = 0
      for (const [at, wish] of wishes.entries()) {
        const isHeld = below(2) === 0
        if (isHeld) for (const pod of trial.pods()) for (const action of ['backup', 'stop']) pod.hold(action)
        said.push(`wish ${wish.request ?? wish.state}${isHeld ? ' held' : ''}`)
        if (at === 2 && below(2) === 0) {
          said.push('operation by hand')
          await trial.operate('by-hand', { action: 'backup', ttlSecondsAfterFinished: 0 })
        }
        const { begun } = trial
        await trial.wish(wish)
        // Mostly what fails, fails in the middle of it. Nothing is begun to be Running.
        if (isHeld && below(4) > 0 && wish.state !== 'Running')
          for (let looks = 0; looks < 100 && trial.begun === begun; looks++) await pause(20)
        for (let left = below(4); left > 0; left--) {
          await pause(below(400))
          const [what, fail] = pick(faults)
          said.push(what)
          await fail({ rig, node, trial, below, pick })
        }
        await trial.calm()
        const verdict = await trial.converge()
        said.push(verdict)
        if (trial.settled > settled) said.push('settled')
        settled = trial.settled
        if (verdict === 'failed' && (wish.state === 'End' || wish.state === 'Running')) {
          // A person says so once more.
          await trial.wish({ ...wish, request: 'again' })
          expect(await trial.converge()).toBe('ready')
        }
      }
      if (trial.operations().some(({ metadata }) => metadata.name === 'by-hand'))
        await rig.until('the one by hand to be gone', async () => {
          const there = await rig.client.find(Operation, { namespace, name: 'by-hand' })
          return !there
        })
    }
  }
})
