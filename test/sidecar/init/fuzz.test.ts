import { execFile, spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { keysOf } from '../../../sidecar/init/lines.ts'
import { lines, secretsAndChunks, seed } from './arbitraries.ts'
import { redacted } from './reference.ts'
import { counted, framed, hasCompiler } from './wrappers.ts'

const sources = join(import.meta.dirname, '../../../sidecar/init')

describe.skipIf(!hasCompiler)('under the sanitizers, whatever a command writes', () => {
  let dir: string
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'shipmate-fuzz-'))
    const flags = [
      '-std=c11',
      '-D_GNU_SOURCE',
      '-g',
      '-O1',
      '-fsanitize=address,undefined',
      '-fno-sanitize-recover=all',
    ]
    const files = [join(import.meta.dirname, 'fuzz.c'), ...['json.c', 'redact.c'].map(name => join(sources, name))]
    await promisify(execFile)(process.env.CC ?? 'cc', [...flags, ...files, '-o', join(dir, 'fuzz')])
  }, 60_000)
  afterAll(() => rm(dir, { recursive: true }))

  function fuzz(mode: string, frames: Buffer[]): Buffer {
    const { status, stdout, stderr } = spawnSync(join(dir, 'fuzz'), [mode], {
      input: framed(frames),
      maxBuffer: 1 << 28,
    })
    expect(stderr.toString()).toBe('')
    expect(status).toBe(0)
    return stdout
  }

  it('a line is JSON for the C program if it is for Node, with the same keys', { timeout: 60_000 }, () => {
    const samples = fc.sample(lines, { seed, numRuns: 5000 }).map(text => Buffer.from(text))
    const got = fuzz('json', samples).toString().split('\n').slice(0, -1).map(Number)
    const expected = samples.map(line => {
      const keys = keysOf(line)
      return keys ? (keys.hasProgress ? 1 : 0) + (keys.hasResult ? 2 : 0) : -1
    })
    expect(expected.filter(keys => keys > 0).length).toBeGreaterThan(100)
    for (const [i, line] of samples.entries())
      expect([line.toString().slice(0, 200), got[i]]).toEqual([line.toString().slice(0, 200), expected[i]])
  })

  it('bytes that are no text at all are no JSON, and harm nobody', () => {
    const samples = fc.sample(fc.uint8Array({ maxLength: 300 }), { seed, numRuns: 3000 }).map(bytes => {
      return Buffer.concat([Buffer.from('{"progress":"'), Buffer.from(bytes)])
    })
    expect(fuzz('json', samples).toString().split('\n')).toHaveLength(3001)
  })

  it('a line that is too long is no JSON', () => {
    const long = (length: number) => Buffer.from(`{"progress":"${'x'.repeat(length - 15)}"}`)
    expect(fuzz('json', [long(64 * 1024), long(64 * 1024 + 1)]).toString()).toBe('1\n-1\n')
  })

  it('is redacted as the text as a whole would be', () => {
    const cases = fc.sample(secretsAndChunks, { seed, numRuns: 3000 })
    const frames = cases.flatMap(({ secrets, chunks }) => {
      return [counted(secrets), ...chunks.filter(chunk => chunk.length > 0), Buffer.alloc(0)]
    })
    let rest = fuzz('redact', frames)
    for (const { secrets, chunks } of cases) {
      const end = 4 + rest.readUInt32BE(0)
      const expected = redacted(secrets, Buffer.concat(chunks))
      expect(rest.subarray(4, end).toString('latin1')).toBe(expected.toString('latin1'))
      rest = rest.subarray(end)
    }
    expect(rest).toHaveLength(0)
  })
})
