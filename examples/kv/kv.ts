#!/usr/bin/env node
/**
 * A small key-value store over HTTP: one file, no dependencies, a real data file.
 *
 *   kv [--data DIR] [--listen HOST:PORT]
 *
 * Guarantees: a write is answered when it is on disk. The data file is only appended to while it runs, so any part of it from its beginning to the end of
 * a record is a whole database: that is what a backup copies. A record that was half written when the power went is cut off at the next start.
 */
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { type FileHandle, mkdir, open, rename } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { crc32 } from 'node:zlib'

const { values: options } = parseArgs({
  options: { data: { type: 'string', default: '/data' }, listen: { type: 'string', default: '0.0.0.0:6380' } },
})
const folder = options.data
const dataFile = join(folder, 'kv.log')
const configFile = join(folder, 'kv.json')
const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(options.listen) ?? []
if (host === '') {
  console.error(`kv: --listen ${options.listen}: it is written HOST:PORT`)
  process.exit(2)
}

interface Config {
  /** The longest value that is taken. */
  readonly maxValueBytes: number
  readonly logLevel: 'info' | 'debug'
}

function readConfig(): Config {
  const given = existsSync(configFile) ? JSON.parse(readFileSync(configFile, 'utf8')) : {}
  const { maxValueBytes = 1 << 20, logLevel = 'info' } = given
  if (!Number.isInteger(maxValueBytes) || maxValueBytes < 1) throw new Error('maxValueBytes is a number above 0')
  if (logLevel !== 'info' && logLevel !== 'debug') throw new Error('logLevel is info or debug')
  return { maxValueBytes, logLevel }
}

let config = readConfig()
/** Values as base64: any bytes are a value. */
const values = new Map<string, string>()
let bytes = 0
let state: 'open' | 'stopped' = 'open'

const say = (msg: string, more: object = {}) =>
  console.log(JSON.stringify({ at: new Date().toISOString(), msg, ...more }))
const debug = (msg: string, more: object = {}) => {
  if (config.logLevel === 'debug') say(msg, more)
}

/** `CRC32 JSON`: a value, or null for a key that was deleted. */
function recordOf(key: string, value: string | null): string {
  const text = JSON.stringify([key, value])
  return `${crc32(text).toString(16).padStart(8, '0')} ${text}\n`
}

/** Reads the data file into memory; answers how far it is whole, and how many records that are. */
async function load(file: FileHandle): Promise<{ whole: number; records: number }> {
  const content = await file.readFile()
  let whole = 0
  let records = 0
  for (let end = content.indexOf(10); end >= 0; end = content.indexOf(10, whole)) {
    const line = content.toString('utf8', whole, end)
    const text = line.slice(9)
    if (line.slice(0, 8) !== crc32(text).toString(16).padStart(8, '0')) break
    const [key, value] = JSON.parse(text) as [string, string | null]
    if (value === null) values.delete(key)
    else values.set(key, value)
    whole = end + 1
    records++
  }
  if (content.indexOf(10, whole) >= 0) throw new Error(`${dataFile} is damaged at byte ${whole}`)
  return { whole, records }
}

async function syncFolder(): Promise<void> {
  const handle = await open(folder, 'r')
  await handle.sync().finally(() => handle.close())
}

/** Opens the data file. One that is mostly history is written anew first: never while it runs, as backups read it then. */
async function openData(): Promise<FileHandle> {
  const file = await open(dataFile, 'a+')
  const { whole, records } = await load(file)
  if ((await file.stat()).size > whole) {
    say('cut off what was half written', { from: whole })
    await file.truncate(whole)
  }
  bytes = whole
  if (records < 1000 || records < 2 * values.size) return file
  const fresh = await open(`${dataFile}.new`, 'w')
  for (const [key, value] of values) await fresh.write(recordOf(key, value))
  await fresh.sync()
  await fresh.close()
  await rename(`${dataFile}.new`, dataFile)
  await syncFolder()
  await file.close()
  const compact = await open(dataFile, 'a+')
  bytes = (await compact.stat()).size
  say('compacted', { records, keys: values.size })
  return compact
}

await mkdir(folder, { recursive: true })
const data = await openData()
await syncFolder()

let pending: { record: string; done: PromiseWithResolvers<void> }[] = []
let writing: Promise<void> | undefined

/** Appends a record, and resolves when it is on disk. What comes meanwhile goes together, with one sync. */
function append(record: string): Promise<void> {
  const done = Promise.withResolvers<void>()
  pending.push({ record, done })
  writing ??= (async () => {
    while (pending.length > 0) {
      const batch = pending
      pending = []
      try {
        const text = Buffer.from(batch.map(one => one.record).join(''))
        await data.appendFile(text)
        await data.datasync()
        bytes += text.length
        for (const one of batch) one.done.resolve()
      } catch (error) {
        for (const one of batch) one.done.reject(error)
      }
    }
  })().finally(() => {
    writing = undefined
  })
  return done.promise
}

async function put(key: string, request: IncomingMessage): Promise<[number, unknown?]> {
  if (state === 'stopped') return [503, { error: 'it is stopped' }]
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of request as AsyncIterable<Buffer>) {
    length += piece.length
    if (length <= config.maxValueBytes) pieces.push(piece)
  }
  if (length > config.maxValueBytes) return [413, { error: `longer than maxValueBytes, ${config.maxValueBytes}` }]
  const value = Buffer.concat(pieces).toString('base64')
  await append(recordOf(key, value))
  values.set(key, value)
  debug('put', { key, length })
  return [204]
}

async function remove(key: string): Promise<[number, unknown?]> {
  if (state === 'stopped') return [503, { error: 'it is stopped' }]
  if (!values.has(key)) return [404, { error: 'no such key' }]
  await append(recordOf(key, null))
  values.delete(key)
  debug('delete', { key })
  return [204]
}

function reload(): [number, unknown?] {
  try {
    config = readConfig()
  } catch (error) {
    return [422, { error: `${configFile}: ${(error as Error).message}` }]
  }
  say('configuration read', { config })
  return [200, config]
}

/** All that was answered is on disk, and nothing more is taken. The process ends with its pod. */
async function stop(): Promise<[number, unknown?]> {
  state = 'stopped'
  await writing
  await data.sync()
  say('stopped', { keys: values.size, bytes })
  return [200, { keys: values.size, bytes }]
}

/** One line a key. */
async function dump(response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  for (const [key, value] of [...values]) {
    if (!response.write(`${JSON.stringify({ key, value })}\n`)) await once(response, 'drain')
  }
  response.end()
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, url = '/' } = request
  const key = /^\/keys\/([^/?]+)$/.exec(url)?.[1]
  const reply = ([status, body]: [number, unknown?]) => {
    response.writeHead(status, body === undefined ? {} : { 'content-type': 'application/json' })
    response.end(body === undefined ? undefined : `${JSON.stringify(body)}\n`)
  }
  if (method === 'GET' && url === '/keys') return dump(response)
  if (key !== undefined) {
    const name = decodeURIComponent(key)
    const value = values.get(name)
    if (method === 'PUT') return reply(await put(name, request))
    if (method === 'DELETE') return reply(await remove(name))
    if (method === 'GET' && value !== undefined) return void response.end(Buffer.from(value, 'base64'))
    return reply([404, { error: 'no such key' }])
  }
  switch (`${method} ${url}`) {
    case 'GET /healthz':
      return reply(state === 'open' ? [200, { state }] : [503, { state }])
    case 'GET /stats':
      return reply([200, { state, keys: values.size, bytes, config }])
    case 'POST /checkpoint':
      // What is on disk now: `bytes` ends a record.
      return reply([200, { file: dataFile, bytes, keys: values.size }])
    case 'POST /reload':
      return reply(reload())
    case 'POST /stop':
      return reply(await stop())
    default:
      return reply([404, { error: 'not here' }])
  }
}

const server = createServer((request, response) => {
  answer(request, response).catch(error => {
    say('failed', { url: request.url, error: String(error) })
    if (!response.headersSent) response.writeHead(500)
    response.end()
  })
})
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, async () => {
    await stop()
    await data.close()
    process.exit(0)
  })
}
process.on('SIGHUP', reload)
server.listen(Number(port), host, () => {
  // For who shares the folder: kvctl.
  writeFileSync(join(folder, 'kv.address'), `${host === '0.0.0.0' ? '127.0.0.1' : host}:${port}\n`)
  say('listening', { host, port, keys: values.size, bytes })
})
