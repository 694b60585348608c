/**
 * Random histories of schedules: story.ts says what happens, and what has to hold.
 */
import { describe, expect, it } from 'vitest'
import { addSchedules } from '../../../controller/app/schedule/operator.ts'
import { type Mistake, naive, tickByNote } from './naive.ts'
import { type Count, type StoryOptions, story } from './story.ts'

const first = Number(process.env.SHIPMATE_SEED ?? 1)
// A process that dies is swept up in real time: a few histories at a time.
const many = Math.ceil(Number(process.env.SHIPMATE_SCHEDULES ?? 20) / 4)

async function stories(options: StoryOptions, title: string): Promise<void> {
  const total: Count = {}
  for (let seed = first; seed < first + many; seed++) {
    try {
      for (const [name, count] of Object.entries(await story(seed, options))) total[name] = (total[name] ?? 0) + count
    } catch (error) {
      const replay = `SHIPMATE_SEED=${seed} npx vitest run --project chaos test/app/schedule -t '${title}'`
      throw new Error(`seed ${seed}: ${(error as Error).message}\nreplay: ${replay}`, { cause: error })
    }
  }
  console.log(`${title}, seeds ${first} to ${first + many - 1}: ${JSON.stringify(total)}`)
  if (many >= 5)
    for (const what of ['made', 'begun', 'deleted', 'crashes']) expect(total[what], what).toBeGreaterThan(many)
}

const declare = addSchedules

describe('a schedule', () => {
  it('makes every tick once', () => stories({ declare, isComplete: true }, 'makes every tick once'))
  it('makes none twice, whatever is changed', () => stories({ declare }, 'makes none twice, whatever is changed'))
  it('lets none begin twice, though two lead', () =>
    stories({ declare, isContested: true }, 'lets none begin twice, though two lead'))
})

describe('the stories find', () => {
  it.each<[Mistake, RegExp, StoryOptions['isContested']]>([
    ['writesFirst', /was never made/, false],
    ['randomNames', /was made twice/, false],
    ['holdsNothing', /was made twice|made after it was written down/, false],
    ['readsNothing', /was begun twice/, true],
  ])('%s', async (mistake, fault, isContested) => {
    const found: string[] = []
    for (let seed = 1; seed <= 60 && found.length === 0; seed++) {
      const options = {
        declare: naive(mistake),
        isComplete: true,
        isContested,
        mayWriteFirst: mistake === 'writesFirst',
        tickOf: tickByNote,
      }
      await story(seed, options).catch(error => fault.test(error.message) && found.push(`${seed}: ${error.message}`))
    }
    expect(found, 'a history in which that shows').toHaveLength(1)
  })
})
