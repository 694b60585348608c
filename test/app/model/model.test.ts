import { describe, expect, test } from 'vitest'
import { backup, bounds, everyFault, verified } from './bounds.ts'
import { explore } from './explore.ts'
import type { Bounds } from './world.ts'

/** Looks at every world within the bounds, and tells how many there were. */
function allIsWell(what: string, within: Bounds, least: number): void {
  const { worlds, steps, rests, broken } = explore(within)
  const way = broken?.way.map(step => `  ${step.slice(0, 300)}`).join('\n')
  expect(broken?.promise, `${broken?.promise}, by:\n${way}`).toBeUndefined()
  const ends = [...rests].map(([how, times]) => `${how} (${times})`).join(', ')
  console.log(`${what}: ${worlds} worlds, ${steps} steps; it rests as: ${ends}`)
  // A model that has lost its steps finds nothing.
  expect(worlds).toBeGreaterThan(least)
}

const short = { timeout: 120_000 }

describe('an action is carried out once, and it comes to rest', short, () => {
  test('with two controllers, of which each may stop at any request and go on later', () => {
    allIsWell('two controllers', bounds({ faults: 0, canLag: true }), 5000)
  })

  test('with two controllers, when a request or its answer is lost', () => {
    allIsWell('two controllers, lost requests', bounds({ sorts: ['lost'] }), 10_000)
  })

  test('with two controllers, when a journal is lost and what ran goes on', () => {
    allIsWell('two controllers, a lost journal', bounds({ sorts: ['journal'] }), 20_000)
  })

  test('with two controllers, when it is stopped and ended', () => {
    allIsWell('two controllers, the end', bounds({ faults: 0, wishes: [{ state: 'End' }] }), 4000)
  })

  test('whatever befalls it once, and however late', () => {
    allIsWell('one controller, any fault', bounds({ controllers: 1, ages: 1 }), 10_000)
  })

  test('whatever befalls it once, when verify can tell', () => {
    allIsWell('one controller, verify', bounds({ controllers: 1, ages: 1, action: verified }), 5000)
  })

  test('whatever befalls it once, when it may happen twice', () => {
    allIsWell('one controller, idempotent', bounds({ controllers: 1, action: { idempotent: true } }), 2000)
  })

  test('when it fails and is tried again', () => {
    const within = bounds({
      controllers: 1,
      canFail: true,
      ages: 2,
      action: { retries: 1 },
      sorts: ['agent', 'container'],
    })
    allIsWell('one controller, a retry', within, 2000)
  })

  test('when it is cancelled or deleted', () => {
    const within = bounds({ controllers: 1, cancels: 1, sorts: ['lost', 'agent', 'journal'] })
    allIsWell('one controller, a cancellation', within, 3000)
  })

  test('when something else is wished, and the first thing again', () => {
    const within = bounds({ controllers: 1, faults: 0, canLag: true, wishes: ['a', 'b', 'a'].map(backup) })
    allIsWell('one controller, three wishes', within, 1000)
  })

  test('when a wish is taken back before its Operation is stored', () => {
    const running = { state: 'Running' }
    const back = [
      [running, backup('a'), running],
      [backup('a'), null],
      [running, backup('a'), null],
    ]
    for (const wishes of back)
      allIsWell('one controller, a wish taken back', bounds({ controllers: 1, faults: 0, canLag: true, wishes }), 300)
  })

  test('in two pods', () => {
    allIsWell('one controller, two pods', bounds({ controllers: 1, replicas: 2, sorts: everyFault }), 5000)
  })
})
