/**
 * The four examples once all is as it should be: for a minute they ask nothing of the server, neither reads nor writes, but for their leases. All are looked at in
 * one and the same minute. The servers are the test's own, as elsewhere the same operators are at work under the same names: one with KMM, and one without.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Kind } from '../../controller/kube/kind.ts'
import { CustomResourceDefinition, DaemonSet, Deployment, Job } from '../../controller/kube/kinds.ts'
import { Goop } from '../../examples/goop/operator.ts'
import { Memcached } from '../../examples/memcached/operator.ts'
import { MyOwnShell } from '../../examples/myownshell/operator.ts'
import { Module, Ptemplate } from '../../examples/ptemplate/operator.ts'
import { type ApiServer, startApiServer } from '../fixtures/apiserver.ts'
import { available, ended, onNodes } from '../fixtures/controllers.ts'
import { type Example, useExample } from '../fixtures/example.ts'
import { kmm, offer } from '../fixtures/kmm.ts'

const minute = 60_000

interface Case {
  readonly name: string
  readonly kind: Kind
  readonly hasKmm: boolean
  /** What the other controllers of a cluster would do. */
  readonly play: (example: Example) => Promise<void>
}

const cases: Case[] = [
  { name: 'memcached', kind: Memcached, hasKmm: true, play: serve },
  { name: 'myownshell', kind: MyOwnShell, hasKmm: true, play: serve },
  {
    ...{ name: 'goop', kind: Goop, hasKmm: true },
    async play({ client, namespace, until }) {
      await until('three Jobs', async () => expect(await client.list(Job, { namespace })).toHaveLength(3))
      for (const { metadata } of await client.list(Job, { namespace })) await ended(client, metadata, { exitCode: 0 })
    },
  },
  {
    ...{ name: 'ptemplate', kind: Ptemplate, hasKmm: true },
    async play(example) {
      const { client, namespace, until } = example
      const ref = { name: 'sample', namespace }
      await until('a Module', async () => expect(await client.find(Module, ref)).toBeDefined())
      await offer(client, ref, 2)
      await consume(example)
    },
  },
  { name: 'ptemplate', kind: Ptemplate, hasKmm: false, play: consume },
]

async function serve({ client, namespace, until }: Example): Promise<void> {
  const ref = { name: 'sample', namespace }
  await until('a Deployment', async () => expect(await client.find(Deployment, ref)).toBeDefined())
  await available(client, ref)
}

async function consume({ client, namespace, until }: Example): Promise<void> {
  const ref = { name: 'sample-consumer', namespace }
  await until('a DaemonSet', async () => expect(await client.find(DaemonSet, ref)).toBeDefined())
  await onNodes(client, ref, 2)
}

const servers: ApiServer[] = []
const examples = new Map<Case, Example>()
beforeAll(async () => {
  servers.push(...(await Promise.all([startApiServer(), startApiServer()])))
  const results = await Promise.allSettled(cases.map(begin))
  for (const result of results) if (result.status === 'rejected') throw result.reason
}, 120_000)
afterAll(async () => {
  for (const example of examples.values()) await example.end()
  for (const server of servers) await server.stop()
}, 60_000)

async function begin(one: Case): Promise<void> {
  const example = await useExample(one.name, servers[one.hasKmm ? 0 : 1]?.kubeconfig ?? '')
  examples.set(one, example)
  if (one.name === 'ptemplate' && one.hasKmm) await example.client.create(CustomResourceDefinition, kmm)
  await example.start()
  await example.apply('sample.yaml')
  await one.play(example)
  await example.until('that all is well', async () =>
    expect(await example.condition(one.kind, 'sample', 'Ready')).toMatchObject({ status: 'True' }),
  )
  // What was still on its way is behind it when it has gone through its steps once more.
  await example.touch(one.kind, 'sample')
}

it('asks nothing of the server in a minute in which nothing happens', { timeout: 2 * minute }, async () => {
  const asked = [...examples].map(async ([{ name, hasKmm }, example]) => {
    const requests = await example.requestsDuring(() => sleep(minute), { events: true })
    return [`${name}${hasKmm ? '' : ', without KMM'}`, requests] as const
  })
  expect(Object.fromEntries(await Promise.all(asked))).toEqual({
    memcached: [],
    myownshell: [],
    goop: [],
    ptemplate: [],
    'ptemplate, without KMM': [],
  })
})
