// What each of the measures that keep the agent small is worth: its memory with all of them, without each, without any flags.

import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { nodeEnvironment, nodeFlags } from '../../shared/launch.ts'
import { peakMegabytes } from '../process.ts'
import { lines } from '../table.ts'
import { connect } from './client.ts'
import { memoryOf } from './memory.ts'
import { type Image, type Program, startAgent } from './programs.ts'
import type { Surroundings } from './trial.ts'

interface Way {
  name: string
  flags: readonly string[]
  environment: Readonly<Record<string, string>>
  /** Its libraries are bundled as they are. */
  isWhole?: boolean
}

/** Resident memory in MB: idle, some time after a quarter of the runs, and the most until then. */
interface WayFigures {
  idle: number
  after: number
  peak: number
}

/** By what was left out. */
export type FlagFigures = Record<string, WayFigures>

const ways: Way[] = [
  { name: 'all', flags: nodeFlags, environment: nodeEnvironment },
  ...nodeFlags.map(flag => ({
    name: `without ${flag}`,
    flags: nodeFlags.filter(other => other !== flag),
    environment: nodeEnvironment,
  })),
  ...Object.keys(nodeEnvironment).map(variable => ({
    name: `without ${variable}`,
    flags: nodeFlags,
    environment: Object.fromEntries(Object.entries(nodeEnvironment).filter(([name]) => name !== variable)),
  })),
  { name: 'without any of these', flags: [], environment: {} },
  { name: 'with the whole of its libraries', flags: nodeFlags, environment: nodeEnvironment, isWhole: true },
]

/**
 * Four at a time: resident memory does not depend on what runs beside it.
 *
 * @param whole the image with the whole of the agent's libraries
 */
export async function measureFlags(around: Surroundings, whole: Image, running: Set<Program>): Promise<FlagFigures> {
  const figures: FlagFigures = {}
  for (let i = 0; i < ways.length; i += 4) {
    const some = ways.slice(i, i + 4)
    around.say(`${i + 1} to ${i + some.length} of ${ways.length} ways to start the agent`)
    const measured = some.map(async (way, k) => {
      const image = way.isWhole ? whole : around.image
      const folder = join(around.folder, `way-${i + k}`)
      figures[way.name] = await measure(way, folder, { ...around, image }, running)
    })
    await Promise.all(measured)
  }
  return figures
}

async function measure(way: Way, folder: string, around: Surroundings, running: Set<Program>): Promise<WayFigures> {
  const { keeper, image, options, signal } = around
  signal.throwIfAborted()
  const program = await startAgent(keeper, image, { ...way, auth: 'none', folder })
  running.add(program)
  const settled = async () => {
    await sleep(options.settle * 1_000, undefined, { signal })
    return memoryOf(program.pid, image.node).rss
  }
  const idle = await settled()
  const client = await connect(program)
  for (let i = 0; i < options.actions / 4; i++) {
    signal.throwIfAborted()
    await client.run('alone')
  }
  const after = await settled()
  const peak = peakMegabytes(program.pid)
  client.close()
  await program.stop()
  running.delete(program)
  return { idle, after, peak }
}

export function flagsTable(figures: FlagFigures, actions: number): string {
  const all = figures[ways[0]?.name ?? '']
  const cells = ways.map(({ name }) => [
    name,
    ...(['idle', 'after', 'peak'] as const).map(key => {
      const value = figures[name]?.[key] ?? Number.NaN
      const more = value - (all?.[key] ?? Number.NaN)
      return `${value.toFixed(1)} (${more < 0 ? '−' : '+'}${Math.abs(more).toFixed(1)})`
    }),
  ])
  const count = Math.ceil(actions / 4).toLocaleString('en')
  return lines([['RSS, MB', 'idle', `after ${count} runs`, 'the most'], ...cells])
}
