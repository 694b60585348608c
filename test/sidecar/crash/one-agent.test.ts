/**
 * Of all agents that are started on one state folder, one runs.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { bundleOf } from '../../fixtures/sidecar-bundle.ts'

interface Contender {
  /** `listening`, or how it ended. */
  readonly outcome: Promise<'listening' | { code: number | null; said: string }>
  kill(): Promise<void>
}

const bundle = await bundleOf()

function contend(folder: string): Contender {
  const flags = ['--config', join(folder, 'lifecycle.json'), '--state-dir', join(folder, 'state'), '--auth', 'none']
  const child = spawn(
    process.execPath,
    [bundle, ...flags, '--listen', '127.0.0.1:0', '--public-listen', '127.0.0.1:0'],
    { env: { PATH: process.env['PATH'] } },
  )
  let said = ''
  const ended = new Promise<{ code: number | null; said: string }>(resolve =>
    child.once('close', code => resolve({ code, said })),
  )
  const listening = new Promise<'listening'>(resolve => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', text => {
        said += text
        if (said.includes('"msg":"listening"')) resolve('listening')
      })
    }
  })
  const kill = async () => {
    child.kill('SIGKILL')
    await ended
  }
  onTestFinished(kill)
  return { outcome: Promise.race([listening, ended]), kill }
}

it('one of five that are started at once runs, and the others say why they do not, whatever a dead one has left', {
  timeout: 120_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'shipmate-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'lifecycle.json'), '{}')
  for (let round = 0; round < 4; round++) {
    const contenders = Array.from({ length: 5 }, () => contend(folder))
    const outcomes = await Promise.all(contenders.map(({ outcome }) => outcome))
    expect(outcomes.filter(outcome => outcome === 'listening')).toHaveLength(1)
    for (const outcome of outcomes) {
      if (outcome !== 'listening')
        expect(outcome).toMatchObject({ code: 1, said: expect.stringContaining('another agent is running') })
    }
    await contenders[outcomes.indexOf('listening')]?.kill()
  }
})
