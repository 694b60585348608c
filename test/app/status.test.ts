import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type AppDecision, decideApp } from '../../controller/app/decide/app.ts'
import { wishHash } from '../../controller/app/decide/wish.ts'
import { conditionsOf, isBeingMade, isThere, shownOf } from '../../controller/app/status.ts'
import type { App, View, Wish } from '../../controller/app/view.ts'
import { type Condition, conditionsFor, type Standing, withConditions } from '../../controller/toolkit/conditions.ts'
import { Conflict, World } from './decide/sim.ts'
import { facts } from './decide/views.ts'

/** As the reconciler and the toolkit tell it. */
function standing(view: View, decision: AppDecision): Standing {
  if (decision.stalled) return { is: 'stalled', ...decision.stalled }
  if (isThere(decision) && !isBeingMade(view)) return { is: 'ready' }
  const { waitingFor, state, reason } = shownOf(view, decision)
  return {
    is: 'waiting',
    reason: decision.status.operation ? 'OperationInProgress' : 'OnItsWay',
    message: `Waiting for ${waitingFor ?? `${state}: ${reason}`}.`,
  }
}

function tell(before: readonly Condition[], view: View, generation: number) {
  const decision = decideApp(view, facts())
  const wanted = [...conditionsFor(standing(view, decision)), ...conditionsOf(view, decision)]
  const now = new Date(view.now).toISOString().replace(/\.\d+/, '')
  return { decision, conditions: withConditions(before, wanted, { now, generation }) }
}

const wishes: (Wish | undefined)[] = [
  undefined,
  { state: 'Running' },
  { state: 'End' },
  { state: 'Servicing', action: 'backup' },
  { state: 'Servicing', action: 'backup', request: 'again' },
  { state: 'Servicing', action: 'reload' },
  { state: 'Nowhere' },
]

type Deed = (world: World) => void | Promise<void>
const deeds: Record<string, (n: number) => Deed> = {
  wish: n => world => world.wish(wishes[n % wishes.length]),
  reconcile: () => world =>
    world.reconcile().catch(error => {
      if (!(error instanceof Conflict)) throw error
    }),
  succeeds: () => world => ofRuns(world, (agent, id) => agent.end(id, 'Succeeded')),
  fails: () => world => ofRuns(world, (agent, id) => agent.end(id, 'Failed', 'ExitCode')),
  dies: n => world => world.agents[n % 2]?.die(),
  isLost: n => world => {
    const agent = world.agents[n % 2]
    if (agent) agent.isReachable = !agent.isReachable
  },
  isReplaced: n => world => {
    if (n % 2 < world.agents.length) world.replace(n % 2)
  },
  changes: n => world => {
    const agent = world.agents[n % 2]
    if (agent) agent.state = n % 3 === 0 ? 'Start' : 'Running'
  },
  time: n => world => {
    world.now += n * 1000
  },
}

function ofRuns(world: World, change: (agent: World['agents'][number], id: string) => void): void {
  for (const agent of world.agents) for (const { id } of agent.runs.values()) change(agent, id)
}

// Half of what happens is that somebody reconciles.
const history = fc.array(
  fc.tuple(fc.oneof(fc.constant('reconcile'), fc.constantFrom(...Object.keys(deeds))), fc.nat({ max: 20 })),
  { maxLength: 40 },
)

function stored(world: World, conditions: readonly Condition[]): View {
  const view = world.view(world.read())
  return { ...view, app: { ...view.app, status: { ...view.app.status, conditions } } as App }
}

async function always(
  check: (told: { view: View; decision: AppDecision; conditions: Condition[]; world: World }) => void,
) {
  await fc.assert(
    fc.asyncProperty(history, async steps => {
      const world = new World({ replicas: 2 })
      let conditions: Condition[] = []
      let generation = 1
      for (const [name, n] of steps) {
        if (name === 'wish') generation++
        await deeds[name]?.(n)(world)
        const view = stored(world, conditions)
        const told = tell(conditions, view, generation)
        conditions = told.conditions
        check({ view, decision: told.decision, conditions, world })
      }
    }),
    { numRuns: 150 },
  )
}

const statusOf = (conditions: readonly Condition[], type: string) => conditions.find(one => one.type === type)?.status

test('Ready is always told; Reconciling and Stalled are True or absent, never both, and never beside Ready', async () => {
  await always(({ conditions }) => {
    const [ready, reconciling, stalled] = ['Ready', 'Reconciling', 'Stalled'].map(type => statusOf(conditions, type))
    expect(ready).toBeDefined()
    for (const abnormal of [reconciling, stalled]) expect([undefined, 'True']).toContain(abnormal)
    expect(reconciling === 'True' && stalled === 'True').toBe(false)
    expect(ready === 'True').toBe(reconciling === undefined && stalled === undefined)
    expect(new Set(conditions.map(({ observedGeneration }) => observedGeneration)).size).toBe(1)
    for (const { reason, message } of conditions)
      expect([/^[A-Za-z][A-Za-z0-9_]*$/.test(reason), message !== '']).toEqual([true, true])
  })
})

test('Ready is True only when what is wished now is held, and nothing is in progress', async () => {
  let times = 0
  await always(({ view, decision, conditions, world }) => {
    if (statusOf(conditions, 'Ready') !== 'True') return
    times++
    const { desired } = view.app.spec
    expect(decision.status.operation).toBeUndefined()
    if (!desired) return
    expect(decision.status.wish?.hash).toBe(wishHash(desired))
    expect(statusOf(conditions, 'AtDesiredState')).toBe('True')
    if (desired.state === 'End')
      return expect([world.replicas, decision.status.wish?.outcome]).toEqual([0, 'Succeeded'])
    expect(world.agents.map(({ state }) => state)).toEqual(['Running', 'Running'])
    if (desired.state !== 'Servicing') return
    expect(decision.status.wish?.outcome).toBe('Succeeded')
    const { name } = decision.status.wish?.operation ?? {}
    expect(world.operations.get(name ?? '')?.object.status?.phase).toBe('Succeeded')
  })
  expect(times).toBeGreaterThan(50)
})

test('what is told does not change while nothing does but the time', async () => {
  await always(({ view, conditions }) => {
    const { observedGeneration = 1 } = conditions[0] ?? {}
    const isWaitingForTime = view.pods.some(({ agent }) => !agent?.isReachable)
    const later = isWaitingForTime ? view : { ...view, now: view.now + 400 }
    expect(tell(conditions, later, observedGeneration).conditions).toEqual(conditions)
  })
})
