import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../shared/clock.ts'
import { createLog } from '../../../shared/log.ts'
import { noFault } from '../../../sidecar/faults.ts'
import { type Journal, openJournal } from '../../../sidecar/journal/journal.ts'
import { encode } from '../../../sidecar/journal/line.ts'
import type { Ending } from '../../../sidecar/journal/records.ts'
import { aRun } from '../../fixtures/runs.ts'

let stateDir: string
let journals: Journal[]

beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'shipmate-journal-'))
  journals = []
})
afterEach(async () => {
  for (const journal of journals) await journal.close()
  await rm(stateDir, { recursive: true, force: true })
})

const log = createLog({ level: 'silent' }).logger
async function open(fault = noFault): Promise<Journal> {
  const journal = await openJournal({ stateDir, clock: systemClock, log, fault })
  journals.push(journal)
  return journal
}
async function reopen(journal: Journal): Promise<Journal> {
  journals.splice(journals.indexOf(journal), 1)
  await journal.close()
  return open()
}

const ending: Ending = {
  phase: 'Succeeded',
  startedAt: 1,
  finishedAt: 2,
  exitCode: 0,
  progress: null,
  result: { size: 3 },
  error: null,
  logSize: 10,
}
const file = () => join(stateDir, 'journal')

describe('a journal', () => {
  test('remembers over a restart, under the same id', async () => {
    const first = await open()
    await first.append({ t: 'accepted', run: aRun('a', { fence: 7 }) })
    await first.append({ t: 'ended', id: 'a', ending })
    await first.append({ t: 'memo', memo: { everHeld: true } })
    const second = await reopen(first)
    expect(second.memory).toEqual(first.memory)
    expect(second.memory.fence).toBe(7)
    expect(second.memory.runs.get('a')).toMatchObject({ phase: 'Succeeded', result: { size: 3 }, declaration: null })
  })

  test('has a record on disk when append resolves', async () => {
    const journal = await open()
    await journal.append({ t: 'accepted', run: aRun('a') })
    expect(readFileSync(file(), 'utf8')).toContain('"id":"a"')
  })

  test('keeps the order of a hundred appends at once', async () => {
    const journal = await open()
    const ids = Array.from({ length: 100 }, (_, index) => `run-${index}`)
    await Promise.all(ids.map(id => journal.append({ t: 'accepted', run: aRun(id) })))
    expect([...(await reopen(journal)).memory.runs.keys()]).toEqual(ids)
  })

  test('lets the first word on an outcome stand, live and after a restart', async () => {
    const journal = await open()
    await journal.append({ t: 'accepted', run: aRun('a') })
    await journal.append({ t: 'ended', id: 'a', ending: { ...ending, phase: 'Unknown' } })
    await Promise.all([
      journal.append({ t: 'settled', id: 'a', ending: { ...ending, phase: 'Failed' } }),
      journal.append({ t: 'settled', id: 'a', ending }),
    ])
    expect(journal.memory.runs.get('a')?.phase).toBe('Failed')
    const again = await reopen(journal)
    expect(again.memory.runs.get('a')?.phase).toBe('Failed')
    expect(again.memory.journalId).toBe(journal.memory.journalId)
  })

  test('cuts off a torn tail and goes on', async () => {
    const first = await open()
    await first.append({ t: 'accepted', run: aRun('a') })
    await first.append({ t: 'accepted', run: aRun('b') })
    const content = readFileSync(file())
    for (let cut = content.lastIndexOf(10, -2) + 2; cut < content.length; cut += 7) {
      writeFileSync(file(), content.subarray(0, cut))
      const journal = await open()
      expect([...journal.memory.runs.keys()]).toEqual(['a'])
      expect(journal.memory.journalId).toBe(first.memory.journalId)
      await journal.append({ t: 'accepted', run: aRun('c') })
      const again = await reopen(journal)
      expect([...again.memory.runs.keys()]).toEqual(['a', 'c'])
    }
  })

  test('gets a new id when a line in the middle is damaged, and keeps the rest', async () => {
    const first = await open()
    for (const id of ['a', 'b', 'c']) await first.append({ t: 'accepted', run: aRun(id, { fence: id.charCodeAt(0) }) })
    const lines = readFileSync(file(), 'utf8').split('\n')
    lines[2] = lines[2]?.replace('"b"', '"x"') ?? ''
    writeFileSync(file(), lines.join('\n'))
    const second = await open()
    expect([...second.memory.runs.keys()]).toEqual(['a', 'c'])
    expect(second.memory.journalId).not.toBe(first.memory.journalId)
    expect(second.memory.fence).toBe(99)
    expect(await readdir(stateDir)).toContain('journal.damaged')
    const third = await reopen(second)
    expect(third.memory).toEqual(second.memory)
  })

  test('takes a claimed run that it does not know as damage, and as Unknown', async () => {
    const first = await open()
    mkdirSync(join(stateDir, 'runs', '%2E%2E'), { recursive: true })
    writeFileSync(join(stateDir, 'runs', '%2E%2E', 'claim'), '{}')
    const second = await reopen(first)
    expect(second.memory.journalId).not.toBe(first.memory.journalId)
    expect(second.memory.runs.get('..')).toMatchObject({ phase: 'Unknown', error: { code: 'RecordLost' } })
    expect((await reopen(second)).memory.journalId).toBe(second.memory.journalId)
  })

  test('is a new one where nothing can be read', async () => {
    writeFileSync(file(), 'rubbish\nrubbish\n')
    const journal = await open()
    expect(journal.memory.runs.size).toBe(0)
    expect((await reopen(journal)).memory.journalId).toBe(journal.memory.journalId)
  })

  test('is compacted when most of it is past, and says the same', async () => {
    const journal = await open()
    await journal.append({ t: 'accepted', run: aRun('kept', { fence: 3 }) })
    const large = 'x'.repeat(64 * 1024)
    for (let index = 0; index < 40; index++) {
      await journal.append({ t: 'accepted', run: aRun('gone', { params: { large } }) })
      await journal.append({ t: 'dropped', id: 'gone' })
    }
    expect(journal.size).toBeLessThan(1024 * 1024 + 2 * large.length)
    const again = await reopen(journal)
    expect(again.memory).toEqual(journal.memory)
    expect([...again.memory.runs.keys()]).toEqual(['kept'])
  })

  test('has nothing of a record that could not be written', async () => {
    let full = false
    const journal = await open(point => {
      if (full && point === 'journal.written')
        throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
    })
    await journal.append({ t: 'accepted', run: aRun('a') })
    full = true
    await expect(journal.append({ t: 'accepted', run: aRun('b') })).rejects.toThrow('ENOSPC')
    expect(journal.failure).toContain('ENOSPC')
    full = false
    await journal.append({ t: 'accepted', run: aRun('c') })
    expect(journal.failure).toBeUndefined()
    expect([...journal.memory.runs.keys()]).toEqual(['a', 'c'])
    expect([...(await reopen(journal)).memory.runs.keys()]).toEqual(['a', 'c'])
  })

  test('refuses nobody because of another whose record cannot be written', async () => {
    const journal = await open()
    const bad = {
      t: 'accepted' as const,
      run: aRun('bad', {
        params: {
          get x() {
            throw new Error('unreadable')
          },
        },
      }),
    }
    const results = await Promise.allSettled([
      journal.append({ t: 'accepted', run: aRun('a') }),
      journal.append(bad),
      journal.append({ t: 'accepted', run: aRun('b') }),
    ])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect([...(await reopen(journal)).memory.runs.keys()]).toEqual(['a', 'b'])
  })

  test('is readable by nobody else', async () => {
    await open()
    const { stat } = await import('node:fs/promises')
    expect((await stat(file())).mode & 0o777).toBe(0o600)
  })

  test('of a later version is not misunderstood', async () => {
    const first = await open()
    writeFileSync(
      file(),
      readFileSync(file(), 'utf8') + encode({ t: 'marvel' }) + encode({ t: 'memo', memo: { everHeld: true } }),
    )
    const second = await reopen(first)
    expect(second.memory.journalId).not.toBe(first.memory.journalId)
    expect(second.memory.memo.everHeld).toBe(true)
  })
})
