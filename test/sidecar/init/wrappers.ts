/**
 * The programs that do `exec`, the C program as it is shipped, the same under the sanitizers, and the Node twin; and how to call one.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished, vi } from 'vitest'
import { compileInit } from '../../../sidecar/init/compile.ts'

const cache = join(import.meta.dirname, '../../../.cache/init')
export const init = join(cache, 'shipmate-init')
export const sanitized = join(cache, 'shipmate-init-sanitized')
export const faulty = join(cache, 'shipmate-init-faults')

const compiled = await Promise.all([
  compileInit(init),
  compileInit(sanitized, { sanitize: true }),
  compileInit(faulty, { faults: true }),
])

/** Without a C compiler there is the twin alone. */
export const hasCompiler = compiled.every(Boolean)
export const isRoot = process.getuid?.() === 0
const need = hasCompiler ? '' : ' (skipped: there is no Linux or no C compiler)'

export interface Wrapper {
  readonly name: string
  readonly kind: 'c' | 'sanitized' | 'twin'
  readonly isThere: boolean
  /** What stands before `--dir …`. */
  readonly argv: [string, ...string[]]
}

export const wrappers: Wrapper[] = [
  { name: `shipmate-init${need}`, kind: 'c', isThere: hasCompiler, argv: [init, 'exec'] },
  { name: `shipmate-init with sanitizers${need}`, kind: 'sanitized', isThere: hasCompiler, argv: [sanitized, 'exec'] },
  {
    name: 'the Node twin',
    kind: 'twin',
    isThere: true,
    argv: [process.execPath, '--disable-warning=ExperimentalWarning', join(import.meta.dirname, 'twin-main.ts')],
  },
]

/** A folder for one test. */
export function folder(parent = tmpdir()): string {
  const dir = mkdtempSync(join(parent, 'shipmate-init-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

export interface Call {
  /** Default: a new one. */
  readonly dir?: string
  /** Options beyond `--dir` and `--log`. */
  readonly options?: string[]
  readonly env?: Record<string, string>
  /** Or standard input as it is; null: it is left open, for the test to end. */
  readonly secrets?: Buffer[] | Buffer | null
  /** A command line that ends by executing its arguments. */
  readonly before?: string[]
  readonly uid?: number
  /** Open files to inherit, from 3 on. */
  readonly files?: number[]
}

export interface Ended {
  readonly code: number | null
  readonly signal: string | null
  readonly stderr: string
}

export interface Started {
  readonly dir: string
  readonly process: ChildProcess
  readonly pid: number
  readonly ended: Promise<Ended>
  /** The text of a file in its folder, undefined if there is none. */
  read(name: string): string | undefined
  /** What it has written to its standard output. */
  told(): string
  json(name: string): Record<string, unknown>
  /** The log as far as it is kept. */
  log(): string
}

const path = process.env.PATH ?? '/usr/bin:/bin'

export function start(wrapper: Wrapper, command: string[], call: Call = {}): Started {
  const dir = call.dir ?? folder()
  mkdirSync(dir, { recursive: true })
  const own = [...wrapper.argv, '--dir', dir, '--log', join(dir, 'log'), ...(call.options ?? []), '--', ...command]
  const [file = '', ...args] = [...(call.before ?? []), ...own]
  const child = spawn(file, args, {
    stdio: ['pipe', 'pipe', 'pipe', ...(call.files ?? [])],
    env: { PATH: path, ...call.env },
    ...(call.uid === undefined ? {} : { uid: call.uid, gid: call.uid }),
  })
  let stderr = ''
  child.stderr?.on('data', data => {
    stderr += data
  })
  let told = ''
  child.stdout?.on('data', data => {
    told += data
  })
  // One that is not called the right way does not read them.
  child.stdin?.on('error', () => undefined)
  if (call.secrets !== null)
    child.stdin?.end(Buffer.isBuffer(call.secrets) ? call.secrets : counted(call.secrets ?? []))
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal, stderr }))
  })
  onTestFinished(async () => {
    const isOver = new Promise(resolve => child.once('exit', resolve))
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await isOver
  })
  const read = (name: string) => (existsSync(join(dir, name)) ? readFileSync(join(dir, name), 'utf8') : undefined)
  return {
    dir,
    process: child,
    pid: child.pid ?? 0,
    ended,
    read,
    told: () => told,
    json: name => JSON.parse(read(name) ?? '{}'),
    log: () => Buffer.concat([...segments(join(dir, 'log')).values()]).toString(),
  }
}

/** Runs to its end, which must be 0. */
export async function run(wrapper: Wrapper, command: string[], call: Call = {}): Promise<Started> {
  const started = start(wrapper, command, call)
  const { code, signal, stderr } = await started.ended
  if (code !== 0) throw new Error(`the wrapper ended with ${code ?? signal}: ${stderr}`)
  return started
}

export const shell = (script: string, ...args: string[]): string[] => ['sh', '-c', script, 'sh', ...args]

/** Secrets as a wrapper gets them. */
export function counted(secrets: Buffer[]): Buffer {
  return Buffer.concat([number(secrets.length), framed(secrets)])
}

export function framed(pieces: Buffer[]): Buffer {
  return Buffer.concat(pieces.flatMap(piece => [number(piece.length), piece]))
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** The segments of a log by their offsets, in order. */
export function segments(dir: string): Map<number, Buffer> {
  const names = existsSync(dir) ? readdirSync(dir).sort() : []
  return new Map(names.map(name => [Number(name), readFileSync(join(dir, name))]))
}

/** Waits until it is true, and answers it. */
export function until<T>(look: () => T | undefined | false): Promise<T> {
  return vi.waitFor(
    () => {
      const found = look()
      if (found === undefined || found === false) throw new Error(`it did not become true: ${look}`)
      return found
    },
    { timeout: 20_000, interval: 5 },
  )
}

/** Whether there is a process of that number that has not ended. */
export function lives(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return process.platform !== 'linux' || !/\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}
