/**
 * A set of files that is loaded when all are there and belong together, and again whenever they change, as Kubernetes changes mounted Secrets.
 *
 * Guarantees: a set that is half written, or does not load, is never used: the last good one stays; why is told once per change.
 */
import { readFile, stat } from 'node:fs/promises'
import type { Clock, Timer } from '../../shared/clock.ts'
import { messageOf } from '../../shared/errors.ts'
import type { Logger } from '../../shared/log.ts'

export interface WatchedOptions<Value> {
  readonly paths: readonly string[]
  /** The value of the files' contents, in the order of `paths`. Throws if they are no use; the message says why. */
  readonly load: (contents: Buffer[]) => Value
  /** Called with each new value. */
  readonly changed: (value: Value) => void
  readonly clock: Clock
  readonly log: Logger
  /** How often is looked, in milliseconds. Default 5,000; while there is nothing yet, 1,000 at most. */
  readonly every?: number | undefined
}

export interface Watched<Value> {
  /** The last good one. */
  readonly value: Value | undefined
  /** Why there is none, each a sentence. */
  missing(): string[]
  /** Looks now. */
  look(): Promise<void>
  close(): void
}

export async function watchFiles<Value>(options: WatchedOptions<Value>): Promise<Watched<Value>> {
  const { paths, load, changed, clock, log, every = 5_000 } = options
  let value: Value | undefined
  let missing = paths.map(path => `${path} has not been read`)
  let last = ''
  let closed = false
  let timer: Timer | undefined
  let looking: Promise<void> | undefined

  const inspect = async () => {
    const before = await signature(paths)
    if (before.text === last) return
    const found = before.missing.length > 0 ? { missing: before.missing } : await attempt()
    // Changed while it was read: nobody knows what this is a mixture of. The next look decides.
    if (closed || (await signature(paths)).text !== before.text) return
    last = before.text
    missing = found.missing
    if ('loaded' in found) {
      value = found.loaded
      changed(found.loaded)
    } else if (value) {
      log.warn({ reason: missing.join('; ') }, 'changed files are not used, the last good ones stay')
    }
  }

  const attempt = async (): Promise<{ missing: string[]; loaded: Value } | { missing: string[] }> => {
    try {
      return { missing: [], loaded: load(await Promise.all(paths.map(path => readFile(path)))) }
    } catch (error) {
      return { missing: [`${paths.join(', ')}: ${messageOf(error)}`] }
    }
  }

  const look = () => {
    looking ??= inspect().finally(() => {
      looking = undefined
    })
    return looking
  }
  const again = () => {
    if (closed) return
    timer = clock.after(value ? every : Math.min(every, 1_000), () => void look().finally(again))
  }
  await look()
  again()
  return {
    get value() {
      return value
    },
    missing: () => (value ? [] : missing),
    look,
    close() {
      closed = true
      timer?.cancel()
    },
  }
}

/** Changes whenever a file does; symbolic links are followed, as those are what Kubernetes swaps. */
async function signature(paths: readonly string[]): Promise<{ text: string; missing: string[] }> {
  const looks = await Promise.all(
    paths.map(async path => {
      try {
        const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true })
        return { text: `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`, missing: [] }
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        const reason = code === 'ENOENT' ? `${path} is not there` : `${path} cannot be read: ${code}`
        return { text: String(code), missing: [reason] }
      }
    }),
  )
  return { text: looks.map(({ text }) => text).join('\n'), missing: looks.flatMap(({ missing }) => missing) }
}
