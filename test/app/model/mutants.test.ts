import { expect, test } from 'vitest'
import { backup, bounds } from './bounds.ts'
import { explore } from './explore.ts'
import { type Mutant, mutants } from './mutants.ts'
import type { Bounds } from './world.ts'

const one = { controllers: 1 }
const found: Record<Mutant, { within: Bounds; as: RegExp }> = {
  sendBeforeWriting: { within: bounds(one), as: /carried out twice/ },
  noFenceCheck: { within: bounds({ sorts: ['swept'] }), as: /carried out twice/ },
  noJournalCheck: { within: bounds({ sorts: ['journal'] }), as: /carried out twice/ },
  actBeforeStoring: {
    within: bounds({ faults: 0, wishes: [backup('a'), backup('b')] }),
    as: /never ends|twice|another/,
  },
  madeAnew: { within: bounds({ ...one, sorts: ['vanish'] }), as: /had the Operation op-1 and got op-2/ },
  retryUnknown: { within: bounds(one), as: /though an earlier attempt had happened/ },
  neverAlive: {
    within: bounds({ ...one, sorts: ['node'], action: { idempotent: true } }),
    as: /earlier attempt was alive/,
  },
  noVersions: { within: bounds({ faults: 0 }), as: /went back|became|forgotten/ },
  forgetSettles: { within: bounds(one), as: /is told to be Failed, but is alive|told to have Failed/ },
}

test.each(Object.entries(mutants))('the model finds it when %s: %s', (mutant, _) => {
  const { within, as } = found[mutant as Mutant]
  const { broken, worlds } = explore(within, { mutant: mutant as Mutant })
  console.log(`${mutant}: ${broken?.promise}; found after ${worlds} worlds, ${broken?.way.length} steps`)
  expect(broken?.promise).toMatch(as)
})
