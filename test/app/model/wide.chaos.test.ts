/** The same as model.test.ts, within wider bounds. */
import { expect, test } from 'vitest'
import { backup, bounds, everyFault, verified } from './bounds.ts'
import { explore } from './explore.ts'

const wide = {
  ...Object.fromEntries(everyFault.map(sort => [`two controllers, and a fault: ${sort}`, bounds({ sorts: [sort] })])),
  'two controllers, and a cancellation': bounds({ faults: 0, cancels: 1 }),
  'two controllers, an end and a start': bounds({ faults: 0, wishes: [{ state: 'End' }, { state: 'Running' }] }),
  'two controllers, and something else that is wished': bounds({
    faults: 0,
    wishes: [backup('a'), { state: 'Running' }],
  }),
  'two controllers, two pods': bounds({ faults: 0, replicas: 2 }),
  'one controller, and two faults, with verify': bounds({ controllers: 1, faults: 2, action: verified }),
  'one controller, and two faults, idempotent': bounds({ controllers: 1, faults: 2, action: { idempotent: true } }),
  'one controller, a fault and a cancellation, however late': bounds({ controllers: 1, cancels: 1, ages: 1 }),
}

test.each(Object.entries(wide))('%s: nothing is carried out twice, and it comes to rest', (what, within) => {
  const { worlds, steps, broken } = explore(within)
  expect(broken?.promise, broken?.way.map(step => step.slice(0, 300)).join('\n')).toBeUndefined()
  console.log(`${what}: ${worlds} worlds, ${steps} steps`)
  expect(worlds).toBeGreaterThan(10_000)
})
