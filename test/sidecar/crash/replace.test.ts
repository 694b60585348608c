/**
 * An agent that is replaced in mid-run, by another version or by itself after a death: the run goes on, and so does its log.
 */
import { copyFileSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import { type Sidecar, startSidecar } from '../../fixtures/sidecar.ts'
import { bundleOf, initWithFaults } from '../../fixtures/sidecar-bundle.ts'

const isThere = (await initWithFaults()) !== undefined
const longest = 60_000
const expected = Array.from({ length: 40 }, (_, n) => `line ${n}\n`).join('')

/** Prints its lines, the last of them only when the file `go` is there. */
const talk =
  'n=0; while [ $n -lt 40 ]; do if [ $n = 39 ]; then while [ ! -e "$1/go" ]; do sleep 0.02; done; fi; echo "line $n"; n=$((n+1)); done; echo x >> "$1/effects"'

async function supervised(
  configOf: (folder: string) => LifecycleSpec,
  flags: readonly string[] = [],
): Promise<{ sidecar: Sidecar; folder: string; exchange: (version: string) => Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'shipmate-'))
  const bundle = join(folder, 'agent.cjs')
  copyFileSync(await bundleOf('1.0.0'), bundle)
  const sidecar = await startSidecar({ config: configOf(folder), under: 'supervise', bundle, folder, flags })
  onTestFinished(async () => {
    await sidecar.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    sidecar,
    folder,
    async exchange(version) {
      copyFileSync(await bundleOf(version), `${bundle}.new`)
      renameSync(`${bundle}.new`, bundle)
    },
  }
}

/** An application that answers when it is told to. */
async function application(): Promise<{
  url: string
  arrived: Promise<void>
  hungUp: Promise<void>
  answer: () => void
}> {
  const arrived = Promise.withResolvers<void>()
  const hungUp = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<void>()
  const server = createServer(async (_, response) => {
    response.on('close', () => hungUp.resolve())
    arrived.resolve()
    await answer.promise
    response.end('done')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  return { url, arrived: arrived.promise, hungUp: hungUp.promise, answer: answer.resolve }
}

const calling = (url: string): LifecycleSpec => ({
  actions: [{ name: 'call', http: { url, method: 'POST', timeout: '1m' }, cancel: { grace: '0s' } }],
})

const talking = (folder: string): LifecycleSpec => ({
  actions: [{ name: 'talk', exec: { command: ['sh', '-c', talk, 'sh', folder] } }],
})

async function readLog(sidecar: Sidecar, id: string, offset: number): Promise<{ text: string; next: number }> {
  const { text, headers } = await sidecar.ask('GET', `/v1/runs/${id}/log?offset=${offset}`)
  expect(headers['shipmate-log-offset']).toBe(String(offset))
  return { text, next: Number(headers['shipmate-log-next']) }
}

describe.skipIf(!isThere)('an agent under shipmate-init supervise', () => {
  const ways: [string, string, (sidecar: Sidecar) => void][] = [
    ['is replaced by another version with SIGHUP', '2.0.0', sidecar => sidecar.signalRoot('SIGHUP')],
    ['is killed', '1.0.0', sidecar => sidecar.signal('SIGKILL')],
    ['is killed, its file being another version by then', '2.0.0', sidecar => sidecar.signal('SIGKILL')],
  ]
  it.each(ways)('that %s leaves its run to the next', { timeout: longest }, async (_, version, end) => {
    const { sidecar, folder, exchange } = await supervised(talking)
    expect((await sidecar.ask('PUT', '/v1/runs/talk', { action: 'talk' })).status).toBe(201)
    const before = await sidecar.state()
    expect(before.version).toBe('1.0.0')
    let read = { text: '', next: 0 }
    await expect
      .poll(
        async () => {
          read = await readLog(sidecar, 'talk', 0)
          return read.text.length
        },
        { timeout: longest },
      )
      .toBeGreaterThan(100)

    await exchange(version)
    end(sidecar)
    await expect.poll(() => sidecar.births, { timeout: longest }).toBe(2)
    const after = await sidecar.state()
    expect(after).toMatchObject({ version, journalId: before.journalId })
    expect(after.bootId).not.toBe(before.bootId)
    expect(await sidecar.run('talk')).toMatchObject({ phase: 'Running' })
    expect(sidecar.said.join('\n')).toContain('was adopted')

    copyFileSync(join(folder, 'lifecycle.json'), join(folder, 'go'))
    expect(await sidecar.ended('talk')).toMatchObject({
      phase: 'Succeeded',
      exitCode: 0,
      log: { size: expected.length },
    })
    const rest = await readLog(sidecar, 'talk', read.next)
    expect(read.text + rest.text).toBe(expected)
    expect((await sidecar.ask('PUT', '/v1/runs/talk', { action: 'talk' })).status).toBe(200)
    await sidecar.quiet()
    expect(sidecar.births).toBe(2)
  })

  it('that is replaced waits for what it carries out itself', { timeout: longest }, async () => {
    const { url, arrived, answer } = await application()
    const { sidecar, exchange } = await supervised(() => calling(url))
    await sidecar.ask('PUT', '/v1/runs/call', { action: 'call' })
    await arrived
    await exchange('2.0.0')
    sidecar.signalRoot('SIGHUP')
    await expect.poll(() => sidecar.said.join('\n'), { timeout: longest }).toContain('being replaced')
    const refused = await sidecar.request('PUT', '/v1/runs/other', { action: 'call' }).catch(() => ({ status: 503 }))
    expect(refused.status).toBe(503)
    answer()
    await expect.poll(() => sidecar.births, { timeout: longest }).toBe(2)
    expect(await sidecar.run('call')).toMatchObject({ phase: 'Succeeded', result: 'done' })
    expect((await sidecar.state()).version).toBe('2.0.0')
  })

  it('that is replaced ends when the time is up, though a call hangs', { timeout: longest }, async () => {
    const { url, arrived, hungUp } = await application()
    const { sidecar } = await supervised(() => calling(url), ['--drain-timeout', '200ms'])
    await sidecar.ask('PUT', '/v1/runs/call', { action: 'call' })
    await arrived
    sidecar.signalRoot('SIGHUP')
    await hungUp
    await expect.poll(() => sidecar.births, { timeout: longest }).toBe(2)
    expect(await sidecar.ended('call')).toMatchObject({ phase: 'Unknown' })
    expect(sidecar.said.join('\n')).toContain('left to its successor')
  })

  it('that is being replaced drains when it is asked to', { timeout: longest }, async () => {
    const { url, arrived, answer } = await application()
    const { sidecar } = await supervised(() => calling(url))
    await sidecar.ask('PUT', '/v1/runs/call', { action: 'call' })
    await arrived
    sidecar.signal('SIGHUP')
    await expect.poll(() => sidecar.said.join('\n'), { timeout: longest }).toContain('being replaced')
    sidecar.signal('SIGTERM')
    await expect.poll(() => sidecar.said.join('\n'), { timeout: longest }).toContain('draining: no new runs')
    answer()
    await expect.poll(() => sidecar.said.join('\n'), { timeout: longest }).toContain('"msg":"drained"')
  })

  it('that is asked to drain ends in time, though a call hangs', { timeout: longest }, async () => {
    const { url, arrived, hungUp } = await application()
    const { sidecar } = await supervised(() => calling(url), ['--drain-timeout', '200ms'])
    await sidecar.ask('PUT', '/v1/runs/call', { action: 'call' })
    await arrived
    sidecar.signal('SIGTERM')
    await hungUp
    await expect.poll(() => sidecar.births, { timeout: longest }).toBe(2)
  })
})
