/**
 * Runs every `*.chaos.test.ts` with the full number of random schedules, in batches, and prints the seeds. What is done is kept in
 * .cache/nightly.json: a run that was stopped goes on where it was. A seed that fails is printed with the command that replays it.
 */
import { spawn } from 'node:child_process'
import { glob, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'

const root = join(import.meta.dirname, '..')
const stateFile = join(root, '.cache/nightly.json')

const usage = `Usage: npm run nightly -- [options] [file…]

  --schedules N  schedules per file (default: SHIPMATE_SCHEDULES, or 2000)
  --seed N       the first seed (default: SHIPMATE_SEED, or 1)
  --batch N      schedules per run of the tests (default: 50)
  --restart      forget what is done
  --help         print this help
`

const hasServer = Boolean(process.env.KUBEBUILDER_ASSETS)
const needsApi = (file: string) => file.endsWith('.server.test.ts')

interface Plan {
  first: number
  schedules: number
}

interface State extends Plan {
  /** Per file, the first seed that is not done, and the command for each that failed. */
  suites: Record<string, { next: number; failed: string[] }>
}

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
try {
  process.exitCode = await main()
} catch (error) {
  console.error(`nightly: ${error instanceof Error ? error.message : error}`)
  process.exitCode = 2
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      schedules: { type: 'string', default: process.env.SHIPMATE_SCHEDULES ?? '2000' },
      seed: { type: 'string', default: process.env.SHIPMATE_SEED ?? '1' },
      batch: { type: 'string', default: '50' },
      restart: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    console.log(usage)
    return 0
  }
  const plan = { first: count('seed', values.seed), schedules: count('schedules', values.schedules) }
  const state = values.restart ? { ...plan, suites: {} } : await resume(plan)
  for (const file of await suites(positionals)) {
    await run(file, state, count('batch', values.batch))
    if (stop.signal.aborted) {
      console.log('stopped: npm run nightly goes on from here')
      return 130
    }
  }
  return await conclude(state)
}

async function suites(asked: string[]): Promise<string[]> {
  const found: string[] = []
  for await (const file of glob('test/**/*.chaos{,.server}.test.ts', { cwd: root })) found.push(file)
  found.sort()
  const unknown = asked.filter(file => !found.includes(file))
  if (unknown.length > 0)
    throw new Error(`no such suite: ${unknown.join(', ')}; there are: ${found.join(', ') || 'none'}`)
  const wanted = asked.length > 0 ? asked : found
  // Those of devcluster compare it with a real server; all others are content with the embedded one.
  const needsServer = (file: string) => file.startsWith('test/devcluster/') && needsApi(file)
  const skipped = wanted.filter(file => !hasServer && needsServer(file))
  if (skipped.length > 0) console.log(`not run, as KUBEBUILDER_ASSETS is not set: ${skipped.join(', ')}`)
  return wanted.filter(file => !skipped.includes(file))
}

async function run(file: string, state: State, batch: number): Promise<void> {
  state.suites[file] ??= { next: state.first, failed: [] }
  const suite = state.suites[file]
  const end = state.first + state.schedules
  if (suite.next > state.first) console.log(`${file}: seeds ${state.first} to ${suite.next - 1} are done`)
  while (suite.next < end && !stop.signal.aborted) {
    const size = Math.min(batch, end - suite.next)
    const failed = await runBatch(file, suite.next, size)
    if (stop.signal.aborted) return
    suite.failed.push(...failed)
    suite.next += size
    await save(state)
  }
}

/** Answers the commands that replay what failed. */
async function runBatch(file: string, first: number, size: number): Promise<string[]> {
  const started = performance.now()
  const seeds = `seeds ${first} to ${first + size - 1}`
  const { ok, output } = await vitest(file, first, size)
  const took = `${((performance.now() - started) / 1000).toFixed(1)} s`
  if (ok || stop.signal.aborted) {
    if (ok) console.log(`${file}: ${seeds} passed in ${took}`)
    return []
  }
  console.log(`${output}\n${file}: ${seeds} failed in ${took}; looking for the seed`)
  const failed: string[] = []
  for (let seed = first; seed < first + size && !stop.signal.aborted; seed++) {
    if (!(await vitest(file, seed, 1)).ok) failed.push(`SHIPMATE_SEED=${seed} npx vitest run ${file}`)
  }
  if (failed.length === 0) failed.push(`SHIPMATE_SEED=${first} SHIPMATE_SCHEDULES=${size} npx vitest run ${file}`)
  if (!stop.signal.aborted) for (const command of failed) console.log(`replay: ${command}`)
  return failed
}

function vitest(file: string, seed: number, schedules: number): Promise<{ ok: boolean; output: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ ok: boolean; output: string }>()
  const project = needsApi(file) ? ['--project', hasServer ? 'server' : 'embedded'] : []
  const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...project, file], {
    cwd: root,
    env: { ...process.env, SHIPMATE_NIGHTLY: '1', SHIPMATE_SEED: String(seed), SHIPMATE_SCHEDULES: String(schedules) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const terminate = () => child.kill('SIGTERM')
  stop.signal.addEventListener('abort', terminate, { once: true })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', text => (output += text))
  child.on('error', reject)
  child.on('close', code => {
    stop.signal.removeEventListener('abort', terminate)
    resolve({ ok: code === 0, output })
  })
  return promise
}

async function resume(plan: Plan): Promise<State> {
  const text = await readFile(stateFile, 'utf8').catch(() => undefined)
  if (text === undefined) return { ...plan, suites: {} }
  const state: State = JSON.parse(text)
  if (state.first !== plan.first) {
    console.log(`beginning anew: the last run began with seed ${state.first}, this one with ${plan.first}`)
    return { ...plan, suites: {} }
  }
  console.log('going on where the last run stopped; --restart begins anew')
  return { ...state, ...plan }
}

async function save(state: State): Promise<void> {
  await mkdir(dirname(stateFile), { recursive: true })
  await writeFile(`${stateFile}.new`, JSON.stringify(state, null, 2))
  await rename(`${stateFile}.new`, stateFile)
}

async function conclude(state: State): Promise<number> {
  const suites = Object.values(state.suites)
  const failed = suites.flatMap(suite => suite.failed)
  const done = suites.reduce((sum, suite) => sum + suite.next - state.first, 0)
  for (const command of failed) console.log(`replay: ${command}`)
  console.log(`${suites.length} suites, ${done} schedules: ${done - failed.length} passed, ${failed.length} failed`)
  await rm(stateFile, { force: true })
  return failed.length > 0 ? 1 : 0
}

function count(name: string, value: string): number {
  if (/^[1-9]\d*$/.test(value)) return Number(value)
  throw new Error(`--${name} must be a number from 1, not "${value}"`)
}
