/**
 * A run's folder: where its files are, and what they say. docs/sidecar.md has the contract that the wrapper keeps, too.
 *
 * Guarantee: of all who call `claim` or start a wrapper for one folder, one gets it.
 */
import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { link, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../shared/clock.ts'
import { ownIdentity } from '../init/identity.ts'

/** Who executes, or did. */
export interface Claim {
  readonly by: 'wrapper' | 'agent'
  readonly boot: string
  readonly pidns: number
  readonly pid: number
  readonly start: number
  readonly at: number
}

export interface Child {
  readonly pid: number
  readonly start: number
}

/** How a command ended. */
export interface Exit {
  readonly cause: 'exited' | 'cancelled' | 'timedOut' | 'notExecuted'
  readonly code: number | null
  readonly signal: string | null
  readonly error: string | null
  readonly at: number
  readonly log: number
}

/** The name of a run's folder: its id, but for the two that mean something to the file system. */
export function runFolderName(id: string): string {
  return id === '.' || id === '..' ? id.replaceAll('.', '%2E') : id
}

/** The id that a folder belongs to. */
export function idOfFolder(name: string): string {
  return name.replaceAll('%2E', '.')
}

/** Where all runs are. */
export function runsFolder(stateDir: string): string {
  return join(stateDir, 'runs')
}

export function runFolder(stateDir: string, id: string): string {
  return join(runsFolder(stateDir), runFolderName(id))
}

/** Where step `k` of an action with steps has its files. */
export function stepFolder(folder: string, k: number): string {
  return join(folder, 'steps', String(k))
}

/** Where a verify for a run has its secrets; the run itself may be unknown here. */
export function verifyFolder(stateDir: string, id: string): string {
  return join(verifiesFolder(stateDir), runFolderName(id))
}

export function verifiesFolder(stateDir: string): string {
  return join(stateDir, 'verify')
}

export async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true })
}

export async function makeFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
}

/**
 * Claims a folder for the agent; false if somebody has it already. On disk when it resolves. A link, unlike a new file, cannot be seen before it
 * says whose it is.
 */
export async function claim(folder: string, clock: Clock): Promise<boolean> {
  const draft = join(folder, `claim.${randomUUID()}`)
  const content: Claim = { by: 'agent', ...ownIdentity(), at: clock.now() }
  try {
    await writeSynced(draft, `${JSON.stringify(content)}\n`)
    await link(draft, claimFile(folder))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    await rm(draft, { force: true })
  }
  await syncFolder(folder)
  return true
}

/** Where whoever executes the run has said so. */
export function claimFile(folder: string): string {
  return join(folder, 'claim')
}

/** `damaged`: somebody has claimed it, but the disk has lost who. */
export async function readClaim(folder: string): Promise<Claim | 'damaged' | undefined> {
  return readJson<Claim>(claimFile(folder))
}

export async function readChild(folder: string): Promise<Child | undefined> {
  const child = await readJson<Child>(join(folder, 'child'))
  return child === 'damaged' ? undefined : child
}

/** The exit status is renamed into place, so it is whole or not there. */
export async function readExit(folder: string): Promise<Exit | undefined> {
  const exit = await readJson<Exit>(join(folder, 'exit'))
  return exit === 'damaged' ? undefined : exit
}

/** The bounded lines that the wrapper keeps; undefined where there is none. */
export async function readLine(folder: string, name: 'progress' | 'result' | 'last'): Promise<string | undefined> {
  return readFile(join(folder, name), 'utf8').catch(() => undefined)
}

/** Takes a run's folder away in one move, before it is forgotten: half of one would look like a run whose record was lost. */
export async function throwAway(stateDir: string, id: string): Promise<void> {
  const trash = join(stateDir, 'trash')
  await makeFolder(trash)
  await rename(runFolder(stateDir, id), join(trash, `${runFolderName(id)}~${randomUUID()}`)).catch(ignoreAbsent)
}

/** Each piece by itself: the folder stays, since another may be moved into it at this moment. */
export async function emptyTrash(stateDir: string): Promise<void> {
  const trash = join(stateDir, 'trash')
  const pieces = await readdir(trash).catch((): string[] => [])
  for (const piece of pieces) await rm(join(trash, piece), { recursive: true, force: true })
}

export async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  await folder.sync()
}

export async function writeSynced(path: string, content: string): Promise<void> {
  await using file = await open(path, 'w', 0o600)
  await file.writeFile(content)
  await file.sync()
}

async function readJson<T>(path: string): Promise<T | 'damaged' | undefined> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    return JSON.parse(text) as T
  } catch {
    return 'damaged'
  }
}

function ignoreAbsent(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error
}
