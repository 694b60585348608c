/**
 * Every fault between an operator and a cluster, one after another, each on a cluster of its own in fast time; each has to come to the same as the undisturbed run.
 *
 * Guarantees: the same seed plays the same runs. What fails says which fault it was, what is wrong in the end, and how to play it again.
 */
import { messageOf } from '../../shared/errors.ts'
import { type Fault, type FaultName, faultNames, faultsOf, refer } from './faults/plays.ts'
import type { StageOptions } from './faults/stage.ts'
import { randomOf, some } from './random.ts'

export interface EveryFaultOptions extends StageOptions {
  /** Which. Default: all of them. */
  readonly faults?: readonly FaultName[] | undefined
  /** Runs of each fault at most; which of more is drawn. Default 100. */
  readonly most?: number | undefined
  /** Where chance begins. Default: SHIPMATE_SEED, or another one each time. */
  readonly seed?: number | undefined
  /** Told what was played. Default: console.log. */
  readonly print?: ((line: string) => void) | undefined
}

export interface EveryFaultReport {
  readonly seed: number
  /** How many runs of each. */
  readonly runs: Readonly<Record<FaultName, number>>
}

/** Failures that are told; after so many it ends. */
const told = 5

export async function everyFault(options: EveryFaultOptions): Promise<EveryFaultReport> {
  const { faults = faultNames, most = 100, print = console.log } = options
  const { SHIPMATE_SEED, SHIPMATE_FAULT } = process.env
  const seed = options.seed ?? (SHIPMATE_SEED ? Number(SHIPMATE_SEED) : Math.floor(Math.random() * 2 ** 31))
  const { reference, wrong } = await refer(options, randomOf(seed)).catch(error => {
    throw new Error(`without any fault (seed ${seed}): ${messageOf(error)}`, { cause: error })
  })
  if (wrong.length > 0)
    throw new Error(`without any fault (seed ${seed}):\n${wrong.map(text => `  ${text}`).join('\n')}`)
  const draw = randomOf(seed)
  const all = faultsOf(options, reference)
  const chosen = faults.flatMap(name => {
    const ofName = all.filter(fault => fault.name === name)
    return SHIPMATE_FAULT ? ofName.filter(({ id }) => id === SHIPMATE_FAULT) : some(ofName, most, draw)
  })
  if (SHIPMATE_FAULT && chosen.length === 0)
    throw new Error(`there is no fault "${SHIPMATE_FAULT}"; there are\n${all.map(({ id }) => `  ${id}`).join('\n')}`)
  const failures: string[] = []
  let played = 0
  for (const [index, fault] of chosen.entries()) {
    const found = await fault.play(randomOf(seed + index))
    played++
    if (found.length === 0) continue
    failures.push(failureOf(fault, found, seed))
    if (failures.length === told) break
  }
  const runs = Object.fromEntries(
    faultNames.map(name => [name, chosen.filter(fault => fault.name === name).length]),
  ) as Record<FaultName, number>
  const left = all.filter(({ name }) => faults.includes(name)).length - chosen.length
  const counts = faultNames.map(name => `${runs[name]} ${name}`).join(', ')
  print(
    `everyFault: ${played} runs (${counts}${left > 0 && !SHIPMATE_FAULT ? `; ${left} not drawn` : ''}), seed ${seed}`,
  )
  if (failures.length > 0)
    throw new Error(`${failures.length} of ${played} runs went wrong.\n\n${failures.join('\n\n')}`)
  return { seed, runs }
}

function failureOf({ id }: Fault, found: readonly string[], seed: number): string {
  const wrong = found.slice(0, 6).map(text => `  ${text}`)
  return `${id}:\n${wrong.join('\n')}\n  again: SHIPMATE_SEED=${seed} SHIPMATE_FAULT=${JSON.stringify(id)}`
}
