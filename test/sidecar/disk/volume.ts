/**
 * Small disks that a test can fill, empty and break. They need root, and go with the test.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { temporary } from '../soak/process.ts'

export interface Volume {
  readonly path: string
  /** Leaves room for so many bytes, and no more. Default 0. */
  fill(room?: number): void
  /** Gives back what `fill` took. */
  free(): void
}

/** Why there are no volumes here, if there are none. */
export const noVolumes = attempt('tmpfs')
/** Why there are none that can become read-only while files are open. */
export const noBreakable = noVolumes ?? attempt('ext4')

/** A disk in memory. */
export function volume(bytes = 4 * 1024 * 1024): Volume {
  const path = join(temporary(), 'volume')
  mkdirSync(path)
  mount('-t', 'tmpfs', '-o', `size=${bytes},mode=0755`, 'tmpfs', path)
  onTestFinished(() => unmount(path))
  return fillable(path)
}

/** A disk that `abort` makes read-only, as the kernel does after an error. */
export function breakable(): Volume & { abort(): void; repair(): Promise<void> } {
  const folder = temporary()
  const image = join(folder, 'image')
  const path = join(folder, 'volume')
  mkdirSync(path)
  makeImage(image)
  const options = ['-o', 'loop,errors=remount-ro', image, path]
  mount(...options)
  onTestFinished(() => unmount(path))
  return {
    ...fillable(path),
    abort: () => mount('-o', 'remount,abort', path),
    /** Once nobody uses it any more: what is open on it, or a mount namespace that another test took a copy of it into, keeps it as it is. */
    async repair() {
      const mounts = () => {
        if (spawnSync('umount', [path]).status !== 0) return false
        mount(...options)
        return isWritable(path)
      }
      await expect.poll(mounts, { timeout: 60_000, interval: 200 }).toBe(true)
    },
  }
}

function fillable(path: string): Volume {
  const filler = join(path, 'filler')
  return {
    path,
    fill(room = 0) {
      const file = openSync(filler, 'a')
      try {
        for (const size of [64 * 1024, 4096]) while (writes(file, Buffer.alloc(size)));
      } finally {
        closeSync(file)
      }
      const { bsize } = statfsSync(path)
      if (room > 0) truncateSync(filler, statSync(filler).size - Math.ceil(room / bsize) * bsize)
    },
    free: () => rmSync(filler, { force: true }),
  }
}

function writes(file: number, bytes: Buffer): boolean {
  try {
    return writeSync(file, bytes) === bytes.length
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false
    throw error
  }
}

function isWritable(path: string): boolean {
  try {
    writeFileSync(join(path, 'written'), '', { flush: true })
    return true
  } catch {
    return false
  }
}

function makeImage(image: string): void {
  closeSync(openSync(image, 'w'))
  truncateSync(image, 16 * 1024 * 1024)
  execFileSync('mkfs.ext4', ['-q', image], { stdio: 'pipe' })
}

function mount(...args: string[]): void {
  execFileSync('mount', args, { stdio: 'pipe' })
}

function unmount(path: string): void {
  execFileSync('umount', ['--lazy', path], { stdio: 'pipe' })
}

function attempt(kind: 'tmpfs' | 'ext4'): string | undefined {
  if (process.getuid?.() !== 0) return 'only root may mount'
  const folder = `/tmp/shipmate-volume-${process.pid}-${kind}`
  const path = join(folder, 'volume')
  mkdirSync(path, { recursive: true })
  try {
    if (kind === 'tmpfs') mount('-t', 'tmpfs', 'tmpfs', path)
    else {
      makeImage(join(folder, 'image'))
      mount('-o', 'loop,errors=remount-ro', join(folder, 'image'), path)
    }
    unmount(path)
    return undefined
  } catch {
    return `a ${kind} cannot be mounted here`
  } finally {
    if (existsSync(folder)) rmSync(folder, { recursive: true, force: true })
  }
}
