/**
 * A full disk: nothing is begun that cannot be written down, what was begun ends and is told truly, and all is well when there is room again.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { runAgent, wrapper } from '../../fixtures/running-agent.ts'
import { type AgentProcess, start, temporary } from '../soak/process.ts'
import { noVolumes, volume } from './volume.ts'

const KiB = 1024
const script = {
  /** Waits to be let go, prints what it is told to, and leaves its mark. */
  held: 'while [ ! -e "$1/$2.go" ]; do sleep 0.05; done; yes "a line" | head -c "$3"; touch "$1/result"; echo "$SHIPMATE_RUN_ID" >> "$1/marks"',
  mark: 'echo "$SHIPMATE_RUN_ID" >> "$1/marks"',
}

const params = { text: { type: 'string', default: '' } }
/** More than the rest of a page. */
const much = { text: 'x'.repeat(5000) }

const config = (elsewhere: string) => ({
  actions: [
    {
      name: 'held',
      exec: { command: ['sh', '-c', script.held, 'held', elsewhere, '$(params.key)', '$(params.bytes)'] },
      params: { key: { type: 'string' }, bytes: { type: 'integer', default: 10 } },
      timeout: '1m',
      shared: true,
      // So that an end is larger than the page that the journal has begun.
      result: { file: join(elsewhere, 'result') },
    },
    { name: 'mark', exec: { command: ['sh', '-c', script.mark, 'mark', elsewhere] }, params, shared: true },
    { name: 'large', exec: { command: ['true'] }, params, shared: true },
    {
      name: 'steps',
      steps: [{ exec: { command: ['sh', '-c', script.mark, 'mark', elsewhere] } }],
      params,
      shared: true,
    },
  ],
})

const options = { timeout: 60_000 }

describe.skipIf(noVolumes)(`on a full disk${noVolumes ? ` (skipped: ${noVolumes})` : ''}`, () => {
  test('a PUT is refused with JournalFull and nothing is executed; with room it is accepted', options, async () => {
    const { disk, agent, elsewhere, marks } = await begin()
    writeFileSync(join(elsewhere, 'data'), "the application's own")
    disk.fill()

    const came = await agent.put('first', 'mark', much)
    expect(came).toMatchObject({ status: 507, json: { code: 'JournalFull' } })
    expect(came.json.detail).toContain('ENOSPC')
    expect(await agent.ready()).toMatchObject({
      status: 503,
      text: expect.stringContaining('the journal cannot be written: ENOSPC'),
    })
    expect((await agent.ask('GET', '/v1/runs/first')).json.code).toBe('UnknownRun')
    expect((await agent.put('first', 'mark', much)).status).toBe(507)
    expect(marks()).toEqual([])

    disk.free()
    await expect.poll(async () => (await agent.ready()).status, { timeout: 10_000 }).toBe(200)
    expect((await agent.put('first', 'mark', much)).status).toBe(201)
    expect((await agent.ended('first')).phase).toBe('Succeeded')
    expect(marks()).toEqual(['first'])
    expect(readFileSync(join(elsewhere, 'data'), 'utf8')).toBe("the application's own")
  })

  test('a run in progress ends, its end is written into the reserve, and a restart knows it', options, async () => {
    const { disk, agent, elsewhere, letGo, marks } = await begin()
    await agent.put('one', 'held', { key: 'one' })
    await running(agent, 'one')
    disk.fill()
    letGo('one')

    expect(await agent.ended('one')).toMatchObject({ phase: 'Succeeded', exitCode: 0 })
    const { journalId } = (await agent.ask('GET', '/v1/state')).json
    await agent.kill()
    disk.fill()
    const next = await start({ config: config(elsewhere), stateDir: agent.stateDir })
    expect((await next.ask('GET', '/v1/runs/one')).json).toMatchObject({ phase: 'Succeeded', exitCode: 0 })
    expect((await next.ask('GET', '/v1/state')).json.journalId).toBe(journalId)
    expect(marks()).toEqual(['one'])
  })

  test(
    'what is given up for an end is for ends alone: until it is there again, a PUT is refused',
    options,
    async () => {
      const { disk, agent, letGo, marks } = await begin()
      await agent.put('one', 'held', { key: 'one' })
      await running(agent, 'one')
      disk.fill()
      letGo('one')
      expect((await agent.ended('one')).phase).toBe('Succeeded')
      // Once it has been tried whether there is room for another.
      await expect.poll(() => existsSync(join(agent.stateDir, 'reserve'))).toBe(false)

      expect(await agent.put('two', 'mark')).toMatchObject({ status: 507, json: { code: 'JournalFull' } })
      disk.free()
      expect((await agent.put('two', 'mark')).status).toBe(201)
      expect((await agent.ended('two')).phase).toBe('Succeeded')
      expect(marks()).toEqual(['one', 'two'])
      expect(existsSync(join(agent.stateDir, 'reserve'))).toBe(true)
    },
  )

  test('a run whose wrapper is on its way is not decided before it can be kept from starting', options, async () => {
    const disk = volume()
    const elsewhere = temporary()
    const late = `while [ ! -e ${elsewhere}/go ]; do sleep 0.02; done; "$@"; echo $? > ${elsewhere}/code`
    const agent = await runAgent({
      folder: disk.path,
      spec: { actions: [{ name: 'mark', exec: { command: ['touch', join(elsewhere, 'mark')] } }] },
      init: ['sh', '-c', late, 'late', ...wrapper],
    })
    await agent.agent.put('one', { action: 'mark' })
    await vi.waitFor(() => expect(agent.agent.run('one').phase).toBe('Running'))
    disk.fill()
    const next = await agent.restart()
    expect(next.agent.run('one').phase).toBe('Running')
    expect(next.lines.map(({ msg }) => msg)).toContainEqual(expect.stringContaining('cannot be kept from starting'))

    disk.free()
    expect(await next.ended('one')).toMatchObject({ phase: 'Failed', error: { code: 'NotStarted' } })
    writeFileSync(join(elsewhere, 'go'), '')
    await next.reads(join(elsewhere, 'code'), '3')
    expect(existsSync(join(elsewhere, 'mark'))).toBe(false)
  })

  test('one that comes while there is no room, and then begins, is adopted', options, async () => {
    const disk = volume()
    const elsewhere = temporary()
    const late = `while [ ! -e ${elsewhere}/go ]; do sleep 0.02; done; exec "$@"`
    const agent = await runAgent({
      folder: disk.path,
      spec: { actions: [{ name: 'mark', exec: { command: ['touch', join(elsewhere, 'mark')] } }] },
      init: ['sh', '-c', late, 'late', ...wrapper],
    })
    await agent.agent.put('one', { action: 'mark' })
    await vi.waitFor(() => expect(agent.agent.run('one').phase).toBe('Running'))
    disk.fill()
    const next = await agent.restart()
    disk.free()
    writeFileSync(join(elsewhere, 'go'), '')
    const { phase } = await next.ended('one')
    expect({ phase, isMarked: existsSync(join(elsewhere, 'mark')) }).toEqual(
      phase === 'Succeeded' ? { phase, isMarked: true } : { phase: 'Failed', isMarked: false },
    )
  })

  test('an end for which there is no room is tried again until there is, and is not told before', options, async () => {
    const { disk, agent, letGo, marks } = await begin()
    for (const id of ['one', 'two']) {
      await agent.put(id, 'held', { key: id })
      await running(agent, id)
    }
    await exhaust(disk, agent)
    letGo('one')
    await expect.poll(() => agent.output(), { timeout: 10_000 }).toContain('tried again every second')
    letGo('two')
    await expect.poll(marks).toEqual(['one', 'two'])
    expect((await agent.ask('GET', '/v1/runs/one')).json.phase).toBe('Running')
    expect((await agent.ready()).status).toBe(503)

    disk.free()
    expect((await agent.ended('one')).phase).toBe('Succeeded')
    expect((await agent.ended('two')).phase).toBe('Succeeded')
    await expect.poll(async () => (await agent.ready()).status, { timeout: 10_000 }).toBe(200)
    expect(marks()).toEqual(['one', 'two'])
  })

  test(
    'an agent that is started while there is no room says so, and finds the end when there is',
    options,
    async () => {
      const { disk, agent, elsewhere, letGo, marks } = await begin()
      await agent.put('one', 'held', { key: 'one' })
      await running(agent, 'one')
      await exhaust(disk, agent)
      letGo('one')
      await expect.poll(() => agent.output(), { timeout: 10_000 }).toContain('tried again every second')
      await agent.kill()

      const next = await start({ config: config(elsewhere), stateDir: agent.stateDir })
      expect((await next.ask('GET', '/v1/runs/one')).json.phase).toBe('Running')
      await expect
        .poll(async () => (await next.ready()).text, { timeout: 10_000 })
        .toContain('the journal cannot be written')
      disk.free()
      expect((await next.ended('one')).phase).toBe('Succeeded')
      expect(marks()).toEqual(['one'])
    },
  )

  test('what a run prints is lost, and the run is not held up', options, async () => {
    const { disk, agent, letGo, marks } = await begin()
    await agent.put('one', 'held', { key: 'one', bytes: 8 * 1024 * KiB })
    await running(agent, 'one')
    disk.fill()
    letGo('one')
    expect((await agent.ended('one')).phase).toBe('Succeeded')
    expect(marks()).toEqual(['one'])
    expect((await agent.ask('GET', '/v1/runs/one/log')).status).toBe(200)
  })

  test('however little room there is, a run has done all or nothing, and what is told is true', options, async () => {
    const { disk, agent, marks } = await begin()
    const seen = new Set<string>()
    for (let pages = 0; pages <= 16; pages++) {
      for (const action of ['mark', 'steps']) {
        const id = `${action}-${pages}`
        disk.free()
        await expect.poll(async () => (await agent.ready()).status, { timeout: 10_000 }).toBe(200)
        disk.fill(pages * 4 * KiB)
        const { status, json } = await agent.put(id, action, much)
        const hasEffect = () => marks().filter(one => one === id).length
        if (status !== 201) {
          expect({ id, status, code: json.code, effects: hasEffect() }).toEqual({
            id,
            status: 507,
            code: 'JournalFull',
            effects: 0,
          })
          seen.add('JournalFull')
          continue
        }
        const { phase, error } = await agent.ended(id)
        seen.add(error?.code ?? phase)
        const told = { id, phase, error, effects: hasEffect() }
        if (phase === 'Succeeded') expect(told).toMatchObject({ effects: 1 })
        else if (phase === 'Failed') expect(told).toMatchObject({ effects: 0 })
        else expect(told).toMatchObject({ phase: 'Unknown' })
      }
    }
    expect([...seen]).toContain('JournalFull')
    expect([...seen]).toContain('Succeeded')
    expect(seen.size).toBeGreaterThan(2)
  })

  test('a journal that cannot be compacted goes on as it is, and leaves nothing behind', options, async () => {
    const { disk, agent, elsewhere } = await begin(6 * 1024 * KiB)
    const text = 'x'.repeat(60 * KiB)
    for (let number = 0; number < 12; number++) await large(agent, `large-${number}`, text)
    const before = (await agent.ask('GET', '/v1/runs')).json
    for (let number = 0; number < 12; number++) {
      disk.free()
      disk.fill(100 * KiB)
      await large(agent, `more-${number}`, text)
      await agent.ask('DELETE', `/v1/runs/more-${number}`)
    }
    await expect.poll(() => agent.output()).toContain('could not be compacted')
    expect(existsSync(join(agent.stateDir, 'journal.new'))).toBe(false)
    expect((await agent.ask('GET', '/v1/runs')).json).toEqual(before)
    await agent.kill()
    const next = await start({ config: config(elsewhere), stateDir: agent.stateDir })
    expect((await next.ask('GET', '/v1/runs')).json).toEqual(before)
  })

  test('a run can be dropped, which makes room', options, async () => {
    const { disk, agent, letGo } = await begin()
    await agent.put('one', 'held', { key: 'one', bytes: 1024 * KiB })
    letGo('one')
    await agent.ended('one')
    disk.fill()
    expect((await agent.ask('DELETE', '/v1/runs/one')).status).toBe(204)
    expect(existsSync(join(agent.stateDir, 'runs/one'))).toBe(false)
    expect((await agent.put('two', 'mark')).status).toBe(201)
    expect((await agent.ended('two')).phase).toBe('Succeeded')
  })
})

async function begin(bytes?: number) {
  const elsewhere = temporary()
  writeFileSync(join(elsewhere, 'result'), much.text)
  const disk = volume(bytes)
  const agent = await start({ config: config(elsewhere), stateDir: join(disk.path, 'state') })
  const letGo = (key: string) => writeFileSync(join(elsewhere, `${key}.go`), '')
  const marks = () => {
    const path = join(elsewhere, 'marks')
    return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []
  }
  return { disk, agent, elsewhere, letGo, marks }
}

/** Its command is being executed, so that nothing more is needed on the disk. */
async function running(agent: AgentProcess, id: string): Promise<void> {
  await expect.poll(() => existsSync(join(agent.stateDir, 'runs', id, 'child')), { timeout: 10_000 }).toBe(true)
}

/** Fills the disk, and what is given up when an end does not fit. */
async function exhaust(disk: { fill(): void }, agent: AgentProcess): Promise<void> {
  writeFileSync(join(agent.stateDir, 'reserve'), '')
  disk.fill()
}

async function large(agent: AgentProcess, id: string, text: string): Promise<void> {
  const came = await agent.put(id, 'large', { text })
  expect(came.text.slice(0, 200)).toContain(id)
  await agent.ended(id)
}
