import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { launch, programs } from './programs.ts'
import { folder, lives, shell, until } from './wrappers.ts'

const script = join(import.meta.dirname, 'agent.cjs')
const canUnshare = spawnSync('unshare', ['-pf', '--mount-proc', 'true']).status === 0

/** The lines that the agents of a folder have said. */
const said = (dir: string) =>
  existsSync(join(dir, 'said')) ? readFileSync(join(dir, 'said'), 'utf8').trim().split('\n') : []
const starts = (dir: string) =>
  said(dir).flatMap(line => {
    const [, pid, parent, drain] = /^start (\d+) (\d+) (\w+)$/.exec(line) ?? []
    return drain ? { pid: Number(pid), parent: Number(parent), drains: drain === '1' } : []
  })
/** An agent that says that it starts, and then does something. */
const brief = (dir: string, what: string) =>
  shell(`echo "start $$ $PPID \${SHIPMATE_DRAIN:-no}" >> "$1/said"; ${what}`, dir)

for (const { name, file, isThere } of programs) {
  describe.skipIf(!isThere)(`supervise by ${name}`, () => {
    const supervise = (dir: string, options: string[] = [], agent: string[] = []) =>
      launch(file, ['supervise', ...options, '--', process.execPath, script, '--state-dir', dir, ...agent])
    const superviseBrief = (dir: string, what: string, options: string[] = []) =>
      launch(file, ['supervise', ...options, '--', ...brief(dir, what)])
    const started = (dir: string, count = 1) => until(() => starts(dir).length >= count)

    describe('an agent that ends', () => {
      it('is started again, after twice the time each time', async () => {
        const dir = folder()
        const program = superviseBrief(dir, 'exit 1')
        await started(dir, 4)
        const delays = program.said().flatMap(text => /\(exit 1\).* in (\d+) ms/.exec(text)?.[1] ?? [])
        expect(delays.slice(0, 3)).toEqual(['100', '200', '400'])
      })

      it('is started again at once if it had lived for long', async () => {
        const dir = folder()
        const program = superviseBrief(dir, 'sleep 0.05; kill -KILL $$', ['--steady', '1'])
        await started(dir, 4)
        const delays = program.said().flatMap(text => /\(signal 9\).* in (\d+) ms/.exec(text)?.[1] ?? [])
        expect(delays.slice(0, 3)).toEqual(['0', '0', '0'])
      })

      it('with 2, as it was called the wrong way, is the end', async () => {
        const dir = folder()
        const program = superviseBrief(dir, 'exit 2')
        expect(await program.ended).toEqual({ code: 2, signal: null })
        expect(program.said().at(-1)).toBe('the agent was called the wrong way (exit 2)')
        expect(starts(dir)).toHaveLength(1)
      })

      it('with SIGTERM on its way ends supervise, with its exit code', async () => {
        for (const signal of ['SIGTERM', 'SIGINT'] as const) {
          const dir = folder()
          const program = supervise(dir)
          await started(dir)
          program.process.kill(signal)
          expect(await program.ended).toEqual({ code: 7, signal: null })
          expect(said(dir).at(-1)).toBe(signal)
        }
      })

      it('by a signal while it drains is started once more, to drain', async () => {
        const dir = folder()
        // The first has no handler yet and dies of it, the second is killed.
        const program = superviseBrief(dir, 'if [ -z "$SHIPMATE_DRAIN" ]; then exec sleep 1000; else kill -KILL $$; fi')
        await started(dir)
        program.process.kill('SIGTERM')
        expect(await program.ended).toEqual({ code: 137, signal: null })
        expect(starts(dir).map(({ drains }) => drains)).toEqual([false, true])
      })

      it('and is waited for when SIGTERM comes is started, to drain', async () => {
        const dir = folder()
        const program = superviseBrief(dir, '[ -n "$SHIPMATE_DRAIN" ] && exit 5; exit 1')
        // Long enough that it is certainly between two of them.
        await until(() => program.said().some(text => /in (1600|3200) ms/.test(text)))
        program.process.kill('SIGTERM')
        expect(await program.ended).toEqual({ code: 5, signal: null })
        expect(starts(dir).at(-1)?.drains).toBe(true)
      })

      it('for its successor (SIGHUP) is started again at once', async () => {
        const dir = folder()
        const program = supervise(dir)
        await started(dir)
        program.process.kill('SIGHUP')
        await started(dir, 2)
        expect(said(dir)[1]).toBe('SIGHUP')
        expect(program.said().at(-1)).toMatch(/^the agent ended \(exit 0\) after \d+ ms; it is started again in 0 ms$/)
        expect(starts(dir)[1]?.drains).toBe(false)
        program.process.kill('SIGTERM')
        expect(await program.ended).toEqual({ code: 7, signal: null })
      })
    })

    it('ends with 2 if there is no such agent, or none is named', async () => {
      const program = launch(file, ['supervise', '--', '/no/such/agent'])
      expect(await program.ended).toEqual({ code: 2, signal: null })
      expect(program.said().at(-1)).toBe('/no/such/agent: exec: ENOENT')
      expect(await launch(file, ['supervise']).ended).toEqual({ code: 2, signal: null })
      expect(await launch(file, ['supervise', '--', '']).ended).toEqual({ code: 2, signal: null })
    })

    describe('an agent that is asked whether it lives', () => {
      const often = ['--livez-every', '20', '--livez-within', '200']

      it.each(['hang', 'close', '500'])('and fails three times (%s) is killed and started again', async how => {
        const dir = folder()
        const program = supervise(dir, ['--steady', '1', ...often], ['--answers', `200,${how},${how},200,${how}`])
        await started(dir, 2)
        const calls = said(dir).slice(
          1,
          said(dir).findLastIndex(line => line.startsWith('start')),
        )
        // Two failures and an answer do no harm, three failures do.
        expect(calls).toEqual(Array(7).fill('GET /livez'))
        expect(program.said()[0]).toMatch('did not answer GET /livez 3 times in a row')
        expect(lives(starts(dir)[0]?.pid ?? 0)).toBe(false)
      })

      it('has time to come up', async () => {
        const dir = folder()
        const program = supervise(dir, often, ['--answers', '200', '--after', '300'])
        await until(() => said(dir).includes('GET /livez'))
        expect(starts(dir)).toHaveLength(1)
        expect(program.said()).toEqual([])
      })

      it('but not for ever', async () => {
        const dir = folder()
        supervise(dir, ['--livez-from', '100', '--steady', '1', ...often])
        await started(dir, 2)
        expect(said(dir)).not.toContain('GET /livez')
      })

      it('may have a folder with a very long name, given in either way', async () => {
        for (const form of ['--state-dir=DIR', '--state-dir DIR']) {
          const dir = join(folder(), 'x'.repeat(200))
          mkdirSync(dir)
          const agent = form.replace('DIR', dir).split(' ')
          launch(file, ['supervise', ...often, '--', process.execPath, script, ...agent, '--answers', '200'])
          await until(() => said(dir).includes('GET /livez'))
        }
      })
    })

    it.runIf(process.platform === 'linux')('takes in orphans and buries them', async () => {
      const dir = folder()
      const program = superviseBrief(
        dir,
        '(sh -c \'echo $$ > "$1/orphan"; until [ -e "$1/go" ]; do sleep 0.01; done\' sh "$1" &); exec sleep 1000',
      )
      const orphan = await until(
        () => existsSync(join(dir, 'orphan')) && Number(readFileSync(join(dir, 'orphan'), 'utf8')),
      )
      await until(() => parentOf(orphan) === program.pid)
      spawnSync('touch', [join(dir, 'go')])
      await until(() => !existsSync(`/proc/${orphan}`))
      expect(starts(dir)).toHaveLength(1)
    })

    it.runIf(process.platform === 'linux')('takes the agent with it when it is killed', async () => {
      const dir = folder()
      const program = supervise(dir)
      await started(dir)
      program.process.kill('SIGKILL')
      await until(() => !lives(starts(dir)[0]?.pid ?? 0))
    })

    it.runIf(canUnshare)('is PID 1 of a container', async () => {
      const dir = folder()
      const command = [process.execPath, script, '--state-dir', dir]
      const outer = launch('unshare', ['-pf', '--mount-proc', '--kill-child', file, 'supervise', '--', ...command])
      await started(dir)
      expect(starts(dir)[0]?.parent).toBe(1)
      const inner = await until(() => childrenOf(outer.pid)[0])
      process.kill(inner, 'SIGHUP')
      await started(dir, 2)
      process.kill(inner, 'SIGTERM')
      expect(await outer.ended).toEqual({ code: 7, signal: null })
      expect(said(dir).at(-1)).toBe('SIGTERM')
    })
  })
}

function parentOf(pid: number): number {
  return existsSync(`/proc/${pid}/stat`)
    ? Number(readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').pop()?.split(' ')[1])
    : 0
}

function childrenOf(pid: number): number[] {
  return readdirSync('/proc').flatMap(name =>
    /^\d+$/.test(name) && parentOf(Number(name)) === pid ? Number(name) : [],
  )
}
