import { chmodSync, chownSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isAlive } from '../../../sidecar/init/identity.ts'
import { counted, folder, isRoot, lives, run, type Started, shell, start, until, wrappers } from './wrappers.ts'

const isLinux = process.platform === 'linux'
const identity = (started: Started) => started.json('claim') as unknown as Parameters<typeof isAlive>[0]

for (const wrapper of wrappers) {
  describe.skipIf(!wrapper.isThere)(`exec by ${wrapper.name}`, () => {
    const isC = wrapper.kind !== 'twin'
    const many = wrapper.kind === 'c' ? 100 : 15

    it(`executes once, of ${many} that are asked at once`, { timeout: 60_000 }, async () => {
      const dir = folder()
      const calls = Array.from({ length: many }, () =>
        start(wrapper, shell('echo x >> "$1"', join(dir, 'done')), { dir }),
      )
      const codes = await Promise.all(calls.map(async call => (await call.ended).code))
      expect(codes.filter(code => code === 0)).toHaveLength(1)
      expect(codes.filter(code => code === 3)).toHaveLength(many - 1)
      const winner = calls[codes.indexOf(0)]
      expect(winner?.read('done')).toBe('x\n')
      expect(winner?.json('claim')).toMatchObject({ by: 'wrapper', pid: winner?.pid })
      expect(readdirSync(dir).sort()).toEqual(['child', 'claim', 'done', 'exit', 'log'])
    })

    it('does nothing where there is a claim', async () => {
      const dir = folder()
      writeFileSync(join(dir, 'claim'), '{"by":"agent"}\n')
      const { ended } = start(wrapper, ['touch', join(dir, 'done')], { dir })
      expect(await ended).toEqual({ code: 3, signal: null, stderr: '' })
      expect(readdirSync(dir)).toEqual(['claim'])
    })

    it.each([0, 1, 255])('writes down exit code %d', async code => {
      const before = Date.now()
      const { json, read } = await run(wrapper, shell(`exit ${code}`))
      const exit = json('exit')
      expect(exit).toMatchObject({ cause: 'exited', code, signal: null, error: null, log: 0 })
      expect(exit['at']).toBeGreaterThanOrEqual(before)
      expect(read('exit')).toHaveLength(512)
    })

    it.each(['SIGSEGV', 'SIGKILL', 'SIGTERM'])('writes down that %s ended it', async signal => {
      const { json } = await run(wrapper, shell(`kill -${signal.slice(3)} $$`))
      expect(json('exit')).toMatchObject({ cause: 'exited', code: null, signal, error: null })
    })

    it.runIf(isLinux)('says who wraps and who is wrapped, while they live', async () => {
      const started = start(wrapper, ['sleep', '1000'])
      const child = await until(() => started.read('child'))
      expect(isAlive(identity(started))).toBe(true)
      expect(identity(started).pid).toBe(started.pid)
      const { pid, start: at } = JSON.parse(child)
      expect(isAlive({ ...identity(started), pid, start: at })).toBe(true)
      expect(isAlive({ ...identity(started), start: identity(started).start + 1 })).toBe(false)
      process.kill(pid, 'SIGTERM')
      await started.ended
      expect(isAlive(identity(started))).toBe(false)
    })

    describe('a command that cannot be executed', () => {
      const cases: [string, string, (dir: string) => { command?: string[]; options?: string[] }][] = [
        ['exec: ENOENT', 'is not on the PATH', () => ({ command: ['no-such-command'] })],
        ['exec: ENOENT', 'is not there', () => ({ command: ['/no/such/command'] })],
        ['exec: EACCES', 'is no program', dir => ({ command: [join(dir, 'file')] })],
        ['chdir: ENOENT', 'has no folder to be in', () => ({ options: ['--cwd', '/no/such/folder'] })],
        ['chdir: ENOTDIR', 'should be in a file', dir => ({ options: ['--cwd', join(dir, 'file')] })],
      ]
      it.each(cases)('is notExecuted, %s: it %s', async (error, _, make) => {
        const dir = folder()
        writeFileSync(join(dir, 'file'), 'no program')
        const { command = ['true'], options = [] } = make(dir)
        const { json } = await run(wrapper, command, { dir, options })
        expect(json('exit')).toMatchObject({ cause: 'notExecuted', code: null, signal: null, error })
      })

      it.runIf(isRoot)('is notExecuted if the wrapper may not become the user', async () => {
        const parent = folder()
        const dir = join(parent, 'run')
        chmodSync(parent, 0o755)
        mkdirSync(dir)
        chownSync(dir, 65534, 65534)
        const { json } = await run(wrapper, ['true'], { dir, uid: 65534, options: ['--uid', '0'] })
        expect(json('exit')).toMatchObject({
          cause: 'notExecuted',
          error: expect.stringMatching(/^set(groups|uid): EPERM$/),
        })
      })
    })

    describe.runIf(isC)('a wrapper that is short of something', () => {
      // The sanitizer's look for leaks needs files and a process of its own.
      const env = { ASAN_OPTIONS: 'detect_leaks=0' }

      it('executes the command or says that it has not, whatever number of files it may open', async () => {
        const outcomes: string[] = []
        for (let files = 4; files < 20; files++) {
          const started = start(wrapper, ['true'], { env, before: shell(`ulimit -n ${files}; exec "$@"`) })
          const { code, stderr } = await started.ended
          if (code === 4) expect(stderr).toContain('nothing was executed')
          else expect(code).toBe(0)
          outcomes.push(code === 4 ? 'not claimed' : `${started.json('exit')['error'] ?? started.json('exit')['code']}`)
        }
        expect([...new Set(outcomes)]).toEqual(
          expect.arrayContaining(['not claimed', 'pipe: EMFILE', 'fork: EMFILE', '0']),
        )
      })

      it.runIf(isRoot)('says that it could not fork', async () => {
        const parent = folder()
        const dir = join(parent, 'run')
        chmodSync(parent, 0o755)
        mkdirSync(dir)
        chownSync(dir, 65534, 65534)
        const { json } = await run(wrapper, ['true'], { dir, env, uid: 65534, before: ['prlimit', '--nproc=0'] })
        expect(json('exit')).toMatchObject({ cause: 'notExecuted', error: 'fork: EAGAIN', code: null, signal: null })
      })
    })

    describe('a wrapper that is called the wrong way', () => {
      it.each([
        [['--no-such-option', '1'], '--no-such-option is no option here'],
        [['--timeout'], '--timeout needs a value'],
        [['--timeout', '1s'], '--timeout is 1s: a whole number from 0'],
        [['--uid', '4294967295'], '--uid is 4294967295: a whole number from 0 to 4294967294 is accepted'],
        [['--nice', '20'], '--nice is 20: a whole number from -20 to 19 is accepted'],
        [['--cancel-signal', 'TERM'], '--cancel-signal is TERM: the name of a signal'],
      ])('exits 2 and says why: %j', async (options, why) => {
        const { ended, dir } = start(wrapper, ['true'], { options })
        const { code, stderr } = await ended
        expect(code).toBe(2)
        expect(JSON.parse(stderr)).toMatchObject({ level: 'error', msg: expect.stringContaining(why) })
        expect(readdirSync(dir)).toEqual([])
      })

      it('exits 2 without a command', async () => {
        expect(await start(wrapper, []).ended).toMatchObject({ code: 2 })
      })

      it.each([
        ['never came', []],
        ['are fewer than they should be', [0, 0, 0, 2, 0, 0, 0, 1, 7]],
        ['are cut off', [0, 0, 0, 1, 0, 0, 0, 9, 1]],
        ['are more than they should be', [0, 0, 0, 0, 0, 0, 0, 1, 7]],
      ])('exits 4, with nothing claimed and a reason for the agent, if the secrets %s', async (_, bytes) => {
        const { ended, dir, told } = start(wrapper, ['true'], { secrets: Buffer.from(bytes) })
        const { code, stderr } = await ended
        expect(code).toBe(4)
        expect(stderr).toContain('nothing was executed: secrets: EPROTO')
        expect(told()).toBe('secrets: EPROTO\n')
        expect(readdirSync(dir)).toEqual([])
      })

      it('exits 4 if it cannot claim', async () => {
        const dir = folder()
        const { ended } = start(wrapper, ['touch', join(dir, 'done')], { options: ['--dir', join(dir, 'absent')] })
        const { code, stderr } = await ended
        expect(code).toBe(4)
        expect(stderr).toMatch(/nothing was executed: .*ENOENT/)
        expect(readdirSync(dir)).toEqual([])
      })
    })

    describe('the command', () => {
      it.runIf(isLinux)('has exactly the environment that the wrapper was given', async () => {
        const env = { PATH: '/usr/bin:/bin', EMPTY: '', A: 'b c=d', UMLAUT: 'ä\n"' }
        const { log } = await run(wrapper, ['cat', '/proc/self/environ'], { env })
        expect(log().split('\0').sort()).toEqual(['', ...Object.entries(env).map(([k, v]) => `${k}=${v}`)].sort())
      })

      it('is looked for on the PATH that it is given', async () => {
        const dir = folder()
        writeFileSync(join(dir, 'shipmate-test-command'), '#!/bin/sh\necho found "$@"\n', { mode: 0o755 })
        const { log } = await run(wrapper, ['shipmate-test-command', 'a b', ''], {
          env: { PATH: `/no/such/folder:${dir}:/usr/bin:/bin` },
        })
        expect(log()).toBe('found a b \n')
      })

      it.runIf(isLinux)('has no input, no open files of others, and its signals as they should be', async () => {
        const { log } = await run(
          wrapper,
          shell(
            `readlink /proc/$$/fd/0; ls /proc/$$/fd${isC ? '' : ' | head -3'}; grep -E "^Sig(Blk|Ign)" /proc/self/status`,
          ),
          { files: [openSync('/dev/null', 'r')], before: shell('trap "" USR1 USR2 PIPE HUP CHLD; exec "$@"') },
        )
        expect(log()).toBe('/dev/null\n0\n1\n2\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n')
      })

      it('leads a process group of its own', async () => {
        const { log, json } = await run(wrapper, shell('ps -o pgid= -p $$'))
        expect(Number(log())).toBe(json('child')['pid'])
      })

      it.runIf(isRoot)('runs in its folder, as its user, at its priority', async () => {
        const cwd = folder('/var/tmp')
        chmodSync(cwd, 0o755)
        const { log, json } = await run(wrapper, shell('pwd; id -u; id -g; id -G; nice'), {
          options: ['--cwd', cwd, '--uid', '65534', '--gid', '65533', '--nice', '7'],
        })
        expect(json('exit')).toMatchObject({ code: 0, error: null })
        expect(log()).toBe(`${cwd}\n65534\n65533\n65533\n7\n`)
      })

      it('has its secret parameters until it ends, and nobody later', async () => {
        const dir = folder()
        mkdirSync(join(dir, 'params'))
        for (const name of ['a', 'b']) writeFileSync(join(dir, 'params', name), name, { mode: 0o400 })
        const { log } = await run(wrapper, shell('cat "$1"/params/*', dir), { dir })
        expect(log()).toBe('ab')
        expect(readdirSync(join(dir, 'params'))).toEqual([])
      })
    })

    describe('cancelling', () => {
      /** Waits until the command says that it is ready, as its traps are set then. */
      const ready = (started: Started) => until(() => started.log().includes('ready'))
      const patient = 'echo ready; while :; do sleep 0.02; done'

      it('sends the signal of the contract', async () => {
        const started = start(wrapper, shell(`trap "exit 7" INT; ${patient}`), {
          options: ['--cancel-signal', 'SIGINT'],
        })
        await ready(started)
        started.process.kill('SIGUSR1')
        expect(await started.ended).toMatchObject({ code: 0 })
        expect(started.json('exit')).toMatchObject({ cause: 'cancelled', code: 7, signal: null })
      })

      it('kills what does not end within the grace', async () => {
        const started = start(wrapper, shell(`trap "" TERM; ${patient}`), { options: ['--grace', '100'] })
        await ready(started)
        started.process.kill('SIGUSR1')
        await started.ended
        expect(started.json('exit')).toMatchObject({ cause: 'cancelled', code: null, signal: 'SIGKILL' })
      })

      it('is begun once, however often it is asked for', async () => {
        const started = start(wrapper, shell(`trap "echo told" TERM; trap "exit 0" USR2; ${patient}`))
        await ready(started)
        started.process.kill('SIGUSR1')
        await until(() => started.log().includes('told'))
        for (let i = 0; i < 3; i++) started.process.kill('SIGUSR1')
        // The wrapper has taken those signals once it has taken in what the command wrote after them.
        const pid = Number(started.json('child')['pid'])
        process.kill(pid, 'SIGTERM')
        await until(() => started.log().match(/told/g)?.length === 2)
        process.kill(pid, 'SIGUSR2')
        await started.ended
        expect(started.log().match(/told/g)).toHaveLength(2)
        expect(started.json('exit')).toMatchObject({ cause: 'cancelled', code: 0 })
      })

      it.runIf(isLinux)('before the command has begun keeps it from doing anything', async () => {
        const dir = folder()
        const started = start(wrapper, ['touch', join(dir, 'done')], { dir, secrets: null })
        // It listens: SIGHUP would end it otherwise.
        await until(() => awaits(started.pid, 'SIGHUP', isC ? 'SigBlk' : 'SigCgt'))
        started.process.kill('SIGUSR1')
        started.process.stdin?.end(counted([]))
        expect(await started.ended).toMatchObject({ code: 0 })
        expect(started.json('exit')).toMatchObject({ cause: 'cancelled', code: null, signal: 'SIGTERM' })
        expect(readdirSync(dir)).not.toContain('done')
      })

      it('is not begun by SIGTERM, SIGINT or SIGHUP to the wrapper', async () => {
        const started = start(wrapper, shell(`trap "exit 5" USR2; ${patient}`))
        await ready(started)
        for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) started.process.kill(signal)
        process.kill(Number(started.json('child')['pid']), 'SIGUSR2')
        await started.ended
        expect(started.json('exit')).toMatchObject({ cause: 'exited', code: 5 })
      })

      it('is begun by the time-out, too', async () => {
        const { json } = await run(wrapper, ['sleep', '1000'], { options: ['--timeout', '100'] })
        expect(json('exit')).toMatchObject({ cause: 'timedOut', code: null, signal: 'SIGTERM' })
      })

      it('leaves the cause alone when the command ended before its time', async () => {
        const { json } = await run(wrapper, ['true'], { options: ['--timeout', '600000'] })
        expect(json('exit')).toMatchObject({ cause: 'exited', code: 0 })
      })

      it('reaches the whole process group, and kills what of it outlives the grace', async () => {
        const started = start(
          wrapper,
          shell(`(trap "" TERM; exec sleep 1000) & echo $!; sleep 1000 & echo $!; ${patient}`),
          { options: ['--grace', '300'] },
        )
        await ready(started)
        const pids = started.log().split('\n').slice(0, 2).map(Number)
        expect(pids.map(lives)).toEqual([true, true])
        started.process.kill('SIGUSR1')
        await started.ended
        expect(pids.map(lives)).toEqual([false, false])
        expect(started.json('exit')).toMatchObject({ cause: 'cancelled', signal: 'SIGTERM' })
      })

      it.runIf(isC)('kills the descendants that left the group', async () => {
        const leaving = 'setsid sh -c "setsid sleep 1000 & echo \\$!; exec sleep 1000" & echo $!'
        const started = start(wrapper, shell(`${leaving}; sleep 0.1; ${patient}`), { options: ['--grace', '50'] })
        await ready(started)
        const pids = started.log().split('\n').slice(0, 2).map(Number)
        expect(pids.map(lives)).toEqual([true, true])
        started.process.kill('SIGUSR1')
        await started.ended
        expect(pids.map(lives)).toEqual([false, false])
      })

      it('is over as soon as nobody is left, long before the grace is', async () => {
        const started = start(wrapper, shell(`sleep 1000 & ${patient}`), { options: ['--grace', '600000'] })
        await ready(started)
        started.process.kill('SIGUSR1')
        await started.ended
        expect(started.json('exit')).toMatchObject({ cause: 'cancelled', signal: 'SIGTERM' })
      })
    })

    it('does not wait for a grandchild that keeps the output open, and leaves it alone', async () => {
      const { log } = await run(wrapper, shell('sleep 1000 & echo $!'))
      const pid = Number(log())
      expect(lives(pid)).toBe(true)
      process.kill(pid, 'SIGKILL')
    })

    it('does not wait for a grandchild that goes on writing', async () => {
      const dir = folder()
      const { json, read } = await run(wrapper, shell('yes & echo $! > "$1"; sleep 0.1', join(dir, 'pid')), { dir })
      expect(json('exit')).toMatchObject({ cause: 'exited', code: 0 })
      // Nobody reads what it writes any more.
      await until(() => !lives(Number(read('pid'))))
    })

    it('has all that the command wrote before it ended', async () => {
      const { log, json } = await run(wrapper, shell('seq 1 20000; seq 1 20000 >&2'))
      const lines = Array.from({ length: 20000 }, (_, i) => i + 1).join('\n').length + 1
      expect(json('exit')['log']).toBe(2 * lines)
      expect(log()).toHaveLength(2 * lines)
    })

    describe.runIf(isC)('when the wrapper is killed', () => {
      it.each([[[]], ...(isRoot ? [[['--uid', '65534', '--gid', '65534']]] : [])])(
        'the command dies with it, and no end is written: %j',
        async options => {
          const started = start(wrapper, ['sleep', '1000'], { options })
          const { pid } = JSON.parse(await until(() => started.read('child')))
          // From the gate on: it executes.
          await until(() => readCommand(pid).startsWith('sleep'))
          started.process.kill('SIGKILL')
          await until(() => !lives(pid))
          await started.ended
          expect(started.read('exit')).toBeUndefined()
        },
      )
    })
  })
}

/** Whether a process listens to a signal. By which mask: the C program reads signals that it has blocked; Node has a handler, and blocks them all for a moment while it starts. */
function awaits(pid: number, signal: NodeJS.Signals, by: 'SigBlk' | 'SigCgt'): boolean {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const mask = BigInt(`0x${new RegExp(`^${by}:\\t(\\w+)$`, 'm').exec(status)?.[1] ?? '0'}`)
  return ((mask >> BigInt(constants.signals[signal] - 1)) & 1n) === 1n
}

function readCommand(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
