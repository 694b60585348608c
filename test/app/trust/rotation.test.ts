/**
 * Rotation in any order: apps come and go, Secrets are deleted, two controllers write of which one may be behind, and whatever was written reaches pods and
 * controllers at any time within the promised one. Everything that could be in use at one moment must hold under everything else that could be.
 */
import { verify } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AppSecret, noTrust, planAppSecret, readAppSecret } from '../../../controller/app/trust/app-secret.ts'
import type { AppTrust, Signature } from '../../../controller/app/trust/decide.ts'
import { lifecycleConfig, readSignature } from '../../../controller/app/trust/lifecycle-config.ts'
import type { Lifetimes } from '../../../controller/app/trust/lifetimes.ts'
import { emptyRoot, planRoot, type RootDocument, signingKey } from '../../../controller/app/trust/root.ts'
import { canonicalJson } from '../../../shared/canonical.ts'

const minute = 60_000
const hour = 60 * minute
const lasting = (authority: number, certificate: number): Lifetimes => ({
  ...{ authority, certificate, signingKey: authority },
  ...{ propagation: hour, skew: 5 * minute },
})
const lifetimes = lasting(60 * hour, 15 * hour)

/** Each version that was written, and until when somebody may still use it. */
interface Versions<T> {
  readonly all: { value: T; usedUntil: number }[]
}
const write = <T>(versions: Versions<T>, value: T, now: number) => {
  const last = versions.all.at(-1)
  if (last) last.usedUntil = now + lifetimes.propagation
  versions.all.push({ value, usedUntil: Number.POSITIVE_INFINITY })
}
const inUse = <T>({ all }: Versions<T>, now: number) =>
  all.filter(({ usedUntil }) => now < usedUntil).map(({ value }) => value)

/** What a root makes of a Secret is the same each time it is asked. */
const judged = new WeakMap<RootDocument, WeakMap<AppSecret, AppTrust>>()
function judge(root: RootDocument, identity: AppWorld['identity'], secret: AppSecret | undefined): AppTrust {
  if (!secret) return noTrust
  const known = judged.get(root) ?? new WeakMap<AppSecret, AppTrust>()
  judged.set(root, known)
  const trust = known.get(secret) ?? readAppSecret(root, identity, secret)
  known.set(secret, trust)
  return trust
}

interface AppWorld {
  readonly identity: { namespace: string; name: string; uid: string }
  readonly secrets: Versions<AppSecret | undefined>
}

function createWorld(lifetimes: Lifetimes) {
  let now = Date.UTC(2026, 0, 1)
  const roots: Versions<RootDocument> = { all: [] }
  const apps = new Map<string, AppWorld>()
  const config: Versions<ReturnType<typeof lifecycleConfig>> = { all: [] }
  const counts = { promoted: 0, dropped: 0, renewed: 0 }
  const latest = <T>({ all }: Versions<T>) => all.at(-1)?.value
  const lifecycle = { namespace: 'shop', name: 'postgres', spec: { actions: [] } }

  const keep = () => {
    const root = latest(roots) ?? emptyRoot
    const trusts = [...apps.values()].map(({ identity, secrets }) => judge(root, identity, latest(secrets)))
    const stored = latest(config)
    const signatures: Signature[] = stored ? [readSignature(stored as never)] : []
    const { next } = planRoot(now, root, trusts, signatures, lifetimes)
    if (!next) return
    const phases = (document: RootDocument) => [...document.authorities, ...document.keys]
    const before = new Map(phases(root).map(({ id, phase }) => [id, phase]))
    for (const { id, phase } of phases(next))
      if (phase === 'issuing' && before.get(id) === 'announced') counts.promoted++
    counts.dropped += phases(root).filter(({ id }) => !phases(next).some(other => other.id === id)).length
    write(roots, next, now)
  }
  /** @param lag how far behind the controller is that writes: 0 is the newest */
  const keepApp = ({ identity, secrets }: AppWorld, lag: number) => {
    const root = inUse(roots, now).at(-1 - lag) ?? latest(roots)
    if (!root || root.authorities.length === 0) return
    const stored = latest(secrets)
    const plan = planAppSecret(now, root, identity, stored, lifetimes)
    if (plan.do !== 'write') return
    counts.renewed++
    const { metadata, data } = plan.secret
    write(secrets, { metadata, data } as AppSecret, now)
  }
  const resign = (lag: number) => {
    const root = inUse(roots, now).at(-1 - lag) ?? latest(roots)
    if (!root?.keys.some(({ phase }) => phase === 'issuing')) return
    write(config, lifecycleConfig(now, root, lifecycle, latest(config) as never), now)
  }

  const check = () => {
    const controllers = inUse(roots, now)
    for (const { client } of controllers)
      if (client) expect(client.until, 'the client certificate holds').toBeGreaterThan(now)
    for (const { identity, secrets } of apps.values()) {
      for (const secret of inUse(secrets, now)) {
        if (!secret) continue
        for (const root of controllers) {
          const trust = judge(root, identity, secret)
          // It is undefined unless it verifies under an authority of this root.
          expect(trust.server, `${identity.name}: its certificate holds for every controller`).toBeDefined()
          expect(trust.server?.until).toBeGreaterThan(now)
          expect(trust.authorities, 'the client certificate holds for every pod').toContain(root.client?.issuer)
        }
        for (const signed of inUse(config, now)) {
          const { key } = readSignature(signed as never)
          const { keys } = judge(controllers.at(-1) ?? emptyRoot, identity, secret)
          expect(keys, 'every signature holds for every pod').toContain(key)
        }
      }
    }
  }

  return {
    apps,
    counts,
    check,
    keep,
    keepApp,
    resign,
    signs: (root = latest(roots)) => root && signingKey(root),
    config: () => latest(config),
    lifecycle,
    pass(ms: number) {
      now += ms
    },
    add(name: string) {
      if (!apps.has(name))
        apps.set(name, { identity: { namespace: 'shop', name, uid: `uid-${name}` }, secrets: { all: [] } })
    },
    remove: (name: string) => void apps.delete(name),
    /** Somebody deletes the Secret; the pods have it until they hear of that. */
    lose(name: string) {
      const app = apps.get(name)
      if (app?.secrets.all.at(-1)?.value) write(app.secrets, undefined, now)
    },
    everybody() {
      keep()
      for (const app of apps.values()) keepApp(app, 0)
      resign(0)
    },
  }
}

const names = ['a', 'b', 'c', 'd']
const name = fc.constantFrom(...names)
const lag = fc.constantFrom(0, 0, 1, 2)
const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 30 * minute }) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('keep' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('app' as const), name, lag }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('resign' as const), lag }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constantFrom('add' as const, 'remove' as const, 'lose' as const), name }),
  },
)

describe('rotation', () => {
  it('never leaves a certificate or a signature that somebody in use does not accept', { timeout: 300_000 }, () => {
    let rotated = 0
    fc.assert(
      fc.property(fc.array(command, { minLength: 400, maxLength: 500, size: 'max' }), commands => {
        const world = createWorld(lasting(24 * hour, 12 * hour))
        for (const one of names.slice(0, 2)) world.add(one)
        world.everybody()
        for (const [index, command] of commands.entries()) {
          if (command.do === 'pass') world.pass(command.ms)
          if (command.do === 'keep') world.keep()
          if (command.do === 'resign') world.resign(command.lag)
          if (command.do === 'add') world.add(command.name)
          if (command.do === 'remove') world.remove(command.name)
          if (command.do === 'lose') world.lose(command.name)
          const app = command.do === 'app' && world.apps.get(command.name)
          if (app && command.do === 'app') world.keepApp(app, command.lag)
          // A controller is never idle for longer than this.
          if (index % 10 === 0) world.everybody()
          world.check()
        }
        rotated += world.counts.promoted
      }),
      {
        seed: Number(process.env.SHIPMATE_SEED),
        numRuns: Number(process.env.SHIPMATE_SCHEDULES) / 4,
        endOnFailure: true,
      },
    )
    expect(rotated, 'authorities and keys were replaced at all').toBeGreaterThan(8)
  })

  it('goes through authorities and keys again and again, with both ends holding at each moment', {
    timeout: 60_000,
  }, () => {
    const world = createWorld(lifetimes)
    for (const one of names) world.add(one)
    for (let step = 0; step < 420; step++) {
      world.everybody()
      world.check()
      world.pass(20 * minute)
    }
    // 140 hours of authorities that hold 60 and are replaced after 40.
    expect(world.counts.promoted).toBeGreaterThanOrEqual(6)
    expect(world.counts.dropped).toBeGreaterThanOrEqual(4)
    expect(world.counts.renewed).toBeLessThan(4 * 60)
  })

  it('writes nothing while nothing is due', () => {
    const world = createWorld(lifetimes)
    for (const one of names) world.add(one)
    world.everybody()
    world.everybody()
    const before = { ...world.counts }
    for (let step = 0; step < 10; step++) {
      world.pass(minute)
      world.everybody()
    }
    expect(world.counts).toEqual(before)
  })

  it('waits for an app that has no Secret, until its authority is about to expire', () => {
    const start = Date.UTC(2026, 0, 1)
    const first = planRoot(start, emptyRoot, [], [], lifetimes).next ?? emptyRoot
    const announced = planRoot(start + 41 * hour, first, [noTrust], [], lifetimes).next
    expect(announced?.authorities.map(({ phase }) => phase)).toEqual(['issuing', 'announced'])
    const waiting = announced ?? emptyRoot
    expect(phasesAt(start + 49 * hour, waiting)).toEqual(['issuing', 'announced'])
    expect(phasesAt(start + 50 * hour, waiting)).toEqual(['retired', 'issuing'])
    const [retired] = planRoot(start + 50 * hour, waiting, [noTrust], [], lifetimes).next?.authorities ?? []
    expect(retired?.key, 'a retired authority has no key any more').toBeUndefined()
  })

  const phasesAt = (now: number, root: RootDocument) =>
    (planRoot(now, root, [noTrust], [], lifetimes).next ?? root).authorities.map(({ phase }) => phase)

  it('signs what the key in use verifies', () => {
    const world = createWorld(lifetimes)
    world.add('a')
    world.everybody()
    const data = (world.config()?.data ?? {}) as Record<string, string>
    const signature = Buffer.from(data['lifecycle.sig'] ?? '', 'base64')
    const bytes = Buffer.from(canonicalJson(world.lifecycle))
    expect(verify(null, bytes, world.signs()?.public ?? '', signature)).toBe(true)
  })
})
