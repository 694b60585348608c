import { describe, expect, it, onTestFinished } from 'vitest'
import { Client } from '../../controller/kube/client.ts'
import { createElection, type ElectionOptions, type Standing } from '../../controller/kube/election.ts'
import { Aborted } from '../../controller/kube/errors.ts'
import { NotLeading } from '../../controller/kube/gate.ts'
import { ConfigMap, Lease } from '../../controller/kube/kinds.ts'
import { retry } from '../../controller/kube/retry.ts'
import { intercept, type Request, type Response } from '../../controller/kube/transport.ts'
import { ShipmateError } from '../../shared/errors.ts'
import { type Fate, LeaseServer, network, refusal } from '../fixtures/lease-server.ts'
import { ProcessClock, VirtualClock } from '../fixtures/virtual-clock.ts'

/** A world of one server and one true time. */
function world() {
  const clock = new VirtualClock()
  const server = new LeaseServer()
  return {
    clock,
    server,
    contender: (identity: string, options: Partial<ElectionOptions> = {}) =>
      contender(clock, server, identity, options),
  }
}

/** A process that takes part. Its work goes on until it is told to stop, and ends when `finish` is called, or at once. */
function contender(clock: VirtualClock, server: LeaseServer, identity: string, options: Partial<ElectionOptions>) {
  const own = new ProcessClock(clock, { skew: identity.length * 1e7 })
  const stop = new AbortController()
  const terms: AbortSignal[] = []
  const changes: Standing[] = []
  const our = { fate: (): Fate => ({}), slow: false, finish: () => {}, result: 'running' as unknown }
  const send = network(clock, own, server, () => our.fate())
  const election = createElection(new Client(send), {
    name: 'leader',
    identity,
    clock: own,
    random: () => 0.5,
    onChange: now => changes.push(now),
    ...options,
  })
  const gated = new Client(intercept(send, election.gate()))
  let ended: Promise<void> | undefined
  onTestFinished(async () => {
    stop.abort()
    our.finish()
    await clock.until(() => our.result !== 'running' || !ended, 60_000)
  })
  return Object.assign(our, {
    own,
    election,
    gated,
    terms,
    changes,
    stop: () => stop.abort(new Error('stopped')),
    start(lead?: (signal: AbortSignal) => Promise<void>) {
      const work = (signal: AbortSignal) =>
        new Promise<void>((resolve, reject) => {
          terms.push(signal)
          our.finish = resolve
          signal.addEventListener('abort', () => our.slow || reject(signal.reason))
        })
      ended = election.run(lead ?? work, stop.signal)
      ended.then(
        () => {
          our.result = 'ended'
        },
        error => {
          our.result = error
        },
      )
    },
  })
}

const configMap = { metadata: { name: 'x' } }

describe('an election', () => {
  it('is won at once when there is no lease, which is then written', async () => {
    const { clock, server, contender } = world()
    const a = contender('a')
    expect(a.election.isLeading()).toBe(false)
    a.start()
    expect(a.election.waitingSince()).toBe(a.own.now())
    expect(await clock.until(() => a.terms.length === 1, 100)).toBe(true)
    expect(a.election.isLeading()).toBe(true)
    expect(a.election.leader()).toBe('a')
    expect(a.election.waitingSince()).toBeUndefined()
    expect(server.lease?.spec).toMatchObject({ holderIdentity: 'a', leaseDurationSeconds: 15, leaseTransitions: 0 })
    expect(a.changes.at(-1)).toEqual({ leading: true, leader: 'a' })
  })

  it('costs one request per renewal, every retryPeriod or a little more', async () => {
    const { clock, server, contender } = world()
    const a = contender('a')
    a.start()
    await clock.advance(22_000)
    expect(server.log).toEqual(['GET 404', 'POST', ...Array(9).fill('PUT')])
    expect(server.lease?.spec?.leaseTransitions).toBe(0)
  })

  it("is won from a holder that no longer renews after the lease's duration, though its clock is years away", async () => {
    const { clock, server, contender } = world()
    server.write({
      holderIdentity: 'gone',
      leaseDurationSeconds: 15,
      renewTime: '2099-01-01T00:00:00.000000Z',
      leaseTransitions: 3,
    })
    const a = contender('a')
    a.start()
    await clock.advance(15_000)
    expect(a.terms).toHaveLength(0)
    expect(a.election.leader()).toBe('gone')
    expect(await clock.until(() => a.terms.length === 1, 100)).toBe(true)
    expect(server.lease?.spec?.leaseTransitions).toBe(4)
    expect(a.changes).toEqual([
      { leading: false, leader: 'gone' },
      { leading: false, leader: 'a' },
      { leading: true, leader: 'a' },
    ])
  })

  it('is never won from a holder that renews', async () => {
    const { clock, contender } = world()
    const [a, b] = [contender('a'), contender('b')]
    a.start()
    await clock.advance(10)
    b.start()
    await clock.advance(300_000)
    expect([a.terms.length, b.terms.length]).toEqual([1, 0])
    expect(b.election.leader()).toBe('a')
  })

  it('goes on when a renewal is done but its answer is lost', async () => {
    const { clock, server, contender } = world()
    const a = contender('a')
    a.start()
    await clock.advance(1_000)
    a.fate = () => ({ lost: 'answer' })
    await clock.until(() => server.log.includes('PUT'), 5_000)
    a.fate = () => ({})
    await clock.advance(60_000)
    expect(a.terms).toHaveLength(1)
    expect(a.terms[0]?.aborted).toBe(false)
    expect(server.lease?.spec?.leaseTransitions).toBe(0)
  })

  it('does not hang on a client that never answers, nor on one that retries', async () => {
    const clock = new VirtualClock()
    const stop = new AbortController()
    const hangs = createElection(new Client(() => new Promise<Response>(() => {})), { name: 'leader', clock })
    const unavailable = async () => refusal(503, 'ServiceUnavailable')
    const insists = createElection(new Client(intercept(unavailable, retry({ clock, tries: 1e9 }))), {
      name: 'leader',
      clock,
    })
    let ended = 0
    for (const election of [hangs, insists]) void election.run(async () => {}, stop.signal).then(() => ended++)
    await clock.advance(30_000)
    stop.abort()
    expect(await clock.until(() => ended === 2, 0)).toBe(true)
    expect(clock.pending).toBe(0)
  })

  it('says what is wrong with its options', () => {
    const client = new Client(async () => refusal(404, 'NotFound'))
    const misuse = (options: Partial<ElectionOptions>) => () => createElection(client, { name: 'x', ...options })
    expect(misuse({ renewDeadline: 15_000 })).toThrow(/leaseDuration > renewDeadline/)
    expect(misuse({ retryPeriod: 9_000 })).toThrow(/renewDeadline > 1.2/)
    expect(misuse({ retryPeriod: 0 })).toThrow(/retryPeriod > 0/)
    expect(misuse({ identity: '' })).toThrow(/identity/)
    expect(misuse({})().identity).not.toBe(misuse({})().identity)
  })

  it('is not run twice at once', async () => {
    const { clock, contender } = world()
    const a = contender('a')
    a.start()
    await clock.advance(10)
    await expect(a.election.run(async () => {}, new AbortController().signal)).rejects.toMatchObject({ code: 'Misuse' })
  })

  it('survives an onChange that throws', async () => {
    const { clock, contender } = world()
    const a = contender('a', {
      onChange: () => {
        throw new Error('mine')
      },
    })
    a.start()
    expect(await clock.until(() => a.terms.length === 1, 100)).toBe(true)
  })
})

describe('a lost lease', () => {
  it('ends the work renewDeadline after the start of the last renewal, with NotLeading', async () => {
    const { clock, contender } = world()
    const a = contender('a')
    // Slow answers: were the deadline counted from these, it would be half a second late.
    a.fate = () => ({ there: 250, back: 250 })
    a.start()
    await clock.until(() => a.terms.length === 1, 2_000)
    // Read from 0 on, written from 500 on.
    a.fate = () => ({ lost: 'request' })
    expect(await clock.until(() => a.terms[0]?.aborted === true, 60_000)).toBe(true)
    expect(clock.monotonic()).toBe(10_500)
    expect(a.terms[0]?.reason).toBeInstanceOf(NotLeading)
    expect(a.terms[0]?.reason).toMatchObject({ code: 'NotLeading', retry: 'later' })
    expect(a.election.isLeading()).toBe(false)
    expect(a.changes.at(-1)).toEqual({ leading: false, leader: 'a' })
  })

  it('is tried for more than once before it is lost, even if connections are dead', async () => {
    const { clock, contender } = world()
    const a = contender('a')
    const tries: number[] = []
    a.slow = true
    a.start()
    await clock.until(() => a.terms.length === 1, 2_000)
    a.fate = () => {
      tries.push(clock.monotonic())
      return { lost: 'request' }
    }
    await clock.until(() => a.terms[0]?.aborted === true, 60_000)
    expect(tries).toEqual([2_204, 7_704])
  })

  it('is contested again, and the work done again, when the server is back', async () => {
    const { clock, server, contender } = world()
    const a = contender('a')
    a.start()
    await clock.advance(1_000)
    a.fate = () => ({ instead: refusal(503, 'ServiceUnavailable') })
    await clock.advance(30_000)
    expect(a.terms[0]?.aborted).toBe(true)
    expect(a.election.waitingSince()).toBeDefined()
    a.fate = () => ({})
    expect(await clock.until(() => a.terms.length === 2, 5_000)).toBe(true)
    expect(a.result).toBe('running')
    expect(server.lease?.spec?.leaseTransitions).toBe(0)
  })

  it('is not contested before its work has ended', async () => {
    const { clock, server, contender } = world()
    const a = contender('a')
    a.slow = true
    a.start()
    await clock.advance(1_000)
    server.write({ holderIdentity: 'thief', leaseDurationSeconds: 15 })
    expect(await clock.until(() => a.terms[0]?.aborted === true, 3_000)).toBe(true)
    expect(String(a.terms[0]?.reason)).toContain('thief holds it')
    const requests = server.log.length
    await clock.advance(120_000)
    expect(server.log).toHaveLength(requests)
    a.finish()
    expect(await clock.until(() => a.terms.length === 2, 20_000)).toBe(true)
  })

  it('does not come back by a renewal whose answer is late', async () => {
    const { clock, server, contender } = world()
    const a = contender('a')
    a.slow = true
    a.start()
    await clock.advance(1_000)
    a.fate = () => ({ back: 4_900 })
    await clock.until(() => server.log.includes('PUT'), 5_000)
    a.own.jumpWall(20_000)
    expect(a.election.isLeading()).toBe(false)
    a.own.jumpWall(-20_000)
    await clock.advance(5_000)
    expect(a.election.isLeading()).toBe(false)
    expect(a.terms).toHaveLength(1)
  })

  it('is taken again without a gap for others when somebody deleted it', async () => {
    const { clock, server, contender } = world()
    const [a, b] = [contender('a'), contender('b')]
    a.start()
    await clock.advance(10)
    b.start()
    await clock.advance(5_000)
    server.lease = undefined
    await clock.advance(100_000)
    expect([a.terms.length, b.terms.length]).toEqual([1, 0])
    expect(a.terms[0]?.aborted).toBe(false)
    expect(server.holder).toBe('a')
  })

  it('is lost when it was deleted and somebody else was faster', async () => {
    const { clock, server, contender } = world()
    const a = contender('a')
    a.start()
    await clock.advance(5_000)
    server.lease = undefined
    server.write({ holderIdentity: 'faster', leaseDurationSeconds: 15 })
    expect(await clock.until(() => a.terms[0]?.aborted === true, 3_000)).toBe(true)
    expect(a.election.leader()).toBe('faster')
  })
})

describe('who sleeps', () => {
  it('knows when it wakes, before any timer, whichever clock stood still', async () => {
    for (const how of ['stopped', 'suspended'] as const) {
      const { clock, contender } = world()
      const a = contender('a')
      a.start()
      await clock.advance(5_000)
      a.own.freeze()
      await clock.advance(3_600_000)
      a.own.thaw(how)
      expect(a.terms[0]?.aborted).toBe(false)
      await expect(a.gated.create(ConfigMap, configMap)).rejects.toMatchObject({ code: 'NotLeading' })
      expect(a.terms[0]?.aborted).toBe(true)
      expect(a.election.isLeading()).toBe(false)
      expect(await clock.until(() => a.terms.length === 2, 10_000)).toBe(true)
    }
  })

  it('keeps the lease over a short sleep', async () => {
    const { clock, contender } = world()
    const a = contender('a')
    a.start()
    await clock.advance(5_000)
    a.own.freeze()
    await clock.advance(4_000)
    a.own.thaw('suspended')
    expect(a.election.isLeading()).toBe(true)
    await clock.advance(60_000)
    expect(a.terms).toHaveLength(1)
  })

  it('loses the lease to a wall clock that jumps ahead, which may have been a sleep, and takes it again; not to one set back', async () => {
    const { clock, contender } = world()
    const a = contender('a')
    a.start()
    await clock.advance(1_000)
    a.own.jumpWall(-7_200_000)
    await clock.advance(60_000)
    expect(a.terms).toHaveLength(1)
    a.own.jumpWall(7_200_000)
    expect(a.election.isLeading()).toBe(false)
    await clock.advance(10_000)
    expect(a.terms).toHaveLength(2)
    expect(a.election.isLeading()).toBe(true)
  })
})

describe('a stop', () => {
  it('waits for the work, renewing meanwhile, then releases the lease, so that a successor begins at its next look', async () => {
    const { clock, server, contender } = world()
    const [a, b] = [contender('a'), contender('b')]
    a.slow = true
    a.start()
    await clock.advance(10)
    b.start()
    await clock.advance(5_000)
    a.stop()
    expect(a.terms[0]?.reason).toMatchObject({ message: 'stopped' })
    await clock.advance(60_000)
    expect(a.result).toBe('running')
    expect(a.election.isLeading()).toBe(true)
    expect(b.terms).toHaveLength(0)
    a.finish()
    await clock.advance(10)
    expect(a.result).toBe('ended')
    expect(a.election.isLeading()).toBe(false)
    expect(server.lease?.spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 })
    expect(await clock.until(() => b.terms.length === 1, 2_400)).toBe(true)
    expect(server.lease?.spec?.leaseTransitions).toBe(1)
  })

  it('leaves no timer behind and asks nothing more', async () => {
    const { clock, server, contender } = world()
    const a = contender('a')
    a.start()
    await clock.advance(5_000)
    a.stop()
    await clock.advance(10)
    expect(a.result).toBe('ended')
    expect(clock.pending).toBe(0)
    const requests = server.log.length
    await clock.advance(60_000)
    expect(server.log).toHaveLength(requests)
    expect(a.changes.at(-1)).toEqual({ leading: false, leader: undefined })
  })

  it('ends who only waits at once, with nothing written', async () => {
    const { clock, server, contender } = world()
    server.write({ holderIdentity: 'other', leaseDurationSeconds: 15 })
    const a = contender('a')
    a.start()
    await clock.advance(5_000)
    a.stop()
    expect(await clock.until(() => a.result === 'ended', 0)).toBe(true)
    expect(clock.pending).toBe(0)
    expect(server.log.every(entry => entry === 'GET')).toBe(true)
    expect(server.holder).toBe('other')
  })

  it('gives back a lease whose acquisition was under way, without leading', async () => {
    const { clock, server, contender } = world()
    const a = contender('a')
    a.fate = () => ({ there: 100, back: 100 })
    a.start()
    await clock.advance(250)
    a.stop()
    expect(await clock.until(() => a.result === 'ended', 10_000)).toBe(true)
    expect(server.log).toEqual(['GET 404', 'POST', 'PUT'])
    expect(server.holder).toBe('')
    expect(a.terms).toHaveLength(0)
  })

  it('gives back a lease of which it does not know whether it has it', async () => {
    const { clock, server, contender } = world()
    const a = contender('a')
    a.start()
    a.fate = () => ({ lost: server.log.length > 0 ? 'answer' : undefined }) as Fate
    await clock.until(() => server.log.length === 2, 1_000)
    a.fate = () => ({})
    a.stop()
    expect(await clock.until(() => a.result === 'ended', 10_000)).toBe(true)
    expect(server.holder).toBe('')
  })

  it('ends though the lease cannot be released', async () => {
    const { clock, contender } = world()
    const a = contender('a')
    a.start()
    await clock.advance(1_000)
    a.fate = () => ({ lost: 'request' })
    a.stop()
    expect(await clock.until(() => a.result === 'ended', 10_000)).toBe(true)
  })

  it('does not release what somebody else has', async () => {
    const { clock, server, contender } = world()
    const a = contender('a')
    a.start()
    await clock.advance(1_000)
    server.write({ holderIdentity: 'thief', leaseDurationSeconds: 15 })
    a.stop()
    await clock.advance(100)
    expect(a.result).toBe('ended')
    expect(server.holder).toBe('thief')
  })

  it('can be followed by another run', async () => {
    const { clock, contender } = world()
    const a = contender('a')
    let runs = 0
    for (let run = 1; run <= 2; run++) {
      void a.election.run(async () => void runs++, new AbortController().signal)
      expect(await clock.until(() => runs === run, 100)).toBe(true)
      await clock.advance(10)
    }
  })
})

describe('work that ends by itself', () => {
  it('releases the lease and ends the run', async () => {
    const { clock, server, contender } = world()
    const a = contender('a')
    a.start()
    await clock.advance(5_000)
    a.finish()
    await clock.advance(10)
    expect(a.result).toBe('ended')
    expect(server.holder).toBe('')
    expect(clock.pending).toBe(0)
  })

  it('releases the lease and throws what it threw, at once or later', async () => {
    const broken = new Error('broken')
    const throwsAtOnce = () => {
      throw broken
    }
    for (const lead of [() => Promise.reject(broken), throwsAtOnce]) {
      const { clock, server, contender } = world()
      const a = contender('a')
      a.start(lead)
      await clock.advance(100)
      expect(a.result).toBe(broken)
      expect(server.holder).toBe('')
    }
  })
})

describe('the gate', () => {
  it('lets reads and the lease itself through, and writes only while we lead', async () => {
    const { clock, server, contender } = world()
    const a = contender('a')
    const asked = (promise: Promise<unknown>) => {
      const settled = promise.then(
        () => 'done',
        (error: ShipmateError) => error.code,
      )
      return clock.advance(10).then(() => settled)
    }
    expect(await asked(a.gated.get(ConfigMap, { name: 'x' }))).toBe('done')
    expect(await asked(a.gated.create(Lease, { metadata: { name: 'leader', namespace: 'default' }, spec: {} }))).toBe(
      'done',
    )
    expect(await asked(a.gated.create(Lease, { metadata: { name: 'another' } }))).toBe('NotLeading')
    for (const write of [
      () => a.gated.create(ConfigMap, configMap),
      () => a.gated.update(ConfigMap, configMap),
      () => a.gated.patch(ConfigMap, { name: 'x' }, { merge: {} }),
      () => a.gated.apply(ConfigMap, configMap),
      () => a.gated.delete(ConfigMap, { name: 'x' }),
    ]) {
      expect(await asked(write())).toBe('NotLeading')
    }
    a.start()
    await clock.advance(100)
    server.others.length = 0
    expect(await asked(a.gated.create(ConfigMap, configMap))).toBe('done')
    expect(server.others).toHaveLength(1)
    a.stop()
    await clock.advance(100)
    expect(await asked(a.gated.create(ConfigMap, configMap))).toBe('NotLeading')
  })

  it('names what was refused and who leads', async () => {
    const { clock, server, contender } = world()
    server.write({ holderIdentity: 'other', leaseDurationSeconds: 15 })
    const a = contender('a')
    a.start()
    await clock.advance(10)
    const refused = a.gated.create(ConfigMap, configMap)
    await expect(refused).rejects.toThrow(
      'create configmaps x in namespace default: not sent, other holds lease default/leader',
    )
  })

  it('abandons what is under way when the lease is lost, but not when the work is told to stop', async () => {
    const { clock, contender } = world()
    const a = contender('a')
    a.slow = true
    a.start()
    await clock.advance(100)
    const seen: (Request['signal'] | undefined)[] = []
    const held = intercept(request => {
      seen.push(request.signal)
      return new Promise((_, reject) => {
        request.signal?.addEventListener('abort', () => reject(new Aborted(request.target, request.signal?.reason)))
      })
    }, a.election.gate())
    const caller = new AbortController()
    const own = new Client(held)
      .create(ConfigMap, configMap, { signal: caller.signal })
      .catch((error: unknown) => error)
    const lost = new Client(held).create(ConfigMap, configMap).catch((error: unknown) => error)
    caller.abort(new Error('enough'))
    expect(await own).toMatchObject({ code: 'Aborted', cause: { message: 'enough' } })
    a.stop()
    await clock.advance(5_000)
    expect(seen[1]?.aborted).toBe(false)
    a.fate = () => ({ lost: 'request' })
    await clock.advance(20_000)
    expect(await lost).toMatchObject({ code: 'NotLeading', cause: { code: 'Aborted' } })
    expect(await lost).toBeInstanceOf(ShipmateError)
  })
})
