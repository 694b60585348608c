import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { secretsAndChunks, seed } from './arbitraries.ts'
import { redacted } from './reference.ts'
import { folder, isRoot, run, segments, shell, start, until, wrappers } from './wrappers.ts'

const MiB = 1 << 20

/** Writes the chunks of a JSON file, each by a write of its own, and gives the wrapper the time to read it. */
const writer = `
  for (const chunk of JSON.parse(fs.readFileSync(process.argv[1]))) {
    fs.writeSync(1, Buffer.from(chunk, 'latin1'))
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2)
  }`

for (const wrapper of wrappers) {
  describe.skipIf(!wrapper.isThere)(`the output of a command, by ${wrapper.name}`, () => {
    describe('redacted', () => {
      it('has no secret, however it is cut', { timeout: 60_000 }, async () => {
        await fc.assert(
          fc.asyncProperty(secretsAndChunks, async ({ secrets, chunks }) => {
            const dir = folder()
            writeFileSync(join(dir, 'chunks'), JSON.stringify(chunks.map(chunk => chunk.toString('latin1'))))
            await run(wrapper, [process.execPath, '-e', writer, join(dir, 'chunks')], { dir, secrets })
            const log = Buffer.concat([...segments(join(dir, 'log')).values()])
            expect(log.toString('latin1')).toBe(redacted(secrets, Buffer.concat(chunks)).toString('latin1'))
          }),
          { seed, numRuns: wrapper.kind === 'c' ? 12 : 5 },
        )
      })

      it('is each of the two streams by itself', async () => {
        const { log } = await run(
          wrapper,
          shell('printf "sec"; sleep 0.05; printf "SEC" >&2; sleep 0.05; printf "ret"; printf "ret" >&2'),
          {
            secrets: [Buffer.from('secret')],
          },
        )
        expect(log().split('***').join('')).toBe('SECret')
        expect(log()).toContain('***')
      })

      it('shows what was held back at the end', async () => {
        const { log, json } = await run(wrapper, ['printf', 'a secre'], { secrets: [Buffer.from('secret')] })
        expect(log()).toBe('a secre')
        expect(json('exit')['log']).toBe(7)
      })

      it('goes into progress, result and last, too', async () => {
        const lines = ['{"progress":{"message":"secret"}}', '{"result":"secret"}', 'the secret']
        const { read } = await run(wrapper, ['printf', '%s\\n', ...lines], { secrets: [Buffer.from('secret')] })
        expect(read('progress')).toBe('{"progress":{"message":"***"}}')
        expect(read('result')).toBe('{"result":"***"}')
        expect(read('last')).toBe('the ***')
      })

      it('knows a secret of 100 kB', async () => {
        const dir = folder()
        const secret = Buffer.from(Array.from({ length: 20_000 }, (_, i) => `${i * i}`).join('')).subarray(0, 100_000)
        writeFileSync(join(dir, 'secret'), secret)
        const { log } = await run(wrapper, shell('printf "<"; cat "$1"; printf ">"', join(dir, 'secret')), {
          dir,
          secrets: [secret, Buffer.from('<')],
        })
        expect(log()).toBe('******>')
      })
    })

    describe('understood', () => {
      it('tells progress while the command runs, and the last of all in the end', async () => {
        const dir = folder()
        const script = `echo '{"progress":{"percent":1}}'; until [ -e "$1" ]; do sleep 0.01; done
          for i in 2 3 4 5 6; do echo "{\\"progress\\":{\\"percent\\":$i}}"; done`
        const started = start(wrapper, shell(script, join(dir, 'go')), { dir })
        expect(await until(() => started.read('progress'))).toBe('{"progress":{"percent":1}}')
        writeFileSync(join(dir, 'go'), '')
        await started.ended
        expect(started.read('progress')).toBe('{"progress":{"percent":6}}')
        expect(started.read('result')).toBeUndefined()
        expect(started.read('last')).toBe('{"progress":{"percent":6}}')
      })

      it('takes the last result, with whatever else stands in its line', async () => {
        const { read } = await run(wrapper, [
          'printf',
          '%s\\n',
          '{"result":1}',
          ' {"a":[{}], "result" : {"b":2},"progress":3} \r',
          '{"result":',
        ])
        expect(read('result')).toBe(' {"a":[{}], "result" : {"b":2},"progress":3}')
        expect(read('progress')).toBe(read('result'))
        expect(read('last')).toBe('{"result":')
      })

      it('is not fooled by a key further down, by standard error, by text, or by a line that is too long', async () => {
        const lines = [
          '{"a":{"progress":1}}',
          '[{"result":1}]',
          '"progress"',
          'progress',
          '{"progress":1',
          '{"progress":1}}',
        ]
        const { read } = await run(
          wrapper,
          shell(
            `printf '%s\\n' "$@"; echo '{"result":1}' >&2; printf '{"progress":"'; head -c 70000 /dev/zero | tr '\\0' x; echo '"}'
              printf '{"progress":1}'; head -c 70000 /dev/zero | tr '\\0' ' '; echo x`,
            ...lines,
          ),
        )
        expect(read('progress')).toBeUndefined()
        expect(read('result')).toBeUndefined()
      })

      it('has as its last line the last that is not empty, of both streams, whole or not', async () => {
        expect((await run(wrapper, shell('echo "b " >&2; echo; printf " \\r\\n\\t"'))).read('last')).toBe('b')
        expect((await run(wrapper, ['printf', 'a\\nb'])).read('last')).toBe('b')
        expect((await run(wrapper, ['true'])).read('last')).toBeUndefined()
      })

      it('cuts a last line that is very long, between two characters', async () => {
        const { read } = await run(wrapper, shell('printf x; for i in $(seq 1 5000); do printf ä; done'))
        expect(read('last')).toBe(`x${'ä'.repeat(2047)}`)
      })
    })

    describe('kept in segments', () => {
      const numbers = Buffer.from(`${Array.from({ length: 2_700_000 }, (_, i) => i + 1).join('\n')}\n`)

      it('has the first mebibyte and the last four, of 20 MB', { timeout: 60_000 }, async () => {
        const { dir, json } = await run(wrapper, ['seq', '1', '2700000'])
        expect(json('exit')['log']).toBe(numbers.length)
        const kept = segments(join(dir, 'log'))
        for (const [at, bytes] of kept) expect(numbers.subarray(at, at + bytes.length).equals(bytes)).toBe(true)
        expect(kept.get(0)).toHaveLength(MiB)
        const [, ...later] = kept
        let end = later[0]?.[0] ?? 0
        expect(end).toBeLessThanOrEqual(numbers.length - 4 * MiB)
        expect(end).toBeGreaterThan(numbers.length - 5.1 * MiB)
        for (const [at, bytes] of later) {
          expect(at).toBe(end)
          end += bytes.length
        }
        expect(end).toBe(numbers.length)
      })

      it('goes on where the step before it ended, and removes what that one wrote when its time has come', async () => {
        const dir = folder()
        const options = ['--log-head', '5000', '--log-tail', '10000']
        const first = await run(wrapper, ['seq', '1', '5000'], {
          dir: join(dir, '0'),
          options: [...options, '--log', join(dir, 'log')],
        })
        const size = Number(first.json('exit')['log'])
        const between = segments(join(dir, 'log'))
        const second = await run(wrapper, ['seq', '1', '5000'], {
          dir: join(dir, '1'),
          options: [...options, '--log', join(dir, 'log'), '--log-offset', String(size)],
        })
        expect(second.json('exit')['log']).toBe(2 * size)
        const kept = segments(join(dir, 'log'))
        expect([...kept.keys()][0]).toBe(0)
        expect(kept.get(0)).toEqual(between.get(0))
        expect(kept.get(0)).toHaveLength(5000)
        const later = [...kept.keys()].slice(1)
        expect(Math.min(...later)).toBeGreaterThanOrEqual(2 * size - 10000 - 2 * 4096)
        expect(Math.min(...later)).toBeLessThanOrEqual(2 * size - 10000)
        expect(Math.min(...later)).toBeGreaterThanOrEqual(size)
      })

      it.runIf(wrapper.kind === 'c')(
        'costs no memory: 100 MB pass through less than 4',
        { timeout: 60_000 },
        async () => {
          const dir = folder()
          const started = start(
            wrapper,
            shell('head -c 100000000 /dev/zero; touch "$1/passed"; until [ -e "$1/go" ]; do sleep 0.01; done', dir),
            {
              dir,
              secrets: [Buffer.from('secret')],
            },
          )
          await until(() => existsSync(join(dir, 'passed')))
          const peak = Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${started.pid}/status`, 'utf8'))?.[1])
          writeFileSync(join(dir, 'go'), '')
          await started.ended
          expect(started.json('exit')['log']).toBe(100_000_000)
          expect(peak).toBeGreaterThan(0)
          expect(peak).toBeLessThan(4096)
        },
      )
    })

    describe('on a disk that is full', () => {
      it.runIf(isRoot)(
        'is lost, and goes on when there is room; the end is written in any case',
        { timeout: 30_000 },
        async () => {
          const disk = folder()
          const outside = folder()
          expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'shipmate-test', disk]).status).toBe(0)
          onTestFinished(() => expect(spawnSync('umount', ['-l', disk]).status).toBe(0))
          const dir = join(disk, 'run')
          mkdirSync(dir)
          const script = `head -c 2000000 /dev/zero | tr '\\0' a; touch "$1/written"; until [ -e "$1/go" ]; do sleep 0.01; done
          until [ -e "$1/stop" ]; do echo after; sleep 0.02; done; echo '{"result":1}'; exit 3`
          const started = start(wrapper, shell(script, outside), { dir, options: ['--log-tail', '4194304'] })
          await until(() => existsSync(join(outside, 'written')))
          const log = join(dir, 'log')
          await until(() => segments(log).size > 0)
          const first = segments(log).get(0)
          expect(first?.length).toBeGreaterThan(500_000)
          // Makes room, but not all of it.
          rmSync(join(log, '0'.repeat(20)))
          writeFileSync(join(outside, 'go'), '')
          await until(() => [...segments(log).values()].some(bytes => bytes.includes('after')))
          const [at] = [...segments(log)].find(([, bytes]) => bytes.includes('after')) ?? []
          expect(at).toBeGreaterThan(1_900_000)
          fill(join(disk, 'filler'))
          writeFileSync(join(outside, 'stop'), '')
          expect(await started.ended).toMatchObject({ code: 0 })
          expect(started.json('exit')).toMatchObject({ cause: 'exited', code: 3 })
          expect(started.json('exit')['log']).toBeGreaterThan(2_000_000)
        },
      )

      it.runIf(isRoot)('a wrapper that cannot claim executes nothing, and says why', async () => {
        const disk = folder()
        const outside = folder()
        expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=16k', 'shipmate-test', disk]).status).toBe(0)
        onTestFinished(() => expect(spawnSync('umount', ['-l', disk]).status).toBe(0))
        fill(join(disk, 'filler'))
        const { ended, read } = start(wrapper, ['touch', join(outside, 'done')], { dir: disk })
        const { code, stderr } = await ended
        expect(code).toBe(4)
        expect(stderr).toMatch(/nothing was executed: (claim: )?ENOSPC/)
        expect(read('claim')).toBeUndefined()
        expect(existsSync(join(outside, 'done'))).toBe(false)
      })

      it('loses what no file has room for, where the size of files is limited', async () => {
        const dir = folder()
        const script = 'seq 1 20000; until ls "$1" | grep -q "[1-9]"; do echo end; sleep 0.02; done'
        const { json } = await run(wrapper, shell(script, join(dir, 'log')), {
          dir,
          // 8 KiB, in blocks of 512 bytes.
          before: shell('ulimit -f 16; exec "$@"'),
        })
        expect(json('exit')).toMatchObject({ cause: 'exited', code: 0 })
        const kept = segments(join(dir, 'log'))
        const all = Buffer.from(`${Array.from({ length: 20000 }, (_, i) => i + 1).join('\n')}\n${'end\n'.repeat(5000)}`)
        for (const [at, bytes] of kept) expect(all.subarray(at, at + bytes.length).equals(bytes)).toBe(true)
        expect(kept.get(0)).toHaveLength(8192)
        expect([...kept.keys()][1]).toBeGreaterThan(8192)
      })

      it('the command meets that limit as any program would', async () => {
        const dir = folder()
        const { json } = await run(wrapper, shell('exec head -c 100000 /dev/zero > "$1"', join(dir, 'large')), {
          before: shell('ulimit -f 16; exec "$@"'),
        })
        expect(json('exit')).toMatchObject({ cause: 'exited', code: null, signal: 'SIGXFSZ' })
      })
    })
  })
}

/** Leaves no room on a disk. */
function fill(path: string): void {
  const fd = openSync(path, 'w')
  for (const size of [65536, 4096, 1]) {
    try {
      for (;;) writeSync(fd, Buffer.alloc(size))
    } catch (error) {
      expect(error).toMatchObject({ code: 'ENOSPC' })
    }
  }
  closeSync(fd)
}
