import type { V1Lease } from '@kubernetes/client-node'
import { describe, expect, it } from 'vitest'
import type { Live } from '../../controller/kube/kind.ts'
import { claimed, decide, microTime, observe, released, unseen } from '../../controller/kube/lease.ts'

type Spec = NonNullable<Live<V1Lease>['spec']>

const place = { name: 'leader', namespace: 'ns' }
const wall = Date.UTC(2026, 4, 6, 7, 8, 9, 123)

function lease(version: string, spec: Spec, metadata: object = {}): Live<V1Lease> {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { ...place, uid: 'u', resourceVersion: version, creationTimestamp: '', ...metadata },
    spec,
  }
}

describe('whose a lease is', () => {
  it("is nobody's when it was never seen", () => {
    expect(decide(unseen, 'me', 0)).toEqual({ do: 'acquire' })
    expect(decide(observe(unseen, undefined, 0, 15_000), 'me', 0)).toEqual({ do: 'acquire' })
  })

  it('is free at once when its holder is empty or absent', () => {
    expect(
      decide(observe(unseen, lease('1', { holderIdentity: '', leaseDurationSeconds: 15 }), 100, 15_000), 'me', 100).do,
    ).toBe('acquire')
    expect(decide(observe(unseen, lease('1', {}), 100, 15_000), 'me', 100).do).toBe('acquire')
  })

  it("is its holder's for its duration from when we saw it, whatever times it states", () => {
    for (const renewTime of ['1970-01-01T00:00:00.000000Z', '2999-01-01T00:00:00.000000Z']) {
      const seen = observe(
        unseen,
        lease('1', { holderIdentity: 'other', leaseDurationSeconds: 15, renewTime }),
        100,
        99_000,
      )
      expect(decide(seen, 'me', 15_099)).toEqual({ do: 'wait', until: 15_100 })
      expect(decide(seen, 'me', 15_100)).toEqual({ do: 'acquire' })
    }
  })

  it('lasts as long as its holder said, not as we are configured; as we are if it said nothing', () => {
    const long = observe(unseen, lease('1', { holderIdentity: 'other', leaseDurationSeconds: 60 }), 0, 15_000)
    expect(decide(long, 'me', 59_999).do).toBe('wait')
    const silent = observe(unseen, lease('1', { holderIdentity: 'other' }), 0, 15_000)
    expect(decide(silent, 'me', 15_000).do).toBe('acquire')
  })

  it('begins anew with each version, and not with a second look at the same one', () => {
    const first = observe(unseen, lease('1', { holderIdentity: 'other', leaseDurationSeconds: 15 }), 0, 15_000)
    const again = observe(first, lease('1', { holderIdentity: 'other', leaseDurationSeconds: 15 }), 5_000, 15_000)
    expect(again.freeAt).toBe(15_000)
    const renewed = observe(again, lease('2', { holderIdentity: 'other', leaseDurationSeconds: 15 }), 7_000, 15_000)
    expect(renewed.freeAt).toBe(22_000)
    const replaced = observe(
      renewed,
      lease('2', { holderIdentity: 'other', leaseDurationSeconds: 15 }, { uid: 'v' }),
      9_000,
      15_000,
    )
    expect(replaced.freeAt).toBe(24_000)
  })

  it("stays its holder's for that time when somebody deletes it", () => {
    const seen = observe(unseen, lease('1', { holderIdentity: 'other', leaseDurationSeconds: 15 }), 0, 15_000)
    const gone = observe(seen, undefined, 3_000, 15_000)
    expect(decide(gone, 'me', 14_999)).toEqual({ do: 'wait', until: 15_000 })
    expect(decide(gone, 'me', 15_000).do).toBe('acquire')
    expect(decide(gone, 'other', 3_000).do).toBe('renew')
  })

  it('is ours to renew even if nobody renewed it for long', () => {
    const seen = observe(unseen, lease('1', { holderIdentity: 'me', leaseDurationSeconds: 15 }), 0, 15_000)
    expect(decide(seen, 'me', 1e9)).toEqual({ do: 'renew' })
  })
})

describe('what is written', () => {
  it('creates it with no transitions and no version', () => {
    expect(claimed(unseen, 'me', place, 15_000, wall)).toEqual({
      metadata: place,
      spec: {
        holderIdentity: 'me',
        leaseDurationSeconds: 15,
        acquireTime: '2026-05-06T07:08:09.123000Z',
        renewTime: '2026-05-06T07:08:09.123000Z',
        leaseTransitions: 0,
      },
    })
  })

  it('takes it over by version and uid, counts the transition, and leaves what it does not know as it is', () => {
    const old = lease(
      '7',
      { holderIdentity: 'other', leaseTransitions: 4, acquireTime: 'then', strategy: 's' },
      { labels: { a: 'b' } },
    )
    const taken = claimed(observe(unseen, old, 0, 15_000), 'me', place, 15_000, wall)
    expect(taken.metadata).toMatchObject({ resourceVersion: '7', uid: 'u', labels: { a: 'b' } })
    expect(taken.spec).toMatchObject({
      holderIdentity: 'me',
      leaseTransitions: 5,
      acquireTime: microTime(wall),
      strategy: 's',
    })
  })

  it('renews it without a transition and without another time of acquisition', () => {
    const ours = lease('7', { holderIdentity: 'me', leaseTransitions: 4, acquireTime: 'then', renewTime: 'then' })
    const renewed = claimed(observe(unseen, ours, 0, 15_000), 'me', place, 15_000, wall)
    expect(renewed.spec).toMatchObject({ leaseTransitions: 4, acquireTime: 'then', renewTime: microTime(wall) })
  })

  it('goes on counting transitions when it was deleted', () => {
    const seen = observe(
      unseen,
      lease('7', { holderIdentity: 'me', leaseTransitions: 4, acquireTime: 'then' }),
      0,
      15_000,
    )
    const gone = observe(seen, undefined, 1, 15_000)
    expect(claimed(gone, 'me', place, 15_000, wall)).toMatchObject({ metadata: place, spec: { leaseTransitions: 4 } })
    expect(claimed(gone, 'me', place, 15_000, wall).metadata).not.toHaveProperty('resourceVersion')
    expect(claimed(gone, 'you', place, 15_000, wall).spec?.leaseTransitions).toBe(5)
  })

  it('rounds the duration up, so that nobody waits less than we hold', () => {
    expect(claimed(unseen, 'me', place, 1_200, wall).spec?.leaseDurationSeconds).toBe(2)
  })

  it('leaves it free: no holder, one second, by version', () => {
    const left = released(lease('7', { holderIdentity: 'me', leaseTransitions: 4, leaseDurationSeconds: 15 }), wall)
    expect(left?.metadata).toMatchObject({ resourceVersion: '7', uid: 'u' })
    expect(left?.spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1, leaseTransitions: 4 })
    expect(released(undefined, wall)).toBeUndefined()
  })

  it('states times as the server takes them, six digits after the point', () => {
    expect(microTime(0)).toBe('1970-01-01T00:00:00.000000Z')
  })
})
