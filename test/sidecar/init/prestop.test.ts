import { mkdirSync, openSync, rmSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { launch, programs } from './programs.ts'
import { folder, until } from './wrappers.ts'

async function serve(dir: string, answer: RequestListener): Promise<Server> {
  const server = createServer(answer)
  // By a short name, however long the folder's is.
  await new Promise<void>(resolve => server.listen(`/proc/self/fd/${openSync(dir, 'r')}/control.sock`, resolve))
  onTestFinished(() => stop(server))
  return server
}

async function stop(server: Server): Promise<void> {
  if (!server.listening) return
  const closed = new Promise(resolve => server.close(resolve))
  server.closeAllConnections()
  await closed
}

for (const { name, file, isThere } of programs) {
  describe.skipIf(!isThere)(`prestop by ${name}`, () => {
    const prestop = (dir: string, ...options: string[]) => launch(file, ['prestop', '--state-dir', dir, ...options])

    it('posts to the socket, waits for the answer, and succeeds with it', async () => {
      const dir = folder()
      const asked: string[] = []
      let answer: (() => void) | undefined
      await serve(dir, (request, response) => {
        asked.push(`${request.method} ${request.url}`)
        answer = () => response.end('done')
      })
      const program = prestop(dir)
      await until(() => answer)
      expect(program.process.exitCode).toBe(null)
      answer?.()
      expect(await program.ended).toEqual({ code: 0, signal: null })
      expect(asked).toEqual(['POST /prestop'])
    })

    it('fails with any other answer, and says it', async () => {
      const dir = folder()
      await serve(dir, (_, response) => response.writeHead(503).end())
      const program = prestop(dir)
      expect(await program.ended).toEqual({ code: 1, signal: null })
      expect(program.said()).toEqual(['the agent answered POST /prestop with 503'])
    })

    it('asks again when the agent went away and is back', async () => {
      const dir = folder()
      let calls = 0
      const first = await serve(dir, () => calls++)
      const program = prestop(dir)
      await until(() => calls === 1)
      await stop(first)
      rmSync(join(dir, 'control.sock'), { force: true })
      await serve(dir, (_, response) => {
        calls++
        response.end()
      })
      expect(await program.ended).toEqual({ code: 0, signal: null })
      expect(calls).toBe(2)
    })

    it('counts its patience from when the agent went away', async () => {
      const dir = folder()
      const began = performance.now()
      let calls = 0
      const first = await serve(dir, () => calls++)
      const program = prestop(dir, '--retry-for', '400')
      await until(() => calls === 1 && performance.now() - began > 600)
      await stop(first)
      await serve(dir, (_, response) => response.end())
      expect(await program.ended).toEqual({ code: 0, signal: null })
    })

    it('waits for an agent that is not there yet', async () => {
      const dir = folder()
      const program = prestop(dir)
      await until(() => program.process.pid)
      await serve(dir, (_, response) => response.end())
      expect(await program.ended).toEqual({ code: 0, signal: null })
    })

    it('gives up when none comes', async () => {
      const dir = folder()
      const program = prestop(dir, '--retry-for', '300')
      expect(await program.ended).toEqual({ code: 1, signal: null })
      expect(program.said()).toEqual([`no agent answers on ${dir}/control.sock: ENOENT`])
    })

    it('finds a socket in a folder with a very long name', async () => {
      const dir = join(folder(), 'x'.repeat(200))
      mkdirSync(dir)
      await serve(dir, (_, response) => response.end())
      expect(await prestop(dir).ended).toEqual({ code: 0, signal: null })
    })

    it.each([[[]], [['--state-dir']], [['--state-dir', '/tmp', 'more']], [['--state-dir', '/tmp', '--no']]])(
      'exits 2 when it is called the wrong way: %j',
      async args => {
        expect(await launch(file, ['prestop', ...args]).ended).toEqual({ code: 2, signal: null })
      },
    )
  })
}

it.skipIf(!programs[0]?.isThere)('what is neither exec, supervise nor prestop is refused', async () => {
  const program = launch(programs[0]?.file ?? '', ['backup'])
  expect(await program.ended).toEqual({ code: 2, signal: null })
  expect(program.said()).toEqual(['"backup" is nothing that shipmate-init does: exec, supervise and prestop are'])
})
