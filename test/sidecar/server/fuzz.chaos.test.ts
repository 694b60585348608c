import { expect, it, onTestFinished } from 'vitest'
import { fuzz } from '../../fixtures/sidecar-fuzz.ts'
import { call, start } from '../../fixtures/sidecar-server.ts'

const first = Number(process.env.SHIPMATE_SEED)
const schedules = Number(process.env.SHIPMATE_SCHEDULES)
const seeds = Array.from({ length: schedules }, (_, index) => first + index)

it.each(seeds)('whatever is sent is answered, and never as a fault of the server (seed %i)', async seed => {
  const rejections: unknown[] = []
  const rejected = (reason: unknown) => rejections.push(reason)
  process.on('unhandledRejection', rejected)
  onTestFinished(() => void process.off('unhandledRejection', rejected))
  const { port, lines, servers } = await start()
  const asked = await fuzz(port, seed, 100)
  const show = (some: typeof asked) =>
    some.map(({ bytes, statuses }) => [statuses, bytes.toString('latin1').slice(0, 2_000)])
  const faults = asked.filter(({ statuses }) => statuses.some(code => code >= 500 && code !== 503 && code !== 507))
  expect(show(faults), 'faults').toEqual([])
  const silent = asked.filter(({ complete, statuses }) => complete && statuses.length === 0)
  expect(show(silent), 'without an answer').toEqual([])
  expect(lines.filter(line => line.includes('"level":"error"'))).toEqual([])
  expect(rejections).toEqual([])
  expect((await call(port, 'GET', '/v1/state')).status).toBe(200)
  await expect.poll(() => servers.readers).toBe(0)
})

it('these requests get everywhere: accepted, refused early and refused late', async () => {
  const { port } = await start()
  const statuses = new Set((await fuzz(port, 1, 100)).flatMap(asked => asked.statuses))
  for (const status of [101, 200, 201, 202, 204, 400, 403, 404, 405, 409, 413, 422, 431])
    expect(statuses).toContain(status)
})
