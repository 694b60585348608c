/**
 * What holds whatever the pod: done twice is done once, nothing of the application's goes, its time to end is never shortened.
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { inject } from '../../../controller/webhook/inject/inject.ts'
import type { Container, PodTemplate } from '../../../controller/webhook/inject/template.ts'
import { type Case, cases } from './pods.ts'

const seed = Number(process.env.SHIPMATE_SEED ?? 1)
const numRuns = 20 * Number(process.env.SHIPMATE_SCHEDULES ?? 20)
const check = (holds: (one: Case) => void) => fc.assert(fc.property(cases, holds), { seed, numRuns })

function injected(pod: PodTemplate, { facts, settings }: Case) {
  const result = inject(pod, facts, settings)
  if (!('pod' in result)) throw new Error(`${JSON.stringify(result)} for ${JSON.stringify(pod)}`)
  return result
}
const named = (list: readonly { readonly name: string }[] | undefined, name: string) =>
  list?.find(one => one.name === name)
/** What injection has no business with. */
const isTheirs = ({ name }: { readonly name: string }) => !name.startsWith('shipmate-')

it('done twice it changes nothing more, and says the same', () => {
  check(one => {
    const first = injected(one.pod, one)
    const second = injected(first.pod, one)
    expect(second).toEqual({ ...first, outcome: 'unchanged' })
  })
})

it('what an earlier version, or other settings, had added becomes what it would be anew', () => {
  fc.assert(
    fc.property(cases, cases, (before, now) => {
      const earlier = injected(before.pod, {
        ...before,
        settings: { ...before.settings, version: '0.0.9', image: 'old:1' },
      })
      const { pod } = injected(earlier.pod, before)
      const anew = injected(before.pod, before).pod
      expect(pod.spec).toEqual(anew.spec)
      // Other settings on the same pod: what is the sidecar's follows, pull secrets stay.
      const moved = injected(anew, { ...before, settings: now.settings }).pod
      const direct = injected(before.pod, { ...before, settings: now.settings }).pod
      expect({ ...moved.spec, imagePullSecrets: [] }).toEqual({ ...direct.spec, imagePullSecrets: [] })
    }),
    { seed, numRuns },
  )
})

it('nothing of the application is removed, and of its containers only a missing preStop hook is added', () => {
  check(one => {
    const { pod } = injected(one.pod, one)
    const {
      initContainers = [],
      containers,
      volumes = [],
      imagePullSecrets = [],
      ...rest
    } = pod.spec ?? { containers: [] }
    const { terminationGracePeriodSeconds: _, shareProcessNamespace: __, ...others } = rest
    const {
      initContainers: init = [],
      containers: main,
      volumes: own = [],
      imagePullSecrets: secrets = [],
      ...theirs
    } = one.pod.spec
    const { terminationGracePeriodSeconds: ___, shareProcessNamespace: ____, ...same } = theirs
    expect(others).toEqual(same)
    expect(initContainers.filter(isTheirs)).toEqual(init)
    expect(volumes.filter(isTheirs)).toEqual(own)
    expect(imagePullSecrets).toEqual(expect.arrayContaining([...secrets]))
    expect(containers.filter(isTheirs).map(({ name }) => name)).toEqual(main.map(({ name }) => name))
    for (const container of main) {
      const { lifecycle, ...rest } = named(containers, container.name) as Container
      const { lifecycle: before, ...were } = container
      expect(rest).toEqual(were)
      expect(lifecycle).toEqual({ preStop: { httpGet: { path: '/prestop', port: 7080 } }, ...before })
    }
    expect(pod.metadata?.labels).toEqual(one.pod.metadata?.labels)
    expect(pod.metadata?.annotations).toMatchObject({ ...one.pod.metadata?.annotations })
  })
})

it('the grace period is never shortened, and leaves the application what it had after the hooks', () => {
  check(one => {
    const { pod } = injected(one.pod, one)
    const before = one.pod.spec.terminationGracePeriodSeconds ?? 30
    const after = pod.spec?.terminationGracePeriodSeconds ?? 30
    // Another run's end (20s, and 30s to verify), stop (60s) and its end (5s), and 2s.
    expect(after).toBe(one.facts.lifecycle?.preStop ? before + 117 : before)
  })
})

it('there is one sidecar, first of all that go on, without a probe, with its hook, its volumes and without privileges', () => {
  check(one => {
    const { spec } = injected(one.pod, one).pod
    const all = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])]
    const sidecars = all.filter(({ name }) => name === 'shipmate-sidecar')
    expect(sidecars).toHaveLength(1)
    const [sidecar] = sidecars
    expect(sidecar).not.toHaveProperty('livenessProbe')
    expect(sidecar).not.toHaveProperty('readinessProbe')
    expect(sidecar).not.toHaveProperty('startupProbe')
    expect(sidecar?.lifecycle?.preStop?.exec?.command).toContain('prestop')
    expect(sidecar?.securityContext).toMatchObject({ allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } })
    const native = spec?.initContainers?.find(({ restartPolicy }) => restartPolicy === 'Always')
    if (sidecar?.restartPolicy === 'Always') expect(native).toBe(sidecar)
    for (const { name, mountPath } of sidecar?.volumeMounts ?? []) {
      expect(named(spec?.volumes, name), `${name} at ${mountPath}`).toBeDefined()
      const others = sidecar?.volumeMounts?.filter(other => other.mountPath !== mountPath) ?? []
      expect(others.filter(other => other.mountPath.startsWith(`${mountPath}/`))).toEqual([])
    }
  })
})
