/**
 * A journal with runs of every kind, cut off or changed at every byte: the agent starts, and executes nothing again. Either the journal has its id and knows everything
 * that was begun, or its id is new. Each seed has one byte in 1,000, and one agent, so that a nightly run has every byte.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { systemClock } from '../../../shared/clock.ts'
import { createLog } from '../../../shared/log.ts'
import { Problem } from '../../../shared/protocol/problems.ts'
import type { PutRun, Run } from '../../../shared/protocol/schemas.ts'
import { isTerminal } from '../../../shared/run.ts'
import { noFault } from '../../../sidecar/faults.ts'
import { type Journal, openJournal } from '../../../sidecar/journal/journal.ts'
import { runAgent } from '../../fixtures/running-agent.ts'
import { startSidecar } from '../../fixtures/sidecar.ts'
import { createEffects, type Effects } from './actions.ts'

const first = Number(process.env.SHIPMATE_SEED ?? 1)
const schedules = Number(process.env.SHIPMATE_SCHEDULES ?? 20)
const stride = 1000
const folder = mkdtempSync(join(tmpdir(), 'shipmate-damage-'))
const pristine = join(folder, 'pristine')
const { logger: log } = createLog({ level: 'silent' })
/** What was asked for; the last of them was dropped again. */
const bodies = new Map<string, PutRun>()
let effects: Effects
let journal: Buffer
let journalId: string
let fence: number
let ends: Map<string, Run>

beforeAll(async () => {
  effects = await createEffects(join(folder, 'effects'), { delay: 0, cuts: false })
  const sidecar = await startSidecar({ config: effects.config, folder: pristine })
  const { journalId: id } = await sidecar.state()
  const actions = ['exec', 'exec-verified', 'steps', 'http', 'http-verified', 'signal', 'exec', 'exec']
  for (const [n, action] of actions.entries()) {
    const name = `run-${n}`
    const params = { ...(/http|steps/.test(action) && { id: name }), ...(n === 6 && { code: '3' }) }
    bodies.set(name, { action, params, fence: n + 1, journalId: id })
    await sidecar.ask('PUT', `/v1/runs/${name}`, bodies.get(name))
    await sidecar.ended(name)
  }
  await sidecar.ask('DELETE', '/v1/runs/run-7')
  ;({ journalId, fence } = await sidecar.state())
  const { body } = await sidecar.ask<{ runs: Run[] }>('GET', '/v1/runs')
  ends = new Map(body.runs.map(run => [run.id, run]))
  await sidecar.stop()
  journal = readFileSync(join(pristine, 'state/journal'))
}, 60_000)
afterAll(() => {
  effects.close()
  rmSync(folder, { recursive: true, force: true })
})

function allEffects(): string {
  const ids = [...bodies.keys()]
  return JSON.stringify([
    ids.map(id => [effects.begun(id), effects.begun(id, 0), effects.begun(id, 2), effects.called(id)]),
  ])
}

/** One way to damage what is at a byte and behind it. */
const damages: Record<string, (at: number, byte: number) => Buffer> = {
  'cut off': at => journal.subarray(0, at),
  changed: (at, byte) => {
    const copy = Buffer.from(journal)
    copy[at] = (copy[at] ?? 0) ^ byte
    return copy
  },
  'zeroed from there': at => Buffer.concat([journal.subarray(0, at), Buffer.alloc(journal.length - at)]),
  'without some bytes': (at, byte) => Buffer.concat([journal.subarray(0, at), journal.subarray(at + byte)]),
  'with bytes that are not its own': (at, byte) =>
    Buffer.concat([journal.subarray(0, at), Buffer.alloc(byte, byte), journal.subarray(at)]),
}

const open = () => openJournal({ stateDir: join(pristine, 'state'), clock: systemClock, log, fault: noFault })

function check({ memory }: Journal, what: string): void {
  for (const [id, run] of memory.runs) {
    const end = ends.get(id)
    const isSame = run.phase === end?.phase || !isTerminal(run.phase)
    // Dropped, and its record of that lost: it had ended all the same.
    if (!isSame && id !== 'run-7') throw new Error(`${what}: ${id} had ended as ${end?.phase}, now as ${run.phase}`)
  }
  if (memory.journalId !== journalId) return
  for (const id of ends.keys())
    if (!memory.runs.has(id)) throw new Error(`${what}: ${id} is not known, and the journal has its old id`)
  if (memory.fence < fence - 1) throw new Error(`${what}: the fence went back from ${fence} to ${memory.fence}`)
}

it(`a journal that is damaged at any byte knows all, or has a new id: seeds ${first} to ${first + schedules - 1}`, {
  timeout: 60_000 + schedules * 3000,
}, async () => {
  let count = 0
  let renewed = 0
  for (let seed = first; seed < first + schedules; seed++) {
    for (let at = seed % stride; at < journal.length; at += stride) {
      for (const [name, damage] of Object.entries(damages)) {
        const what = `seed ${seed}: ${name} at byte ${at} of ${journal.length}`
        writeFileSync(join(pristine, 'state/journal'), damage(at, 1 + ((seed * 31 + at * 7) % 255)))
        const opened = await open()
        check(opened, what)
        await opened.close()
        count++
        const { journalId: id } = opened.memory
        if (id !== journalId) renewed++
        if (count % 5 !== 0) continue
        const again = await open()
        if (again.memory.journalId !== id) throw new Error(`${what}: its id is new again at the next start`)
        await again.close()
      }
    }
  }
  console.log(`${count} damaged journals, ${renewed} of them renewed`)
  expect(renewed).toBeGreaterThan(count / 4)
})

it(`an agent with a damaged journal starts, and executes nothing again: ${schedules} journals from seed ${first}`, {
  timeout: 60_000 + schedules * 10_000,
}, async () => {
  const before = allEffects()
  const signals = await effects.signalled()
  let count = 0
  const damaged = fc.record({
    at: fc.nat(journal.length - 1),
    byte: fc.integer({ min: 1, max: 255 }),
    how: fc.constantFrom(...Object.keys(damages)),
  })
  const property = fc.asyncProperty(damaged, async ({ at, byte, how }) => {
    const here = join(folder, `agent-${count++}`)
    cpSync(pristine, here, { recursive: true })
    writeFileSync(join(here, 'state/journal'), damages[how]?.(at, byte) ?? journal)
    const { agent, close } = await runAgent({ spec: effects.config, folder: here })
    try {
      // Who has dropped a run has its outcome, and does not ask for it again.
      for (const [id, body] of [...bodies].filter(([id]) => ends.has(id))) {
        const refused = await agent.put(id, body).then(
          ({ started }) => (started ? 'started' : undefined),
          error => (error instanceof Problem ? undefined : String(error)),
        )
        if (refused !== undefined) throw new Error(`${id}: ${refused}`)
      }
      if (agent.state().journalId === journalId) {
        for (const [id, { phase }] of ends) expect(agent.run(id).phase).toBe(phase)
      }
    } finally {
      await close()
      rmSync(here, { recursive: true, force: true })
    }
  })
  await fc.assert(property, { seed: first, numRuns: schedules, endOnFailure: true })
  expect(allEffects()).toBe(before)
  expect(await effects.signalled()).toBe(signals)
})
