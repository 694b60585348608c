/**
 * The file tree of a container: the machine's, with the pod's volumes at their places.
 *
 * Where a process may have a mount namespace, the folder `root` becomes its `/`: folders that must hold a mount point that the machine does not
 * have are made of links to the machine's own (under `/.host`), all others are the machine's. Elsewhere `root` holds links to the volumes, and
 * paths in the command and the environment are rewritten to it. Nothing outside `root` is touched either way.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'

export interface Bind {
  /** Where it is on the machine. */
  readonly source: string
  /** Where the container sees it. */
  readonly target: string
  readonly isFile: boolean
  readonly isReadOnly: boolean
}

/** The machine's own root, as a container sees it. */
export const hostRoot = '/.host'

/** Fills `root` for a mount namespace; answers the top folders that are to be mounted into it as they are. */
export function prepareRoot(root: string, binds: readonly Bind[], cwd: string): string[] {
  rmSync(root, { recursive: true, force: true })
  const open = new Set(['/'])
  for (const path of [...binds.map(({ target }) => target), cwd]) {
    const { there, rest } = splitPath(path)
    if (rest.length > 0) for (let one = there; one !== '/'; one = dirname(one)) open.add(one)
  }
  const tops: string[] = []
  for (const folder of [...open].sort((a, b) => a.length - b.length)) {
    mkdirSync(join(root, folder), { recursive: true })
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name)
      const place = join(root, path)
      if (open.has(path) || path === '/proc' || path === hostRoot) continue
      if (entry.isSymbolicLink()) symlinkSync(readlinkSync(path), place)
      else if (folder === '/' && entry.isDirectory()) {
        mkdirSync(place)
        tops.push(path)
      } else symlinkSync(join(hostRoot, path), place)
    }
  }
  const { there, rest } = splitPath(cwd)
  if (rest.length > 0) mkdirSync(join(root, there, ...rest), { recursive: true })
  mkdirSync(join(root, hostRoot), { recursive: true })
  mkdirSync(join(root, 'proc'), { recursive: true })
  return tops
}

/** The part of a path that the machine has, without links, and the rest. */
function splitPath(path: string): { there: string; rest: string[] } {
  const rest: string[] = []
  let there = path
  while (!existsSync(there)) {
    rest.unshift(basename(there))
    there = dirname(there)
  }
  return { there: realpathSync(there), rest }
}

/** A volume that is mounted inside another one that cannot be written to has its place there beforehand, as a kubelet sees to it. */
export function makeNested(binds: readonly Bind[]): void {
  for (const { target, isFile } of binds) {
    const outer = binds.filter(one => one.isReadOnly && !one.isFile && target.startsWith(`${one.target}/`)).at(-1)
    if (!outer) continue
    const place = join(outer.source, target.slice(outer.target.length))
    if (existsSync(place)) continue
    mkdirSync(isFile ? dirname(place) : place, { recursive: true })
    if (isFile) writeFileSync(place, '')
  }
}

/** Fills `root` with links to the volumes. */
export function linkRoot(root: string, binds: readonly Bind[]): void {
  rmSync(root, { recursive: true, force: true })
  mkdirSync(root, { recursive: true })
  for (const { source, target, isFile, isReadOnly } of [...binds].sort((a, b) => a.target.length - b.target.length)) {
    const place = join(root, target)
    mkdirSync(dirname(place), { recursive: true })
    rmSync(place, { recursive: true, force: true })
    // A single file of an object stays as it is when that changes, as on a kubelet.
    if (isFile && isReadOnly) cpSync(source, place, { dereference: true })
    else symlinkSync(source, place)
  }
}
