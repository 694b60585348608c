/**
 * One life of an app, again and again, in which somebody dies at a place of its own each time: the controller before and after each write to the API server and each
 * piece that it sends to a sidecar; the sidecar at each step of its journal and of a run, alone and together with the controller.
 *
 * The places are counted in a life in which nobody dies. A seed stands for every hundredth of them: a hundred seeds are all.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { writes } from '../fixtures/app/api-requests.ts'
import { rigMissing } from '../fixtures/app/control-plane.ts'
import { inLanes, lanes, schedulesHere } from '../fixtures/app/lanes.ts'
import type { RigPod } from '../fixtures/app/pod.ts'
import { type Rig, startRig } from '../fixtures/app/rig.ts'
import { openTrial, type Trial } from '../fixtures/app/schedule.ts'
import { installOwnKinds } from '../fixtures/own-kinds.ts'

const first = Number(process.env.SHIPMATE_SEED ?? 1)
const schedules = schedulesHere()

/** Those that the seeds stand for. */
const ours = <T>(places: readonly T[]): T[] =>
  places.filter((_, at) => schedules >= 100 || (((at - first) % 100) + 100) % 100 < schedules)

const whens = ['before', 'after'] as const
type When = (typeof whens)[number]

/** Counted from 1. */
const twice = (count: number): { k: number; when: When }[] =>
  Array.from({ length: count }, (_, at) => whens.map(when => ({ k: at + 1, when }))).flat()

describe.skipIf(rigMissing)('an app does all of its life once', { timeout: 3_600_000 }, () => {
  let rig: Rig
  beforeAll(async () => {
    rig = await startRig({ nodes: lanes, prepare: installOwnKinds })
  }, 120_000)
  afterAll(() => rig?.stop(), 60_000)

  async function come(trial: Trial, ...wishes: object[]): Promise<void> {
    for (const wish of wishes) {
      await trial.wish(wish)
      const verdict = await trial.converge()
      if (verdict !== 'ready')
        throw new Error(`${JSON.stringify(wish)} came to ${verdict}: ${JSON.stringify(trial.operations())}`)
    }
  }
  const backup = { state: 'Servicing', action: 'backup', request: '1' }
  const rest = [backup, { state: 'End' }, { state: 'Running' }]

  async function inTrial(node: string, play: (trial: Trial) => Promise<void>): Promise<void> {
    const trial = await openTrial({ rig, node, replicas: 1, manner: 'plain', target: 'all' })
    try {
      await play(trial)
    } finally {
      await trial.end()
    }
  }

  /** A backup and a stop. */
  async function judge(trial: Trial): Promise<void> {
    const wrong = await trial.judge()
    expect(wrong, wrong.join('; ')).toEqual([])
    expect(trial.begun, 'how often something was begun').toBe(2)
  }

  function onlyPod(trial: Trial): RigPod {
    const [pod] = trial.pods()
    if (!pod) throw new Error('there is no pod')
    return pod
  }

  /** Lives on while somebody dies; a failure says where. */
  async function through(place: string, dying: Promise<unknown>, living: Promise<void>): Promise<void> {
    const died = dying.then(what => `${place}${what === undefined ? '' : ` (${what})`}`)
    died.catch(() => undefined)
    try {
      await living
    } catch (error) {
      const where = await Promise.race([died, Promise.resolve(`${place}, which never came`)])
      throw new Error(`${where}: ${(error as Error).message}`)
    }
  }

  it('or is found out: what is begun twice, or stands nowhere, or did not happen', async () => {
    await inTrial('node-1', async trial => {
      await trial.start()
      await come(trial, { state: 'Running' }, backup)
      expect(await trial.judge()).toEqual([])
      const { folder } = onlyPod(trial)
      const [operation] = trial.operations()
      const [run] = operation?.status?.runs ?? []
      if (!operation || !run) throw new Error('there is no run')
      for (const id of [run.id, 'unheard-of'])
        execFileSync(join(folder, 'bin/appctl'), ['backup'], { env: { ...process.env, SHIPMATE_RUN_ID: id } })
      const { name } = operation.metadata
      expect(await trial.judge()).toEqual([
        `run ${run.id} was begun twice`,
        'run unheard-of was begun, and stands nowhere',
        `${name} was begun more than once in ${run.pod}`,
      ])
      rmSync(join(folder, 'effects'))
      expect(await trial.judge()).toContain(
        `${name} is said to have succeeded, and backup never came to its end in ${run.pod}`,
      )
    })
  })

  it('at whichever write its controller dies', async () => {
    let count = 0
    await inTrial('node-1', async trial => {
      await trial.start()
      await come(trial, { state: 'Running' }, ...rest)
      await judge(trial)
      count = trial.line?.count({ verb: writes }) ?? 0
    })
    const places = ours(twice(count))
    console.log(`${count} writes in a life: the controller dies at ${places.length} of ${count * 2} places`)
    await inLanes(places, lanes, ({ k, when }, node) =>
      inTrial(node, async trial => {
        const cut = await trial.start({ k, when })
        const dying = cut?.done.then(async ({ verb, resource, name, subresource }) => {
          await trial.kill()
          await trial.start()
          return `${verb} ${resource}/${name} ${subresource}`
        })
        const living = come(trial, { state: 'Running' }, ...rest).then(() => judge(trial))
        await through(`${when} write ${k}`, dying ?? Promise.resolve(), living)
        // It may have died at the very end.
        if (cut?.isDone) await dying
      }),
    )
  })

  it('at whichever piece that it sends to a sidecar its controller dies', async () => {
    let count = 0
    await inTrial('node-1', async trial => {
      await trial.start()
      await come(trial, { state: 'Running' })
      const { network } = onlyPod(trial)
      const before = network?.sent ?? 0
      await come(trial, ...rest)
      count = (network?.sent ?? 0) - before
    })
    const places = ours(twice(count))
    console.log(`${count} pieces in a life: the controller dies at ${places.length} of ${count * 2} places`)
    await inLanes(places, lanes, ({ k, when }, node) =>
      inTrial(node, async trial => {
        await trial.start()
        await come(trial, { state: 'Running' })
        const { network } = onlyPod(trial)
        if (!network) throw new Error('the pod has no network')
        let isDying = false
        const dying = network.cutAt(network.sent + k, when).then(async () => {
          isDying = true
          await trial.kill()
          network.set('open')
          network.reset()
          await trial.start()
        })
        await through(
          `${when} piece ${k}`,
          dying,
          come(trial, ...rest).then(() => judge(trial)),
        )
        if (isDying) await dying
      }),
    )
  })

  it('at whichever of its steps its sidecar dies', async () => {
    const points: string[] = []
    await inTrial('node-1', async trial => {
      await trial.start()
      await come(trial, { state: 'Running' })
      const { folder } = onlyPod(trial)
      const reached = () => readFileSync(join(folder, 'faults/points'), 'utf8').split('\n').filter(Boolean)
      const before = reached().length
      await come(trial, ...rest)
      points.push(...reached().slice(before))
    })
    const steps = points.map((point, at) => ({
      point,
      hit: points.slice(0, at + 1).filter(one => one === point).length,
    }))
    const places = ours(
      steps.flatMap(step => (['alone', 'with its controller'] as const).map(how => ({ ...step, how }))),
    )
    console.log(`${points.length} steps in a life: the sidecar dies at ${places.length} of ${points.length * 2} places`)
    await inLanes(places, lanes, ({ point, hit, how }, node) =>
      inTrial(node, async trial => {
        await trial.start()
        await come(trial, { state: 'Running' })
        const pod = onlyPod(trial)
        const over = new AbortController()
        const isAlone = how === 'alone'
        pod.arm(point, hit, isAlone ? 'die' : 'freeze')
        const dying = (async () => {
          if (isAlone) return
          await rig.until(point, () => over.signal.aborted || existsSync(join(pod.folder, 'faults/frozen')))
          if (over.signal.aborted) return
          await trial.kill()
          await pod.killAgent()
          await trial.start()
        })()
        await through(
          `${point} ${hit} ${how}`,
          dying,
          come(trial, ...rest).then(() => judge(trial)),
        )
        over.abort()
        await dying
      }),
    )
  })
})
