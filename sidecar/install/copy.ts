/**
 * Copies files so that whoever looks sees the old one or the new one, whole.
 *
 * Guarantees: a file that is the same already is left alone, with the pages of it that a running agent shares; readable by every user, and executable
 * if the original is, whatever the umask.
 */
import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

const piece = 1024 * 1024

export function copyFile(from: string, to: string): 'copied' | 'same' {
  const source = statSync(from)
  const mode = (source.mode & 0o755) | (source.mode & 0o111 ? 0o555 : 0o444)
  const target = statSync(to, { throwIfNoEntry: false })
  if (target?.isFile() && target.size === source.size && isSame(from, to)) {
    if ((target.mode & 0o777) !== mode) chmodSync(to, mode)
    return 'same'
  }
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

/** A folder that every user can look into. */
export function makeFolder(path: string): void {
  if (mkdirSync(path, { recursive: true })) chmodSync(path, 0o755)
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
