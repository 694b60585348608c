import { createServer } from 'node:http'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { askPreStop } from '../../sidecar/prestop-client.ts'
import { socketOf } from '../../sidecar/server/socket.ts'
import { newFolder } from '../fixtures/running-agent.ts'

describe('shipmate sidecar prestop', () => {
  it('says what it waits for while there is no agent, once, and ends well with its answer', async () => {
    const stateDir = newFolder()
    const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    onTestFinished(() => said.mockRestore())
    const asked = askPreStop(stateDir)
    await vi.waitFor(() => expect(said).toHaveBeenCalled(), 10_000)
    const server = createServer((_, response) => response.end('ok'))
    await new Promise<void>(resolve => server.listen(socketOf(stateDir), resolve))
    onTestFinished(() => void server.close())
    expect(await asked).toBe(0)
    expect(said.mock.calls.map(([text]) => text)).toEqual([
      expect.stringMatching(
        /^shipmate sidecar prestop: no agent answers on .*control\.sock yet: .*ENOENT.*; waiting 10 s for one\n$/,
      ),
    ])
  })
})
