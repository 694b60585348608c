import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../shared/clock.ts'
import { startWrapper, type WrapperCall } from '../../../sidecar/runs/wrapper.ts'
import { newFolder } from '../../fixtures/running-agent.ts'
import { until, wrappers } from '../init/wrappers.ts'

function call(folder: string, init: readonly string[], command: readonly string[]): WrapperCall {
  const logFolder = join(folder, 'log')
  mkdirSync(logFolder)
  return {
    init,
    folder,
    logFolder,
    logOffset: 0,
    log: { head: 1 << 20, tail: 1 << 22 },
    timeoutMs: 600_000,
    cancelSignal: 'SIGTERM',
    graceMs: 1000,
    workingDir: undefined,
    user: undefined,
    nice: 0,
    command,
    env: { PATH: process.env['PATH'] ?? '' },
    secrets: [],
    clock: systemClock,
  }
}

const exitOf = (folder: string) => JSON.parse(readFileSync(join(folder, 'exit'), 'utf8'))

for (const { name, kind, isThere, argv } of wrappers.filter(({ kind }) => kind !== 'sanitized')) {
  describe.skipIf(!isThere)(`a cancel of ${name}`, () => {
    it('that comes before it listens is held back, and not lost', async () => {
      const folder = newFolder()
      // Not yet what it will be: a signal would end it.
      const late = `while [ ! -e ${folder}/go ]; do sleep 0.02; done; exec "$@"`
      const wrapper = startWrapper(call(folder, ['sh', '-c', late, 'sh', ...argv], ['sleep', '1000']))
      wrapper.cancel()
      wrapper.cancel()
      writeFileSync(join(folder, 'go'), '')
      expect(await wrapper.ended).toBeUndefined()
      expect(exitOf(folder)).toMatchObject({ cause: 'cancelled' })
    })

    it('that comes at once reaches the command', async () => {
      const folder = newFolder()
      const wrapper = startWrapper(call(folder, argv, ['sleep', '1000']))
      wrapper.cancel()
      expect(await wrapper.ended).toBeUndefined()
      expect(exitOf(folder)).toMatchObject({ cause: 'cancelled' })
    })

    it.runIf(kind === 'c')('that comes when it has ended does nothing', async () => {
      const folder = newFolder()
      const wrapper = startWrapper(call(folder, argv, ['true']))
      await wrapper.ended
      wrapper.cancel()
      expect(exitOf(folder)).toMatchObject({ cause: 'exited', code: 0 })
    })

    it("of which the claim is another's does nothing", async () => {
      const folder = newFolder()
      const wrapper = startWrapper(call(folder, argv, ['touch', join(folder, 'done')]))
      writeFileSync(join(folder, 'claim'), '{"by":"agent"}\n', { flag: 'wx' })
      wrapper.cancel()
      await wrapper.ended
      await until(() => !existsSync(join(folder, 'done')))
      expect(existsSync(join(folder, 'exit'))).toBe(false)
    })
  })
}
