#!/usr/bin/env node
/**
 * What can be asked of a kv, beside it: the commands of its Lifecycle.
 *
 *   kvctl ready                          exit 0 while it takes writes
 *   kvctl backup TO [MIB_PER_SECOND]     a copy of all that is in it, while it goes on
 *   kvctl verify TO                      exit 0 if there is a whole backup, 1 if there is none
 *   kvctl restore FROM DATA_DIR          makes a new data file of a backup
 *   kvctl reconfigure MAX_VALUE_BYTES    exit 0 once it is in force
 *   kvctl configured MAX_VALUE_BYTES     exit 0 if it is, 1 if it is not
 *   kvctl stop                           what is in memory is on disk, and nothing more is taken
 *
 * KV_DATA is the kv's folder (/data), where it says where it listens. KV_ROOT stands before every path, for where a container has no file tree of its own.
 */
import { createHash } from 'node:crypto'
import { appendFile, mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

const { KV_DATA = '/data', KV_ROOT: root = '' } = process.env
const folder = root + KV_DATA
const [command = '', ...words] = process.argv.slice(2)
const piece = 256 << 10

/** What stands beside a backup, written last: without it there is none. */
interface Manifest {
  readonly bytes: number
  readonly keys: number
  readonly sha256: string
}

const manifestOf = (to: string) => `${to}.json`

async function send(method: string, path: string): Promise<Response> {
  const address = await readFile(join(folder, 'kv.address'), 'utf8')
  return fetch(`http://${address.trim()}${path}`, { method, signal: AbortSignal.timeout(10_000) })
}

async function ask<T>(method: string, path: string): Promise<T> {
  const response = await send(method, path)
  const body = await response.json()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(body)}`)
  return body as T
}

/** For the agent beside it: lines of JSON are its progress and its result. */
const tell = (line: object) => console.log(JSON.stringify(line))

/** Puts a text in a file's place, whole, and on disk. */
async function replace(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { flush: true })
  await rename(`${path}.new`, path)
  await sync(dirname(path))
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r')
  await handle.sync().finally(() => handle.close())
}

async function backup(to: string, mibPerSecond: number): Promise<void> {
  const { file, bytes, keys } = await ask<{ file: string; bytes: number; keys: number }>('POST', '/checkpoint')
  await mkdir(dirname(to), { recursive: true })
  // Who wants to know how often this ran, whatever was killed meanwhile, reads it here.
  await appendFile(`${to}.runs`, `begun ${process.env['SHIPMATE_RUN_ID'] ?? 'by hand'}\n`, { flush: true })
  const source = await open(file, 'r')
  const target = await open(`${to}.new`, 'w')
  const hash = createHash('sha256')
  const buffer = Buffer.alloc(piece)
  const began = performance.now()
  for (let at = 0; at < bytes; ) {
    const { bytesRead } = await source.read(buffer, 0, Math.min(piece, bytes - at), at)
    if (bytesRead === 0) throw new Error(`${file} is shorter than it was`)
    const read = buffer.subarray(0, bytesRead)
    hash.update(read)
    await target.write(read)
    at += bytesRead
    tell({ progress: { percent: Math.floor((100 * at) / bytes), message: `${mib(at)} of ${mib(bytes)} MiB` } })
    // No faster than asked, so that who uses the kv does not notice.
    const due = (1000 * at) / (mibPerSecond * (1 << 20)) - (performance.now() - began)
    if (due > 0) await pause(due)
  }
  await target.sync()
  await target.close()
  await rename(`${to}.new`, to)
  const manifest: Manifest = { bytes, keys, sha256: hash.digest('hex') }
  await replace(manifestOf(to), JSON.stringify(manifest))
  await appendFile(`${to}.runs`, `done ${process.env['SHIPMATE_RUN_ID'] ?? 'by hand'}\n`, { flush: true })
  tell({ result: manifest })
}

const mib = (bytes: number) => (bytes / (1 << 20)).toFixed(1)

/** Undefined where the backup is whole, else what is wrong with it. */
async function flaw(from: string): Promise<string | undefined> {
  const text = await readFile(manifestOf(from), 'utf8').catch(() => undefined)
  if (text === undefined) return 'there is none'
  const { bytes, sha256 } = JSON.parse(text) as Manifest
  const size = (await stat(from).catch(() => undefined))?.size
  if (size !== bytes) return `it has ${size ?? 'no'} bytes instead of ${bytes}`
  const found = createHash('sha256')
    .update(await readFile(from))
    .digest('hex')
  return found === sha256 ? undefined : 'its content is not what was written'
}

async function restore(from: string, to: string): Promise<void> {
  const wrong = await flaw(from)
  if (wrong !== undefined) throw new Error(`${from} cannot be restored: ${wrong}`)
  await mkdir(to, { recursive: true })
  const file = join(to, 'kv.log')
  // An init container may run again: what is there already has been written to since.
  if (await stat(file).catch(() => undefined)) return console.log(`${file} is there already, and stays`)
  await rm(`${file}.new`, { force: true })
  await writeFile(`${file}.new`, await readFile(from), { flush: true })
  await rename(`${file}.new`, file)
  await sync(to)
}

const isConfigured = async (maxValueBytes: number) =>
  (await ask<{ config: { maxValueBytes: number } }>('GET', '/stats')).config.maxValueBytes === maxValueBytes

async function reconfigure(maxValueBytes: number): Promise<void> {
  const file = join(folder, 'kv.json')
  const before = JSON.parse(await readFile(file, 'utf8').catch(() => '{}'))
  await replace(file, `${JSON.stringify({ ...before, maxValueBytes })}\n`)
  await ask('POST', '/reload')
  if (!(await isConfigured(maxValueBytes))) throw new Error('it has another configuration than was written')
  tell({ result: { maxValueBytes } })
}

/** The exit code. */
async function main(): Promise<number> {
  const [first = '', second = ''] = words
  switch (command) {
    case 'ready':
      return (await send('GET', '/healthz')).ok ? 0 : 1
    case 'backup':
      await backup(root + first, Number(second || 64))
      return 0
    case 'verify':
      return (await flaw(root + first)) === undefined ? 0 : 1
    case 'restore':
      await restore(root + first, root + second)
      return 0
    case 'reconfigure':
      await reconfigure(Number(first))
      return 0
    case 'configured':
      return (await isConfigured(Number(first))) ? 0 : 1
    case 'stop':
      tell({ result: await ask('POST', '/stop') })
      return 0
    default:
      console.error(`kvctl: there is no "${command}": ready, backup, verify, restore, reconfigure, configured, stop`)
      return 2
  }
}

try {
  process.exitCode = await main()
} catch (error) {
  console.error(`kvctl ${command}: ${(error as Error).message}`)
  process.exitCode = 3
}
