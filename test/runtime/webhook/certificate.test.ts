/**
 * The certificate of the webhooks, decided on a clock of the test's own: several replicas, several API servers, news that are late.
 */
import { createPrivateKey } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type CertificateLifetimes,
  planCertificate,
  type Situation,
} from '../../../controller/runtime/webhook/certificate.ts'
import { bundleOf, readStored, type Served, type Stored, secretOf } from '../../../controller/runtime/webhook/stored.ts'

const hour = 3_600_000
const day = 24 * hour
const start = Date.UTC(2026, 10, 18)
const names = { dns: ['hooks.system.svc'], addresses: ['127.0.0.1', 'fd00::1'] }
const lifetimes: CertificateLifetimes = { certificate: 90 * day, propagation: hour, skew: 300_000 }

const decide = (now: number, stored: Stored, more: Partial<Situation> = {}) =>
  planCertificate({ now, stored, known: undefined, believed: undefined, names, lifetimes, ...more })

function first(): Served {
  const { current } = decide(start, {}).next ?? {}
  if (!current) throw new Error('none was made')
  return current
}

describe('a certificate', () => {
  it('is made where there is none, and served with at once', () => {
    const { next, again } = decide(start, {})
    expect(next?.current?.until).toBe(start + 90 * day)
    expect([next?.next, next?.previous]).toEqual([undefined, undefined])
    expect(again, 'two thirds of its time').toBe(start + 60 * day)
  })

  it('gets a successor, which is announced, then served with; its authority goes when all have heard', () => {
    const current = first()
    const due = decide(start, { current }).again
    expect(decide(due - 1, { current }).next).toBeUndefined()
    const announced = decide(due, { current }).next
    expect(announced?.current).toEqual(current)
    const next = announced?.next as Served
    expect(next.ca).not.toBe(current.ca)
    expect(bundleOf(announced ?? {}).match(/BEGIN/g)).toHaveLength(2)
    expect(decide(due + day, { current, next }).next, 'some registration does not have it yet').toBeUndefined()
    expect(decide(due + hour, { current, next }, { believed: due + 1 }).next).toBeUndefined()
    const promoted = decide(due + hour + 1, { current, next }, { believed: due + 1 }).next
    expect(promoted).toEqual({
      current: next,
      previous: { ca: current.ca, until: current.until },
      since: due + hour + 1,
    })
    expect(bundleOf(promoted ?? {}), 'registrations need no write').toBe(bundleOf(announced ?? {}))
    expect(decide(due + 2 * hour, promoted ?? {}).next).toBeUndefined()
    expect(decide(due + 2 * hour + 1, promoted ?? {}).next).toEqual({ current: next })
  })

  it('is followed although not all have heard, when it is about to end', () => {
    const current = first()
    const next = decide(start + 70 * day, { current }).next?.next
    expect(decide(start + 74 * day, { current, next }).next).toBeUndefined()
    expect(decide(start + 76 * day, { current, next }).next?.current).toEqual(next)
  })

  it('that is lost stays in use where somebody still knows it, and gets a successor', () => {
    const known = { current: first() }
    const plan = decide(start + day, {}, { known }).next
    expect(plan?.current).toEqual(known.current)
    expect(plan?.next?.ca).not.toBe(known.current.ca)
  })

  it('that is lost while it is being replaced goes on being replaced', () => {
    const [current, next] = [first(), first()]
    expect(decide(start + day, {}, { known: { current, next } }).next).toEqual({ current, next })
    const previous = { ca: next.ca, until: next.until }
    const plan = decide(start + day, {}, { known: { current, previous, since: start } }).next
    expect(plan).toMatchObject({ current, previous, since: start })
    expect(bundleOf(plan ?? {}).match(/BEGIN/g)).toHaveLength(3)
  })
})

describe('the Secret', () => {
  const stored: Stored = {
    current: first(),
    next: decide(start + 70 * day, { current: first() }).next?.next,
    since: start,
  }
  const written = secretOf(stored)
  const secret = { metadata: { annotations: written.annotations }, data: written.data }
  const read = (data: Record<string, string>, at = start) => readStored({ ...secret, data }, names, at)

  it('says all that is decided from', () => {
    expect(read(secret.data)).toEqual({ ...stored, previous: undefined })
    const { current, next } = stored
    const promoted = { current: next, previous: { ca: current?.ca ?? '', until: current?.until ?? 0 }, since: start }
    const again = secretOf(promoted)
    expect(readStored({ metadata: again, data: again.data }, names, start)).toEqual({ ...promoted, next: undefined })
  })

  it.each([
    ['is garbled', { ...secret.data, 'tls.crt': 'garbage' }],
    ['has another key', { ...secret.data, 'tls.key': secret.data['next.key'] ?? '' }],
    ['has no authority', { ...secret.data, 'ca.crt': '' }],
    ['is empty', {}],
  ])('counts for nothing where it %s', (_, data) => {
    expect(read(data).current).toBeUndefined()
  })

  it('counts for nothing when its time is over, or for other names', () => {
    expect(read(secret.data, start + 91 * day).current).toBeUndefined()
    expect(readStored(secret, { dns: ['other.system.svc'] }, start).current).toBeUndefined()
    expect(readStored(secret, { addresses: ['fd00::2'] }, start).current).toBeUndefined()
  })

  it('has no key of an authority', () => {
    const keys = Object.entries(secret.data).filter(([, text]) => Buffer.from(text, 'base64').includes('PRIVATE KEY'))
    expect(keys.map(([key]) => key).sort()).toEqual(['next.key', 'tls.key'])
    for (const [, text] of keys) expect(() => createPrivateKey(Buffer.from(text, 'base64'))).not.toThrow()
  })
})

it('whatever anybody serves with is in the bundle that any API server has, for years, news being late', () => {
  const seed = Number(process.env.SHIPMATE_SEED)
  const delays = fc.array(fc.integer({ min: 0, max: hour - 1 }), { minLength: 41, maxLength: 41 })
  fc.assert(
    fc.property(delays, delays, fc.array(fc.nat(100), { maxLength: 3 }), (toReplicas, toServers, deletions) => {
      let [now, round] = [start, 0]
      let stored: Stored = decide(now, {}).next ?? {}
      let serving = stored.current as Served
      let believed: { ca: string; since: number } | undefined
      // What two replicas serve with, and two API servers have, from when on.
      const late = (list: number[], n: number) => now + (list[(round * 2 + n) % list.length] ?? 0)
      const served = [0, 1].map(() => [{ from: now, ca: serving.ca }])
      const bundles = [0, 1].map(() => [{ from: now, bundle: bundleOf(stored) }])
      const at = <T extends { from: number }>(history: T[], time: number) =>
        history.findLast(({ from }) => from <= time) as T
      const end = start + 3 * 365 * day
      while (now < end) {
        const isDeleted = deletions.includes(round)
        const plan = decide(now, isDeleted ? {} : stored, {
          known: stored,
          believed: believed?.ca === stored.next?.ca ? believed?.since : undefined,
        })
        if (plan.next) {
          stored = plan.next
          if (stored.current && stored.current.ca !== serving.ca) {
            serving = stored.current
            for (const [n, history] of served.entries()) history.push({ from: late(toReplicas, n), ca: serving.ca })
          }
          for (const [n, history] of bundles.entries())
            history.push({ from: late(toServers, n), bundle: bundleOf(stored) })
          if (stored.next) believed = { ca: stored.next.ca, since: now }
        }
        round++
        // While something changes it is looked at again and again, as replicas do that hear of each other.
        const isChanging = stored.next !== undefined || stored.previous !== undefined
        now = Math.max(now + 1, isChanging ? Math.min(plan.again, now + hour / 6) : plan.again)
      }
      const times = [...served, ...bundles].flat().map(({ from }) => from)
      for (const time of times)
        for (const history of served)
          for (const bundle of bundles) expect(at(bundle, time).bundle).toContain(at(history, time).ca)
      expect(served[0]?.length, 'it was renewed').toBeGreaterThan(10)
    }),
    { seed, numRuns: Math.min(Number(process.env.SHIPMATE_SCHEDULES), 100) },
  )
})
