import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { crashDelay, kubeletBackoff, nextCrashes } from '../../../devcluster/node/backoff.ts'
import { expand } from '../../../devcluster/node/expand.ts'
import { type ContainerState, type Life, planOf } from '../../../devcluster/node/plan.ts'
import { answered, nextAsk, type Probing, unprobed } from '../../../devcluster/node/probing.ts'
import { readdressed, relocated } from '../../../devcluster/node/rewrite.ts'
import type { Pod, Role } from '../../../devcluster/node/spec.ts'
import { phaseOf, statusOf } from '../../../devcluster/node/status.ts'
import { amountOf } from '../../../devcluster/quantity.ts'

const now = Date.UTC(2026, 0, 1)
const pod = (spec: object = {}) =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'n', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
    spec: { containers: [], ...spec },
  }) as unknown as Pod

const waiting: Life = { is: 'waiting', reason: 'ContainerCreating' }
const up: Life = { is: 'running', id: 'i', startedAt: now, isStarted: true, isReady: true }
const starting: Life = { ...up, isStarted: false, isReady: false }
const over = (code: number): Life => ({
  is: 'ended',
  id: 'i',
  code,
  reason: 'x',
  startedAt: now - 1000,
  finishedAt: now - 10,
})
const state = (role: Role, name: string, life: Life, more: Partial<ContainerState> = {}): ContainerState => ({
  ...{ spec: { name }, role, life, last: undefined, restarts: 0, crashes: life.is === 'ended' ? 1 : 0 },
  ...{ hasStarted: life.is === 'running' && life.isStarted, ...more },
})
const at = { startedAt: now - 2000, now, backoff: kubeletBackoff }

describe('what is next', () => {
  const go = (...start: string[]) => ({ is: 'go on', start, at: undefined })
  const cases: [string, object, ContainerState[], object][] = [
    [
      'the first init container',
      {},
      [state('init', 'a', waiting), state('init', 'b', waiting), state('main', 'm', waiting)],
      go('a'),
    ],
    ['nothing while it runs', {}, [state('init', 'a', up), state('main', 'm', waiting)], go()],
    [
      'the next when it succeeded',
      {},
      [state('init', 'a', over(0)), state('init', 'b', waiting), state('main', 'm', waiting)],
      go('b'),
    ],
    ['the same when it failed', {}, [state('init', 'a', over(1)), state('main', 'm', waiting)], go('a')],
    [
      'the end when it failed and nothing restarts',
      { restartPolicy: 'Never' },
      [state('init', 'a', over(1)), state('main', 'm', waiting)],
      { is: 'finish' },
    ],
    ['nothing until a sidecar has started', {}, [state('native', 's', starting), state('main', 'm', waiting)], go()],
    [
      'the others once it has',
      {},
      [state('native', 's', up), state('main', 'm', waiting), state('main', 'k', waiting)],
      go('m', 'k'),
    ],
    [
      'a sidecar that died, whatever the policy',
      { restartPolicy: 'Never' },
      [state('native', 's', over(1), { hasStarted: true }), state('main', 'm', up)],
      go('s'),
    ],
    [
      'the end when the others are done, sidecar or not',
      { restartPolicy: 'Never' },
      [state('native', 's', up), state('main', 'm', over(0))],
      { is: 'finish' },
    ],
    [
      'what failed, with OnFailure',
      { restartPolicy: 'OnFailure' },
      [state('main', 'm', over(1)), state('main', 'k', over(0))],
      go('m'),
    ],
    ['what succeeded, with Always', {}, [state('main', 'm', over(0))], go('m')],
    [
      'a wait for what crashes',
      {},
      [state('main', 'm', over(1), { crashes: 2 })],
      { is: 'go on', start: [], at: now - 10 + 10_000 },
    ],
    ['the end of its time', { activeDeadlineSeconds: 2 }, [state('main', 'm', up)], { is: 'expire' }],
    [
      'a look at the end of its time',
      { activeDeadlineSeconds: 3 },
      [state('main', 'm', up)],
      { is: 'go on', start: [], at: now + 1000 },
    ],
  ]
  it.each(cases)('is %s', (_what, spec, states, plan) => {
    expect(planOf(pod(spec), states, at)).toEqual(plan)
  })

  it('never starts what runs, nor others before all init containers are done', () => {
    const life = fc.constantFrom(waiting, up, starting, over(0), over(1))
    const any = fc.array(fc.tuple(fc.constantFrom<Role>('init', 'native'), life), { maxLength: 4 })
    const policy = fc.constantFrom('Always', 'OnFailure', 'Never')
    fc.assert(
      fc.property(any, life, policy, (inits, main, restartPolicy) => {
        const states = [...inits.map(([role, one], index) => state(role, `i${index}`, one)), state('main', 'm', main)]
        const plan = planOf(pod({ restartPolicy }), states, at)
        if (plan.is !== 'go on') return
        for (const name of plan.start) {
          const own = states.findIndex(({ spec }) => spec.name === name)
          expect(states[own]?.life.is).not.toBe('running')
          for (const before of states.slice(0, own)) {
            if (before.role === 'init') expect(before.life).toMatchObject({ is: 'ended', code: 0 })
            if (before.role === 'native') expect(before.hasStarted).toBe(true)
          }
        }
      }),
    )
  })
})

describe('a status', () => {
  const facts = {
    ip: '127.1.1.1',
    hostIp: '127.1.1.2',
    startedAt: now,
    now,
    backoff: kubeletBackoff,
    isPrepared: true,
    hasEnded: false,
  }
  const phases: [string, object, ContainerState[], boolean][] = [
    ['Pending', {}, [state('init', 'a', up), state('main', 'm', waiting)], false],
    ['Pending', {}, [state('main', 'm', up), state('main', 'k', waiting)], false],
    ['Running', {}, [state('main', 'm', up)], false],
    ['Running', {}, [state('main', 'm', over(1), { crashes: 3 })], false],
    ['Failed', { restartPolicy: 'Never' }, [state('init', 'a', over(1)), state('main', 'm', waiting)], false],
    ['Succeeded', { restartPolicy: 'Never' }, [state('main', 'm', over(0))], true],
    ['Failed', { restartPolicy: 'Never' }, [state('main', 'm', over(0)), state('main', 'k', over(2))], true],
  ]
  it.each(phases)('has the phase %s', (phase, spec, states, hasEnded) => {
    expect(phaseOf(pod(spec), states, { ...facts, hasEnded })).toBe(phase)
  })

  it('says of what crashes that it waits, and how it ended', () => {
    const { containerStatuses } = statusOf(pod(), [state('main', 'm', over(7), { crashes: 5, restarts: 4 })], facts)
    expect(containerStatuses?.[0]).toMatchObject({
      ready: false,
      restartCount: 4,
      state: {
        waiting: { reason: 'CrashLoopBackOff', message: 'back-off 1m20s restarting failed container=m pod=p_n(u)' },
      },
      lastState: { terminated: { exitCode: 7 } },
    })
  })

  it('names who is not ready, and keeps the time of what has not changed', () => {
    const states = [state('main', 'm', up), state('main', 'k', starting)]
    const first = statusOf(pod(), states, facts)
    const ready = first.conditions?.find(({ type }) => type === 'Ready')
    expect(ready).toMatchObject({ status: 'False', message: 'containers with unready status: [k]' })
    const later = statusOf(
      pod(),
      [state('main', 'm', up), state('main', 'k', up)],
      { ...facts, now: now + 5000 },
      first,
    )
    const times = Object.fromEntries(later.conditions?.map(one => [one.type, one.lastTransitionTime]) ?? [])
    expect(times).toMatchObject({ Ready: '2026-01-01T00:00:05Z', Initialized: '2026-01-01T00:00:00Z' })
  })

  it('heeds readiness gates', () => {
    const gated = { readinessGates: [{ conditionType: 'example.com/open' }] }
    const closed = statusOf(pod(gated), [state('main', 'm', up)], facts).conditions?.find(
      ({ type }) => type === 'Ready',
    )
    expect(closed).toMatchObject({ status: 'False', reason: 'ReadinessGatesNotReady' })
    const opened = {
      ...pod(gated),
      status: { conditions: [{ type: 'example.com/open', status: 'True' }] },
    } as unknown as Pod
    expect(
      statusOf(opened, [state('main', 'm', up)], facts).conditions?.find(({ type }) => type === 'Ready')?.status,
    ).toBe('True')
  })
})

it('backs off as a kubelet: at once, then from 10 s, doubled up to 5 min, anew after 10 min', () => {
  expect([1, 2, 3, 4, 5, 6, 7, 8].map(one => crashDelay(one, kubeletBackoff) / 1000)).toEqual([
    0, 10, 20, 40, 80, 160, 300, 300,
  ])
  expect(nextCrashes(6, 599_000, kubeletBackoff)).toBe(7)
  expect(nextCrashes(6, 601_000, kubeletBackoff)).toBe(1)
})

describe('a probe', () => {
  const probe = { periodSeconds: 10, failureThreshold: 3 }
  const asked = (answers: [boolean, number][]) =>
    answers.reduce<Probing>((one, [isGood, time]) => answered(one, probe, isGood, time), unprobed)
  it('passes at once, and fails after so many periods however often it asks', () => {
    expect(
      asked([
        [false, 0],
        [false, 100],
        [true, 300],
      ]).verdict,
    ).toBe('pass')
    expect(
      asked([
        [false, 0],
        [false, 1000],
        [false, 2000],
        [false, 3000],
      ]).verdict,
    ).toBeUndefined()
    expect(
      asked([
        [false, 0],
        [false, 10_000],
        [false, 20_000],
      ]).verdict,
    ).toBe('fail')
  })
  it('asks by its period once it has passed, and more often before', () => {
    expect(nextAsk(asked([[true, 0]]), probe)).toBe(10_000)
    expect(nextAsk(unprobed, probe)).toBe(50)
    expect(nextAsk(asked([[false, 0]]), probe)).toBe(100)
  })
})

it.each([
  ['$(A)-$(B)-$$(A)-$A', '1-$(B)-$(A)-$A'],
  ['$$$(A)', '$1'],
  ['$(', '$('],
])('expands %s', (text, expected) => {
  expect(expand(text, { A: '1' })).toBe(expected)
})

it.each([
  ['500m', '1m', '500'],
  ['500m', '1', '1'],
  ['1Gi', '1Mi', '1024'],
  ['100M', '1Ki', '97657'],
  ['0.1', '1m', '100'],
  ['x', '1', undefined],
])('counts %s in %s', (quantity, divisor, expected) => {
  expect(amountOf(quantity, divisor)).toBe(expected)
})

it.each([
  ['0.0.0.0:80', '127.9.9.9:8001'],
  ['--listen=:80', '--listen=127.9.9.9:8001'],
  ['http://localhost:80/x', 'http://127.9.9.9:8001/x'],
  ['80', '8001'],
  ['localhost:81', 'localhost:81'],
  ['10.0.0.0.0:80', '10.0.0.0.0:80'],
  ['db:80', 'db:80'],
])('gives %s the pod’s address', (word, expected) => {
  expect(readdressed(word, { ip: '127.9.9.9', ports: new Map([[80, 8001]]) })).toBe(expected)
})

it.each([
  ['/data', '/r/data'],
  ['--dir=/data/x', '--dir=/r/data/x'],
  ['cat /data/x "/data/y"; ls /database', 'cat /r/data/x "/r/data/y"; ls /database'],
  ['/etc/data', '/etc/data'],
  ['/data/tls:/data', '/r/data/tls:/r/data'],
])('finds the paths of volumes in %s', (word, expected) => {
  expect(relocated(word, '/r', ['/data', '/data/tls'])).toBe(expected)
})
