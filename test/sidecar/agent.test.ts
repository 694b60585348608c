import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import type { Action, LifecycleSpec } from '../../shared/lifecycle/model.ts'
import type { Message } from '../../shared/protocol/schemas.ts'
import { newFolder, runAgent } from '../fixtures/running-agent.ts'

const sh = (script: string): Action['exec'] => ({ command: ['sh', '-c', script] })

/** A life whose guards and actions are moved by files in the folder. */
const life = (folder: string, more: Partial<LifecycleSpec> = {}): LifecycleSpec => ({
  states: [
    { name: 'Start', next: ['Running', 'Stopping'] },
    { name: 'Running', when: 'probes.up.ok', next: ['Servicing', 'Stopping'] },
    { name: 'Servicing', actions: ['backup'], next: ['Running'] },
    { name: 'Stopping', actions: ['stop'], next: ['End'] },
    { name: 'End', verb: 'Delete' },
  ],
  probes: [
    { name: 'up', file: { path: `${folder}/up` }, every: '100ms', failureThreshold: 2 },
    { name: 'role', exec: { command: ['echo', 'primary'] } },
  ],
  actions: [
    { name: 'backup', exec: sh(`while [ ! -e ${folder}/go ]; do sleep 0.02; done`), cancel: { grace: '1s' } },
    { name: 'stop', exec: sh(`echo stop >> ${folder}/stops`) },
    { name: 'other', exec: sh(`while [ ! -e ${folder}/go ]; do sleep 0.02; done`), cancel: { grace: '1s' } },
  ],
  preStop: 'stop',
  ...more,
})

/** A server that answers nothing: when it is asked, and when who asked has hung up. */
async function hanging(): Promise<{ url: string; arrived: Promise<void>; hungUp: Promise<void> }> {
  const arrived = Promise.withResolvers<void>()
  const hungUp = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    request.resume()
    response.on('close', () => hungUp.resolve())
    arrived.resolve()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  return { url, arrived: arrived.promise, hungUp: hungUp.promise }
}

const within = { timeout: 10_000, interval: 5 }

describe("the pod's state", () => {
  test('is initial until a guard has held, then what is observed, then lost', async () => {
    const folder = newFolder()
    const { agent, restart } = await runAgent({ folder, spec: life(folder) })
    await vi.waitFor(
      () => expect(agent.state()).toMatchObject({ state: 'Start', reason: 'NeverHeld', role: 'primary' }),
      within,
    )
    writeFileSync(`${folder}/up`, '')
    await vi.waitFor(() => expect(agent.state()).toMatchObject({ state: 'Running', reason: 'GuardHolds' }), within)
    rmSync(`${folder}/up`)
    await vi.waitFor(() => expect(agent.state()).toMatchObject({ state: 'Start', reason: 'GuardLost' }), within)
    expect(agent.state().probes['up']?.failures).toBeGreaterThanOrEqual(2)
    // That a guard has ever held is not forgotten.
    const again = await restart()
    await vi.waitFor(() => expect(again.agent.state()).toMatchObject({ state: 'Start', reason: 'GuardLost' }), within)
  })

  test('is not lost by one answer after a restart: Unknown, until a threshold is reached', async () => {
    const folder = newFolder()
    writeFileSync(`${folder}/up`, '')
    const spec = life(folder, { probes: [{ name: 'up', file: { path: `${folder}/up` }, every: '1h' }] })
    const running = await runAgent({ folder, spec })
    await vi.waitFor(() => expect(running.agent.state().state).toBe('Running'), within)
    rmSync(`${folder}/up`)
    const { agent } = await running.restart()
    await vi.waitFor(() => expect(agent.state().probes['up']).toMatchObject({ ok: null, failures: 1 }), within)
    expect(agent.state()).toMatchObject({ state: 'Unknown', reason: 'NotAnswered' })
  })

  test('is the transient one while its run is in progress, and only then', async () => {
    const folder = newFolder()
    writeFileSync(`${folder}/up`, '')
    const { agent, ended } = await runAgent({ folder, spec: life(folder) })
    await vi.waitFor(() => expect(agent.state().state).toBe('Running'), within)
    await agent.put('o', { action: 'other' })
    expect(agent.state()).toMatchObject({ state: 'Running', run: { id: 'o', action: 'other' } })
    await agent.cancel('o')
    await ended('o')
    const seen: string[] = []
    agent.events.subscribe(message => {
      if (message.type === 'state') seen.push(message.state.state)
    })
    await agent.put('b', { action: 'backup' })
    expect(agent.state()).toMatchObject({ state: 'Servicing', reason: 'RunInProgress' })
    writeFileSync(`${folder}/go`, '')
    await ended('b')
    expect(agent.state()).toMatchObject({ state: 'Running', run: null })
    expect([...new Set(seen)]).toEqual(['Servicing', 'Running'])
  })

  test('is Unknown when a probe that a guard needs does not answer', async () => {
    const spec: LifecycleSpec = {
      states: [
        { name: 'Start', next: ['Up'] },
        { name: 'Up', when: 'probes.slow.ok', next: ['End'] },
        { name: 'End', verb: 'Delete' },
      ],
      probes: [{ name: 'slow', exec: { command: ['sleep', '30'] }, timeout: '50ms', every: '100ms' }],
    }
    const { agent } = await runAgent({ spec })
    await vi.waitFor(() => expect(agent.state().probes['slow']?.failures).toBeGreaterThan(2), within)
    expect(agent.state()).toMatchObject({ state: 'Unknown', reason: 'NotAnswered', probes: { slow: { ok: null } } })
    expect(agent.missing()).toEqual([])
  })

  test('carries its own number, and a reader with that cursor misses nothing', async () => {
    const folder = newFolder()
    const { agent, ended } = await runAgent({ folder, spec: life(folder) })
    await vi.waitFor(() => expect(agent.missing()).toEqual([]), within)
    const messages: Message[] = []
    const { cursor } = agent.state()
    agent.events.subscribe(message => void messages.push(message))
    await agent.put('s', { action: 'stop' })
    await ended('s')
    expect(agent.events.since(cursor)).toEqual(messages)
    for (const message of messages) if (message.type === 'state') expect(message.state.seq).toBe(message.seq)
    expect(agent.state().seq).toBe(messages.at(-1)?.seq)
  })
})

describe('preStop', () => {
  test('runs the action once, cancels what runs first, and is remembered until a guard turns true again', async () => {
    const folder = newFolder()
    writeFileSync(`${folder}/up`, '')
    const running = await runAgent({ folder, spec: life(folder) })
    const { agent } = running
    await vi.waitFor(() => expect(agent.state().state).toBe('Running'), within)
    await agent.put('b', { action: 'backup' })
    const held = agent.awaitPreStop(new AbortController().signal)
    await Promise.all([agent.preStop(), agent.preStop()])
    await held
    expect(agent.run('b').phase).toBe('Cancelled')
    expect(agent.run('prestop.uid-0.1').phase).toBe('Succeeded')
    expect(readFileSync(`${folder}/stops`, 'utf8')).toBe('stop\n')
    await agent.preStop()
    const again = await running.restart()
    await vi.waitFor(() => expect(again.agent.state().state).toBe('Running'), within)
    await again.agent.preStop()
    expect(readFileSync(`${folder}/stops`, 'utf8')).toBe('stop\n')
    rmSync(`${folder}/up`)
    await vi.waitFor(() => expect(again.agent.state().state).toBe('Start'), within)
    writeFileSync(`${folder}/up`, '')
    await vi.waitFor(() => expect(again.agent.state().state).toBe('Running'), within)
    await again.agent.preStop()
    expect(again.agent.run('prestop.uid-0.2').phase).toBe('Succeeded')
    expect(readFileSync(`${folder}/stops`, 'utf8')).toBe('stop\nstop\n')
  })

  describe('does not do again what has succeeded', () => {
    /** The application is up, and goes on being up: no guard turns true. */
    async function stoppable(stop: Partial<Action>) {
      const folder = newFolder()
      const spec = life(folder)
      writeFileSync(`${folder}/up`, '')
      spec.actions = [
        { name: 'stop', exec: sh(`echo stop >> ${folder}/stops`), ...stop },
        ...(spec.actions?.slice(0, 1) ?? []),
      ]
      const running = await runAgent({ folder, spec })
      await vi.waitFor(() => expect(running.agent.state().state).toBe('Running'), within)
      return { ...running, stops: () => readFileSync(`${folder}/stops`, 'utf8') }
    }
    const held = (folder: string) =>
      sh(`echo stop >> ${folder}/stops; while [ ! -e ${folder}/go ]; do sleep 0.02; done`)

    test('under an agent that died meanwhile', async () => {
      const folder = newFolder()
      const spec = life(folder)
      writeFileSync(`${folder}/up`, '')
      spec.actions =
        spec.actions?.map(action => (action.name === 'stop' ? { ...action, exec: held(folder) } : action)) ?? []
      const running = await runAgent({ folder, spec })
      await vi.waitFor(() => expect(running.agent.state().state).toBe('Running'), within)
      void running.agent.preStop()
      await running.reads(`${folder}/stops`, 'stop')
      await running.close()
      writeFileSync(`${folder}/go`, '')
      const next = await running.restart()
      expect(await next.ended('prestop.uid-0.1')).toMatchObject({ phase: 'Succeeded' })
      await vi.waitFor(() => expect(next.agent.state().state).toBe('Running'), within)
      await next.agent.preStop()
      expect(readFileSync(`${folder}/stops`, 'utf8')).toBe('stop\n')
    })

    test('when somebody else has asked for it', async () => {
      const { agent, ended, stops, restart } = await stoppable({})
      await agent.put('by-the-controller', { action: 'stop' })
      expect(await ended('by-the-controller')).toMatchObject({ phase: 'Succeeded' })
      await agent.drop('by-the-controller')
      await agent.preStop()
      const next = await restart()
      await next.agent.preStop()
      expect(next.agent.runs()).toEqual([])
      expect(stops()).toBe('stop\n')
    })

    test('when that is known only since it was settled', async () => {
      const folder = newFolder()
      const { agent, ended } = await runAgent({
        folder,
        spec: {
          actions: [{ name: 'stop', exec: sh(`echo stop >> ${folder}/stops; kill -KILL $PPID; sleep 100`) }],
          preStop: 'stop',
        },
      })
      await agent.preStop()
      expect(await ended('prestop.uid-0.1')).toMatchObject({ phase: 'Unknown' })
      await agent.settle('prestop.uid-0.1', { outcome: 'Succeeded', reason: 'I looked' })
      await agent.preStop()
      expect(readFileSync(`${folder}/stops`, 'utf8')).toBe('stop\n')
    })

    test('when it was under way already, and turns out to be done', async () => {
      const folder = newFolder()
      const { agent, reads } = await runAgent({
        folder,
        spec: {
          actions: [{ name: 'stop', exec: held(folder), cancel: { grace: '1s' }, verify: { exec: sh('true') } }],
          preStop: 'stop',
        },
      })
      await agent.put('by-the-controller', { action: 'stop' })
      await reads(`${folder}/stops`, 'stop')
      await agent.preStop()
      expect(agent.runs().map(({ id, phase }) => `${id} ${phase}`)).toEqual(['by-the-controller Succeeded'])
      expect(readFileSync(`${folder}/stops`, 'utf8')).toBe('stop\n')
    })

    test('unless another action is declared by now', async () => {
      const { agent, ended, configure, folder } = await stoppable({})
      await agent.put('by-the-controller', { action: 'stop' })
      await ended('by-the-controller')
      const { configHash } = agent.state()
      configure(
        life(folder, {
          actions: [
            { name: 'backup', exec: sh('true') },
            { name: 'stop', exec: sh('true') },
          ],
          preStop: 'backup',
        }),
      )
      await vi.waitFor(() => expect(agent.state().configHash).not.toBe(configHash), within)
      await agent.preStop()
      expect(agent.run('prestop.uid-0.1')).toMatchObject({ action: 'backup', phase: 'Succeeded' })
    })
  })

  test('keeps others from beginning in between, and raises no fence', async () => {
    const folder = newFolder()
    const spec = life(folder)
    spec.actions = [
      { name: 'backup', exec: sh(`trap '' TERM; echo > ${folder}/began; sleep 100`), cancel: { grace: '500ms' } },
      { name: 'stop', exec: sh(`echo > ${folder}/stopping; while [ ! -e ${folder}/go ]; do sleep 0.02; done`) },
      { name: 'other', exec: sh('true') },
    ]
    const { agent, reads, lines } = await runAgent({ folder, spec })
    await agent.put('b', { action: 'backup', fence: 9 })
    await reads(`${folder}/began`, '')
    const stopping = agent.preStop()
    await vi.waitFor(
      () => expect(lines.map(({ msg }) => msg)).toContain('preStop: a run in progress is cancelled'),
      within,
    )
    await expect(agent.put('x', { action: 'other', fence: 10 })).rejects.toMatchObject({
      code: 'Locked',
      more: { run: 'prestop.uid-0.1' },
    })
    await reads(`${folder}/stopping`, '')
    await expect(agent.put('x', { action: 'other', fence: 10 })).rejects.toMatchObject({
      code: 'Locked',
      more: { run: 'prestop.uid-0.1' },
    })
    writeFileSync(`${folder}/go`, '')
    await stopping
    expect(agent.state().fence).toBe(9)
    await agent.put('x', { action: 'other', fence: 10 })
  })

  test('holds the hook of another container until it has come, and not at all if it has been', async () => {
    const folder = newFolder()
    const { preStop: _, ...without } = life(folder)
    let later = 0
    const waits: number[] = []
    const clock = {
      ...systemClock,
      monotonic: () => systemClock.monotonic() + later,
      after(ms: number, run: () => void) {
        waits.push(ms)
        return systemClock.after(ms, run)
      },
    }
    const { agent } = await runAgent({ folder, spec: without, clock })
    const { signal } = new AbortController()
    const isHeld = async () => {
      const before = waits.length
      const answered = agent.awaitPreStop(signal)
      await new Promise(setImmediate)
      const held = waits.slice(before).includes(2000)
      await agent.preStop()
      await answered
      return held
    }
    expect(await isHeld()).toBe(true)
    expect(await isHeld()).toBe(false)
    later = 60_000
    expect(await isHeld()).toBe(true)
  })

  test('is answered at once where nothing is declared; a failure holds nobody and is tried again', async () => {
    const folder = newFolder()
    const { preStop: _, ...without } = life(folder)
    const { agent, configure } = await runAgent({ folder, spec: without })
    await agent.preStop()
    expect(agent.runs()).toEqual([])
    const failing = life(folder)
    failing.actions = failing.actions?.map(action =>
      action.name === 'stop' ? { ...action, exec: sh('exit 1') } : action,
    )
    const { configHash } = agent.state()
    configure(failing)
    await vi.waitFor(() => expect(agent.state().configHash).not.toBe(configHash), within)
    await agent.preStop()
    await agent.preStop()
    expect(agent.runs().map(({ id, phase }) => `${id} ${phase}`)).toEqual([
      'prestop.uid-0.2 Failed',
      'prestop.uid-0.1 Failed',
    ])
  })

  test('a GET alone starts nothing, and is answered', async () => {
    const folder = newFolder()
    const { agent } = await runAgent({ folder, spec: life(folder) })
    await agent.awaitPreStop(new AbortController().signal)
    expect(agent.runs()).toEqual([])
  })
})

describe('the configuration', () => {
  test('is followed; a bad one is refused and the last good one stays, also after a restart', async () => {
    const folder = newFolder()
    const running = await runAgent({ folder, spec: life(folder) })
    const { agent } = running
    const { configHash } = agent.state()
    const states: Message[] = []
    agent.events.subscribe(message => void (message.type === 'state' && states.push(message)))
    writeFileSync(join(folder, 'lifecycle.json'), '{"states": [{"name": "Start", "nxt": []}]}')
    await vi.waitFor(() => expect(agent.state().configError).toContain('nxt'), within)
    expect(states.at(-1)).toMatchObject({ state: { configError: expect.stringContaining('next') } })
    expect(agent.state().configHash).toBe(configHash)
    expect(agent.metrics()).toContain('shipmate_sidecar_config_refused 1')
    expect(agent.actions().map(({ name }) => name)).toEqual(['backup', 'stop', 'other'])
    const spec = life(folder, {
      actions: [
        { name: 'stop', exec: sh('true') },
        { name: 'backup', exec: sh('true') },
      ],
    })
    running.configure(spec)
    await vi.waitFor(() => expect(agent.actions().map(({ name }) => name)).toEqual(['stop', 'backup']), within)
    expect(agent.state().configError).toBeUndefined()
    expect(agent.metrics()).toContain('shipmate_sidecar_config_refused 0')
  })

  test('that is good again is told, though it is the one in force', async () => {
    const folder = newFolder()
    const { agent, configure } = await runAgent({ folder, spec: life(folder) })
    writeFileSync(join(folder, 'lifecycle.json'), '{')
    await vi.waitFor(() => expect(agent.state().configError).toBeDefined(), within)
    const states: Message[] = []
    agent.events.subscribe(message => void (message.type === 'state' && states.push(message)))
    configure(life(folder))
    await vi.waitFor(() => expect(agent.state().configError).toBeUndefined(), within)
    const told = states.find(message => message.type === 'state' && message.state.configError === undefined)
    expect(told).toMatchObject({ type: 'state', state: { configHash: agent.state().configHash } })
  })

  test('that drops a probe drops it from the metrics, too', async () => {
    const folder = newFolder()
    const { agent, configure } = await runAgent({ folder, spec: life(folder) })
    await vi.waitFor(() => expect(agent.metrics()).toContain('shipmate_sidecar_probe_ok{probe="role"} 1'), within)
    await vi.waitFor(
      () => expect(agent.metrics()).toContain('shipmate_sidecar_probe_failures_total{probe="up"}'),
      within,
    )
    const { configHash } = agent.state()
    configure({ probes: [{ name: 'role', exec: { command: ['echo', 'primary'] } }] })
    await vi.waitFor(() => expect(agent.state().configHash).not.toBe(configHash), within)
    expect(agent.metrics()).not.toContain('probe="up"')
    expect(agent.metrics()).toContain('shipmate_sidecar_probe_ok{probe="role"} 1')
  })

  test('does not change a run in progress: it keeps the declaration under which it was accepted', async () => {
    const folder = newFolder()
    const spec = life(folder)
    const { agent, configure, ended } = await runAgent({ folder, spec })
    await agent.put('b', { action: 'backup' })
    const { configHash } = agent.state()
    configure(
      life(folder, {
        actions: [
          { name: 'backup', exec: sh('true') },
          { name: 'stop', exec: sh('true') },
        ],
      }),
    )
    await vi.waitFor(() => expect(agent.state().configHash).not.toBe(configHash), within)
    await agent.cancel('b')
    expect(await ended('b')).toMatchObject({ phase: 'Cancelled' })
    await expect(agent.put('c', { action: 'backup', configHash })).rejects.toMatchObject({ code: 'WrongConfig' })
  })
})

describe('stopping', () => {
  test('a drain takes no new runs, waits for those in progress, and ends', async () => {
    const folder = newFolder()
    const running = await runAgent({ folder, spec: life(folder) })
    const { agent } = running
    await agent.put('b', { action: 'backup' })
    const drained = running.drain()
    await expect(agent.put('c', { action: 'other' })).rejects.toMatchObject({ code: 'Draining' })
    expect(await agent.put('b', { action: 'backup' })).toMatchObject({ started: false })
    writeFileSync(`${folder}/go`, '')
    await drained
    expect(readFileSync(`${folder}/state/journal`, 'utf8')).toContain('"phase":"Succeeded"')
  })

  test('a drain cancels what does not end in time', async () => {
    const folder = newFolder()
    const running = await runAgent({ folder, spec: life(folder), drainTimeoutMs: 1700 })
    await running.agent.put('b', { action: 'backup' })
    await running.drain()
    expect(readFileSync(`${folder}/state/journal`, 'utf8')).toContain('"phase":"Cancelled"')
  })

  test('a drain does not wait longer than it is given for a verify that is being served', async () => {
    const folder = newFolder()
    const spec: LifecycleSpec = {
      actions: [
        {
          name: 'a',
          exec: sh('true'),
          verify: { exec: { command: ['sh', '-c', `echo > ${folder}/began; sleep 1000`] } },
        },
      ],
    }
    const running = await runAgent({ folder, spec, drainTimeoutMs: 300 })
    const { api } = await running.listening
    const body = JSON.stringify({ runId: 'r', action: 'a', params: {} })
    const asked = fetch(`http://${api}/v1/verify`, { method: 'POST', body })
    const cutOff = expect(asked).rejects.toThrow()
    await running.reads(`${folder}/began`, '')
    await running.drain()
    await cutOff
    expect(running.lines.map(({ msg }) => msg)).toContain('draining: calls are cut off, as the time is up')
  })

  test('a call that hangs is cut off when the agent is replaced, and its successor does not know its end', async () => {
    const folder = newFolder()
    const { url, arrived, hungUp } = await hanging()
    const spec: LifecycleSpec = { actions: [{ name: 'call', http: { url, method: 'POST', timeout: '1m' } }] }
    const running = await runAgent({ folder, spec, drainTimeoutMs: 50 })
    await running.agent.put('r', { action: 'call' })
    await arrived
    expect(await running.replace()).toBe(true)
    await hungUp
    expect(readFileSync(`${folder}/state/journal`, 'utf8')).not.toContain('"t":"ended"')
    const next = await runAgent({ folder, spec })
    expect(await next.ended('r')).toMatchObject({
      phase: 'Unknown',
      error: { message: expect.stringContaining('the agent ended at step 1 of 1') },
    })
  })

  test('an agent that is being replaced can still be drained', async () => {
    const folder = newFolder()
    const { url, arrived } = await hanging()
    const spec: LifecycleSpec = { actions: [{ name: 'call', http: { url, method: 'POST' }, cancel: { grace: '0s' } }] }
    const running = await runAgent({ folder, spec, drainTimeoutMs: 1000 })
    await running.agent.put('r', { action: 'call' })
    await arrived
    const draining = new AbortController()
    const replaced = running.replace(draining.signal)
    draining.abort()
    expect(await replaced).toBe(false)
    await expect(running.agent.put('s', { action: 'call' })).rejects.toMatchObject({ code: 'Draining' })
    await running.drain()
    expect(readFileSync(`${folder}/state/journal`, 'utf8')).toContain('"t":"ended"')
  })

  test('an agent that is replaced leaves its runs to its successor, which adopts them', async () => {
    const folder = newFolder()
    const spec = life(folder)
    const running = await runAgent({ folder, spec })
    await running.agent.put('b', { action: 'backup' })
    await running.reads(`${running.stateDir}/runs/b/child`, 'pid')
    const before = running.agent.run('b')
    await running.replace()
    const next = await runAgent({ folder, spec })
    expect(next.agent.run('b')).toMatchObject({ phase: 'Running', id: 'b' })
    expect(next.agent.state()).toMatchObject({ state: 'Servicing' })
    await expect(next.agent.put('c', { action: 'other' })).rejects.toMatchObject({ code: 'Locked' })
    writeFileSync(`${folder}/go`, '')
    expect(await next.ended('b')).toMatchObject({ phase: 'Succeeded', exitCode: 0 })
    expect(Date.parse(next.agent.run('b').startedAt ?? '')).toBeCloseTo(Date.parse(before.startedAt ?? ''), -3)
  })

  test('an adopted run can be cancelled', async () => {
    const folder = newFolder()
    const running = await runAgent({ folder, spec: life(folder) })
    await running.agent.put('b', { action: 'backup' })
    await running.reads(`${running.stateDir}/runs/b/child`, 'pid')
    const next = await running.restart()
    await next.agent.cancel('b')
    expect(await next.ended('b')).toMatchObject({ phase: 'Cancelled' })
  })

  test('steps that the agent drives are not left behind when it is replaced', async () => {
    const folder = newFolder()
    const spec: LifecycleSpec = {
      actions: [
        {
          name: 'a',
          steps: [
            { exec: sh(`while [ ! -e ${folder}/go ]; do sleep 0.02; done`) },
            { exec: sh(`echo > ${folder}/second`) },
          ],
        },
      ],
    }
    const running = await runAgent({ folder, spec })
    await running.agent.put('r', { action: 'a' })
    const replaced = running.replace()
    writeFileSync(`${folder}/go`, '')
    await replaced
    expect((await runAgent({ folder, spec })).agent.run('r')).toMatchObject({ phase: 'Succeeded' })
  })

  test('steps whose agent is gone are Unknown at their step: the rest is never begun', async () => {
    const folder = newFolder()
    const step = (name: string) => ({
      exec: sh(`echo ${name} >> ${folder}/done; while [ ! -e ${folder}/go ]; do sleep 0.02; done`),
    })
    const spec: LifecycleSpec = { actions: [{ name: 'a', steps: [step('one'), step('two')] }] }
    const running = await runAgent({ folder, spec })
    await running.agent.put('r', { action: 'a' })
    await running.reads(`${folder}/done`, 'one')
    const next = await running.restart()
    expect(next.agent.run('r').phase).toBe('Running')
    writeFileSync(`${folder}/go`, '')
    expect(await next.ended('r')).toMatchObject({
      phase: 'Unknown',
      error: { message: expect.stringContaining('step 1 of 2') },
    })
    expect(readFileSync(`${folder}/done`, 'utf8')).toBe('one\n')
  })
})

test('probes that have not answered yet are named', async () => {
  const folder = newFolder()
  const wait = sh(`while [ ! -e ${folder}/go ]; do sleep 0.02; done`)
  const { agent, public: open } = await runAgent({
    folder,
    spec: {
      probes: [
        { name: 'quick', exec: sh('true') },
        { name: 'slow', exec: wait, timeout: '1m' },
        { name: 'slower', exec: wait, timeout: '1m' },
      ],
    },
  })
  const sentence = 'probes that have not answered yet: slow, slower'
  await vi.waitFor(() => expect(agent.missing()).toEqual([sentence]), within)
  const answer = await fetch(`http://${open}/readyz`)
  expect([answer.status, await answer.text()]).toEqual([503, `${sentence}\n`])
  writeFileSync(`${folder}/go`, '')
  await vi.waitFor(() => expect(agent.missing()).toEqual([]), within)
})

test('a second agent on the same folder is refused', async () => {
  const folder = newFolder()
  await runAgent({ folder, spec: life(folder) })
  await expect(runAgent({ folder, spec: life(folder) })).rejects.toThrow('another agent')
})

test('what is missing at the start is waited for', async () => {
  const folder = newFolder()
  mkdirSync(join(folder, 'state'))
  const { startAgent } = await import('../../sidecar/agent.ts')
  const { createLog } = await import('../../shared/log.ts')
  const running = await startAgent({
    config: join(folder, 'absent.yaml'),
    stateDir: join(folder, 'state'),
    listen: '127.0.0.1:0',
    publicListen: '127.0.0.1:0',
    auth: 'none',
    drainTimeoutMs: 1000,
    pod: { name: '', namespace: '', uid: '' },
    lifecycle: '',
    init: ['/bin/false'],
    clock: systemClock,
    log: createLog({ level: 'silent' }).logger,
  })
  try {
    expect(running.agent.missing()).toEqual([expect.stringContaining('absent.yaml')])
    await running.agent.preStop()
    writeFileSync(join(folder, 'absent.yaml'), 'actions: []\n')
    await running.listening
    expect(running.agent.missing()).toEqual([])
  } finally {
    await running.close()
  }
})
