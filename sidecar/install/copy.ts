/**
 * Copies files so that whoever looks sees the old one or the new one, whole.
 *
 * Guarantees: a file that is the same already is left alone, with the pages of it that a running agent shares; readable by every user, and executable
 * if the original is, whatever the umask. What an earlier one that was killed left behind can be cleared away.
 */
import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

const piece = 1024 * 1024
const draft = /^\.[-0-9a-f]{36}\.new$/

export function copyFile(from: string, to: string): 'copied' | 'same' {
  const source = statSync(from)
  const mode = (source.mode & 0o755) | (source.mode & 0o111 ? 0o555 : 0o444)
  const target = statSync(to, { throwIfNoEntry: false })
  const isAlike = target?.isFile() && target.size === source.size && (target.mode & 0o777) === mode
  if (isAlike && isSame(from, to)) return 'same'
  put(to, path => {
    copyFileSync(from, path, constants.COPYFILE_FICLONE)
    chmodSync(path, mode)
  })
  return 'copied'
}

export function writeWhole(to: string, text: string): void {
  put(to, path => {
    writeFileSync(path, text)
    chmodSync(path, 0o644)
  })
}

export function link(target: string, to: string): void {
  put(to, path => symlinkSync(target, path))
}

/** Makes a folder that every user can look into, and those above it that are missing. One that is there already stays as it is. */
export function makeFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })) return
  makeFolder(dirname(path))
  // One by one: for a read-only file system, mkdir of all at once says that there is no such folder.
  mkdirSync(path)
  chmodSync(path, 0o755)
}

/** Lets every user look into a folder of ours, which may have been made and not yet opened. */
export function openFolder(path: string): void {
  if ((statSync(path).mode & 0o555) !== 0o555) chmodSync(path, 0o755)
}

/** Removes what copies that were killed left in the folder. One that is being made there at the same time fails, and harms nothing. */
export function clearDrafts(folder: string): void {
  for (const name of readdirSync(folder)) if (draft.test(name)) rmSync(join(folder, name), { force: true })
}

function put(to: string, write: (path: string) => void): void {
  const next = join(dirname(to), `.${randomUUID()}.new`)
  try {
    write(next)
    renameSync(next, to)
  } finally {
    rmSync(next, { force: true })
  }
}

function isSame(one: string, other: string): boolean {
  const files = [openSync(one, 'r'), openSync(other, 'r')] as const
  const [left, right] = [Buffer.alloc(piece), Buffer.alloc(piece)]
  try {
    for (;;) {
      const read = readSync(files[0], left)
      if (read !== readSync(files[1], right)) return false
      if (read === 0) return true
      if (left.compare(right, 0, read, 0, read) !== 0) return false
    }
  } finally {
    for (const file of files) closeSync(file)
  }
}
