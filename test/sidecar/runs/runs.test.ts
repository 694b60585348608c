import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Action } from '../../../shared/lifecycle/model.ts'
import type { Message } from '../../../shared/protocol/schemas.ts'
import { newFolder, runAgent } from '../../fixtures/running-agent.ts'

const sh = (script: string): Action['exec'] => ({ command: ['sh', '-c', script] })
const actions = (...list: Action[]) => ({ spec: { actions: list } })
const text = async (
  agent: { log(id: string, offset: number, limit: number): Promise<{ bytes: Buffer }> },
  id: string,
) => (await agent.log(id, 0, 1 << 20)).bytes.toString()

describe('a run', () => {
  test('of a command that ends well has succeeded, with its result and its log', async () => {
    const { agent, ended } = await runAgent(
      actions({ name: 'backup', exec: sh('echo one; echo two >&2; echo \'{"result":{"size":3}}\'') }),
    )
    const { started, run } = await agent.put('a', { action: 'backup' })
    expect({ started, phase: run.phase }).toEqual({ started: true, phase: 'Accepted' })
    expect(await ended('a')).toMatchObject({
      phase: 'Succeeded',
      exitCode: 0,
      result: { size: 3 },
      error: null,
      attempt: 1,
    })
    const log = await text(agent, 'a')
    expect(log).toContain('one\n')
    expect(log).toContain('two\n')
  })

  test.each([
    ['exit 3', { phase: 'Failed', exitCode: 3, error: { code: 'ExitCode' } }],
    ['kill -SEGV $$', { phase: 'Failed', exitCode: null, error: { code: 'Signalled' } }],
  ])('of %s has failed, and says why', async (script, expected) => {
    const { agent, ended } = await runAgent(actions({ name: 'a', exec: sh(script) }))
    await agent.put('r', { action: 'a' })
    expect(await ended('r')).toMatchObject(expected)
  })

  test('of a program that is not there has failed, and says which', async () => {
    const { agent, ended } = await runAgent(actions({ name: 'a', exec: { command: ['/no/such/program'] } }))
    await agent.put('r', { action: 'a' })
    expect(await ended('r')).toMatchObject({
      phase: 'Failed',
      error: { code: 'NotExecuted', message: expect.stringContaining('ENOENT') },
    })
  })

  test('whose wrapper could not begin says why; of steps, that the step was not begun', async () => {
    const folder = newFolder()
    const { agent, ended } = await runAgent({
      folder,
      init: ['sh', '-c', `echo x >> ${folder}/asked; echo 'claim: ENOSPC'; exit 4`, 'sh'],
      ...actions({ name: 'a', exec: sh('true') }, { name: 'b', steps: [{ exec: sh('true') }] }),
    })
    await agent.put('r', { action: 'a' })
    expect(await ended('r')).toMatchObject({
      phase: 'Failed',
      error: { code: 'NotStarted', message: expect.stringContaining('claim: ENOSPC') },
    })
    await agent.put('s', { action: 'b' })
    expect(await ended('s')).toMatchObject({
      phase: 'Failed',
      error: { code: 'NotExecuted', message: expect.stringMatching(/step 1 of 1 was not begun.*claim: ENOSPC/) },
    })
    expect(readFileSync(`${folder}/asked`, 'utf8')).toBe('x\nx\n')
  })

  test('with more arguments than the system takes has failed, and says so', async () => {
    const exec = { command: ['true', ...Array.from({ length: 60 }, () => '$(params.p)')] }
    const params = { p: { type: 'string' } }
    const { agent, ended } = await runAgent(
      actions({ name: 'a', exec, params }, { name: 'b', steps: [{ exec: sh('true') }, { exec }], params }),
    )
    const given = { p: 'x'.repeat(120_000) }
    await agent.put('r', { action: 'a', params: given })
    expect(await ended('r')).toMatchObject({
      phase: 'Failed',
      error: { code: 'NotStarted', message: expect.stringContaining('E2BIG') },
    })
    await agent.put('s', { action: 'b', params: given })
    expect(await ended('s')).toMatchObject({
      phase: 'Failed',
      error: { code: 'NotExecuted', message: expect.stringMatching(/step 2 of 2 was not begun.*E2BIG/) },
    })
  })

  test('gets its parameters as arguments and variables, and nothing of the agent', async () => {
    process.env['SHIPMATE_TEST_SECRET'] = 'leak'
    onTestFinished(() => {
      delete process.env['SHIPMATE_TEST_SECRET']
    })
    const action: Action = {
      name: 'a',
      exec: { command: ['sh', '-c', 'printf "%s|" "$@"; env', 'sh', '$(params.to)', 'x$(params.n)y', '$$(params.to)'] },
      params: {
        to: { type: 'string' },
        n: { type: 'integer', default: 7 },
        'odd-name': { type: 'object', required: false },
      },
      env: { LANG: 'C' },
    }
    const { agent, ended } = await runAgent(actions(action))
    await agent.put('r', {
      action: 'a',
      params: { to: '$(rm -rf /); `x` "q" \'', 'odd-name': { b: 1, a: 2 } },
      fence: 5,
    })
    await ended('r')
    const log = await text(agent, 'r')
    expect(log).toContain('$(rm -rf /); `x` "q" \'|x7y|$(params.to)|')
    const variables = log.slice(log.lastIndexOf('|') + 1).split('\n')
    expect(variables).toEqual(
      expect.arrayContaining([
        'SHIPMATE_RUN_ID=r',
        'SHIPMATE_FENCE=5',
        'SHIPMATE_PARAM_N=7',
        'SHIPMATE_PARAM_ODD_NAME={"a":2,"b":1}',
        'LANG=C',
      ]),
    )
    const names = variables.map(line => line.split('=')[0]).filter(Boolean)
    const shells = ['PWD', 'SHLVL', '_', 'OLDPWD']
    expect(names.filter(name => !shells.includes(name ?? '')).sort()).toEqual([
      'LANG',
      'PATH',
      'SHIPMATE_FENCE',
      'SHIPMATE_PARAM_N',
      'SHIPMATE_PARAM_ODD_NAME',
      'SHIPMATE_PARAM_TO',
      'SHIPMATE_RUN_ID',
    ])
  })

  test('is executed once for the same id and body, and refused for another', async () => {
    const folder = newFolder()
    const { agent, ended } = await runAgent({
      folder,
      ...actions({ name: 'a', exec: sh(`echo x >> ${folder}/effect`), params: { p: { default: 1 } } }),
    })
    await agent.put('r', { action: 'a' })
    await ended('r')
    expect(await agent.put('r', { action: 'a', params: {}, attempt: 2, timeout: '1s' })).toMatchObject({
      started: false,
      run: { phase: 'Succeeded', attempt: 1 },
    })
    await expect(agent.put('r', { action: 'a', params: { p: 1 } })).rejects.toMatchObject({ code: 'IdReused' })
    await expect(agent.put('r', { action: 'other' })).rejects.toMatchObject({ code: 'IdReused' })
    expect(readFileSync(`${folder}/effect`, 'utf8')).toBe('x\n')
  })

  test('may be called . or ..', async () => {
    const { agent, ended, stateDir } = await runAgent(actions({ name: 'a', exec: sh('echo hi') }))
    for (const id of ['.', '..']) {
      await agent.put(id, { action: 'a' })
      expect(await ended(id)).toMatchObject({ phase: 'Succeeded' })
      expect(await text(agent, id)).toBe('hi\n')
    }
    expect(existsSync(join(stateDir, 'runs', '%2E%2E', 'claim'))).toBe(true)
    await agent.drop('..')
    expect(existsSync(join(stateDir, 'journal'))).toBe(true)
  })

  test('tells the last progress that it printed, however soon it ended after that', async () => {
    const { agent, ended } = await runAgent(
      actions({ name: 'a', exec: sh("printf '80%%\\r100%%\\n'"), progress: { pattern: '(\\d+)%' } }),
    )
    await agent.put('r', { action: 'a' })
    expect(await ended('r')).toMatchObject({ phase: 'Succeeded', progress: { percent: 100 } })
  })

  test('tells its progress, by JSON lines or by a pattern', async () => {
    const folder = newFolder()
    const { agent, ended } = await runAgent({
      folder,
      ...actions(
        {
          name: 'json',
          exec: sh(
            `echo '{"progress":{"percent":40,"unit":"MiB","odd":1,"done":"x"}}'; while [ ! -e ${folder}/go ]; do sleep 0.02; done`,
          ),
        },
        {
          name: 'pattern',
          exec: sh(`printf '10%% \\r41%% '; while [ ! -e ${folder}/go ]; do sleep 0.02; done`),
          progress: { pattern: '(\\d+)%' },
        },
      ),
    })
    await agent.put('j', { action: 'json' })
    await vi.waitFor(() => expect(agent.run('j').progress).toEqual({ percent: 40, unit: 'MiB' }), 5000)
    writeFileSync(`${folder}/go`, '')
    await ended('j')
    rmSync(`${folder}/go`)
    await agent.put('p', { action: 'pattern' })
    await vi.waitFor(() => expect(agent.run('p').progress).toEqual({ percent: 41 }), 5000)
    writeFileSync(`${folder}/go`, '')
    await ended('p')
  })

  test.each<[string, Action, unknown]>([
    [
      'the last JSON line that has one',
      { name: 'a', exec: sh('echo \'{"result":1}\'; echo \'{"result":{"b":2}}\'; echo bye') },
      { b: 2 },
    ],
    ['the last line', { name: 'a', exec: sh("echo x; echo '[1,2]'"), result: { lastLine: true } }, [1, 2]],
    ['a line of text', { name: 'a', exec: sh('echo x; echo done'), result: { lastLine: true } }, 'done'],
  ])('has as its result %s', async (_, action, result) => {
    const { agent, ended } = await runAgent(actions(action))
    await agent.put('r', { action: 'a' })
    expect((await ended('r')).result).toEqual(result)
  })

  test('has as its result what a file holds', async () => {
    const folder = newFolder()
    const action: Action = {
      name: 'a',
      exec: sh(`echo '{"x":1}' > ${folder}/$SHIPMATE_PARAM_NAME`),
      params: { name: { type: 'string', pattern: '^[a-z]+$' } },
      result: { file: `${folder}/$(params.name)` },
    }
    const { agent, ended } = await runAgent({ folder, ...actions(action) })
    await agent.put('r', { action: 'a', params: { name: 'out' } })
    expect((await ended('r')).result).toEqual({ x: 1 })
  })

  test.each<[string, (path: string) => void]>([
    ['is of an earlier run', path => writeFileSync(path, '"stale"')],
    ['is a pipe into which nobody writes', path => void execFileSync('mkfifo', [path])],
    ['has more than a result may', path => writeFileSync(path, '')],
  ])('has no result, and ends, if the file of it %s', async (_, make) => {
    const folder = newFolder()
    make(`${folder}/out`)
    const much = `[ -s ${folder}/out ] || [ -p ${folder}/out ] || head -c 65537 /dev/zero > ${folder}/out`
    const { agent, ended, lines } = await runAgent({
      folder,
      ...actions({ name: 'a', exec: sh(much), result: { file: `${folder}/out` } }),
    })
    await agent.put('r', { action: 'a' })
    expect(await ended('r')).toMatchObject({ phase: 'Succeeded', result: null })
    expect(lines.map(({ msg }) => msg)).toContain('the result of a run could not be read')
  })

  test('has as its result an older file that it has moved into place', async () => {
    const folder = newFolder()
    writeFileSync(`${folder}/made-before`, '"moved"')
    const { agent, ended } = await runAgent({
      folder,
      ...actions({ name: 'a', exec: sh(`mv ${folder}/made-before ${folder}/out`), result: { file: `${folder}/out` } }),
    })
    await agent.put('r', { action: 'a' })
    expect(await ended('r')).toMatchObject({ phase: 'Succeeded', result: 'moved' })
  })

  test('runs where, and as whom, it is declared', async () => {
    const { agent, ended } = await runAgent(
      actions({ name: 'a', exec: sh('pwd; nice'), workingDir: '/usr', limits: { nice: 5 } }),
    )
    await agent.put('r', { action: 'a' })
    await ended('r')
    expect(await text(agent, 'r')).toBe('/usr\n5\n')
  })

  test('keeps as much of its output as is declared', async () => {
    const { agent, ended } = await runAgent(
      actions({ name: 'a', exec: sh('yes 123456789 | head -n 20000'), limits: { output: '50Ki' } }),
    )
    await agent.put('r', { action: 'a' })
    const { log } = await ended('r')
    expect(log).toEqual({ size: 200_000, keptHead: 10 * 1024, tailFrom: 200_000 - 40 * 1024 })
    const middle = await agent.log('r', 20_000, 100)
    expect(middle.offset).toBe(log.tailFrom)
  })
})

describe('one run at a time', () => {
  const waiting = (folder: string, name: string, more: Partial<Action> = {}): Action => ({
    name,
    exec: sh(`while [ ! -e ${folder}/go ]; do sleep 0.02; done`),
    ...more,
  })

  test('is the rule; another is told which holds the lock', async () => {
    const folder = newFolder()
    const { agent, ended } = await runAgent({
      folder,
      ...actions(waiting(folder, 'a'), waiting(folder, 'shared', { shared: true })),
    })
    await agent.put('first', { action: 'a' })
    await expect(agent.put('second', { action: 'a' })).rejects.toMatchObject({ code: 'Locked', more: { run: 'first' } })
    await expect(agent.put('second', { action: 'shared' })).rejects.toMatchObject({ code: 'Locked' })
    writeFileSync(`${folder}/go`, '')
    await ended('first')
    await agent.put('second', { action: 'a' })
    await ended('second')
  })

  test('does not hold for shared ones among themselves, up to a number', async () => {
    const folder = newFolder()
    const { agent, ended } = await runAgent({
      folder,
      ...actions(waiting(folder, 'a'), waiting(folder, 'shared', { shared: true })),
    })
    for (let index = 0; index < 16; index++) await agent.put(`s${index}`, { action: 'shared' })
    await expect(agent.put('one-more', { action: 'shared' })).rejects.toMatchObject({ code: 'TooManyRequests' })
    await expect(agent.put('alone', { action: 'a' })).rejects.toMatchObject({ code: 'Locked' })
    writeFileSync(`${folder}/go`, '')
    for (let index = 0; index < 16; index++) await ended(`s${index}`)
  })

  test('holds for a hundred requests at once: one is executed', async () => {
    const folder = newFolder()
    const { agent, ended } = await runAgent({
      folder,
      ...actions({ name: 'a', exec: sh(`echo x >> ${folder}/effect`) }),
    })
    const all = await Promise.allSettled(
      Array.from({ length: 100 }, (_, index) => agent.put(`r${index % 10}`, { action: 'a' })),
    )
    const started = all.filter(one => one.status === 'fulfilled' && one.value.started)
    expect(started).toHaveLength(1)
    await ended('r0')
    expect(readFileSync(`${folder}/effect`, 'utf8')).toBe('x\n')
  })
})

describe('checks, in their order', () => {
  test('from WrongPod to Locked', async () => {
    const folder = newFolder()
    const { agent } = await runAgent({
      folder,
      ...actions({ name: 'a', exec: sh('sleep 30'), params: { n: { type: 'integer' } }, cancel: { grace: '0s' } }),
    })
    const { journalId, configHash } = agent.state()
    const right = { action: 'a', params: { n: 1 }, podUid: 'uid-0', journalId, configHash, fence: 10 }
    await agent.put('known', right)
    const refused = async (id: string, body: object) =>
      agent.put(id, { ...right, fence: 11, ...body }).then(
        () => 'taken',
        error => error.code,
      )
    const allWrong = { podUid: 'x', journalId: 'x', fence: 10, configHash: 'x', action: 'x', params: { n: 'x' } }
    expect(await refused('known', allWrong)).toBe('WrongPod')
    expect(await refused('known', { ...allWrong, podUid: 'uid-0' })).toBe('IdReused')
    expect(await refused('new', { ...allWrong, podUid: 'uid-0' })).toBe('WrongJournal')
    expect(await refused('new', { ...allWrong, podUid: 'uid-0', journalId })).toBe('Fenced')
    expect(await refused('new', { ...allWrong, podUid: 'uid-0', journalId, fence: 11 })).toBe('WrongConfig')
    expect(await refused('new', { action: 'x', params: { n: 'x' } })).toBe('UnknownAction')
    expect(await refused('new', { params: { n: 'x' } })).toBe('InvalidParams')
    expect(await refused('new', { params: {} })).toBe('InvalidParams')
    expect(await refused('new', { params: { n: 1, m: 2 } })).toBe('InvalidParams')
    expect(await refused('new', {})).toBe('Locked')
    await agent.cancel('known')
  })

  test('nothing is refused with a change: a fence that was refused does not count', async () => {
    const { agent, ended } = await runAgent(actions({ name: 'a', exec: sh('true') }))
    await expect(agent.put('r', { action: 'x', fence: 50 })).rejects.toMatchObject({ code: 'UnknownAction' })
    expect(agent.state().fence).toBe(0)
    await agent.put('r', { action: 'a', fence: 3 })
    await ended('r')
    expect(agent.state().fence).toBe(3)
    await expect(agent.put('s', { action: 'a', fence: 3 })).rejects.toMatchObject({
      code: 'Fenced',
      more: { fence: 3 },
    })
  })

  describe('what cannot be handed to a command is refused before anything happens', () => {
    const kinds: [string, Partial<Action>][] = [
      ['a command', { exec: sh('true') }],
      ['steps', { steps: [{ exec: sh('true') }] }],
    ]
    const params = {
      p: { type: 'string', required: false },
      password: { type: 'string', writeOnly: true, required: false },
    }
    const refusals: [string, Record<string, string>][] = [
      ['a NUL character in a parameter', { p: 'a\0b' }],
      ['a NUL character in a secret', { password: 'hunter2\0x' }],
      ['a parameter that is too long for a variable', { p: 'x'.repeat(131_072) }],
      ['a secret that is too long for a variable', { password: 'x'.repeat(131_072) }],
    ]
    const cases = kinds.flatMap(([kind, how]) => refusals.map(([what, given]) => ({ kind, how, what, given })))

    test.each(cases)('$what, of $kind', async ({ how, given }) => {
      const { agent, lines } = await runAgent(
        actions({ name: 'a', ...how, verify: { exec: sh('true') }, params, secretEnv: { PGPASSWORD: 'password' } }),
      )
      const refused = { code: 'InvalidParams', message: expect.not.stringContaining('hunter2') }
      await expect(agent.put('r', { action: 'a', params: given })).rejects.toMatchObject(refused)
      await expect(agent.verify({ runId: 'r', action: 'a', params: given })).rejects.toMatchObject(refused)
      expect(agent.runs()).toEqual([])
      expect(JSON.stringify(lines)).not.toContain('hunter2')
    })

    test('an argument that is too long', async () => {
      const { agent } = await runAgent(
        actions({
          name: 'a',
          exec: { command: ['true', '$(params.p)$(params.p)'] },
          params: { p: { type: 'string' } },
        }),
      )
      await expect(agent.put('r', { action: 'a', params: { p: 'x'.repeat(70_000) } })).rejects.toMatchObject({
        code: 'InvalidParams',
        message: expect.stringContaining('131071'),
      })
    })

    test('secrets that are too long to be looked for in the log', async () => {
      const { agent } = await runAgent(actions({ name: 'a', exec: sh('true'), params }))
      await expect(agent.put('r', { action: 'a', params: { password: 'x'.repeat(250_000) } })).rejects.toMatchObject({
        code: 'InvalidParams',
        message: expect.stringContaining('password'),
      })
    })

    test('and no more than that: what no command gets is as long as a request may be', async () => {
      const { agent, ended } = await runAgent(
        actions({ name: 'a', http: { method: 'POST', url: 'http://127.0.0.1:1/', body: '$(params.p)' }, params }),
      )
      await agent.put('r', { action: 'a', params: { p: `\0${'x'.repeat(200_000)}` } })
      expect(await ended('r')).toMatchObject({ error: { code: 'NotSent' } })
    })
  })
})

describe('cancel', () => {
  test('carries out the contract on the whole process group', async () => {
    const folder = newFolder()
    const script = `trap 'echo stopping >> ${folder}/out; exit 7' INT; sleep 100 & echo $! > ${folder}/grandchild; echo ready > ${folder}/out; wait`
    const { agent, ended, reads } = await runAgent({
      folder,
      ...actions({ name: 'a', exec: sh(script), cancel: { signal: 'SIGINT', grace: '300ms' } }),
    })
    await agent.put('r', { action: 'a' })
    await reads(`${folder}/out`, 'ready')
    expect(await agent.cancel('r')).toMatchObject({ ended: false })
    expect(await ended('r')).toMatchObject({ phase: 'Cancelled', exitCode: 7, error: { code: 'Cancelled' } })
    const grandchild = Number(readFileSync(`${folder}/grandchild`, 'utf8'))
    expect(() => process.kill(grandchild, 0)).toThrow()
    expect(await agent.cancel('r')).toMatchObject({ ended: true, run: { phase: 'Cancelled' } })
    await expect(agent.cancel('unheard-of')).rejects.toMatchObject({ code: 'UnknownRun' })
  })

  test.each<[string, Partial<Action>]>([
    ['a command', { exec: sh('true') }],
    ['a step', { steps: [{ exec: sh('true') }] }],
  ])('of %s whose wrapper has not begun is a cancel, and nothing is left of its secrets', async (_, how) => {
    const folder = newFolder()
    const { agent, ended, stateDir } = await runAgent({
      folder,
      init: ['sh', '-c', `while [ ! -e ${folder}/go ]; do sleep 0.02; done`, 'sh'],
      ...actions({ name: 'a', ...how, params: { password: { type: 'string', writeOnly: true } } }),
    })
    await agent.put('r', { action: 'a', params: { password: 'hunter2' } })
    await vi.waitFor(() => expect(agent.run('r').phase).toBe('Running'))
    await agent.cancel('r')
    writeFileSync(`${folder}/go`, '')
    expect(await ended('r')).toMatchObject({ phase: 'Cancelled', error: { code: 'Cancelled' } })
    expect(
      readdirSync(stateDir, { recursive: true, encoding: 'utf8' }).filter(name => name.includes('params')),
    ).toEqual([])
  })

  test('right after the start is a cancel, too, and what was not begun never is', async () => {
    const folder = newFolder()
    const { agent, ended } = await runAgent({
      folder,
      ...actions({ name: 'a', exec: sh(`echo x >> ${folder}/effect; sleep 100`), cancel: { grace: '1s' } }),
    })
    for (let index = 0; index < 10; index++) {
      await agent.put(`r${index}`, { action: 'a' })
      await agent.cancel(`r${index}`)
      expect(await ended(`r${index}`)).toMatchObject({ phase: 'Cancelled' })
    }
  })

  test('asks verify, where there is one', async () => {
    const folder = newFolder()
    const verified = (name: string, code: number): Action => ({
      name,
      exec: sh(`echo > ${folder}/${name}; sleep 100`),
      cancel: { grace: '1s' },
      verify: { exec: sh(`exit ${code}`) },
    })
    const { agent, ended, reads } = await runAgent({
      folder,
      ...actions(verified('done', 0), verified('undone', 1), verified('dunno', 2)),
    })
    const expected = { done: 'Succeeded', undone: 'Cancelled', dunno: 'Unknown' }
    for (const [name, phase] of Object.entries(expected)) {
      await agent.put(name, { action: name })
      await reads(`${folder}/${name}`, '')
      await agent.cancel(name)
      expect(await ended(name)).toMatchObject({ phase })
    }
    expect(agent.state().run).toBeNull()
  })
})

describe('a time-out', () => {
  test('is a cancel by the clock; a PUT can only make it shorter', async () => {
    const { agent, ended } = await runAgent(
      actions(
        { name: 'a', exec: sh('sleep 100'), timeout: '300ms', cancel: { grace: '1s' } },
        { name: 'b', exec: sh('sleep 100'), cancel: { grace: '1s' } },
      ),
    )
    await agent.put('r', { action: 'a', timeout: '1h' })
    expect(await ended('r')).toMatchObject({ phase: 'TimedOut', error: { code: 'TimedOut' } })
    await agent.put('s', { action: 'b', timeout: '200ms' })
    expect(await ended('s')).toMatchObject({ phase: 'TimedOut' })
  })

  test('of steps is a time-out, whichever kind of step it comes in', async () => {
    const { agent, ended } = await runAgent(
      actions({ name: 'a', steps: [{ exec: sh('true') }, { exec: sh('sleep 100') }], cancel: { grace: '1s' } }),
    )
    await agent.put('r', { action: 'a', timeout: '500ms' })
    expect(await ended('r')).toMatchObject({ phase: 'TimedOut', error: { code: 'TimedOut' } })
  })
})

describe('settle and verify', () => {
  const unknown = (folder: string): Action => ({
    name: 'a',
    exec: sh(`echo > ${folder}/began; sleep 100`),
    cancel: { grace: '1s' },
    params: { p: { type: 'string', default: 'x' } },
    verify: { exec: sh(`exit $(cat ${folder}/verdict)`) },
  })
  async function anUnknownRun() {
    const folder = newFolder()
    writeFileSync(`${folder}/verdict`, '9')
    const running = await runAgent({ folder, ...actions(unknown(folder)) })
    await running.agent.put('r', { action: 'a' })
    await running.reads(`${folder}/began`, '')
    await running.agent.cancel('r')
    expect(await running.ended('r')).toMatchObject({ phase: 'Unknown' })
    return running
  }

  test('a person settles an Unknown run, once', async () => {
    const running = await anUnknownRun()
    await expect(running.agent.drop('r')).rejects.toMatchObject({ code: 'InProgress' })
    expect(await running.agent.settle('r', { outcome: 'Failed', reason: 'I looked' })).toMatchObject({
      phase: 'Failed',
      error: { message: 'I looked' },
    })
    await expect(running.agent.settle('r', { outcome: 'Succeeded', reason: 'x' })).rejects.toMatchObject({
      code: 'NotUnknown',
    })
    expect((await running.restart()).agent.run('r')).toMatchObject({ phase: 'Failed' })
  })

  test('of two who settle at once, one is told that it is too late', async () => {
    const { agent } = await anUnknownRun()
    const both = await Promise.allSettled([
      agent.settle('r', { outcome: 'Failed', reason: 'a' }),
      agent.settle('r', { outcome: 'Succeeded', reason: 'b' }),
    ])
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(agent.run('r').phase).toBe('Failed')
  })

  test('verify settles an Unknown run when asked', async () => {
    const { agent, folder } = await anUnknownRun()
    expect(await agent.verify({ runId: 'r', action: 'a' })).toEqual({ outcome: 'Unknown' })
    expect(agent.run('r').phase).toBe('Unknown')
    await expect(agent.verify({ runId: 'r', action: 'a', params: { p: 'other' } })).rejects.toMatchObject({
      code: 'IdReused',
    })
    writeFileSync(`${folder}/verdict`, '1')
    expect(await agent.verify({ runId: 'r', action: 'a' })).toEqual({ outcome: 'Failed' })
    expect(agent.run('r')).toMatchObject({ phase: 'Failed', error: { code: 'NotApplied' } })
  })

  test('verify is in the same folder as the action', async () => {
    const { agent } = await runAgent(
      actions(
        { name: 'a', exec: sh('true'), verify: { exec: sh('[ "$(pwd)" = / ]') } },
        { name: 'b', exec: sh('true'), workingDir: '/usr', verify: { exec: sh('[ "$(pwd)" = /usr ]') } },
      ),
    )
    expect(await agent.verify({ runId: 'x', action: 'a' })).toEqual({ outcome: 'Succeeded' })
    expect(await agent.verify({ runId: 'x', action: 'b' })).toEqual({ outcome: 'Succeeded' })
  })

  test('verify is one at a time for a run, also when the agent itself asks', async () => {
    const folder = newFolder()
    const alone = `mkdir ${folder}/alone || echo > ${folder}/overlap; echo x >> ${folder}/asked; while [ ! -e ${folder}/go ]; do sleep 0.02; done; rmdir ${folder}/alone; exit 1`
    const { agent, ended, reads } = await runAgent({
      folder,
      ...actions(
        {
          name: 'a',
          exec: sh(`echo > ${folder}/began; sleep 100`),
          cancel: { grace: '1s' },
          verify: { exec: sh(alone) },
        },
        { name: 'b', exec: sh('true'), verify: { exec: sh('true') } },
      ),
    })
    await agent.put('r', { action: 'a' })
    await reads(`${folder}/began`, '')
    await agent.cancel('r')
    await reads(`${folder}/asked`, 'x')
    const asked = agent.verify({ runId: 'r', action: 'a' })
    // Others are not held up; by then the second would have begun as well.
    expect(await agent.verify({ runId: 'other', action: 'b' })).toEqual({ outcome: 'Succeeded' })
    writeFileSync(`${folder}/go`, '')
    expect(await asked).toEqual({ outcome: 'Failed' })
    expect(await ended('r')).toMatchObject({ phase: 'Cancelled' })
    expect(readFileSync(`${folder}/asked`, 'utf8')).toBe('x\nx\n')
    expect(existsSync(`${folder}/overlap`)).toBe(false)
  })

  test('a run whose record was lost is verified as it is asked for, and refused to who asks by the old journal', async () => {
    const folder = newFolder()
    const { agent, ended, close, restart, stateDir } = await runAgent({
      folder,
      ...actions({
        name: 'a',
        exec: sh(`echo x >> ${folder}/effect`),
        verify: { exec: sh(`test -e ${folder}/effect`) },
      }),
    })
    const { journalId } = agent.state()
    const body = { action: 'a', journalId }
    await agent.put('r', body)
    await ended('r')
    await close()
    rmSync(join(stateDir, 'journal'))
    const { agent: next } = await restart()
    expect(next.run('r')).toMatchObject({ phase: 'Unknown', error: { code: 'RecordLost' } })
    await expect(next.put('r', body)).rejects.toMatchObject({ code: 'WrongJournal' })
    const known = { started: false, run: { phase: 'Unknown' } }
    expect(await next.put('r', { ...body, journalId: next.state().journalId })).toMatchObject(known)
    expect(await next.verify({ runId: 'r', action: 'a' })).toEqual({ outcome: 'Succeeded' })
    expect(next.run('r')).toMatchObject({ phase: 'Succeeded', error: null })
    expect(readFileSync(`${folder}/effect`, 'utf8')).toBe('x\n')
  })

  test('verify answers for a run that is not known here', async () => {
    const { agent, folder } = await anUnknownRun()
    writeFileSync(`${folder}/verdict`, '0')
    expect(await agent.verify({ runId: 'elsewhere', action: 'a' })).toEqual({ outcome: 'Succeeded' })
    await expect(agent.verify({ runId: 'elsewhere', action: 'b' })).rejects.toMatchObject({ code: 'UnknownAction' })
    await expect(agent.verify({ runId: 'elsewhere', action: 'a', params: { p: 1 } })).rejects.toMatchObject({
      code: 'InvalidParams',
    })
    expect(() => agent.run('elsewhere')).toThrow()
  })
})

describe('secret parameters', () => {
  test('come in a file and a declared variable, and are nowhere else', async () => {
    const folder = newFolder()
    const action: Action = {
      name: 'a',
      exec: sh(
        `stat -c %a "$SHIPMATE_PARAM_FILE_PASSWORD"; cat "$SHIPMATE_PARAM_FILE_PASSWORD"; echo; echo "$PGPASSWORD" | sha256sum; echo "[\${SHIPMATE_PARAM_PASSWORD-unset}]"; echo "{\\"result\\":\\"$PGPASSWORD\\"}"`,
      ),
      params: { password: { type: 'string', writeOnly: true }, user: { type: 'string' } },
      secretEnv: { PGPASSWORD: 'password' },
    }
    const { agent, ended, stateDir, lines } = await runAgent({ folder, ...actions(action) })
    const seen: Message[] = []
    agent.events.subscribe(message => void seen.push(message))
    const secret = 'correct-horse-battery'
    await agent.put('r', { action: 'a', params: { password: secret, user: 'me' } })
    const run = await ended('r')
    expect(run).toMatchObject({ phase: 'Succeeded', params: { password: '***', user: 'me' }, result: '***' })
    const log = await text(agent, 'r')
    expect(log).toContain('400\n***\n')
    expect(log).toContain('[unset]')
    expect(log).toContain(createHash('sha256').update(`${secret}\n`).digest('hex'))
    expect(JSON.stringify([seen, lines, run])).not.toContain(secret)
    expect(execFileSync('sh', ['-c', `grep -r "${secret}" ${stateDir} || echo nowhere`], { encoding: 'utf8' })).toBe(
      'nowhere\n',
    )
    expect(await agent.put('r', { action: 'a', params: { password: 'another one', user: 'me' } })).toMatchObject({
      started: false,
    })
  })
})

describe.runIf(process.getuid?.() === 0)('a secret that another user must read', () => {
  test.each<[string, Partial<Action>]>([
    ['a command', { exec: sh('cat "$SHIPMATE_PARAM_FILE_PASSWORD" | wc -c') }],
    ['a step', { steps: [{ exec: sh('cat "$SHIPMATE_PARAM_FILE_PASSWORD" | wc -c') }] }],
  ])('can be read by %s, also under the next agent', async (_, how) => {
    const folder = newFolder()
    chmodSync(folder, 0o711)
    const { exec, steps = [{ exec }] } = how
    const after = (script: string) => sh(`id -u; while [ ! -e ${folder}/go ]; do sleep 0.02; done; ${script}`)
    const script = exec?.command[2] ?? steps[0]?.exec?.command[2] ?? ''
    const { agent, restart } = await runAgent({
      folder,
      ...actions({
        name: 'a',
        ...(exec ? { exec: after(script) } : { steps: [{ exec: after(script) }] }),
        params: { password: { type: 'string', writeOnly: true } },
        user: { uid: 65_534, gid: 65_534 },
      }),
    })
    await agent.put('r', { action: 'a', params: { password: 'hunter2' } })
    await vi.waitFor(async () => expect(await text(agent, 'r')).toBe('65534\n'), 5000)
    const next = await restart()
    writeFileSync(`${folder}/go`, '')
    expect(await next.ended('r')).toMatchObject({ phase: 'Succeeded' })
    expect(await text(next.agent, 'r')).toBe('65534\n7\n')
  })
})

describe('what is kept', () => {
  test('is dropped when the controller has the outcome', async () => {
    const { agent, ended, stateDir, restart } = await runAgent(actions({ name: 'a', exec: sh('true') }))
    await agent.put('r', { action: 'a' })
    await ended('r')
    await agent.drop('r')
    expect(() => agent.run('r')).toThrow()
    expect(existsSync(join(stateDir, 'runs', 'r'))).toBe(false)
    await expect(agent.drop('r')).rejects.toMatchObject({ code: 'UnknownRun' })
    const { journalId } = agent.state()
    expect((await restart()).agent.state().journalId).toBe(journalId)
  })

  test('is bounded by count', async () => {
    const { agent, ended, stateDir } = await runAgent({
      ...actions({ name: 'a', exec: sh('true') }),
      bounds: { count: 3, age: 3_600_000, bytes: 1 << 30, records: 1 << 20 },
    })
    for (let index = 0; index < 6; index++) {
      await agent.put(`r${index}`, { action: 'a' })
      await ended(`r${index}`)
    }
    await vi.waitFor(() => expect(agent.runs().map(({ id }) => id)).toEqual(['r5', 'r4', 'r3']))
    await vi.waitFor(() => expect(readdirSync(join(stateDir, 'runs')).sort()).toEqual(['r3', 'r4', 'r5']))
  })

  test('is readable by nobody else', async () => {
    const { agent, ended, stateDir } = await runAgent(actions({ name: 'a', exec: sh('echo hi') }))
    await agent.put('r', { action: 'a' })
    await ended('r')
    for (const name of readdirSync(stateDir, { recursive: true, encoding: 'utf8' })) {
      expect({ name, others: statSync(join(stateDir, name)).mode & 0o077 }).toEqual({ name, others: 0 })
    }
  })
})

describe('http actions', () => {
  async function aServer(
    answer: (
      path: string,
      body: string,
    ) => { status: number; body?: unknown; cut?: boolean; headers?: Record<string, string> },
  ): Promise<{ url: string; calls: string[] }> {
    const calls: string[] = []
    const server: Server = createServer((request, response) => {
      let body = ''
      request.on('data', piece => {
        body += piece
      })
      request.on('end', () => {
        calls.push(`${request.method} ${request.url} ${body}`.trim())
        const { status, body: answered, cut, headers } = answer(request.url ?? '', body)
        if (cut) request.socket.destroy()
        response
          .writeHead(status, { 'content-type': 'application/json', ...headers })
          .end(answered === undefined ? '' : JSON.stringify(answered))
      })
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls }
  }

  test('are sent once, with parameters in their place, and succeed by their status', async () => {
    const { url, calls } = await aServer(() => ({ status: 201, body: { id: 4 } }))
    const action: Action = {
      name: 'a',
      http: {
        method: 'POST',
        url: `${url}/backups/$(params.name)`,
        headers: { authorization: 'Bearer $(params.token)' },
        body: '{"to":"$(params.name)","n":$(params.n)}',
        status: [201],
      },
      params: { name: { type: 'string' }, n: { type: 'integer' }, token: { type: 'string', writeOnly: true } },
    }
    const { agent, ended } = await runAgent(actions(action))
    await agent.put('r', { action: 'a', params: { name: 'a/b "c"', n: 3, token: 's3cret-token' } })
    expect(await ended('r')).toMatchObject({ phase: 'Succeeded', exitCode: null, result: { id: 4 } })
    expect(calls).toEqual(['POST /backups/a%2Fb%20%22c%22 {"to":"a/b \\"c\\"","n":3}'])
  })

  test('that are answered otherwise have failed', async () => {
    const { url } = await aServer(() => ({ status: 409 }))
    const { agent, ended } = await runAgent(actions({ name: 'a', http: { method: 'POST', url } }))
    await agent.put('r', { action: 'a' })
    expect(await ended('r')).toMatchObject({ phase: 'Failed', error: { code: 'Refused' } })
  })

  test('that could not be sent have failed; that were cut off are Unknown, unless verify knows', async () => {
    const { url, calls } = await aServer(path => (path === '/verify' ? { status: 200 } : { status: 200, cut: true }))
    const { agent, ended } = await runAgent(
      actions(
        { name: 'refused', http: { method: 'POST', url: 'http://127.0.0.1:1/' } },
        { name: 'cut', http: { method: 'POST', url: `${url}/` } },
        { name: 'verified', http: { method: 'POST', url: `${url}/` }, verify: { http: { url: `${url}/verify` } } },
      ),
    )
    await agent.put('a', { action: 'refused' })
    expect(await ended('a')).toMatchObject({ phase: 'Failed', error: { code: 'NotSent' } })
    await agent.put('b', { action: 'cut' })
    expect(await ended('b')).toMatchObject({ phase: 'Unknown' })
    await agent.put('c', { action: 'verified' })
    expect(await ended('c')).toMatchObject({ phase: 'Succeeded' })
    expect(calls).toEqual(['POST /', 'POST /', 'GET /verify'])
  })

  test('are polled until their condition holds, or says that they failed', async () => {
    let asked = 0
    const { url, calls } = await aServer(path => {
      if (path === '/start') return { status: 202, headers: { location: '/jobs/1' } }
      asked++
      return { status: 200, body: { state: asked < 3 ? 'running' : path === '/bad' ? 'error' : 'done' } }
    })
    const poll = { every: '100ms', until: 'status == 200 && body.state == "done"', failed: 'body.state == "error"' }
    const { agent, ended } = await runAgent(
      actions(
        { name: 'a', http: { method: 'POST', url: `${url}/start`, poll } },
        { name: 'b', http: { method: 'POST', url: `${url}/start`, poll: { ...poll, url: `${url}/bad` } } },
      ),
    )
    await agent.put('r', { action: 'a' })
    expect(await ended('r')).toMatchObject({ phase: 'Succeeded', result: { state: 'done' } })
    expect(calls).toEqual(['POST /start', 'GET /jobs/1', 'GET /jobs/1', 'GET /jobs/1'])
    asked = 0
    await agent.put('s', { action: 'b' })
    expect(await ended('s')).toMatchObject({ phase: 'Failed', error: { code: 'Refused' } })
  })

  test('are not polled at another origin, which would get what was sent', async () => {
    const other = await aServer(() => ({ status: 200, body: { state: 'done' } }))
    const { url } = await aServer(() => ({ status: 202, headers: { location: `${other.url}/jobs/1` } }))
    const { agent, ended } = await runAgent(
      actions({
        name: 'a',
        http: {
          method: 'POST',
          url,
          headers: { authorization: 'Bearer $(params.token)' },
          poll: { every: '100ms', until: 'status == 200' },
        },
        params: { token: { type: 'string', writeOnly: true } },
      }),
    )
    await agent.put('r', { action: 'a', params: { token: 's3cret-token' } })
    expect(await ended('r')).toMatchObject({
      phase: 'Unknown',
      error: { message: expect.stringContaining('another origin') },
    })
    expect(other.calls).toEqual([])
  })

  test('whose poll is not answered say so once, and in the end', async () => {
    const { url, calls } = await aServer(path =>
      path === '/start' ? { status: 202, headers: { location: '/jobs/1' } } : { status: 200, cut: true },
    )
    const { agent, ended } = await runAgent(
      actions({ name: 'a', http: { method: 'POST', url: `${url}/start`, poll: { every: '100ms', until: 'true' } } }),
    )
    await agent.put('r', { action: 'a' })
    await vi.waitFor(() => expect(calls.length).toBeGreaterThan(4))
    await agent.cancel('r')
    expect(await ended('r')).toMatchObject({
      phase: 'Unknown',
      error: { message: expect.stringMatching(/GET .*\/jobs\/1 failed last: /) },
    })
    expect((await text(agent, 'r')).match(/GET .*\/jobs\/1: /g)).toHaveLength(1)
  })

  test('whose poll is cancelled are Unknown: what they began goes on', async () => {
    const { url, calls } = await aServer(() => ({ status: 200, body: {} }))
    const { agent, ended } = await runAgent(
      actions({ name: 'a', http: { url, poll: { every: '100ms', until: 'body == "never"' } } }),
    )
    await agent.put('r', { action: 'a' })
    await vi.waitFor(() => expect(calls.length).toBeGreaterThan(2))
    await agent.cancel('r')
    expect(await ended('r')).toMatchObject({ phase: 'Unknown' })
  })
})

describe('steps, signals and reloads', () => {
  test('are carried out in order, with one log; the first that fails ends it', async () => {
    const folder = newFolder()
    const { agent, ended } = await runAgent({
      folder,
      ...actions(
        { name: 'good', steps: [{ exec: sh('echo one') }, { exec: sh('echo two; echo \'{"result":2}\'') }] },
        {
          name: 'bad',
          steps: [{ exec: sh('echo one') }, { exec: sh('exit 4') }, { exec: sh(`echo > ${folder}/never`) }],
        },
      ),
    })
    await agent.put('g', { action: 'good' })
    expect(await ended('g')).toMatchObject({ phase: 'Succeeded', exitCode: 0, result: 2 })
    expect(await text(agent, 'g')).toBe('one\ntwo\n{"result":2}\n')
    await agent.put('b', { action: 'bad' })
    expect(await ended('b')).toMatchObject({ phase: 'Failed', exitCode: 4, error: { code: 'ExitCode' } })
    expect(existsSync(`${folder}/never`)).toBe(false)
  })

  test('a signal goes to the process of that name; none is a failure', async () => {
    const folder = newFolder()
    const name = `shipapp${process.pid}`
    copyFileSync('/bin/sh', join(folder, name))
    const app = spawn(
      join(folder, name),
      ['-c', `trap 'echo hup > ${folder}/got' HUP; echo > ${folder}/ready; while :; do sleep 0.05; done`],
      { stdio: 'ignore' },
    )
    onTestFinished(() => void app.kill('SIGKILL'))
    const { agent, ended, reads } = await runAgent({
      folder,
      ...actions(
        { name: 'a', signal: { process: name, signal: 'SIGHUP' } },
        { name: 'b', signal: { process: 'no-such-process', signal: 'SIGHUP' } },
      ),
    })
    await reads(`${folder}/ready`, '')
    await agent.put('r', { action: 'a' })
    expect(await ended('r')).toMatchObject({ phase: 'Succeeded' })
    await reads(`${folder}/got`, 'hup')
    await agent.put('s', { action: 'b' })
    expect(await ended('s')).toMatchObject({ phase: 'Failed', error: { code: 'NoProcess' } })
  })

  test('a reload waits until the mounted file has really changed, then calls, then verifies', async () => {
    const folder = newFolder()
    const mounted = join(folder, 'app.conf')
    writeFileSync(mounted, 'one')
    writeFileSync(`${folder}/verdict`, '0')
    const { agent, ended, restart } = await runAgent({
      folder,
      ...actions({
        name: 'reload',
        reload: { file: { path: mounted }, exec: sh(`cat ${mounted} >> ${folder}/loaded`) },
        verify: { exec: sh(`exit $(cat ${folder}/verdict)`) },
        timeout: '20s',
      }),
    })
    await vi.waitFor(() => expect(readFileSync(join(folder, 'state', 'journal'), 'utf8')).toContain('app.conf'))
    await agent.put('r', { action: 'reload' })
    await vi.waitFor(async () => expect(await text(agent, 'r')).toContain('waiting until'))
    expect(existsSync(`${folder}/loaded`)).toBe(false)
    writeFileSync(mounted, 'two')
    expect(await ended('r')).toMatchObject({ phase: 'Succeeded' })
    expect(readFileSync(`${folder}/loaded`, 'utf8')).toBe('two')
    // The same content is no change: neither for the next reload, nor after a restart. Nothing is called, so there is nothing to verify but that.
    writeFileSync(mounted, 'two')
    writeFileSync(`${folder}/verdict`, '1')
    const { agent: next, ended: nextEnded } = await restart()
    await next.put('s', { action: 'reload', timeout: '1200ms' })
    expect(await nextEnded('s')).toMatchObject({ phase: 'TimedOut' })
    expect(readFileSync(`${folder}/loaded`, 'utf8')).toBe('two')
    writeFileSync(mounted, 'three')
    await next.put('t', { action: 'reload' })
    expect(await nextEnded('t')).toMatchObject({ phase: 'Failed', error: { code: 'NotApplied' } })
    expect(readFileSync(`${folder}/loaded`, 'utf8')).toBe('twothree')
  })

  test('a change that comes while a reload is under way is not lost: the next reload loads it', async () => {
    const folder = newFolder()
    const mounted = join(folder, 'app.conf')
    writeFileSync(mounted, 'one')
    const { agent, ended } = await runAgent({
      folder,
      ...actions({
        name: 'reload',
        reload: {
          file: { path: mounted },
          exec: sh(`cat ${mounted} >> ${folder}/loaded; printf three > ${mounted}`),
        },
        timeout: '10s',
      }),
    })
    await vi.waitFor(() => expect(readFileSync(join(folder, 'state', 'journal'), 'utf8')).toContain('app.conf'))
    writeFileSync(mounted, 'two')
    for (const id of ['r', 's']) {
      await agent.put(id, { action: 'reload' })
      expect(await ended(id)).toMatchObject({ phase: 'Succeeded' })
    }
    expect(readFileSync(`${folder}/loaded`, 'utf8')).toBe('twothree')
  })
})
