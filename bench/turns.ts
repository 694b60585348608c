// Every program in turn, so many times; a trial that fails is told, and the others go on. And what a trial logs.

import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { medianOf } from './statistics.ts'

export interface Trial<F> {
  name: string
  run: number
  figures?: F
  failure?: string
}

/** @param measure answers the figures of one program, and what to say of them */
export async function takeTurns<P extends { name: string }, F>(
  programs: P[],
  runs: number,
  measure: (program: P, run: number) => Promise<{ figures: F; said: string }>,
): Promise<Trial<F>[]> {
  const trials: Trial<F>[] = []
  for (let run = 1; run <= runs; run++) {
    // Each run starts with another program, so that none always finds the server fresh.
    const shift = (run - 1) % Math.max(1, programs.length)
    for (const program of [...programs.slice(shift), ...programs.slice(0, shift)]) {
      const { name } = program
      const trial: Trial<F> = { name, run }
      process.stdout.write(`${name}, run ${run}: `)
      try {
        const { figures, said } = await measure(program, run)
        trial.figures = figures
        console.log(said)
      } catch (error) {
        trial.failure = (error as Error).message
        console.log(`failed: ${trial.failure}`)
      }
      trials.push(trial)
    }
  }
  return trials
}

/** The median of each program's figures, by its name; without those that have none. */
export function medians<F extends object>(trials: Trial<F>[]): Map<string, F> {
  const measured = Map.groupBy(
    trials.filter(({ figures }) => figures !== undefined),
    ({ name }) => name,
  )
  return new Map([...measured].map(([name, own]) => [name, medianOf(own.map(({ figures }) => figures as F))]))
}

/** An empty file for a program's output. */
export function logFile(name: string): string {
  const folder = fileURLToPath(new URL('../.cache/bench/logs', import.meta.url))
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `${name}.log`)
  writeFileSync(file, '')
  return file
}

/** Writes all that was measured, if a file is asked for, with what it was measured on. */
export function writeJson(file: string | undefined, load: number, measured: object): void {
  if (file === undefined) return
  const machine = { cpu: cpus()[0]?.model, cores: availableParallelism(), load, node: process.version }
  writeFileSync(file, `${JSON.stringify({ machine, ...measured }, null, 2)}\n`)
}
