import { beforeEach, describe, expect, it } from 'vitest'
import type { Request, Send } from '../../controller/kube/transport.ts'
import { createMetrics, type Metrics } from '../../controller/runtime/metrics.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'
import { World, widgetWork } from '../fixtures/world.ts'

let clock: VirtualClock
let metrics: Metrics

beforeEach(() => {
  clock = new VirtualClock()
  metrics = createMetrics({ clock })
})

/** The values in a scrape, by name and labels as they stand there. */
async function scrape(): Promise<Map<string, number>> {
  const lines = (await metrics.registry.metrics()).split('\n').filter(line => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map(line => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )
}

/** The labels of each metric, by the names that dashboards know. */
const known = {
  controller_runtime_reconcile_total: ['controller', 'result'],
  controller_runtime_reconcile_errors_total: ['controller'],
  controller_runtime_terminal_reconcile_errors_total: ['controller'],
  controller_runtime_reconcile_panics_total: ['controller'],
  controller_runtime_reconcile_time_seconds_bucket: ['controller', 'le'],
  controller_runtime_reconcile_time_seconds_sum: ['controller'],
  controller_runtime_reconcile_time_seconds_count: ['controller'],
  controller_runtime_max_concurrent_reconciles: ['controller'],
  controller_runtime_active_workers: ['controller'],
  workqueue_depth: ['controller', 'name', 'priority'],
  workqueue_adds_total: ['controller', 'name'],
  workqueue_queue_duration_seconds_bucket: ['controller', 'le', 'name'],
  workqueue_work_duration_seconds_bucket: ['controller', 'le', 'name'],
  workqueue_unfinished_work_seconds: ['controller', 'name'],
  workqueue_longest_running_processor_seconds: ['controller', 'name'],
  workqueue_retries_total: ['controller', 'name'],
  shipmate_hot_loops_total: ['controller'],
  rest_client_requests_total: ['code', 'host', 'method'],
  leader_election_master_status: ['name'],
}

it.each(Object.entries(known))('%s of a controller that runs has the labels %j', async (name, expected) => {
  const world = new World()
  await world.widget('a')
  const operator = world.start(widgetWork(world.widgets), { leaderElection: { name: 'widgets' } })
  await world.until('it has worked', () => operator.reconciled.length > 0)
  metrics = operator.manager.metrics
  const found = [...(await scrape()).keys()].filter(line => line.split('{', 1)[0] === name)
  expect(found, `${name} in the scrape`).not.toEqual([])
  for (const line of found) {
    const names = [...line.matchAll(/(\w+)="/g)].map(match => match[1])
    expect(names.sort()).toEqual(expected)
  }
  await world.end()
})

describe("a controller's metrics", () => {
  it('are all there before anything happens, so that a rate begins at nought', async () => {
    metrics.controller('widget', 10, () => 0)
    const values = await scrape()
    for (const result of ['success', 'error', 'requeue', 'requeue_after']) {
      expect(values.get(`controller_runtime_reconcile_total{controller="widget",result="${result}"}`)).toBe(0)
    }
    expect(values.get('controller_runtime_reconcile_errors_total{controller="widget"}')).toBe(0)
    expect(values.get('controller_runtime_terminal_reconcile_errors_total{controller="widget"}')).toBe(0)
    expect(values.get('controller_runtime_reconcile_panics_total{controller="widget"}')).toBe(0)
    expect(values.get('controller_runtime_max_concurrent_reconciles{controller="widget"}')).toBe(10)
    expect(values.get('workqueue_adds_total{name="widget",controller="widget"}')).toBe(0)
  })

  it('count how work ended', async () => {
    const controller = metrics.controller('widget', 10, () => 0)
    for (const result of ['success', 'success', 'requeue', 'requeue_after'] as const) controller.begin(0)(result)
    controller.begin(0)('error')
    controller.begin(0)('error', 'terminal')
    controller.begin(0)('error', 'panic')
    const values = await scrape()
    const count = (result: string) =>
      values.get(`controller_runtime_reconcile_total{controller="widget",result="${result}"}`)
    expect([count('success'), count('requeue'), count('requeue_after'), count('error')]).toEqual([2, 1, 1, 3])
    expect(values.get('controller_runtime_reconcile_errors_total{controller="widget"}')).toBe(3)
    expect(values.get('controller_runtime_terminal_reconcile_errors_total{controller="widget"}')).toBe(1)
    expect(values.get('controller_runtime_reconcile_panics_total{controller="widget"}')).toBe(1)
    expect(values.get('controller_runtime_reconcile_time_seconds_count{controller="widget"}')).toBe(7)
  })

  it('measure waiting and working, in seconds', async () => {
    const controller = metrics.controller('widget', 10, () => 0)
    await clock.advance(2000)
    const end = controller.begin(500)
    await clock.advance(3000)
    end('success')
    const values = await scrape()
    expect(values.get('workqueue_queue_duration_seconds_sum{name="widget",controller="widget"}')).toBe(1.5)
    expect(values.get('workqueue_work_duration_seconds_sum{name="widget",controller="widget"}')).toBe(3)
    expect(values.get('controller_runtime_reconcile_time_seconds_sum{controller="widget"}')).toBe(3)
  })

  it('tell what is under way, as of now', async () => {
    let waiting = 7
    const controller = metrics.controller('widget', 10, () => waiting)
    const first = controller.begin(0)
    await clock.advance(2000)
    controller.begin(0)
    await clock.advance(1000)
    const values = await scrape()
    expect(values.get('controller_runtime_active_workers{controller="widget"}')).toBe(2)
    expect(values.get('workqueue_unfinished_work_seconds{name="widget",controller="widget"}')).toBe(4)
    expect(values.get('workqueue_longest_running_processor_seconds{name="widget",controller="widget"}')).toBe(3)
    expect(values.get('workqueue_depth{name="widget",controller="widget",priority=""}')).toBe(7)
    first('success')
    waiting = 0
    const later = await scrape()
    expect(later.get('controller_runtime_active_workers{controller="widget"}')).toBe(1)
    expect(later.get('workqueue_longest_running_processor_seconds{name="widget",controller="widget"}')).toBe(1)
    expect(later.get('workqueue_depth{name="widget",controller="widget",priority=""}')).toBe(0)
  })

  it('of two controllers are told apart', async () => {
    const first = metrics.controller('first', 1, () => 1)
    metrics.controller('second', 2, () => 2)
    first.begin(0)
    await clock.advance(1000)
    const values = await scrape()
    expect(values.get('workqueue_depth{name="first",controller="first",priority=""}')).toBe(1)
    expect(values.get('workqueue_depth{name="second",controller="second",priority=""}')).toBe(2)
    expect(values.get('workqueue_unfinished_work_seconds{name="first",controller="first"}')).toBe(1)
    expect(values.get('workqueue_unfinished_work_seconds{name="second",controller="second"}')).toBe(0)
  })

  it('count keys that are added and retried, and hot loops', async () => {
    const controller = metrics.controller('widget', 10, () => 0)
    controller.queued('added')
    controller.queued('added')
    controller.queued('retried')
    controller.hotLoop()
    const values = await scrape()
    expect(values.get('workqueue_adds_total{name="widget",controller="widget"}')).toBe(2)
    expect(values.get('workqueue_retries_total{name="widget",controller="widget"}')).toBe(1)
    expect(values.get('shipmate_hot_loops_total{controller="widget"}')).toBe(1)
  })
})

it('requests are counted by answer, method and host; those without an answer as errors', async () => {
  const request: Request = { method: 'GET', path: '/', target: { verb: 'get', group: '', resource: 'pods' } }
  const answers = [200, 200, 404]
  const send: Send = async () => {
    const status = answers.shift()
    if (status === undefined) throw new Error('connection lost')
    return { status, headers: {}, text: '' }
  }
  const counted = metrics.interceptor('example.com:6443')(send)
  for (let i = 0; i < 3; i++) await counted(request)
  await expect(counted({ ...request, method: 'POST' })).rejects.toThrow('connection lost')
  const values = await scrape()
  expect(values.get('rest_client_requests_total{code="200",method="GET",host="example.com:6443"}')).toBe(2)
  expect(values.get('rest_client_requests_total{code="404",method="GET",host="example.com:6443"}')).toBe(1)
  expect(values.get('rest_client_requests_total{code="<error>",method="POST",host="example.com:6443"}')).toBe(1)
})

it('two managers in one process have metrics of their own', async () => {
  const other = createMetrics({ clock })
  other.controller('widget', 10, () => 0).begin(0)('success')
  metrics.controller('widget', 10, () => 0)
  expect((await scrape()).get('controller_runtime_reconcile_total{controller="widget",result="success"}')).toBe(0)
})
