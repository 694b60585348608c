/**
 * The fault suite of `shipmate/testing`: it passes an operator that is sound, and finds each deliberate fault, by its name and with the way to play it again.
 */
import { everyFault, type Operators, type TestCluster } from 'shipmate/testing'
import { expect, it } from 'vitest'
import {
  actsOnEvents,
  forgetsFinalizer,
  generatesNames,
  letsGoTooSoon,
  neverRests,
  note,
  sound,
  withoutRule,
  writesAlways,
} from './faulty-operators.ts'

const play = (operator: Operators, options = {}) =>
  everyFault({ operator, scenario: note, seed: 1, print: () => undefined, ...options })

it('passes a sound operator, by every fault', async () => {
  const { runs, seed } = await play(sound)
  expect(seed).toBe(1)
  for (const [fault, count] of Object.entries(runs)) expect(count, fault).toBeGreaterThan(0)
})

it('finds children that are made anew after a crash', async () => {
  await expect(play(generatesNames)).rejects.toThrow(/when it is restarted: create configmaps/)
})

it('finds what no finalizer looks after', async () => {
  await expect(play(forgetsFinalizer)).rejects.toThrow('ConfigMap kube-public/sample is left')
})

it('finds a status that is written each time', async () => {
  await expect(play(writesAlways)).rejects.toThrow(
    /without any fault.*when it is restarted: patch notes.test.example.com\/status sample/s,
  )
})

it('finds an operator that is woken by its own writes', async () => {
  await expect(play(neverRests)).rejects.toThrow(/without any fault.*(asks without end|does not come to rest)/s)
})

it('finds an operator that acts only on events', async () => {
  const scenario = async (cluster: TestCluster) => {
    await cluster.settled()
    await cluster.apply(note)
  }
  await expect(play(actsOnEvents, { scenario })).rejects.toThrow(
    /^crash before request .*:\n.*ConfigMap default\/sample is not there/m,
  )
})

it('finds a custom resource that is let go too soon, and says how to see it again', async () => {
  const failure = await play(letsGoTooSoon).catch((error: Error) => error.message)
  expect(failure).toMatch(/^crash .*:\n {2}ConfigMap kube-public\/sample is left$/m)
  const [, id = ''] = /SHIPMATE_FAULT="(.*)"$/m.exec(String(failure)) ?? []
  process.env.SHIPMATE_FAULT = id
  try {
    await expect(play(letsGoTooSoon)).rejects.toThrow('1 of 1 runs went wrong')
  } finally {
    delete process.env.SHIPMATE_FAULT
  }
})

it('finds a missing rule, and says what to declare', async () => {
  await expect(play(withoutRule)).rejects.toThrow(
    "permissions: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['patch'] }]",
  )
})

it('plays only what is asked for', async () => {
  const { runs } = await play(sound, { faults: ['crash'], most: 3 })
  expect(runs).toEqual({ crash: 3, stale: 0, gaps: 0, mutations: 0 })
})

it('says what was played, and its seed', async () => {
  const said: string[] = []
  await play(sound, { faults: ['gaps'], seed: 42, print: (line: string) => void said.push(line) })
  expect(said).toEqual([
    expect.stringMatching(/^everyFault: \d+ runs \(0 crash, 0 stale, \d+ gaps, 0 mutations\), seed 42$/),
  ])
})
