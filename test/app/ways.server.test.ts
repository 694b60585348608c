/**
 * The thirteen ways in which controllers with agents in pods run an action twice, lose it, or say what is not so, with real sidecars on a real API server. Ours takes none
 * of them; a controller that makes the mistake is found out by the same eyes.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { OperationSchedule } from '../../controller/app/kinds.ts'
import type { Action } from '../../shared/lifecycle/model.ts'
import { type Fault, judged, name, type Play } from '../fixtures/app/arena.ts'
import { shipmate } from '../fixtures/app/contender.ts'
import { rigMissing } from '../fixtures/app/control-plane.ts'
import { type Mistake, naive } from '../fixtures/app/naive.ts'
import { type Rig, startRig } from '../fixtures/app/rig.ts'
import { verifyOf } from '../fixtures/app/samples.ts'
import { createTrust } from '../fixtures/app/trust.ts'
import { installOwnKinds } from '../fixtures/own-kinds.ts'

const trust = createTrust()
const verified: Partial<Action> = { verify: verifyOf('backup') }
/** Its work is done long before it ends. */
const lingering: Partial<Action> = { exec: { command: ['sh', '-c', 'appctl backup && sleep 60'] } }

interface Way extends Play {
  readonly title: string
  readonly mistake: Mistake
  readonly fault: Fault
}

const ways: Way[] = [
  {
    title: '1: it dies between the request and the write that records it',
    mistake: 'recordsAfter',
    fault: 'run twice',
    async play(stage) {
      stage.pod().hold('backup')
      const { k, filter } = stage.contender.asked
      const cut = stage.line.cutAt(k, 'before', filter)
      await stage.wish('1')
      await cut.done
      await stage.rig.until('its beginning', stage.isBegun)
      await stage.restart()
      stage.pod().release('backup')
    },
  },
  {
    title: '2: the sidecar has lost its record of what was done',
    mistake: 'restartsUnknown',
    fault: 'run twice',
    backup: { ...verified, timeout: '3s' },
    async play(stage) {
      stage.pod().hold('backup')
      await stage.wish('1')
      await stage.begun()
      await stage.running.kill()
      stage.pod().release('backup')
      await stage.rig.until('its end', stage.isDone)
      await stage.pod().loseJournal()
      await stage.start()
    },
  },
  {
    title: '3: the answer to the request is lost',
    mistake: 'retriesAnew',
    fault: 'run twice',
    async play(stage) {
      const pod = stage.pod()
      const deaf = stage.whenAsked(stage.contender.asking, () => pod.network?.set('deaf'))
      await stage.wish('1')
      await deaf
      await stage.rig.until('its beginning', stage.isBegun)
      // So long that whoever asked has heard of nothing.
      await pause(2500)
      pod.network?.set('open')
      pod.network?.reset()
    },
  },
  {
    title: '4: it takes longer than the client waits',
    mistake: 'losesPatience',
    fault: 'run twice',
    async play(stage) {
      stage.pod().hold('backup')
      await stage.wish('1')
      await stage.begun()
      await stage.rig.until('no more patience', () => stage.running.hasGivenUp)
      stage.pod().release('backup')
    },
  },
  {
    title: '5: nobody saw the end, and what was done stands',
    mistake: 'startsOver',
    fault: 'output gone',
    backup: lingering,
    async play(stage) {
      await stage.wish('1')
      await stage.rig.until('its work to be done', stage.isDone)
      await stage.begun()
      await stage.pod().killContainer()
      await stage.rig.until('that it is not known', () => stage.outcome() === 'Unknown' || stage.isHopeless())
      await stage.contender.settle(stage.rig.client, stage.namespace, 'Succeeded')
    },
  },
  {
    title: '6: it dies, and the action ends before it is back',
    mistake: 'remembersInMemory',
    fault: 'never ended',
    async play(stage) {
      stage.pod().hold('backup')
      await stage.wish('1')
      await stage.begun()
      await stage.running.kill()
      stage.pod().release('backup')
      await stage.rig.until('its end', stage.isDone)
      await stage.start()
    },
  },
  {
    title: '7: it dies between the two writes of a tick',
    mistake: 'advancesFirst',
    fault: 'never made',
    async play(stage) {
      await stage.running.kill()
      const template = { app: name, action: 'backup' }
      const spec = { schedule: '* * * * *', template }
      await stage.rig.client.create(OperationSchedule, {
        metadata: { name: 'nightly', namespace: stage.namespace },
        spec: spec as never,
      })
      await stage.start(60_000)
      const { k, filter } = stage.contender.tick
      await stage.line.cutAt(k, 'after', filter).done
      await stage.running.kill()
      await stage.start(60_000)
    },
  },
  {
    title: '8: the agent is replaced while the action goes on',
    mistake: 'blamesRestart',
    fault: 'run twice',
    async play(stage) {
      stage.pod().hold('backup')
      await stage.wish('1')
      await stage.begun()
      await stage.pod().killAgent()
      await stage.rig.until('another agent', () => stage.pod().births > 1)
      stage.pod().release('backup')
    },
  },
  {
    title: '9: its time is up, and it had succeeded',
    mistake: 'trustsItsClock',
    fault: 'said to have failed',
    backup: { ...verified, ...lingering, timeout: '3s' },
    play: stage => stage.wish('1'),
  },
  {
    title: '10: somebody goes on from what was true before the end',
    mistake: 'writesBlindly',
    fault: 'taken back',
    async play(stage) {
      stage.pod().hold('backup')
      const { line, running } = stage
      const { k, filter } = stage.contender.asked
      // The answer takes so long that what it leads to is held up on its way.
      const slow = stage.whenAsked(stage.contender.asking, () => stage.pod().network?.delay(300))
      await stage.wish('1')
      await slow
      await stage.rig.until('its beginning', stage.isBegun)
      line.network.freeze()
      stage.pod().network?.delay(0)
      // Its record, or what it reads before it writes that.
      const isHeld = () => line.requests.some(({ verb, status }) => verb !== 'watch' && status === undefined)
      await stage.rig.until('something to be on its way', () => line.count(filter) >= k || isHeld())
      await stage.start()
      stage.pod().release('backup')
      await stage.until('Succeeded')
      const passed = line.requests.length
      line.network.thaw()
      await stage.rig.until('what was on its way to have arrived', () =>
        line.requests.slice(0, passed).every(({ verb, status }) => verb === 'watch' || status !== undefined),
      )
      await running.kill()
    },
  },
  {
    title: '11: who has taken a lock is gone',
    mistake: 'locksInAnnotation',
    fault: 'never ended',
    async play(stage) {
      stage.pod().hold('backup')
      await stage.wish('1')
      await stage.begun()
      await stage.restart()
      stage.pod().release('backup')
      await stage.until('Succeeded')
      await stage.wish('2')
    },
  },
  {
    title: '12: the pod is gone in the middle of it',
    mistake: 'waitsForEver',
    fault: 'never ended',
    backup: { ...verified, timeout: '3s' },
    async play(stage) {
      stage.pod().hold('backup')
      await stage.wish('1')
      await stage.begun()
      await stage.rig.replace(stage.pod())
    },
  },
  {
    title: '13: another pod has its name',
    mistake: 'knowsByName',
    fault: 'said to have succeeded',
    backup: { ...verified, timeout: '3s' },
    async play(stage) {
      stage.pod().hold('backup')
      await stage.wish('1')
      await stage.begun()
      const { uid } = stage.pod()
      await stage.rig.replace(stage.pod())
      await stage.rig.until('another pod', () => stage.rig.pods(stage.namespace).some(pod => pod.uid !== uid))
    },
  },
]

describe.skipIf(rigMissing)('a way to run twice, or to lose', { timeout: 240_000, concurrent: true }, () => {
  let rig: Rig
  beforeAll(async () => {
    rig = await startRig({ prepare: installOwnKinds })
  }, 120_000)
  afterAll(() => rig?.stop(), 60_000)

  describe.each(ways)('$title', way => {
    it('is not taken', async context => {
      context.expect(await judged(context, rig, way, shipmate)).toEqual([])
    })
    it(`is seen in one that ${way.mistake}`, async context => {
      context.expect(await judged(context, rig, way, naive(way.mistake, trust))).toContain(way.fault)
    })
  })
})
