import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../../shared/clock.ts'
import type { Action } from '../../../shared/lifecycle/model.ts'
import type { RunRecord } from '../../../sidecar/journal/records.ts'
import { logSize } from '../../../sidecar/logs.ts'
import { claim, stepFolder } from '../../../sidecar/runs/folder.ts'
import { type RecoverOptions, recover } from '../../../sidecar/runs/recover.ts'
import { logFolder, startWrapper } from '../../../sidecar/runs/wrapper.ts'
import { newFolder } from '../../fixtures/running-agent.ts'
import { until, wrappers } from '../init/wrappers.ts'

const exec: Action['exec'] = { command: ['true'] }
const shares = { head: 1 << 20, tail: 1 << 20 }

function recordOf(declaration: Action): RunRecord {
  return {
    ...{ id: 'r', action: 'a', params: {}, secretNames: [], secretsGiven: [], bodyHash: '', attempt: 1, fence: null },
    ...{ declaration, stops: false, timeoutMs: 600_000, acceptedAt: 0, phase: 'Accepted', step: 0, startedAt: null },
    ...{ finishedAt: null, exitCode: null, progress: null, result: null, error: null, logSize: 0, logKept: 1 << 20 },
  }
}

/** Looks at a run as the next agent does. Ends with the test. */
function look(declaration: Action, folder: string, insist: RecoverOptions['insist'] = write => write()) {
  const closing = new AbortController()
  onTestFinished(() => closing.abort(new Error('closing')))
  return recover(recordOf(declaration), folder, { clock: systemClock, signal: closing.signal, insist })
}

/** Starts the wrapper, of a command that says something and goes on until there is a file `go`; resolves when it has claimed. */
async function wrapperComes(folder: string, runFolder: string, init: readonly string[]) {
  mkdirSync(logFolder(runFolder), { recursive: true })
  const wrapper = startWrapper({
    ...{ init, folder, logFolder: logFolder(runFolder), logOffset: 0, log: shares },
    ...{ timeoutMs: 600_000, cancelSignal: 'SIGTERM', graceMs: 1000, workingDir: undefined, user: undefined, nice: 0 },
    command: ['sh', '-c', `while [ ! -e ${runFolder}/go ]; do sleep 0.02; done; echo said`],
    ...{ env: { PATH: process.env['PATH'] ?? '' }, secrets: [], clock: systemClock },
  })
  onTestFinished(() => writeFileSync(join(runFolder, 'go'), ''))
  await until(() => existsSync(join(folder, 'claim')))
  return wrapper
}

for (const { name, isThere, argv } of wrappers.filter(({ kind }) => kind !== 'sanitized')) {
  describe.skipIf(!isThere)(`${name} that claims a run just after the next agent has found it unclaimed`, () => {
    const kinds: [string, Action, (folder: string) => string][] = [
      ['a command', { name: 'a', exec }, folder => folder],
      ['a step', { name: 'a', steps: [{ exec }] }, folder => stepFolder(folder, 0)],
    ]

    it.each(kinds)('of %s is adopted: the run has its end, and all of its log', async (_, action, folderOf) => {
      const runFolder = newFolder()
      const folder = folderOf(runFolder)
      mkdirSync(folder, { recursive: true })
      if (action.steps) await claim(runFolder, systemClock)
      const found = await look(action, runFolder)
      await wrapperComes(folder, runFolder, argv)
      const size = found.end().then(async exit => ({ exit, ...(await logSize(logFolder(runFolder), shares)) }))
      expect(await Promise.race([found.adopted, size])).toBeTypeOf('number')
      writeFileSync(join(runFolder, 'go'), '')
      expect(await size).toMatchObject({ exit: { cause: 'exited', code: 0 }, size: 'said\n'.length })
    })

    it('is cancelled, if that was asked for before it came', async () => {
      const folder = newFolder()
      const found = await look({ name: 'a', exec }, folder)
      found.cancel()
      await wrapperComes(folder, folder, argv)
      expect(await found.end()).toMatchObject({ cause: 'cancelled' })
    })
  })
}

describe('a run that the agent has claimed', () => {
  it('to keep a wrapper out was never started', async () => {
    const found = await look({ name: 'a', exec }, newFolder())
    expect(await found.end()).toMatchObject({ cause: 'notStarted' })
  })

  it('and does not know it is lost: it does not wait for itself', async () => {
    // As where the claim is made, and the disk fails before that is known.
    const found = await look({ name: 'a', exec }, newFolder(), async write => {
      await write()
      return write()
    })
    expect(await found.end()).toMatchObject({ cause: 'lost' })
  })
})
