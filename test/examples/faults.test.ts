/**
 * The four seed operators survive everything that can go wrong between them and a cluster: each fault comes to the same as the undisturbed run, and leaves nothing.
 */
import { join } from 'node:path'
import { everyFault, startCluster } from 'shipmate/testing'
import { expect, it } from 'vitest'
import { operator as goop } from '../../examples/goop/operator.ts'
import { operator as memcached } from '../../examples/memcached/operator.ts'
import { operator as myownshell } from '../../examples/myownshell/operator.ts'
import { operator as ptemplate } from '../../examples/ptemplate/operator.ts'

const operators = { memcached, myownshell, goop, ptemplate }
const sampleOf = (name: string) => join(import.meta.dirname, '../../examples', name, 'sample.yaml')

it.each(Object.keys(operators) as (keyof typeof operators)[])('%s', { timeout: 300_000 }, async name => {
  const { runs } = await everyFault({ operator: operators[name], scenario: sampleOf(name), most: 60 })
  for (const [fault, count] of Object.entries(runs)) expect(count, fault).toBeGreaterThan(0)
})

it.each(Object.keys(operators) as (keyof typeof operators)[])('%s is at rest when nothing changes', async name => {
  await using cluster = await startCluster({ operator: operators[name], real: false })
  await cluster.apply(sampleOf(name))
  expect(await cluster.writesWhileIdle()).toEqual([])
})
