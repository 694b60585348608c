/**
 * `shipmate demo`, which is `npm start`: an app's life on an embedded cluster, with nothing else installed.
 *
 * Guarantees: the exit code is 0 only if every step happened as told; nothing is left behind, however it ends.
 */
import { constants } from 'node:os'
import type { Command } from 'commander'
import { exampleNames, missingFor, nodesOf, playExample } from '../demo/example.ts'
import { createScreen, type Screen } from '../demo/screen.ts'
import { openStage, type Stage } from '../demo/stage.ts'
import { startAgain, walk } from '../demo/walk.ts'
import { Failure, Misuse } from '../ending.ts'

interface Options {
  readonly keep?: boolean
  readonly fault?: boolean
  readonly example?: string
}

export function define(command: Command): void {
  command
    .option('--keep', 'leave it running afterwards, for kubectl, until Ctrl-C')
    .option('--fault', 'kill the sidecar in the middle of the backup')
    .option('--example <NAME>', `show an operator of examples/ instead: ${names().join(', ')}`)
    .action(async ({ keep = false, fault = false, example }: Options) => {
      if (example !== undefined && !names().includes(example))
        throw new Misuse(`--example ${example}: one of ${names().join(', ')}`)
      if (example !== undefined && example !== 'kv' && fault)
        throw new Misuse('--fault is for the walk without --example')
      const screen = createScreen(process.stdout, () => performance.now())
      if (example === undefined || example === 'kv')
        return attended(1, keep, screen, stage => playWalk(stage, screen, { keep, fault }))
      const missing = missingFor(example)
      if (missing !== undefined) {
        tellOthers(screen)
        throw new Failure(`example ${example} cannot be shown: ${missing}.`)
      }
      await attended(nodesOf(example), keep, screen, stage => playExample(stage, screen, example))
      tellOthers(screen)
    })
}

/** The walk itself is the example kv. */
const names = () => ['kv', ...exampleNames()]

/** Which of the examples this machine can show. */
function tellOthers(screen: Screen): void {
  screen.heading('Examples on this machine')
  for (const name of names()) screen.line(`  ${name.padEnd(22)}${missingFor(name) ?? 'can be shown'}`)
}

async function playWalk(
  stage: Stage,
  screen: Screen,
  { keep, fault }: { keep: boolean; fault: boolean },
): Promise<void> {
  await stage.installShipmate()
  screen.event('controller', 'a Deployment, under its own account and its generated rules')
  await walk(stage, screen, { fault })
  if (keep) return startAgain(stage, screen)
  screen.heading('What to try next')
  const next = [
    ['npm start -- --keep', 'the same, left running for kubectl'],
    ['npm start -- --fault', 'the sidecar is killed in the middle of the backup'],
    ['npm start -- --example NAME', `others: ${exampleNames().join(', ')}`],
    ['docs/lifecycle.md', 'a lifecycle for your own application'],
    ['docs/tutorial.md', 'your own operator'],
  ]
  for (const [what = '', why] of next) screen.line(`  ${what.padEnd(30)}${why}`)
}

/** Opens the stage, and closes it however the play ends. */
async function attended(
  nodes: number,
  keep: boolean,
  screen: Screen,
  play: (stage: Stage) => Promise<void>,
): Promise<void> {
  const opening = openStage({ nodes })
  let isPlayed = false
  let leaving: Promise<never> | undefined
  const leave = async (code: number): Promise<never> => {
    screen.close()
    await opening.then(stage => stage.stop()).catch(() => undefined)
    process.exit(code)
  }
  const ending = (code: number) => {
    leaving ??= leave(code)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      // A second one ends it at once; what is left is cleaned up by who waits for that.
      process.once(signal, () => process.exit(128 + constants.signals[signal]))
      ending(isPlayed ? 0 : 128 + constants.signals[signal])
    })
  }
  // Who read it has gone.
  process.stdout.on('error', () => ending(1))
  screen.line('An embedded cluster on this machine: nothing is installed, and nothing is left behind.')
  screen.line()
  const stage = await opening
  try {
    screen.event('cluster', `API server and ${nodes === 1 ? 'one node' : `${nodes} nodes`}`)
    await play(stage)
    isPlayed = true
    if (keep) {
      goOn(stage, screen)
      await new Promise(() => setInterval(() => undefined, 1 << 30))
    }
  } catch (error) {
    // What fails because the stage is being taken away is no failure of the play.
    if (leaving) return await leaving
    if (!(error instanceof Failure)) throw error
    screen.failure(error.message)
    throw new Failure('', error.exitCode)
  } finally {
    await stage.stop()
  }
}

function goOn({ kubeconfig }: Stage, screen: Screen): void {
  screen.heading('It runs until Ctrl-C. In another terminal:')
  screen.line(`  export KUBECONFIG=${kubeconfig}`)
  for (const one of [
    'kubectl get sapp,op,pods',
    'kubectl describe sapp kv',
    'kubectl logs kv-0 -c kv',
    'kubectl delete pod kv-0',
  ])
    screen.line(`  ${one}`)
}
