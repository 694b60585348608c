/**
 * The journal on disk: append-only lines, each synced before it is acted upon.
 *
 * Guarantees: `append` resolves only when the record is on disk, and rejects, with nothing remembered, when it is not. Records stand in the order of their
 * `append`s. Several that wait share one sync. A torn tail is cut off; a damaged journal is kept as far as it can be read, and gets a new id. What is given up when the
 * disk is full is for ends alone: nothing else is written until it is there again.
 */
import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Timer } from '../../shared/clock.ts'
import { messageOf } from '../../shared/errors.ts'
import type { Logger } from '../../shared/log.ts'
import type { Fault } from '../faults.ts'
import { idOfFolder, runFolderName, syncFolder, writeSynced } from '../runs/folder.ts'
import { decode, encode } from './line.ts'
import { compacted, emptyMemory, fold, type JournalRecord, lostRun, type Memory } from './records.ts'

/** Below, nothing is compacted. */
const smallest = 1024 * 1024
/** Given up when the disk is full, so that ends can still be written. */
const reserveSize = 256 * 1024
/** How soon after a failure it is tried whether one can write again, in milliseconds. */
const tryEvery = 1000

export interface JournalOptions {
  readonly stateDir: string
  readonly clock: Clock
  readonly log: Logger
  readonly fault: Fault
}

export interface Journal {
  readonly memory: Memory
  /** Bytes on disk. */
  readonly size: number
  /** Why the last append failed, until one succeeds. */
  readonly failure: string | undefined
  /** Writes and syncs, then folds it into `memory`. `needed`: the reserve is given up for it if the disk is full. */
  append(record: JournalRecord, options?: { needed?: boolean }): Promise<void>
  /** Resolves when everything appended so far is on disk, or has failed. */
  close(): Promise<void>
}

interface Waiting {
  readonly record: JournalRecord
  readonly needed: boolean
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

export async function openJournal(options: JournalOptions): Promise<Journal> {
  const { stateDir, clock, log, fault } = options
  const path = join(stateDir, 'journal')
  const memory = await recover(options, path)
  let file = await open(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT, 0o600)
  let size = (await file.stat()).size
  let live = sizeOf(memory, clock)
  let failure: { readonly message: string; readonly bytes: number } | undefined
  let trying: Timer | undefined
  let isClosed = false
  let isDirty = false
  /** Whether the folder on disk may still name the file that was compacted. */
  let isRenamed = false
  let hasReserve = await keepReserve(stateDir)
  let waiting: Waiting[] = []
  let writing: Promise<void> | undefined

  async function drain(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting
      waiting = []
      await write(batch)
      if (size > Math.max(smallest, 4 * live)) await compact()
    }
    writing = undefined
  }

  async function write(batch: readonly Waiting[]): Promise<void> {
    const kind = batch[0]?.record.t
    let length = 0
    try {
      fault(`journal.${kind}.before`)
      const bytes = Buffer.from(batch.map(({ record }) => encode(record)).join(''))
      length = bytes.length
      await store(
        bytes,
        batch.every(({ needed }) => needed),
      )
      fault(`journal.${kind}.synced`)
    } catch (error) {
      failed(error, length)
      // Alone, one may fit where all together did not, one that cannot fit does not keep the others out, and one that is needed gets the reserve.
      if (batch.length > 1) {
        for (const one of batch) await write([one])
        return
      }
      batch[0]?.reject(error)
      return
    }
    failure = undefined
    for (const { record, resolve, reject } of batch) {
      try {
        fold(memory, record)
        resolve()
      } catch (error) {
        reject(error)
      }
    }
    if (!hasReserve) hasReserve = await keepReserve(stateDir)
  }

  /** All of it, or nothing: what a failed write has left is cut off. */
  async function store(bytes: Buffer, needed: boolean): Promise<void> {
    for (;;) {
      try {
        if (isDirty) await cutOff(file, size)
        if (isRenamed) await syncName()
        if (!(needed || hasReserve)) {
          await makeReserve(stateDir)
          hasReserve = true
        }
        isDirty = true
        await file.appendFile(bytes)
        fault('journal.written')
        await file.datasync()
        size += bytes.length
        isDirty = false
        return
      } catch (error) {
        await cutOff(file, size).then(
          () => {
            isDirty = false
          },
          () => {},
        )
        if (!(needed && hasReserve)) throw error
        hasReserve = false
        await rm(join(stateDir, 'reserve'), { force: true })
      }
    }
  }

  /** It may be long until somebody writes again: what is told of a failure is true all the same. */
  function failed(error: unknown, bytes: number): void {
    failure = { message: messageOf(error), bytes }
    if (isClosed) return
    trying ??= clock.after(tryEvery, () => {
      trying = undefined
      if (failure) writing ??= tryAgain(failure.bytes).then(drain)
    })
  }

  /** Writes as much as could not be written, and takes it back: a crash between the two leaves a torn tail. */
  async function tryAgain(bytes: number): Promise<void> {
    try {
      await store(Buffer.alloc(bytes, ' '), false)
      size -= bytes
      isDirty = true
      await cutOff(file, size)
      isDirty = false
      failure = undefined
      if (!hasReserve) hasReserve = await keepReserve(stateDir)
    } catch (error) {
      failed(error, bytes)
    }
  }

  async function compact(): Promise<void> {
    const next = join(stateDir, 'journal.new')
    let opened: FileHandle | undefined
    let content: string
    try {
      content = [...compacted(memory, clock.now())].map(encode).join('')
      await writeSynced(next, content)
      fault('compact.synced')
      // Opened before it takes the place of the other: nothing can fail between, and leave records in a file that has no name.
      opened = await open(next, constants.O_WRONLY | constants.O_APPEND)
      await rename(next, path)
    } catch (error) {
      live = size
      log.warn({ err: error }, 'the journal could not be compacted; it goes on as it is')
      await opened?.close().catch(() => {})
      await rm(next, { force: true }).catch(() => {})
      return
    }
    const old = file
    file = opened
    size = live = Buffer.byteLength(content)
    isDirty = false
    isRenamed = true
    fault('compact.renamed')
    await old.close().catch(() => {})
    // If it fails, it is done before the next record counts.
    await syncName().catch(() => {})
  }

  async function syncName(): Promise<void> {
    await syncFolder(stateDir)
    isRenamed = false
  }

  return {
    memory,
    get size() {
      return size
    },
    get failure() {
      return failure?.message
    },
    append(record, { needed = false } = {}) {
      return new Promise((resolve, reject) => {
        waiting.push({ record, needed, resolve, reject })
        writing ??= drain()
      })
    },
    async close() {
      isClosed = true
      trying?.cancel()
      while (writing) await writing
      await file.close()
    },
  }
}

/** What was written is in the folder, whole; if nothing else is, a new journal. */
async function recover({ stateDir, clock, log, fault }: JournalOptions, path: string): Promise<Memory> {
  await rm(join(stateDir, 'journal.new'), { force: true })
  const content = await readIfThere(path)
  const memory = emptyMemory(randomUUID())
  const { records, good, torn, damaged } = decode(content)
  let unusable = damaged
  for (const record of records) {
    try {
      fold(memory, record as JournalRecord)
    } catch (error) {
      unusable++
      log.error({ err: error }, 'a record of the journal cannot be used')
    }
  }
  const hasHeader = (records[0] as JournalRecord | undefined)?.t === 'journal'
  const unknown = await claimedWithoutRecord(stateDir, memory)
  if (hasHeader && unusable === 0 && unknown.length === 0) {
    if (torn) {
      const file = await open(path, 'r+')
      await cutOff(file, good)
      await file.close()
      log.info({ bytes: content.length - good }, 'the last line of the journal was not written whole, and is cut off')
    }
    return memory
  }
  if (content.length > 0 || unknown.length > 0) {
    memory.journalId = randomUUID()
    for (const id of unknown) memory.runs.set(id, lostRun(id, clock.now()))
    log.error(
      { unusable, unknown, journalId: memory.journalId },
      'the journal is damaged: what can be read is kept, under a new id',
    )
    // On a full disk what is damaged is not kept: the new journal comes first.
    if (content.length > 0) await writeFile(`${path}.damaged`, content, { mode: 0o600 }).catch(() => {})
  }
  const next = `${path}.new`
  await writeSynced(next, [...compacted(memory, clock.now())].map(encode).join(''))
  fault('journal.created')
  await rename(next, path)
  await syncFolder(stateDir)
  return memory
}

/** Runs that somebody has begun to execute, and of which the journal knows nothing. */
async function claimedWithoutRecord(stateDir: string, memory: Memory): Promise<string[]> {
  const known = new Set([...memory.runs.keys()].map(runFolderName))
  const folders = await readdir(join(stateDir, 'runs')).catch((): string[] => [])
  const unknown: string[] = []
  for (const folder of folders) {
    if (known.has(folder)) continue
    const files = await readdir(join(stateDir, 'runs', folder)).catch((): string[] => [])
    if (files.includes('claim')) unknown.push(idOfFolder(folder))
  }
  return unknown
}

/** Bytes that a compacted journal would have. */
function sizeOf(memory: Memory, clock: Clock): number {
  let bytes = 0
  for (const record of compacted(memory, clock.now())) bytes += Buffer.byteLength(encode(record))
  return bytes
}

async function readIfThere(path: string): Promise<Buffer> {
  try {
    await using file = await open(path, 'r')
    return await file.readFile()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}

async function cutOff(file: FileHandle, size: number): Promise<void> {
  await file.truncate(size)
  await file.datasync()
}

/** Best effort: on a full disk there is none. */
function keepReserve(stateDir: string): Promise<boolean> {
  return makeReserve(stateDir).then(
    () => true,
    () => false,
  )
}

/** All of it, or nothing. */
async function makeReserve(stateDir: string): Promise<void> {
  const path = join(stateDir, 'reserve')
  try {
    await using file = await open(path, 'a', 0o600)
    const missing = reserveSize - (await file.stat()).size
    if (missing > 0) await file.appendFile(Buffer.alloc(missing))
  } catch (error) {
    await rm(path, { force: true }).catch(() => {})
    throw error
  }
}
